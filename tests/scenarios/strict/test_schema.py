"""JSON Schema by its real semantics, and what a broken schema must not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.strict.arguments import compare, prepare
from scenarios.types import Tool, ToolNotes

FREE = ToolNotes(free_text=frozenset({"q"}))
LONG = "please water all the plants in the hall"
LONGER = "please water all of the plants in the hall"


def faults(
    schema: Any, actual: Any, expected: Any, notes: ToolNotes = FREE, **more: Any
) -> list[tuple[str, str]]:
    """What is wrong with the argument `q`."""
    parameters = {"type": "object", "properties": {"q": schema}, **more}
    rules = prepare(Tool("t", "", parameters, {}), notes)
    found = compare(rules, json.dumps({"q": actual}), {"q": expected})
    return [(it.rule, it.path) for it in found.faults]


@pytest.mark.parametrize(
    ("schema", "actual", "expected", "wrong"),
    [
        ({"type": "string", "maxLength": 40}, LONGER, LONG, True),
        ({"type": "string", "maxLength": 50}, LONGER, LONG, False),
        ({"type": "string", "maxLength": 10}, LONGER, LONG, False),
        ({"type": "array", "items": {"maxLength": 4}}, ["Rome "], ["Rome"], True),
        ({"properties": {"n": {"default": 1}}, "maxProperties": 1}, {"x": 1, "n": 1}, {"x": 1}, True),
        ({"enum": [{"type": "float"}]}, {"type": "FLOAT"}, {"type": "float"}, True),
        ({"allOf": [{"maxLength": 40}]}, LONGER, LONG, True),
        ({"allOf": [{"minLength": 60}, {"maxLength": 40}]}, LONGER, LONG, True),
        ({"anyOf": [{"type": "float"}, {"maxLength": 40}]}, LONGER, LONG, True),
        ({"type": ["string", "null"], "maxLength": 40}, LONGER, LONG, True),
        ({"type": ["string", "null"], "nullable": True, "maxLength": 40}, LONGER, LONG, True),
        ({"type": "string", "nullable": True, "maxLength": 40}, LONGER, LONG, True),
        ({"type": "integer"}, 5.0, 5, False),
        ({"type": "float"}, 5, 5.0, False),
        ({"type": "string", "format": "date"}, "2024/7/13", "2024-07-13", False),
        ({"not": {"maxLength": 4}}, "rome", " Rome ", True),
        ({"$ref": "#/$defs/short"}, "Rome ", "Rome", True),
    ],
)
def test_what_means_the_same_must_keep_the_schema_where_the_reference_does(
    schema: Any, actual: Any, expected: Any, wrong: bool
) -> None:
    found = faults(schema, actual, expected, **{"$defs": {"short": {"maxLength": 4}}})
    assert [rule for rule, _ in found] == ["args.schema"] * wrong


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "any"},
        {"type": 5},
        {"type": "string", "maxLength": "long"},
        {"type": "string", "pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "http://nowhere.invalid/schema.json"},
        {"properties": []},
        {"enum": "abc"},
        {"anyOf": {}},
        True,
        "string",
        None,
    ],
)
@pytest.mark.parametrize("key", ["properties", "$defs"])
def test_a_schema_that_is_none_makes_nothing_wrong(schema: Any, key: str) -> None:
    more = {} if key == "properties" else {"$defs": {"x": schema}}
    first = schema if key == "properties" else {"$ref": "#/$defs/x"}
    assert faults(first, LONG, LONG, **more) == []
    assert faults({}, LONGER, LONG, **{key: {"q": schema}}) == []


@pytest.mark.parametrize(
    "parameters", [None, True, False, [], "object", {"type": "string"}, {"properties": {"a": False}}]
)
def test_parameters_that_forbid_the_reference_do_not_make_it_wrong(parameters: Any) -> None:
    rules = prepare(Tool("t", "", parameters, {}))
    assert compare(rules, '{"a": " Rome"}', {"a": "rome"}).right


@pytest.mark.parametrize(
    ("schema", "actual", "expected", "rule"),
    [
        ({"type": ["string", "null"]}, "Rome", "rome", None),
        ({"type": ["string", "null"]}, None, "rome", "args.type"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 5, 5.0, None),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "5", 5, "args.type"),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, "A", "a", "args.exact"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, "A", "a", "args.enum"),
        ({"allOf": [{"pattern": "^[A-Z]+$"}]}, "rome", "ROME", "args.exact"),
        ({"allOf": [{"minLength": 1}, True, {"enum": ["C", "F"]}]}, "K", "C", "args.enum"),
        ({"$ref": "#/$defs/unit"}, "K", "C", "args.enum"),
        ({"$ref": "#/$defs/unit"}, "F", "C", "args.exact"),
        ({"anyOf": [{"$ref": "#/$defs/unit"}, {"const": "K"}]}, "f", "F", "args.exact"),
        ({"$ref": "#/$defs/a~1b"}, "F", "C", "args.exact"),
        ({"$ref": "#/$defs/a~0b"}, "F", "C", "args.exact"),
        ({"$ref": "#/$defs/0"}, "F", "C", "args.exact"),
        ({"$ref": "#/$defs/unit/anyOf/0"}, "F", "C", "args.exact"),
        ({"$ref": "#/$defs/unit/anyOf/1"}, "C ", "c", None),
        ({"$ref": "#/$defs/unit/anyOf/x"}, "C ", "c", None),
        ({"$ref": "#"}, {"q": " A"}, {"q": "a"}, None),
        ({}, [1, {"x": None}], [1.0, {"x": None}], None),
    ],
)
def test_a_value_is_held_to_what_its_schema_says_wherever_it_says_it(
    schema: Any, actual: Any, expected: Any, rule: str | None
) -> None:
    unit = {"enum": ["C", "F"], "anyOf": [{"enum": ["C", "F"]}]}
    defs = dict.fromkeys(("unit", "a/b", "a~b", "0"), unit)
    found = faults(schema, actual, expected, ToolNotes(), **{"$defs": defs})
    assert found == ([] if rule is None else [(rule, "$.q")])


def test_items_are_held_to_a_schema_that_is_referred_to() -> None:
    found = faults(
        {"items": {"$ref": "#/$defs/unit"}}, ["K"], ["C"], **{"$defs": {"unit": {"enum": ["C", "F"]}}}
    )
    assert found == [("args.enum", "$.q[0]")]


def test_a_key_that_the_schema_requires_of_this_value_alone_is_missing() -> None:
    """What `then` asks for is not asked of the Reference, whose spelling `if` does not know."""
    condition = {"if": {"properties": {"q": {"const": "ROME"}}}, "then": {"required": ["country"]}}
    assert faults({}, "ROME", "Rome", **condition) == [("args.missing", "$.country")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_schema_is_fetched_from_another_place(tmp_path: Path) -> None:
    other = tmp_path / "short.json"
    other.write_text('{"maxLength": 4}', "utf-8")
    assert faults({"$ref": other.as_uri()}, "Rome ", "Rome", ToolNotes()) == []


def test_keys_of_every_branch_are_declared() -> None:
    branches = [{"properties": {"x": {"type": "integer"}}}, {"properties": {"y": {"type": "integer"}}}]
    found = faults({"anyOf": branches}, {"x": 1, "y": 1, "z": 1}, {"x": 1}, ToolNotes())
    assert found == [("args.extra", "$.q.y"), ("args.undeclared", "$.q.z")]


def test_items_by_position_have_schemas_of_their_own() -> None:
    schema = {"prefixItems": [{"enum": ["a"]}], "items": {"type": "string"}}
    assert faults(schema, ["A", "B"], ["a", "b"], ToolNotes()) == [("args.enum", "$.q[0]")]


def test_items_after_those_listed_have_the_schema_that_older_drafts_give_them() -> None:
    schema = {"items": [{"type": "string"}], "additionalItems": {"enum": ["a", "b"]}}
    assert faults(schema, ["A", "K"], ["a", "b"], ToolNotes()) == [("args.enum", "$.q[1]")]


def test_a_missing_key_that_the_schema_requires_is_missing_whatever_its_default() -> None:
    schema = {"type": "integer", "default": 5}
    rules = prepare(Tool("t", "", {"properties": {"q": schema}, "required": ["q"]}, {}))
    assert [(it.rule, it.path) for it in compare(rules, "{}", {"q": 5}).faults] == [("args.missing", "$.q")]


def test_a_required_key_that_the_reference_leaves_out_too_may_be_left_out() -> None:
    rules = prepare(Tool("t", "", {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, {}))
    assert compare(rules, '{"a": "X"}', {"a": "x"}).right


def test_older_drafts_are_read_by_their_own_rules() -> None:
    """In draft 4 a text is of a type of its own, and `exclusiveMaximum` is a boolean beside `maximum`."""
    schema = {"maximum": 3, "exclusiveMaximum": True, "maxLength": 4}
    draft = "http://json-schema.org/draft-04/schema#"
    assert faults(schema, "Rome ", "Rome", ToolNotes(), **{"$schema": draft}) == [("args.schema", "$.q")]
