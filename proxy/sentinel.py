"""The placeholder prompt: where it stands in a request, and putting the user's words there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Message = dict[str, Any]

PATTERN = re.compile(
    r"\[\[next-user-turn(?:\s+(?P<turn>[0-9]{1,9}))?(?:\s+session=(?P<session>[A-Za-z0-9._~-]+))?\s*\]\]"
)


NO_WORDS: Mapping[int, str] = MappingProxyType({})
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
    """The last sentinel in what the user says now, or None. A sentinel quoted elsewhere is no prompt.

    Now is after the last answer. Where nothing of the user's follows that (a tool's result does,
    or the agent put words into the assistant's mouth), it is the user's last message.
    """
    said = [message for message in _since_last_answer(messages) if _is_user(message)]
    for message in reversed(said or [message for message in messages if _is_user(message)][-1:]):
        matches = [match for text in _texts(message.get("content")) for match in PATTERN.finditer(text)]
        if matches:
            turn = matches[-1]["turn"]
            return Found(message, int(turn) if turn else None, matches[-1]["session"])
    return None


def _since_last_answer(messages: Sequence[Any]) -> Sequence[Any]:
    for position in range(len(messages) - 1, -1, -1):
        if isinstance(messages[position], dict) and messages[position].get("role") == "assistant":
            return messages[position + 1 :]
    return messages


def _is_user(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def last_user_message(messages: Sequence[Any]) -> Message | None:
    return next((m for m in reversed(messages) if isinstance(m, dict) and m.get("role") == "user"), None)


def fill(message: Message, words: str, earlier: Mapping[int, str] = NO_WORDS) -> Message:
    """The message with the user's words in place of the sentinel, the agent's template around it.

    A sentinel with the number of an `earlier` turn gets that turn's words.
    """
    return {**message, "content": _fill(message.get("content"), words, earlier)}


def put_whole(message: Message, words: str) -> Message:
    """The message with its text replaced by the user's words: for one without a sentinel."""
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": words}
    others = [part for part in content if not _is_text(part)]
    return {**message, "content": [{"type": "text", "text": words}, *others]}


def fill_raw(raw: bytes, words: str, earlier: Mapping[int, str] = NO_WORDS) -> bytes:
    """A JSON body, filled as `fill` does, all other bytes as they were."""
    return _RAW.sub(lambda match: json.dumps(_words(match, words, earlier))[1:-1].encode(), raw)


def _words(match: re.Match[Any], words: str, earlier: Mapping[int, str]) -> str:
    return earlier.get(int(match["turn"]), words) if match["turn"] else words


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [part["text"] for part in content if _is_text(part)]
    return []


def _fill(content: Any, words: str, earlier: Mapping[int, str]) -> Any:
    if isinstance(content, str):
        return PATTERN.sub(lambda match: _words(match, words, earlier), content)
    if isinstance(content, list):
        return [
            {**part, "text": _fill(part["text"], words, earlier)} if _is_text(part) else part
            for part in content
        ]
    return content


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
