"""A chat completion request as one of the Responses API, for providers that are asked over that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.wire.responses import Body, Message, item_id
from scenarios.replies import join_text, read_call

ENCRYPTED = "reasoning.encrypted_content"
REASONING_ITEMS = "reasoning_items"
"""Where an assistant message has the provider's reasoning items, to be sent back as they came."""

_RENAMED = {"max_completion_tokens": "max_output_tokens", "max_tokens": "max_output_tokens"}
_TAKEN_APART = frozenset(
    {"messages", "tools", "tool_choice", "functions", "function_call", "response_format", "verbosity"}
    | {"reasoning_effort", *_RENAMED}
)
_CHAT_ONLY = frozenset(
    {
        "audio",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "modalities",
        "n",
        "prediction",
        "presence_penalty",
        "seed",
        "stop",
        "stream_options",
        "web_search_options",
    }
)
"""What the Responses API refuses."""
_REASONS = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-[5-9](?!.*chat)|codex)", re.IGNORECASE)
"""Models whose reasoning can be had in encrypted form; others refuse to be asked for it."""

_KINDS = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}


def to_responses(body: Mapping[str, Any]) -> Body:
    """The Responses request. Nothing is stored with the provider: each request has all it needs."""
    messages = body.get("messages")
    messages = [it for it in messages if isinstance(it, dict)] if isinstance(messages, list) else []
    instructions, rest = _instructions(messages)
    sent = {key: value for key, value in body.items() if key not in _TAKEN_APART | _CHAT_ONLY}
    for old, new in _RENAMED.items():
        if body.get(old) is not None:
            sent.setdefault(new, body[old])
    if instructions is not None:
        sent["instructions"] = instructions
    sent["input"] = _all_items(rest)
    sent.update(_tools(body))
    if text := _text(body):
        sent["text"] = text
    if body.get("reasoning_effort") is not None:
        sent["reasoning"] = {**_object(sent.get("reasoning")), "effort": body["reasoning_effort"]}
    if _has_reasoning(sent):
        sent["include"] = [ENCRYPTED]
    return {**sent, "store": False}


def speaks_legacy(body: Mapping[str, Any]) -> bool:
    """Does a chat request offer its tools as `functions`, the dialect before `tools`?"""
    return isinstance(body.get("functions"), list) and bool(body["functions"]) and not body.get("tools")


def input_items(messages: Sequence[Message], response_id: str) -> list[Body]:
    """Messages as items with ids, as a response's input is listed."""
    items = _all_items(messages)
    for place, item in enumerate(items):
        item.setdefault("id", item_id(response_id, _KINDS.get(str(item.get("type")), "item"), 0x8000 + place))
        if item.get("type") == "message" and isinstance(item["content"], str):
            item["content"] = [{"type": "input_text", "text": item["content"]}]
    return items


def _instructions(messages: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    """The first system text and the messages that follow it."""
    if not messages or messages[0].get("role") not in ("system", "developer"):
        return None, messages
    content = messages[0].get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
        content = "\n\n".join(str(part["text"]) for part in content)
    return (content, messages[1:]) if isinstance(content, str) else (None, messages)


def _with_ids(messages: Sequence[Message]) -> list[Message]:
    """The older dialect of `function_call` in that of `tool_calls`, and ids for calls without."""
    found: list[Message] = []
    for place, message in enumerate(messages):
        entries = message.get("tool_calls")
        if isinstance(message.get("function_call"), dict) and not entries:
            entries = [{"type": "function", "function": message["function_call"]}]
        if isinstance(entries, list) and entries:
            named = [
                entry if read_call(entry).id else {**_object(entry), "id": f"call_{place}_{number}"}
                for number, entry in enumerate(entries)
            ]
            message = {**message, "tool_calls": named}
        elif message.get("role") == "function":
            calls = found[-1].get("tool_calls") if found else None
            call_id = calls[0]["id"] if calls else f"call_{place}"
            message = {"role": "tool", "tool_call_id": call_id, "content": message.get("content")}
        found.append(message)
    return found


def _all_items(messages: Sequence[Message]) -> list[Body]:
    items = [item for message in _with_ids(messages) for item in _items(message)]
    custom = {item["call_id"] for item in items if item.get("type") == "custom_tool_call"}
    for item in items:
        if item.get("type") == "function_call_output" and item["call_id"] in custom:
            item["type"] = "custom_tool_call_output"
    return items


def _items(message: Message) -> list[Body]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else _parts(content) or ""
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    if role != "assistant":
        return [{"type": "message", "role": role, "content": _parts(content) if content else ""}]
    kept = message.get(REASONING_ITEMS)
    items: list[Body] = [it for it in (kept if isinstance(kept, list) else ()) if isinstance(it, dict)]
    text = join_text(content) if isinstance(content, list) else content
    parts: list[Body] = []
    if isinstance(text, str) and text:
        parts.append({"type": "output_text", "text": text, "annotations": []})
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    if parts:
        items.append({"type": "message", "role": "assistant", "status": "completed", "content": parts})
    calls = message.get("tool_calls")
    return [*items, *(_call(entry) for entry in (calls if isinstance(calls, list) else ()))]


def _call(entry: object) -> Body:
    call = read_call(entry)
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    named = {"call_id": call.id, "name": call.name}
    if isinstance(entry, dict) and "custom" in entry and "function" not in entry:
        return {"type": "custom_tool_call", **named, "input": arguments}
    return {"type": "function_call", **named, "arguments": arguments}


def _parts(content: object) -> Any:
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: object) -> Any:
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    inner = part.get(str(kind))
    if kind == "text":
        return {"type": "input_text", "text": part.get("text")}
    if kind == "image_url":
        image = inner if isinstance(inner, dict) else {"url": inner}
        detail = image.get("detail", "auto")
        return {"type": "input_image", "image_url": image.get("url"), "detail": detail}
    if kind == "file" and isinstance(inner, dict):
        return {"type": "input_file", **inner}
    return part


def _tools(body: Mapping[str, Any]) -> Body:
    """Tools and choice; those of the older dialect too."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    if speaks_legacy(body):
        tools = [{"type": "function", "function": it} for it in body["functions"]]
        named = body.get("function_call")
        choice = {"type": "function", "function": named} if isinstance(named, dict) else named
    found: Body = {}
    if isinstance(tools, list):
        found["tools"] = [_flat(tool) for tool in tools]
    if choice is not None:
        found["tool_choice"] = _flat(choice)
    return found


def _flat(value: object) -> Any:
    """`{"type": T, T: {...}}` as `{"type": T, ...}`, at every level that has it."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    inner = value.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return value
    flat = {"type": kind, **inner}
    if kind == "function" and "parameters" in flat:
        # Without a word about it the Responses API would make the schema a strict one.
        flat.setdefault("strict", False)
    if kind == "allowed_tools" and isinstance(flat.get("tools"), list):
        flat["tools"] = [_flat(tool) for tool in flat["tools"]]
    if kind == "custom" and isinstance(flat.get("format"), dict):
        flat["format"] = _flat(flat["format"])
    return flat


def _text(body: Mapping[str, Any]) -> Body:
    text = dict(_object(body.get("text")))
    if body.get("response_format") is not None:
        text["format"] = _flat(body["response_format"])
    if body.get("verbosity") is not None:
        text["verbosity"] = body["verbosity"]
    return text


def _has_reasoning(sent: Body) -> bool:
    if any(item.get("type") == "reasoning" for item in sent["input"]) or sent.get("reasoning"):
        return True
    return isinstance(sent.get("model"), str) and bool(_REASONS.match(sent["model"]))


def _object(value: object) -> Body:
    return value if isinstance(value, dict) else {}
