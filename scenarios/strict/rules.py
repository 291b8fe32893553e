"""The argument rules by their ids, and faults that name one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scenarios.strict.faults import Fault
from scenarios.text import clip, visible

RULES: Final[Mapping[str, str]] = {
    "args.invalid_json": "The arguments are JSON that can be read, at most 100 levels deep.",
    "args.duplicate_key": "No object of the arguments has a key twice.",
    "args.not_finite": "No number of the arguments is NaN or infinite.",
    "args.not_object": "The arguments are one JSON object.",
    "args.missing": "A key that the Reference has or the schema requires is there, if no default counts.",
    "args.extra": "A key that the Reference leaves out is left out, or has the value of its default.",
    "args.undeclared": "Every key is one that the tool's schema or the Reference knows.",
    "args.type": "A value has the JSON type of the Reference's value.",
    "args.number": "A number has the value of the Reference's number.",
    "args.boolean": "A boolean is the Reference's boolean.",
    "args.enum": "A value is one of those that the schema lists.",
    "args.exact": "Identifiers, codes and texts of a fixed form are the Reference's, character by character.",
    "args.text": "A text is the Reference's text but for case, spaces and Unicode forms.",
    "args.date": "A date or time is the Reference's date or time.",
    "args.url": "A URL is the Reference's URL in canonical form.",
    "args.free_text": "A free text is worded much like the Reference's: edit ratio 0.8 or ROUGE-L 0.7.",
    "args.free_text_number": "A free text has the numbers, dates and times of the Reference's.",
    "args.free_text_negation": "A free text says no as often as the Reference's.",
    "args.free_text_name": "A free text has the names of the Reference's, in their order.",
    "args.array_length": "An array has as many items as the Reference's.",
    "args.schema": "What means the same as the Reference keeps the schema wherever the Reference does.",
}
"""Rule id -> what it asks for."""

SHOWN = 80
"""Characters of a value that a message shows."""

Steps = tuple[str | int, ...]
"""Keys and indexes from the root of the arguments to a value."""


class Absent:
    """Stands where a key is not given; no JSON value is one."""


ABSENT: Final = Absent()


def fault(
    rule: str,
    steps: Steps,
    what: str,
    expected: Any = None,
    actual: Any = None,
    forms: tuple[Any, Any] | None = None,
    coercible: bool = False,
) -> Fault:
    """A fault at `steps`; `forms` are the normal forms of expected and actual, if they are not the values."""
    path = json_path(steps)
    expected = None if expected is ABSENT else expected
    actual = None if actual is ABSENT else actual
    expected_form, actual_form = (expected, actual) if forms is None else forms
    message = visible(f"{clip(path, 2 * SHOWN)}: {what}")
    return Fault(rule, path, message, expected, actual, expected_form, actual_form, coercible)


def json_path(steps: Sequence[str | int]) -> str:
    """`$.filters.tags[0]`; a key that is no plain name is quoted: `$["a b"]`."""
    return "$" + "".join(map(_step, steps))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"


def shown(value: Any) -> str:
    """A value for a message: as JSON, clipped."""
    if isinstance(value, str):
        value = clip(value, SHOWN)
    try:
        return clip(json.dumps(value, ensure_ascii=False, default=repr), SHOWN)
    except (ValueError, RecursionError):
        return "a value too large to show"


def one_of(values: Sequence[Any]) -> str:
    return clip(", ".join(map(shown, values[:12])), 2 * SHOWN)
