"""Text fit to be shown: of others nothing that a terminal would obey, and no longer than fits."""

from __future__ import annotations

import re
import unicodedata

_OBEYED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, invisible and bidirectional formats, surrogates, private and unassigned
characters, line and paragraph separators."""

_NOT_PLAIN = re.compile(r"[^ -~]")
_ZERO_WIDTH = frozenset({"Mn", "Me"})


def visible(text: str, keep: str = "") -> str:
    """`text` with every character that a terminal would obey, or not show, spelt out; but those in `keep`."""
    if is_plain(text):
        return text
    return _NOT_PLAIN.sub(lambda found: found[0] if found[0] in keep else spelt(found[0]), text)


def spelt(char: str) -> str:
    """One character, spelt out if a terminal would obey it or not show it."""
    if is_plain(char):
        return char
    return char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _OBEYED else char


def is_plain(text: str) -> bool:
    """Printable ASCII, a column for each character."""
    return text.isascii() and text.isprintable()


def says_something(text: str | None) -> bool:
    """Is there anything in `text` to be seen? Blanks and characters without a width are nothing."""
    return text is not None and any(unicodedata.category(char)[0] not in "CZ" for char in text)


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: two for wide (CJK) characters, none for combining marks."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def clip(text: str, limit: int) -> str:
    """`text` in at most `limit` characters; `...` at its end tells that it went on."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 session`, `1,234 sessions`; `nouns` where an `s` does not make the plural."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
