"""The placeholder prompt: where it stands in a request, and putting the user's words there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

PATTERN = re.compile(
    r"\[\[next-user-turn(?:\s+(?P<turn>\d{1,9}))?(?:\s+session=(?P<session>[A-Za-z0-9._~-]+))?\s*\]\]"
)


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


def fill(message: Message, words: str) -> Message:
    """The message with the user's words in place of the sentinel, the agent's template around it."""
    return {**message, "content": _fill(message.get("content"), words)}


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
