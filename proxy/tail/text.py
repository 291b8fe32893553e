"""Text for terminals: nothing that a terminal would obey, and no longer than fits. Pure."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, tzinfo

_OBEYED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, invisible and bidirectional formats, surrogates, private and unassigned
characters, line and paragraph separators."""

NEWLINE = " ⏎ "
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_ZERO_WIDTH = frozenset({"Mn", "Me"})
_CHARS_PER_COLUMN = 4
"""Combining marks take no column: a text of nothing else has an end too."""


def visible(text: str, keep: str = "") -> str:
    """`text` with every character that a terminal would obey, or not show, spelt out; but those in `keep`."""
    if _is_plain(text):
        return text
    return "".join(char if char in keep else _spelt(char) for char in text)


def visible_json(text: str) -> str:
    """JSON text, indented or not, with such characters as JSON escapes: the same value."""
    return "".join(char if char == "\n" or _spelt(char) == char else _json_escape(char) for char in text)


def one_line(text: str, columns: int) -> str:
    """`text` in one line of at most `columns` columns, line breaks as ⏎.

    What is cut off is told by an ellipsis and the number of characters.
    """
    if len(text) <= columns and _is_plain(text):
        return text
    text = text.replace("\r\n", "\n")
    shown: list[str] = []
    used = 0
    for position, char in enumerate(text):
        piece = NEWLINE if char == "\n" else _spelt(char)
        used += width(piece)
        if used > columns or position >= columns * _CHARS_PER_COLUMN:
            return f"{''.join(shown)}… (+{len(text) - position:,})"
        shown.append(piece)
    return "".join(shown)


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: two for wide (CJK) characters, none for combining marks."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def duration(seconds: float) -> str:
    """`0.41 s`, `12.3 s`, `2 min 10 s`, `1 h 5 min`."""
    seconds = max(0.0, seconds)
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
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


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _spelt(char: str) -> str:
    if _is_plain(char):
        return char
    return char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _OBEYED else char


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
