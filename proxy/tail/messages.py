"""What chat messages say, in whatever shape they are. Pure: nothing here fails."""

from __future__ import annotations

import json
from typing import Any

from scenarios.replies import read_reply


def text_of(content: Any) -> str:
    """A message's content as text; parts that are none by their type."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else _dumped(content)
    return "\n".join(_part_text(part) for part in content)


def calls_of(message: Any) -> list[tuple[str, str | None]]:
    """(name, arguments as written) of a message's tool calls, whatever shape it is in."""
    return [(call.name, _optional_text(call.arguments)) for call in read_reply(message).calls]


def said(message: Any) -> str:
    """What an assistant message says in words: its text, or its refusal."""
    if not isinstance(message, dict):
        return ""
    return text_of(message.get("content")) or text_of(message.get("refusal"))


def in_short(message: Any) -> str:
    """Text and calls of an assistant message, on the way to one line."""
    calls = [f"{name}({arguments or ''})" for name, arguments in calls_of(message)]
    return " ".join([text for text in (said(message),) if text] + calls)


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    return text_of(part["text"]) if "text" in part else f"[{text_of(part.get('type', 'part'))}]"


def _optional_text(value: Any) -> str | None:
    return None if value is None else text_of(value) if isinstance(value, str) else _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
