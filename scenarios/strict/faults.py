"""What is wrong with the arguments of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule that a call's arguments break.

    `rule` is a stable id such as `args.number`. `path` is a JSON path from the arguments' root:
    `$`, `$.filters.tags[0]`. `expected` and `actual` are JSON values as they were annotated and
    sent, None where there is none; `expected_form` and `actual_form` the normal forms that were
    compared. `coercible` says that only the type is wrong: `"1"` for 1. `message` is one line.
    """

    rule: str
    path: str
    message: str
    expected: Any = None
    actual: Any = None
    expected_form: Any = None
    actual_form: Any = None
    coercible: bool = False
