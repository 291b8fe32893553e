"""Colours and marks for what is shown on a terminal, and what stands for them where it has none. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.terminal.text import fitted

RESET = "\x1b[0m"
CODES = {
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "odd": "33",
    "user": "1;36",
    "rule": "1",
}
"""What colours mean, as SGR parameters (ECMA-48, 8.3.117). None is alone in saying what it says."""

NAME_CODES = ("36", "35", "34", "96", "95", "94")
"""For names of sessions, one after the other: neither green nor red nor yellow, which are verdicts."""

MARKS = {
    "right": "✓",
    "erred": "~",
    "wrong": "✗",
    "odd": "!",
    "asks": "?",
    "calls": "→",
    "told": "←",
    "open": "·",
    "": " ",
}
"""One column each; `ascii_only` has others for them."""

_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "→": ">", "←": "<", "·": ".", "…": "~", "⏎": "|", "×": "x", "─": "-"}
)


@dataclass(frozen=True, slots=True)
class Look:
    """`encoding` is the terminal's; what it cannot hold is replaced, our marks by marks of one column."""

    color: bool = False
    encoding: str = "utf-8"

    def paint(self, text: str, meaning: str) -> str:
        """`text` in the colour of a meaning (of `CODES`); as it is without colours, or without a meaning."""
        return self._painted(text, CODES[meaning]) if meaning else text

    def name(self, text: str, number: int) -> str:
        """The name of the session with this number, in its own colour."""
        return self._painted(text, NAME_CODES[number % len(NAME_CODES)])

    def mark(self, meaning: str) -> str:
        return self.held(MARKS[meaning])

    def held(self, text: str) -> str:
        """`text` as the encoding can hold it."""
        if text.isascii() or self.encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32"):
            return text
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return text.translate(_ASCII).encode(self.encoding, "backslashreplace").decode(self.encoding)
        return text

    def fit(self, text: str, columns: int) -> str:
        """Anybody's `text` in one line of at most `columns` columns that a terminal obeys nothing of."""
        return self.held(fitted(self.held(text), columns))

    def _painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}{RESET}" if self.color and text.strip() else text
