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
    text = line.lstrip(" ").replace(" %", _HELD)
    indent = start = " " * (len(line) - len(line.lstrip(" ")))
    begin = 0
    while (end := _first_without_room(text, begin, max(LEAST, columns - len(start)))) < len(text):
        blank = end if text[end] == " " else text.rfind(" ", begin, end)
        if blank > begin:
            end = blank
        yield start + text[begin:end].rstrip(" ").replace(_HELD, " %")
        begin = end
        while text[begin : begin + 1] == " ":
            begin += 1
        start = indent + hanging
    yield start + text[begin:].replace(_HELD, " %")


def _first_without_room(text: str, begin: int, room: int) -> int:
    """The place of the first character that no longer fits, or the end; what follows is not looked at."""
    taken = 0
    for place in range(begin, len(text)):
        taken += width(text[place])
        if taken > room:
            return place
    return len(text)
