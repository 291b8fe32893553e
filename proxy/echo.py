"""An assistant message as it goes into the record, and the ids of its calls. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any

from scenarios.types import ToolCall

Message = dict[str, Any]

_THOUGHTS = ("reasoning_content", "reasoning_items")
"""What an LLM thought, in the forms in which it may want it back."""
NAMELESS = "unnamed"
"""Called where no name was said, or none that is a text."""


def call_ids(calls: Sequence[ToolCall], known: Collection[str | None], place: str) -> list[str]:
    """The provider's ids, where each is given once in the Session; else ids of our own.

    `known` are the ids given so far, `place` names the Step.
    """
    taken = set(known)
    ids: list[str] = []
    for position, call in enumerate(calls):
        usable = isinstance(call.id, str) and call.id and call.id not in taken
        ids.append(call.id if usable and call.id else _own_id(place, position))
        taken.add(ids[-1])
    return ids


def alias_of(place: str, position: int) -> str:
    """The id that an agent gets for a call: in a form that every client sends back as it is.

    Never the provider's, which may be the same in two Sessions, or of a form that clients change.
    """
    return _own_id(f"{place}\x00agent", position)


def _own_id(place: str, position: int) -> str:
    seed = f"{place}\x00{position}"
    return f"call_{hashlib.sha256(seed.encode()).hexdigest()[:24]}"


def argument_text(arguments: Any) -> str:
    """Arguments as others read them, whatever a provider put there."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def echo(message: Message, calls: Sequence[ToolCall], ids: Sequence[str]) -> Message:
    """The assistant message as the released harness sends it back, with the ids in use.

    A call that breaks the protocol is made one that does not: the provider that sent it would refuse it.
    """
    raw = message.get("tool_calls")
    if not isinstance(raw, list) or len(raw) != len(calls):
        raw = [None] * len(calls)
    thoughts = {key: message[key] for key in _THOUGHTS if message.get(key) is not None}
    with_ids = [
        {**(entry if _is_whole(entry, call) else _made(call)), "id": call_id}
        for entry, call, call_id in zip(raw, calls, ids, strict=True)
    ]
    return {"role": "assistant", **thoughts, "content": message.get("content"), "tool_calls": with_ids}


def _is_whole(entry: Any, call: ToolCall) -> bool:
    inner = (entry.get("function") or entry.get("custom")) if isinstance(entry, dict) else None
    return isinstance(inner, dict) and bool(call.name) and isinstance(call.arguments, str)


def _made(call: ToolCall) -> Message:
    function = {"name": call.name or NAMELESS, "arguments": argument_text(call.arguments)}
    return {"type": "function", "function": function}
