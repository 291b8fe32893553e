"""What a terminal shows of what was written to it: as much of ECMA-48 as our commands use, and no more."""

from __future__ import annotations

import re
import unicodedata

_TOKEN = re.compile(r"\x1b\[(?P<number>\d*(?:;\d+)*)(?P<letter>[A-Za-z])|(?P<char>.)", re.DOTALL)
WIDE = "\0"
"""Stands in the second column of a wide character."""


class Screen:
    """A terminal of `columns` columns that is high enough for everything.

    Anything it does not know, a control character or a sequence, is an error: nothing of what is
    shown may be able to send one.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self.colored = False

    def write(self, text: str) -> Screen:
        for token in _TOKEN.finditer(text):
            if token["char"] is None:
                self._obey(token["letter"], token["number"])
            else:
                self._char(token["char"])
        return self

    @property
    def lines(self) -> list[str]:
        """What is shown, without blanks at the ends of lines and without empty lines at the end."""
        lines = ["".join(row).replace(WIDE, "").rstrip() for row in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _obey(self, letter: str, number: str) -> None:
        match letter:
            case "m":
                self.colored = True
            case "A":
                self.row = max(self.row - int(number or 1), 0)
            case "J" if number in ("", "0"):
                del self.rows[self.row + 1 :]
                del self.rows[self.row][self.column :]
            case "K" if number in ("", "0"):
                del self.rows[self.row][self.column :]
            case _:
                raise AssertionError(f"the terminal was sent ESC [ {number} {letter}")

    def _char(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
            self.column = 0
        else:
            category = unicodedata.category(char)
            assert category[0] != "C" or category == "Cn", f"the terminal was sent {char!r}"
            assert category not in ("Zl", "Zp"), f"the terminal was sent {char!r}"
            self._put(char, 0 if category in ("Mn", "Me") else _columns(char))

    def _put(self, char: str, columns: int) -> None:
        if columns == 0:
            # A mark is shown over the character before it.
            self.rows[self.row][self.column - 1] += char
            return
        if self.column + columns > self.columns:
            self._down()
            self.column = 0
        row = self.rows[self.row]
        row += [" "] * (self.column + columns - len(row))
        row[self.column : self.column + columns] = [char, *[WIDE] * (columns - 1)]
        self.column += columns

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
