"""The placeholder prompt: where it stands in a request, and putting the user's words there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

PATTERN = re.compile(
    r"\[\[next-user-turn(?:\s+(?P<turn>\d{1,9}))?(?:\s+session=(?P<session>[A-Za-z0-9._~-]+))?\s*\]\]"
)


_RAW = re.compile(PATTERN.pattern.encode())


@dataclass(frozen=True, slots=True)
class Found:
    """The last sentinel of a request: the message it stands in, its number, its session."""

    message: Message
    turn: int | None
    session: str | None


def prompt(turn: int) -> str:
    """The placeholder prompt of a numbered turn."""
    return f"[[next-user-turn {turn}]]"


def find(messages: Sequence[Any]) -> Found | None:
    """The last sentinel in a user message, or None. A sentinel quoted elsewhere is no prompt."""
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        matches = [match for text in _texts(message.get("content")) for match in PATTERN.finditer(text)]
        if matches:
            turn = matches[-1]["turn"]
            return Found(message, int(turn) if turn else None, matches[-1]["session"])
    return None


def last_user_message(messages: Sequence[Any]) -> Message | None:
    return next((m for m in reversed(messages) if isinstance(m, dict) and m.get("role") == "user"), None)


def fill(message: Message, words: str) -> Message:
    """The message with the user's words in place of the sentinel, the agent's template around it."""
    return {**message, "content": _fill(message.get("content"), words)}


def put_whole(message: Message, words: str) -> Message:
    """The message with its text replaced by the user's words: for one without a sentinel."""
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": words}
    others = [part for part in content if not _is_text(part)]
    return {**message, "content": [{"type": "text", "text": words}, *others]}


def fill_raw(raw: bytes, words: str) -> bytes:
    """A JSON body with the words in place of every sentinel, all other bytes as they were."""
    escaped = json.dumps(words)[1:-1].encode()
    return _RAW.sub(lambda _: escaped, raw)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [part["text"] for part in content if _is_text(part)]
    return []


def _fill(content: Any, words: str) -> Any:
    if isinstance(content, str):
        return PATTERN.sub(lambda _: words, content)
    if isinstance(content, list):
        return [{**part, "text": _fill(part["text"], words)} if _is_text(part) else part for part in content]
    return content


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
