"""A few lines at the end of a terminal that are drawn anew in place, below lines that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from scenarios.text import width

_UP, _CLEAR = "\x1b[{}A", "\r\x1b[J"


class Block:
    """Lines that change, on `out`. `size` gives (columns, rows) of the terminal as they are now.

    Each line comes as (what is written, its text without colours), fits into the columns, and is never
    followed by a line break: the cursor rests on the block's last line.
    """

    def __init__(self, out: TextIO, size: Callable[[], tuple[int, int]]) -> None:
        self._out = out
        self._size = size
        self._widths: list[int] = []

    def draw(self, lines: Iterable[tuple[str, str]], above: Iterable[str] = ()) -> None:
        """Puts the block there anew; what is `above` it stays."""
        shown = list(lines)
        written = self._erasing() + "".join(f"{line}\n" for line in above)
        self._out.write(written + "\n".join(line for line, _ in shown))
        self._out.flush()
        self._widths = [width(text) for _, text in shown]

    def clear(self) -> None:
        """Takes the block away; what comes next begins where it stood."""
        if self._widths:
            self._out.write(self._erasing())
            self._out.flush()
            self._widths = []

    def _erasing(self) -> str:
        """From the cursor to the first line; one that a narrower terminal has broken takes several."""
        if not self._widths:
            return ""
        columns = max(self._size()[0], 1)
        rows = sum(max(1, -(-taken // columns)) for taken in self._widths)
        return (_UP.format(rows - 1) if rows > 1 else "") + _CLEAR
