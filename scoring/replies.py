"""An assistant message, as a provider sent it, reduced to what a scorer judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.types import ToolCall
from scoring.types import Reply


def read_reply(message: Mapping[str, Any]) -> Reply:
    """The judged part of an OpenAI-shaped assistant message. Never raises.

    Content is text, None, or a list of parts whose texts are joined. Tool calls that
    break the protocol are kept as calls with the name `""`, which no Reference has: a
    message that tried to call something must not pass as a plain text answer.
    Without `tool_calls`, a legacy `function_call` counts as one call.
    """
    calls = message.get("tool_calls")
    if not calls:
        legacy = message.get("function_call")
        return Reply(_text(message.get("content")), (_function(None, legacy),) if legacy else ())
    entries = calls if isinstance(calls, list | tuple) else [calls]
    return Reply(_text(message.get("content")), tuple(_call(entry) for entry in entries))


def _call(entry: object) -> ToolCall:
    if not isinstance(entry, Mapping):
        return ToolCall(None, "", entry)
    call_id = entry.get("id")
    return _function(call_id if isinstance(call_id, str) else None, entry.get("function"))


def _function(call_id: str | None, function: object) -> ToolCall:
    if not isinstance(function, Mapping):
        return ToolCall(call_id, "", function)
    name = function.get("name")
    return ToolCall(call_id, name if isinstance(name, str) else "", function.get("arguments"))


def _text(content: object) -> str | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))
