"""Lines of text that are no wider than the place they are shown in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scenarios.text import width

COLUMNS = 100
"""The widest that sentences are, and how wide where no terminal says anything."""

LEAST = 20
"""Columns that a line has for its words, however narrow the terminal and deep the line."""

_INDENT = "  "
_HELD = "\xa0%"


def folded(lines: Iterable[str], columns: int = COLUMNS) -> list[str]:
    """The lines, those wider than `columns` in pieces that end at blanks, or anywhere in a word without room.

    What a line goes on with is indented by two more than its beginning. A number and its `%` stay together.
    """
    return [piece for line in lines for piece in _pieces(line, columns, _INDENT)]


def wrapped(sentence: str, columns: int = COLUMNS) -> list[str]:
    """The same for a sentence whose lines all begin where the first does."""
    return list(_pieces(sentence, columns, ""))


def _pieces(line: str, columns: int, hanging: str) -> Iterator[str]:
    rest = line.lstrip(" ").replace(" %", _HELD)
    indent = start = " " * (len(line) - len(line.lstrip(" ")))
    while width(rest) > (room := max(LEAST, columns - len(start))):
        piece, rest = _cut(rest, room)
        yield start + piece.replace(_HELD, " %")
        start = indent + hanging
    yield start + rest.replace(_HELD, " %")


def _cut(text: str, room: int) -> tuple[str, str]:
    """What of a text that is too wide fits, and the rest."""
    end = taken = 0
    while (taken := taken + width(text[end])) <= room:
        end += 1
    blank = end if text[end] == " " else text.rfind(" ", 0, end)
    if blank <= 0:
        return text[:end], text[end:]
    return text[:blank].rstrip(" "), text[blank:].lstrip(" ")
