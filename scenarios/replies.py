"""An assistant message, as a provider sent it, reduced to what decides: one reader for play and score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scenarios.types import Reply, ToolCall


def read_reply(message: object) -> Reply:
    """What counts of an assistant message in the shape of OpenAI's. Never raises.

    Content is text, or a list of parts whose texts are joined; anything else is None. Tool
    calls that break the protocol are kept as calls with the name `""`, which no Reference
    has: a message that tried to call something must not pass as a plain text answer.
    Without `tool_calls`, a legacy `function_call` counts as one call. A `custom` call has
    its input as arguments.
    """
    if not isinstance(message, Mapping):
        return Reply(None)
    return Reply(_text(message.get("content")), _calls(message))


def read_call(entry: object) -> ToolCall:
    """One entry of `tool_calls`; one that is broken has the name `""`, and as arguments what was there."""
    if not isinstance(entry, Mapping):
        return ToolCall(None, "", entry)
    found, custom = entry.get("id"), entry.get("custom")
    call_id = found if isinstance(found, str) and found else None
    if isinstance(custom, Mapping) and not isinstance(entry.get("function"), Mapping):
        return _named(call_id, custom, "input")
    return _named(call_id, entry.get("function"), "arguments")


def join_text(parts: Iterable[object]) -> str:
    """The text of a list of content parts, other kinds of part left out."""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: Mapping[Any, Any]) -> tuple[ToolCall, ...]:
    entries = message.get("tool_calls")
    if isinstance(entries, list | tuple) and entries:
        return tuple(read_call(entry) for entry in entries)
    if entries:
        return (ToolCall(None, "", entries),)
    legacy = message.get("function_call")
    return (_named(None, legacy, "arguments"),) if legacy else ()


def _named(call_id: str | None, function: object, arguments: str) -> ToolCall:
    if not isinstance(function, Mapping):
        return ToolCall(call_id, "", function)
    name = function.get("name")
    return ToolCall(call_id, name if isinstance(name, str) else "", function.get(arguments))


def _text(content: object) -> str | None:
    if isinstance(content, list | tuple):
        return join_text(content)
    return content if isinstance(content, str) else None
