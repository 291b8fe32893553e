"""Regular expressions of schemas that could take for ever, which a schema is read without."""

from __future__ import annotations

import re
from typing import Any

MOST_CHARACTERS = 500
_PART = r"(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*"
_REPEATED_CHOICE = re.compile(rf"\({_PART}[+*}}|]{_PART}\)(?:[+*]|\{{\d*,)", re.DOTALL)
"""A group with a repetition or a choice in it, repeated: what makes matching exponential."""


def is_usable(pattern: Any) -> bool:
    """Can a text be searched for it in reasonable time? Errs on the side of no."""
    if not isinstance(pattern, str) or len(pattern) > MOST_CHARACTERS or _REPEATED_CHOICE.search(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
