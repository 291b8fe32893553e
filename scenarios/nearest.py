"""The known name that a wrong one was meant to be. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CLOSE = 0.6
"""The ratio of `difflib` from which two names are near."""


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names like `name`, the nearest first; then those that hold it. Case does not count."""
    names = {it.lower(): it for it in known}
    wanted = name.lower()
    found = get_close_matches(wanted, names, n=most, cutoff=CLOSE)
    found += [it for it in names if wanted and wanted in it and it not in found]
    return [names[it] for it in found[:most]]


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """`did you mean 'a' or 'b'?`, or nothing where no known name is like `name`."""
    found = nearest(name, known, most)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def aside(name: str, known: Iterable[str]) -> str:
    """The same in brackets after a blank, to stand behind the wrong name: ` (did you mean 'a'?)`."""
    meant = did_you_mean(name, known)
    return f" ({meant})" if meant else ""
