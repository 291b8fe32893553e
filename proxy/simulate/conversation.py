"""Reading chat messages that anybody may have sent: never raises, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proxy.wire.chat import reply_of
from scenarios.types import ToolCall

Message = Mapping[str, Any]


def fold(text: str) -> str:
    """`text` with every run of white space as one blank: templates wrap and strip words."""
    return " ".join(text.split())


def text_of(content: Any) -> str:
    """The text of a message's `content`: a string, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The calls of an assistant message, in the dialect of `tool_calls` or of `function_call`."""
    return reply_of(message)[1]


def is_text(message: Message) -> bool:
    """Does an assistant message speak? One with calls does not, whatever text is beside them."""
    return not calls_of(message) and bool(text_of(message.get("content")))


def results_after(messages: Sequence[Message], at: int) -> dict[str, str]:
    """Texts of the tool messages between the assistant message at `at` and the next one, by call id."""
    results: dict[str, str] = {}
    for message in messages[at + 1 :]:
        if message.get("role") == "assistant":
            break
        identity = message.get("tool_call_id")
        if message.get("role") == "tool" and isinstance(identity, str):
            results[identity] = text_of(message.get("content"))
    return results


def call_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Every tool-call id that the conversation uses."""
    found = {call.id for message in messages for call in calls_of(message) if call.id}
    answered = (message.get("tool_call_id") for message in messages)
    return frozenset(found | {identity for identity in answered if isinstance(identity, str)})


def tool_names(tools: Sequence[Any] | None) -> tuple[str, ...]:
    """Names of the function tools that a request offers, in its order."""
    return tuple(_names(tools or ()))


def _names(tools: Sequence[Any]) -> Iterator[str]:
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield name


def as_json(value: Any) -> Any:
    """A tool result as a JSON value, however often it was serialised; other text stays text."""
    while isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
