"""The user's words in a request: where their placeholder stands, or they themselves, and putting them there.

An agent is prompted with a placeholder, the sentinel, or (`drive --inject driver`) with the words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

Message = dict[str, Any]

PATTERN = re.compile(
    r"\[\[next-user-turn(?:\s+(?P<turn>[0-9]{1,9}))?(?:\s+session=(?P<session>[A-Za-z0-9._~-]+))?\s*\]\]"
)


NO_WORDS: Mapping[int, str] = MappingProxyType({})
_RAW = re.compile(PATTERN.pattern.encode())
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W{_UNSPACED}]"
"""A letter or digit of a script that puts spaces between its words."""


@dataclass(frozen=True, slots=True)
class Found:
    """The user's turn in a request: the message it stands in, its number, its session."""

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
    for message in _said_now(messages):
        matches = [match for text in _texts(message.get("content")) for match in PATTERN.finditer(text)]
        if matches:
            turn = matches[-1]["turn"]
            return Found(message, int(turn) if turn else None, matches[-1]["session"])
    return None


def find_words(messages: Sequence[Any], words: str, turn: int) -> Found | None:
    """The words of turn `turn` in what the user says now (as for `find`), or None.

    All of them, as they are but for their whitespace, whatever the agent puts around them.
    Blank words are never found.
    """
    pattern = _like(words)
    if pattern is None:
        return None
    for message in _said_now(messages):
        if any(pattern.search(text) for text in _texts(message.get("content"))):
            return Found(message, turn, None)
    return None


def _said_now(messages: Sequence[Any]) -> list[Message]:
    """What the user says now, the last message first."""
    said = [message for message in _since_last_answer(messages) if _is_user(message)]
    return (said or [message for message in messages if _is_user(message)][-1:])[::-1]


@lru_cache(maxsize=1024)
def _like(words: str) -> re.Pattern[str] | None:
    """Matches the words with any whitespace where they have some; no part of longer words."""
    parts = words.split()
    if not parts:
        return None
    before = f"(?<!{_LETTER})" if re.match(_LETTER, parts[0]) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, parts[-1][-1]) else ""
    return re.compile(before + r"\s+".join(map(re.escape, parts)) + after)


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

    A sentinel with the number of an `earlier` turn gets that turn's words. In a message without
    a sentinel, words whose whitespace was changed on the way (line breaks, say, by an agent
    that reads lines) become what they were.
    """
    content = message.get("content")
    if any(PATTERN.search(text) for text in _texts(content)):
        return {**message, "content": _each_text(content, lambda text: _fill(text, words, earlier))}
    # Longer words first: others may be a part of them.
    said = sorted({words, *earlier.values()}, key=len, reverse=True)
    return {**message, "content": _each_text(content, lambda text: _restored(text, said))}


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


def _each_text(content: Any, change: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return change(content)
    if isinstance(content, list):
        return [{**part, "text": change(part["text"])} if _is_text(part) else part for part in content]
    return content


def _fill(text: str, words: str, earlier: Mapping[int, str]) -> str:
    return PATTERN.sub(lambda match: _words(match, words, earlier), text)


def _restored(text: str, said: Sequence[str]) -> str:
    for words in said:
        pattern = _like(words)
        if pattern is not None and words not in text:
            text = words.join(pattern.split(text))
    return text


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
