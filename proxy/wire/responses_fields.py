"""Parameters and tools of a Responses request as those of a chat completion request."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

_ELSEWHERE = frozenset(
    {
        "input",
        "instructions",
        "previous_response_id",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "max_output_tokens",
        "metadata",
        "stream_options",
        "background",
        "conversation",
        "include",
    }
)
"""Fields with a form of their own in chat, or with no meaning for the provider."""
_UNSENDABLE = frozenset(
    {
        "background_options",
        "context_management",
        "function_call",
        "functions",
        "max_tool_calls",
        "messages",
        "moderation",
        "prompt",
        "prompt_cache_options",
        "top_logprobs",
        "truncation",
    }
)
"""Fields of which chat knows nothing, or something else by the same name."""
_DEFAULTS = {"truncation": "disabled"}


def chat_fields(asked: Body) -> tuple[Body, list[str]]:
    """All of a chat request but its messages, and the names of what had to be left out.

    What is null is left out silently. Fields that neither API knows go through: they may be
    the provider's own.
    """
    given = {key: value for key, value in asked.items() if value is not None}
    fields = {key: value for key, value in given.items() if key not in _ELSEWHERE | _UNSENDABLE}
    dropped = [key for key in given if key in _UNSENDABLE and given[key] != _DEFAULTS.get(key)]
    if "max_output_tokens" in given:
        fields["max_completion_tokens"] = given["max_output_tokens"]
    if fields.get("stream"):
        # Responses tell their tokens always, chat's streams only if they are asked to.
        fields["stream_options"] = {"include_usage": True}
    if isinstance(reasoning := given.get("reasoning"), dict) and reasoning.get("effort") is not None:
        fields["reasoning_effort"] = reasoning["effort"]
    if isinstance(text := given.get("text"), dict):
        fields.update(_text_fields(text))
    if given.get("metadata"):
        # Chat has it for completions that are stored, and is refused otherwise.
        if given.get("store") is True:
            fields["metadata"] = given["metadata"]
        else:
            dropped.append("metadata")
    return _with_tools(fields, given, dropped), dropped


def _text_fields(text: Body) -> Body:
    fields: Body = {}
    if text.get("verbosity") is not None:
        fields["verbosity"] = text["verbosity"]
    form = text.get("format")
    kind = form.get("type") if isinstance(form, dict) else None
    if isinstance(form, dict) and kind == "json_schema":
        fields["response_format"] = {"type": kind, "json_schema": _without(form, "type")}
    elif kind == "json_object":
        fields["response_format"] = {"type": kind}
    return fields


def _with_tools(fields: Body, given: Body, dropped: list[str]) -> Body:
    tools = []
    asked = given.get("tools")
    for place, tool in enumerate(asked if isinstance(asked, list) else ()):
        found = chat_tool(tool)
        if found is None:
            kind = tool.get("type") if isinstance(tool, dict) else type(tool).__name__
            dropped.append(f"tools[{place}]: {str(kind)[:40]}")
        else:
            tools.append(found)
    if not tools:
        # Chat refuses an empty list, and a choice where there is none.
        return {key: value for key, value in fields.items() if key != "parallel_tool_calls"}
    fields["tools"] = tools
    if "tool_choice" in given:
        choice = _choice(given["tool_choice"])
        if choice is None:
            dropped.append("tool_choice")
        else:
            fields["tool_choice"] = choice
    return fields


def chat_tool(tool: object) -> Body | None:
    """A tool as chat has it; None for one that it cannot have."""
    if not isinstance(tool, dict):
        return None
    kind = tool.get("type")
    if kind == "function" and isinstance(tool.get("function"), dict):
        return tool
    if kind == "function" and isinstance(tool.get("name"), str):
        known = ("name", "description", "parameters", "strict")
        function = {key: tool[key] for key in known if tool.get(key) is not None}
        return {"type": "function", "function": function}
    if kind == "custom" and isinstance(tool.get("name"), str):
        custom = {key: tool[key] for key in ("name", "description") if tool.get(key) is not None}
        form = tool.get("format")
        if isinstance(form, dict) and form.get("type") == "grammar":
            custom["format"] = {"type": "grammar", "grammar": _without(form, "type")}
        elif isinstance(form, dict):
            custom["format"] = form
        return {"type": "custom", "custom": custom}
    return None


def _choice(choice: object) -> Any:
    """`tool_choice` as chat has it; None for one that it cannot have."""
    if isinstance(choice, str):
        return choice
    if not isinstance(choice, dict):
        return None
    kind, name = choice.get("type"), choice.get("name")
    if kind in ("function", "custom"):
        return {"type": kind, kind: {"name": name}} if isinstance(name, str) else choice
    if kind == "allowed_tools":
        tools = choice.get("tools")
        named = [_choice(tool) for tool in tools] if isinstance(tools, list) else []
        allowed = {"mode": choice.get("mode", "auto"), "tools": [tool for tool in named if tool]}
        return {"type": kind, kind: allowed}
    return None


def _without(value: Body, key: str) -> Body:
    return {name: it for name, it in value.items() if name != key and it is not None}
