"""Comparing JSON values by meaning: what differs, and how much is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.strict.defaults import default_of
from scenarios.strict.faults import Fault
from scenarios.strict.pairing import paired_items
from scenarios.strict.parsing import read_json
from scenarios.strict.places import Place
from scenarios.strict.rules import ABSENT, Steps, fault, one_of, shown
from scenarios.strict.texts import text_faults, text_form
from scenarios.strict.wording import wording_faults

_NAMES = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What differs in a value, and its share that is right: 1 only if nothing differs."""

    faults: tuple[Fault, ...]
    likeness: float


RIGHT = Finding((), 1.0)


def exactly(left: Any, right: Any) -> bool:
    """Equal as JSON: numbers by value, a bool no number. Depth does not matter."""
    waiting = [(left, right)]
    while waiting:
        mine, theirs = waiting.pop()
        if isinstance(mine, dict) and isinstance(theirs, dict):
            if mine.keys() != theirs.keys():
                return False
            waiting += [(mine[key], theirs[key]) for key in mine]
        elif isinstance(mine, list) and isinstance(theirs, list):
            if len(mine) != len(theirs):
                return False
            waiting += zip(mine, theirs, strict=True)
        elif json_type(mine) != json_type(theirs) or mine != theirs:
            return False
    return True


def json_type(value: Any) -> str:
    return _NAMES.get(type(value), "null" if value is None else "unknown")


def compare_values(place: Place, steps: Steps, actual: Any, expected: Any) -> Finding:
    if exactly(actual, expected):
        return RIGHT
    if json_type(actual) != json_type(expected):
        return _wrong(_type_fault(steps, actual, expected))
    if isinstance(expected, dict):
        return compare_objects(place, steps, actual, expected)
    if isinstance(expected, list):
        return _compare_arrays(place, steps, actual, expected)
    return _wrong(*_scalar_faults(place, steps, actual, expected))


def _wrong(*faults: Fault) -> Finding:
    return Finding(faults, 0.0) if faults else RIGHT


def _type_fault(steps: Steps, actual: Any, expected: Any) -> Fault:
    what = f"{json_type(actual)} {shown(actual)} where {json_type(expected)} {shown(expected)} was expected"
    coercible = _reads_as(actual, expected) or _reads_as(expected, actual) or _is_bit(actual, expected)
    return fault("args.type", steps, what, expected, actual, coercible=coercible)


def _is_bit(one: Any, other: Any) -> bool:
    """True and 1, or false and 0, in either order."""
    both = isinstance(one, bool | int | float) and isinstance(other, bool | int | float)
    return both and isinstance(one, bool) != isinstance(other, bool) and one == other


def _reads_as(text: Any, value: Any) -> bool:
    """`"1"` reads as 1, `"True"` as true, `"[1]"` as [1]."""
    if not isinstance(text, str) or not text.strip():
        return False
    spelt = text.strip()
    try:
        return exactly(read_json(spelt.lower() if spelt.isalpha() else spelt), value)
    except ValueError:
        return False


def _scalar_faults(place: Place, steps: Steps, actual: Any, expected: Any) -> list[Fault]:
    """How two values of one type, neither array nor object, differ."""
    if isinstance(expected, str) and place.is_free_text:
        return wording_faults(steps, actual, expected)
    allowed = place.allowed
    if allowed is not None and not _is_in(actual, allowed) and _is_in(expected, allowed):
        what = f"{shown(actual)} is not {shown(expected)}, and none of {one_of(allowed)}"
        return [fault("args.enum", steps, what, expected, actual)]
    if isinstance(expected, str):
        return text_faults(place, steps, actual, expected)
    rule = "args.boolean" if isinstance(expected, bool) else "args.number"
    return [fault(rule, steps, f"{shown(actual)} is not {shown(expected)}", expected, actual)]


def _is_in(value: Any, allowed: list[Any]) -> bool:
    return any(exactly(value, it) for it in allowed)


# --- Objects -----------------------------------------------------------------


def compare_objects(
    place: Place, steps: Steps, actual: Mapping[str, Any], expected: Mapping[str, Any]
) -> Finding:
    """Key by key in alphabetical order; the likeness is the mean of those of all keys of both."""
    keys = sorted(actual.keys() | expected.keys(), key=str)
    found = [
        _compare_member(place, (*steps, key), key, actual.get(key, ABSENT), expected.get(key, ABSENT))
        for key in keys
    ]
    return _joined(found, len(keys))


def _joined(found: list[Finding], size: int) -> Finding:
    faults = tuple(it for finding in found for it in finding.faults)
    if not faults:
        return RIGHT
    return Finding(faults, sum(it.likeness for it in found) / size)


def _compare_member(place: Place, steps: Steps, key: str, actual: Any, expected: Any) -> Finding:
    member = place.member(key)
    if actual is ABSENT:
        return _compare_missing(place, member, steps, key, expected)
    if expected is ABSENT:
        return _compare_extra(place, member, steps, key, actual)
    return compare_values(member, steps, actual, expected)


def _compare_missing(place: Place, member: Place, steps: Steps, key: str, expected: Any) -> Finding:
    if place.requires(key):
        what = f"missing, and the schema requires it; expected {shown(expected)}"
        return _wrong(fault("args.missing", steps, what, expected))
    default = default_of(member)
    if default is not ABSENT and not compare_values(member, steps, default, expected).faults:
        return RIGHT
    if expected is None and member.nullable:
        return RIGHT
    return _wrong(fault("args.missing", steps, f"missing; expected {shown(expected)}", expected))


def _compare_extra(place: Place, member: Place, steps: Steps, key: str, actual: Any) -> Finding:
    default = default_of(member)
    if default is not ABSENT:
        found = compare_values(member, steps, actual, default)
        if not found.faults or any(it.coercible for it in found.faults):
            return found
    if actual is None and member.nullable:
        return RIGHT
    if place.declares(key):
        otherwise = "" if default is ABSENT else f", and not its default {shown(default)}"
        what = f"{shown(actual)} was not asked for{otherwise}"
        return _wrong(fault("args.extra", steps, what, actual=actual))
    what = f"the tool has no such parameter; got {shown(actual)}"
    return _wrong(fault("args.undeclared", steps, what, actual=actual))


# --- Arrays ------------------------------------------------------------------


def _compare_arrays(place: Place, steps: Steps, actual: list[Any], expected: list[Any]) -> Finding:
    pairs: Iterable[tuple[int, int]] = ((i, i) for i in range(min(len(actual), len(expected))))
    if place.is_unordered:
        ours, theirs = (
            [repr(_form(place.item(i), it)) for i, it in enumerate(items)] for items in (actual, expected)
        )

        def likeness(row: int, column: int) -> float:
            return compare_values(place.item(row), steps, actual[row], expected[column]).likeness

        within = max(_most_within(place, actual), _most_within(place, expected))
        pairs = paired_items(ours, theirs, likeness, within)
    found = [compare_values(place.item(i), (*steps, i), actual[i], expected[at]) for i, at in pairs]
    size = max(len(actual), len(expected))
    if len(actual) == len(expected):
        return _joined(found, size)
    what = f"{_items(actual)} where {_items(expected)} should be: {shown(actual)}, not {shown(expected)}"
    wrong = fault("args.array_length", steps, what, expected, actual, (len(expected), len(actual)))
    return Finding((wrong,), sum(it.likeness for it in found) / size)


def _most_within(place: Place, items: list[Any]) -> int:
    return max((_pairs_within(place.item(i), it) for i, it in enumerate(items)), default=0)


def _pairs_within(place: Place, value: Any) -> int:
    """How many pairs of items are compared for two such values, by arrays that need no order."""
    if isinstance(value, dict):
        return sum(_pairs_within(place.member(key), it) for key, it in value.items())
    if not isinstance(value, list):
        return 0
    if place.is_unordered:
        # All with all, and those that belong together once more.
        return len(value) * (len(value) + 1) * max(1, _most_within(place, value))
    return sum(_pairs_within(place.item(i), it) for i, it in enumerate(value))


def _items(values: list[Any]) -> str:
    return "1 item" if len(values) == 1 else f"{len(values)} items"


def _form(place: Place, value: Any) -> Any:
    """A value whose `repr` only equal values share; those equal by a default or as free text may not."""
    if isinstance(value, dict):
        return sorted((str(key), repr(_form(place.member(key), it))) for key, it in value.items())
    if isinstance(value, list):
        return [_form(place.item(i), it) for i, it in enumerate(value)]
    if isinstance(value, str):
        return text_form(place, value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
