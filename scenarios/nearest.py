"""The known name that a wrong one was meant to be. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

NEAR = 0.6
"""The ratio of `difflib` from which two names are near."""
BESIDE = 0.15
"""How much less near than the nearest another may be, to be named beside it."""


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names like `name`, or that hold it; those that begin so first, then the nearest.

    Case does not count.
    """
    names = {it.lower(): it for it in known}
    wanted = name.lower()
    ratios = {it: SequenceMatcher(None, it, wanted).ratio() for it in names}
    least = max(NEAR, max(ratios.values(), default=0.0) - BESIDE)
    found = [it for it in names if wanted and (ratios[it] >= least or wanted in it)]
    found.sort(key=lambda it: (not it.startswith(wanted), -ratios[it]))
    return [names[it] for it in found[:most]]


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """`did you mean 'a' or 'b'?`, or nothing where no known name is like `name`."""
    found = nearest(name, known, most)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def aside(name: str, known: Iterable[str]) -> str:
    """The same in brackets after a blank, to stand behind the wrong name: ` (did you mean 'a'?)`."""
    meant = did_you_mean(name, known)
    return f" ({meant})" if meant else ""
