"""Text for terminals: nothing that a terminal would obey, and no longer than fits. Pure."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from scenarios.text import is_plain, spelt, visible, width

__all__ = [
    "duration",
    "moment",
    "one_line",
    "padded",
    "parse_since",
    "visible",
    "visible_json",
    "width",
]

NEWLINE = " ⏎ "
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_CHARS_PER_COLUMN = 4
"""Combining marks take no column: a text of nothing else has an end too."""


def visible_json(text: str) -> str:
    """JSON text, indented or not, with such characters as JSON escapes: the same value."""
    return "".join(char if char == "\n" or spelt(char) == char else _json_escape(char) for char in text)


def one_line(text: str, columns: int) -> str:
    """`text` in one line of at most `columns` columns, line breaks as ⏎.

    What is cut off is told by an ellipsis and the number of characters.
    """
    if len(text) <= columns and is_plain(text):
        return text
    text = text.replace("\r\n", "\n")
    shown: list[str] = []
    used = 0
    for position, char in enumerate(text):
        piece = NEWLINE if char == "\n" else spelt(char)
        used += width(piece)
        if used > columns or position >= columns * _CHARS_PER_COLUMN:
            return f"{''.join(shown)}… (+{len(text) - position:,})"
        shown.append(piece)
    return "".join(shown)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def duration(seconds: float, *, whole: bool = False) -> str:
    """`0.41 s`, `12.3 s`, `2 min 10 s`, `1 h 5 min`; with `whole` no part of a second: `12 s`."""
    seconds = max(0.0, round(seconds) if whole else seconds)
    if seconds < 59.95:
        return f"{seconds:.{0 if whole else 2 if seconds < 9.995 else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment(at: float, zone: tzinfo | None = None) -> datetime:
    """Unix seconds as a time of day in `zone`; None is the local one."""
    return datetime.fromtimestamp(at, zone).astimezone(zone)


def parse_since(text: str, now: float) -> float:
    """`30s`, `10m`, `2h`, `1d` before `now`, or an ISO date and time (local unless it says); as Unix seconds.

    Raises ValueError.
    """
    if span := _SPAN.fullmatch(text.strip()):
        return now - float(span[1]) * _UNITS[span[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is neither a time span such as 30s, 10m, 2h nor an ISO time such as 2026-01-31T14:05"
        ) from None


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
