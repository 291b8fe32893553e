"""Text for terminals: nothing that a terminal would obey, and no longer than fits. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from scenarios.text import is_plain, spelt, visible, width

__all__ = [
    "count",
    "duration",
    "fitted",
    "moment",
    "one_line",
    "padded",
    "parse_since",
    "seconds_text",
    "visible",
    "visible_json",
    "width",
    "wrapped",
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
            return "".join(shown) + _left_out(len(text) - position)
        shown.append(piece)
    return "".join(shown)


def fitted(text: str, columns: int) -> str:
    """`text` in one line of at most `columns` columns in all; an ellipsis tells that it went on."""
    if len(text) <= columns and is_plain(text):
        return text
    pieces: list[str] = []
    used, room = 0, 0
    for position, char in enumerate(text.replace("\r\n", "\n")):
        piece = NEWLINE if char == "\n" else spelt(char)
        used += width(piece)
        if used > columns or position >= max(columns, 1) * _CHARS_PER_COLUMN:
            return "".join(pieces[:room]) + "…" if columns > 0 else ""
        pieces.append(piece)
        room = len(pieces) if used < columns else room
    return "".join(pieces)


def wrapped(text: str, columns: int, most: int, *, counted: bool = True) -> list[str]:
    """`text` in at most `most` lines of at most `columns` columns, broken at blanks where there are any.

    Its own line breaks are kept. What is cut off is told as `one_line` tells it, or not counted.
    """
    lines: list[str] = []
    rest = text.replace("\r\n", "\n")
    while len(lines) < most - 1:
        taken = _fitting(rest, columns)
        if taken == len(rest):
            break
        lines.append(visible(rest[:taken]).rstrip())
        rest = rest[taken:].removeprefix("\n") if rest[taken] == "\n" else rest[taken:].lstrip(" ")
        if not rest:
            return lines
    if not counted or _fits(rest, columns):
        return [*lines, fitted(rest, columns)]
    return [*lines, one_line(rest, columns - len(_left_out(len(rest))))]


def _fitting(text: str, columns: int) -> int:
    """How many characters of `text` are its first line."""
    used, blank = 0, 0
    for position, char in enumerate(text):
        if char == "\n":
            return position
        used += width(spelt(char))
        if used > columns or position >= columns * _CHARS_PER_COLUMN:
            return blank or max(position, 1)
        if char == " ":
            blank = position
    return len(text)


def _fits(text: str, columns: int) -> bool:
    return "\n" not in text and _fitting(text, columns) == len(text)


def _left_out(count: int) -> str:
    return f"… (+{count:,})"


def padded(text: str, columns: int) -> str:
    """`text` filled up to so many columns; as it is if it has more."""
    return text + " " * (columns - width(text))


def duration(seconds: float, *, whole: bool = False) -> str:
    """`0.41 s`, `12.3 s`, `2 min 10 s`, `1 h 5 min`; with `whole` no part of a second: `12 s`."""
    seconds = max(0.0, round(seconds) if whole else seconds)
    if seconds < 59.95:
        return f"{seconds:.{0 if whole else 2 if seconds < 9.995 else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def seconds_text(seconds: float, *, whole: bool = False) -> str:
    """At most six columns up to 99 days: `0.41s`, `12.3s`, `2m10s`, `1h05m`, `3d04h`; `whole`: `12s`."""
    seconds = max(0.0, round(seconds) if whole else seconds)
    if seconds < 99.95:
        return f"{seconds:.{0 if whole else 2 if seconds < 9.995 else 1}f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 100 else f"{hours // 24}d{hours % 24:02}h"


def count(number: int) -> str:
    """At most five columns: `812`, `9,412`, `12.3k`, `456k`, `1.2M`."""
    if number < 10_000:
        return f"{number:,}"
    for unit, size in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        if number < 999.5 * size:
            return f"{number / size:.{1 if number < 99.95 * size else 0}f}{unit}"
    return f"{number:.0e}"


def moment(at: float, zone: tzinfo | None = None) -> datetime:
    """Unix seconds as a time of day in `zone`; None is the local one.

    What no calendar has, as a damaged log may, becomes the nearest end of the calendar.
    """
    try:
        return datetime.fromtimestamp(at, zone).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return (datetime.min if at < 0 else datetime.max).replace(microsecond=0, tzinfo=zone or UTC)


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
