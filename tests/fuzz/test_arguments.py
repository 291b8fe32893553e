"""The arguments of calls: how their text is read, and what both checkers say of two objects."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.anything import TEXTS, damaged, json_values
from support.examples import examples

from scenarios.arguments import CORRECT, check_arguments
from scenarios.strict.arguments import Comparison, compare, prepare
from scenarios.strict.faults import Fault
from scenarios.strict.parsing import NESTING, read_arguments
from scenarios.types import Tool

KEYS = st.sampled_from(["a", "b", "id", "date", "url", "tags", "text", ""])
VALUES = json_values(KEYS)
OBJECTS = st.dictionaries(KEYS | TEXTS, VALUES, max_size=4)
FRAGMENTS = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b",",
        b":",
        b"NaN",
        b"-",
        b"1e999",
        b"0x1",
        b"'",
        b"\\u00",
        b" ",
        b"\n",
    ]
)
ARGUMENT_TEXTS = (
    OBJECTS.map(json.dumps)
    | VALUES.map(json.dumps)
    | damaged(b'{"a": [1, 2.5, "x\\n"], "b": {"c": null}, "d": true}', FRAGMENTS).map(
        lambda it: it.decode("utf-8", "replace")
    )
    | st.text()
)


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def by_json(text: str) -> Any:
    """What RFC 8259 says a text is, by the standard library; None for what it refuses, or is no object."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=unique_pairs, parse_constant=lambda name: 1 / 0)
    except (ValueError, RecursionError, ZeroDivisionError):
        return None
    return value if isinstance(value, dict) and all(map(is_sound, walk(value))) else None


def walk(value: Any, depth: int = 1) -> list[tuple[Any, int]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [(value, depth), *(it for child in inner for it in walk(child, depth + 1))]


def is_sound(found: tuple[Any, int]) -> bool:
    value, depth = found
    too_deep = isinstance(value, dict | list) and depth > NESTING
    return not too_deep and not (isinstance(value, float) and not math.isfinite(value))


@examples(80, large=True)
@given(ARGUMENT_TEXTS)
def test_argument_text_is_read_as_strict_json_or_has_one_fault(text: str) -> None:
    found, expected = read_arguments(text), by_json(text)
    if expected is None:
        assert isinstance(found, Fault)
    else:
        assert found == expected


def sound(value: dict[str, Any]) -> bool:
    """An object that a scenario file could hold: numbers are finite, texts have no half characters."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return by_json(json.dumps(value)) is not None


def without_schema() -> Tool:
    return Tool("t", "", {"type": "object"}, {})


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that lets the value in."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: schema_of(it) for key, it in value.items()}}
    if isinstance(value, list):
        return {"type": "array"}
    return {"type": "any"}


@examples(40, large=True)
@given(OBJECTS.filter(sound))
def test_the_arguments_of_a_reference_are_right_by_both_checkers(reference: dict[str, Any]) -> None:
    for text in (json.dumps(reference), json.dumps(reference, ensure_ascii=False, indent=1)):
        assert compare(prepare(without_schema()), text, reference) == Comparison((), 1.0)
        assert check_arguments(schema_of(reference), text, reference) == CORRECT


@examples(40, large=True)
@given(OBJECTS.filter(sound), OBJECTS.filter(sound), st.data())
def test_whether_two_argument_objects_agree_does_not_depend_on_which_is_expected(
    one: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    """Without a schema there are no defaults, which stand for what is left out on one side alone."""
    for key in data.draw(st.sets(st.sampled_from(sorted(one)))) if one else ():
        other = {**other, key: one[key]}
    rules = prepare(without_schema())
    there = compare(rules, json.dumps(one), other)
    back = compare(rules, json.dumps(other), one)
    assert there.right == back.right
