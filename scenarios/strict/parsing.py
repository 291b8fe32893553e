"""Reading the arguments of a call: text or object, to one JSON object or the fault that it has none."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from scenarios.strict.faults import Fault
from scenarios.strict.rules import fault, shown

NESTING = 100
"""Levels of arrays and objects that arguments may have. Real ones have a few."""

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)


class _Refused(Exception):
    """JSON that is against a rule of ours."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(what)
        self.rule = rule
        self.what = what


def read_arguments(arguments: Any) -> dict[str, Any] | Fault:
    """The argument object. Absent and blank arguments are `{}`; an object from a provider is taken as it is.

    Never raises, whatever `arguments` is.
    """
    if arguments is None:
        return {}
    try:
        value = _read_text(arguments) if isinstance(arguments, str) else _checked(arguments)
    except _Refused as refused:
        return fault(refused.rule, (), refused.what, actual=arguments)
    if not isinstance(value, dict):
        what = f"the arguments are not an object but {shown(value)}"
        return fault("args.not_object", (), what, actual=arguments)
    return value


def read_json(text: str) -> Any:
    """The JSON value of `text` by the same rules; raises ValueError where it has none."""
    try:
        return _read_text(text)
    except _Refused as refused:
        raise ValueError(refused.what) from None


def _read_text(text: str) -> Any:
    if not text.strip():
        return {}
    if _too_deep(text):
        raise _Refused("args.invalid_json", f"nested more than {NESTING} levels deep")
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg} at character {error.pos + 1}"
        raise _Refused("args.invalid_json", what) from None
    except (ValueError, RecursionError):
        # ValueError: Python refuses integers of more than 4300 digits.
        raise _Refused("args.invalid_json", "JSON that cannot be read: too deep or too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, count in times.items() if count > 1)
        raise _Refused("args.duplicate_key", f"the key {shown(twice)} is there more than once")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _Refused("args.not_finite", f"{shown(digits)} is no finite number")
    return number


def _refuse_constant(name: str) -> Any:
    raise _Refused("args.not_finite", f"{name} is no finite number")


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= NESTING:
        return False
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        mark = token.group()
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if depth > NESTING:
            return True
    return False


def _checked(value: Any) -> Any:
    """A value that came parsed, held to the rules for text. Walks level by level: it may be deep."""
    level = [value]
    for _ in range(NESTING + 1):
        for item in level:
            if isinstance(item, float) and not math.isfinite(item):
                raise _Refused("args.not_finite", f"{item} is no finite number")
        if not any(isinstance(item, dict | list) for item in level):
            return value
        level = [child for item in level for child in _children(item)]
    raise _Refused("args.invalid_json", f"nested more than {NESTING} levels deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
