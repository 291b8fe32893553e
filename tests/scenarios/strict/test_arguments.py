"""The arguments of one call: read, judged against every alternative, never an exception."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.strict.arguments import Comparison, compare, judge_call, prepare
from scenarios.strict.rules import RULES
from scenarios.types import NO_NOTES, Node, Tool, ToolNotes

ROOT = Path(__file__).resolve().parents[3]
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def tool(parameters: Any) -> Tool:
    return Tool("t", "", parameters, {})


def parameters(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def judged(schema: Any, actual: Any, expected: dict[str, Any], notes: ToolNotes = NO_NOTES) -> Comparison:
    return compare(prepare(tool(schema), notes), actual, expected)


def faults(
    schema: Any, actual: Any, expected: dict[str, Any], notes: ToolNotes = NO_NOTES
) -> list[tuple[str, str]]:
    text = actual if isinstance(actual, str) else json.dumps(actual)
    return [(it.rule, it.path) for it in judged(schema, text, expected, notes).faults]


def is_safe_line(text: str) -> bool:
    """One line without controls, invisible formats or surrogates: a terminal shows it and obeys nothing."""
    return not {unicodedata.category(char) for char in text} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def nested(levels: int) -> Any:
    """The number 1 in so many arrays."""
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


# --- Reading -----------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, "", "  \n\t", "{}", {}])
def test_absent_and_blank_arguments_are_an_empty_object(nothing: Any) -> None:
    assert judged(parameters(), nothing, {}) == Comparison((), 1.0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"a": 1', "args.invalid_json"),
        ("{'a': 1}", "args.invalid_json"),
        ("\ufeff{}", "args.invalid_json"),
        ("[" * 100_000, "args.invalid_json"),
        ('{"a":' * 101 + "1" + "}" * 101, "args.invalid_json"),
        ('{"a": ' + "9" * 5000 + "}", "args.invalid_json"),
        ('{"a": 1, "a": 1}', "args.duplicate_key"),
        ('{"a": [{"b": 1, "b": 2}]}', "args.duplicate_key"),
        ('{"a": NaN}', "args.not_finite"),
        ('{"a": Infinity}', "args.not_finite"),
        ('{"a": [-Infinity]}', "args.not_finite"),
        ('{"a": 1e999}', "args.not_finite"),
        ("null", "args.not_object"),
        ("[]", "args.not_object"),
        ("1", "args.not_object"),
        ('"{}"', "args.not_object"),
        (["a"], "args.not_object"),
        (1, "args.not_object"),
        (False, "args.not_object"),
        (b"{}", "args.not_object"),
        ({"a": float("nan")}, "args.not_finite"),
        ({"a": [float("nan")]}, "args.not_finite"),
        ({"a": nested(100)}, "args.invalid_json"),
    ],
)
def test_arguments_that_are_no_json_object_break_one_rule_at_the_root(text: Any, rule: str) -> None:
    found = judged(parameters(a=INTEGER), text, {"a": 1})
    assert ([(it.rule, it.path) for it in found.faults], found.likeness) == ([(rule, "$")], 0.0)


def test_an_object_from_a_provider_is_taken_as_parsed() -> None:
    assert judged(parameters(a=INTEGER), {"a": 1}, {"a": 1}).right


def test_brackets_side_by_side_or_in_texts_are_no_levels() -> None:
    wide = {"a": [[it] for it in range(101)], "b": [{"c": "[{"} for _ in range(101)], "d": nested(99)}
    assert judged({}, json.dumps(wide), wide).right


def test_more_than_100_levels_cannot_be_read_as_text_either() -> None:
    deep = {"a": nested(100)}
    assert faults({}, deep, deep) == [("args.invalid_json", "$")]


def test_keys_and_values_of_a_provider_that_json_has_not_are_told_apart() -> None:
    found = judged(parameters(a=STRING), {1: 2, "a": b"x"}, {"a": None})
    assert [(it.rule, it.path) for it in found.faults] == [("args.undeclared", "$[1]"), ("args.type", "$.a")]


def test_deep_arguments_are_right_where_the_reference_has_them_so() -> None:
    """100 levels in all, as text and as an object."""
    deep = {"a": nested(99)}
    assert (judged({}, json.dumps(deep), deep).right, judged({}, deep, deep).right) == (True, True)


# --- Keys --------------------------------------------------------------------


def test_a_call_without_arguments_does_not_match_a_reference_that_has_some() -> None:
    schema = parameters(("id",), id=STRING, amount={"type": "number"})
    assert faults(schema, {}, {"id": "r1", "amount": 5}) == [
        ("args.missing", "$.amount"),
        ("args.missing", "$.id"),
    ]


def test_a_missing_key_that_the_schema_requires_is_said_to_be_required() -> None:
    schema = parameters(("id",), id=STRING, amount={"type": "number"})
    messages = [it.message for it in judged(schema, "{}", {"id": "r1", "amount": 5}).faults]
    assert ["requires" in message for message in messages] == [False, True]


def test_an_undeclared_key_is_hallucinated_and_a_declared_one_is_only_extra() -> None:
    schema = parameters(a=INTEGER, b=INTEGER)
    assert faults(schema, {"a": 1, "b": 2, "c": 3}, {"a": 1}) == [
        ("args.extra", "$.b"),
        ("args.undeclared", "$.c"),
    ]


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"type": "object"}, "args.undeclared"),
        ({"type": "object", "additionalProperties": False}, "args.undeclared"),
        ({"type": "object", "additionalProperties": True}, "args.extra"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "args.extra"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "args.extra"),
        ({"type": "object", "patternProperties": {"^y": {}}}, "args.undeclared"),
        ({"type": "object", "patternProperties": {"(": {}, "^x": {}}}, "args.extra"),
    ],
)
def test_an_open_object_makes_up_no_keys(schema: Any, rule: str) -> None:
    assert faults(schema, {"x": 1}, {}) == [(rule, "$.x")]


def test_an_object_parameter_of_which_the_schema_says_nothing_is_open() -> None:
    assert faults(parameters(f={"type": "object"}), {"f": {"x": 1}}, {"f": {}}) == [("args.extra", "$.f.x")]


def test_a_key_that_the_reference_has_is_right_though_no_schema_declares_it() -> None:
    assert judged(parameters(), '{"made": "up "}', {"made": "UP"}).right


@pytest.mark.parametrize(
    ("schema", "right"),
    [
        ({"type": ["string", "null"]}, True),
        ({"type": "string", "nullable": True}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, True),
        ({"enum": ["a", None]}, True),
        ({"const": None}, True),
        ({"enum": ["a", "b"]}, False),
        ({"$ref": "#/$defs/maybe"}, True),
        ({"type": "string"}, False),
        ({}, False),
    ],
)
def test_null_is_as_good_as_absent_only_where_the_schema_allows_null(schema: Any, right: bool) -> None:
    whole = {**parameters(a=schema), "$defs": {"maybe": {"type": ["string", "null"]}}}
    assert (judged(whole, '{"a": null}', {}).right, judged(whole, "{}", {"a": None}).right) == (right, right)


def test_every_fault_is_told_in_the_order_of_paths_with_all_that_was_compared() -> None:
    schema = parameters(
        n=INTEGER, on={"type": "boolean"}, unit={"enum": ["C", "F"]}, when=STRING, tags={"type": "array"}
    )
    expected = {"n": 1, "on": True, "unit": "C", "when": "2024-7-13", "tags": ["a", "b"]}
    actual = {"n": "1", "on": False, "unit": "K", "when": "2024/07/14", "tags": ["a", "c"]}
    told = [
        (it.rule, it.path, it.expected, it.actual, it.expected_form, it.actual_form, it.coercible)
        for it in judged(schema, json.dumps(actual), expected).faults
    ]
    assert told == [
        ("args.type", "$.n", 1, "1", 1, "1", True),
        ("args.boolean", "$.on", True, False, True, False, False),
        ("args.text", "$.tags[1]", "b", "c", "b", "c", False),
        ("args.enum", "$.unit", "C", "K", "C", "K", False),
        ("args.date", "$.when", "2024-7-13", "2024/07/14", "2024-07-13", "2024-07-14", False),
    ]


@pytest.mark.parametrize(
    ("actual", "expected", "told", "values"),
    [
        ({"n": "x"}, {"n": 1}, '$.n: string "x" where number 1 was expected', (1, "x")),
        ({"n": None}, {"n": 1}, "$.n: null null where number 1 was expected", (1, None)),
        ({"n": 2}, {"n": 1}, "$.n: 2 is not 1", (1, 2)),
        ({"unit": "K"}, {"unit": "é"}, '$.unit: "K" is not "é", and none of "é", "F"', ("é", "K")),
        ({"id": "A"}, {"id": "a"}, '$.id: "A" is not "a", and must be character by character', ("a", "A")),
        ({"s": "Rom"}, {"s": "Rome"}, '$.s: "Rom" is not "Rome"', ("Rome", "Rom")),
        ({}, {"n": 1}, "$.n: missing; expected 1", (1, None)),
        ({}, {"must": 1}, "$.must: missing, and the schema requires it; expected 1", (1, None)),
        ({"s": "x"}, {}, '$.s: "x" was not asked for', (None, "x")),
        ({"page": 2}, {}, "$.page: 2 was not asked for, and not its default 1", (None, 2)),
        ({"new": 2}, {}, "$.new: the tool has no such parameter; got 2", (None, 2)),
        ({"l": [1]}, {"l": [1, 2]}, "$.l: 1 item where 2 items should be: [1], not [1, 2]", ([1, 2], [1])),
    ],
)
def test_a_message_says_where_what_came_and_what_was_expected(
    actual: dict[str, Any], expected: dict[str, Any], told: str, values: tuple[Any, Any]
) -> None:
    unit = {"enum": ["é", "F"]}
    schema = parameters(
        ("must",),
        n=INTEGER,
        s=STRING,
        id=STRING,
        unit=unit,
        must={},
        page={"default": 1},
        l={"type": "array"},
    )
    must = {} if "must" in expected else {"must": 1}
    (found,) = judged(schema, json.dumps({**must, **actual}), {**must, **expected}).faults
    assert (found.message, (found.expected, found.actual)) == (told, values)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "$: not JSON: Expecting ',' delimiter at character 8"),
        ('{"a": 1, "b": 2, "b": 3}', '$: the key "b" is there more than once'),
        ('{"a": 1e999}', '$: "1e999" is no finite number'),
        ('{"a": NaN}', "$: NaN is no finite number"),
        ("[1]", "$: the arguments are not an object but [1]"),
    ],
)
def test_a_message_says_why_arguments_cannot_be_read_and_the_fault_has_them_as_they_came(
    text: str, told: str
) -> None:
    (found,) = judged(parameters(), text, {}).faults
    assert (found.message, found.actual) == (told, text)


def test_a_key_that_is_no_plain_name_is_quoted_in_the_path() -> None:
    assert faults({}, {"a b": {"c.d": 1}}, {"a b": {"c.d": 2}}) == [("args.number", '$["a b"]["c.d"]')]


def test_a_message_is_one_short_line_that_no_terminal_obeys() -> None:
    (found,) = judged(
        parameters(a=STRING), json.dumps({"a": "\x1b[2J\n\u202e" + "x" * 9999}), {"a": "b"}
    ).faults
    assert is_safe_line(found.message)
    assert len(found.message) < 400


def test_the_documented_rules_are_those_that_the_code_can_find_broken() -> None:
    sources = [path for path in (ROOT / "scenarios" / "strict").glob("*.py") if path.name != "rules.py"]
    named = {rule for path in sources for rule in re.findall(r'"(args\.\w+)"', path.read_text("utf-8"))}
    assert named == RULES.keys()
    assert [rule for rule, sentence in RULES.items() if not sentence.endswith(".")] == []


# --- Likeness, alternatives --------------------------------------------------


def test_likeness_is_the_share_of_keys_that_are_right() -> None:
    schema = parameters(a=INTEGER, b=INTEGER, c=INTEGER, d={"type": "object"})
    cases = [
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 4}, 2 / 3),
        ({"a": 1}, {"a": 1, "b": 2}, 1 / 2),
        ({"a": 1, "d": {"x": 1, "y": 2}}, {"a": 1, "d": {"x": 1, "y": 3}}, 3 / 4),
        ({"a": [1, 2, 3, 4]}, {"a": [1, 2, 3, 5]}, 3 / 4),
        ({"a": 1}, {"a": 2}, 0.0),
    ]
    assert [judged(schema, json.dumps(actual), expected).likeness for actual, expected, _ in cases] == [
        likeness for _, _, likeness in cases
    ]


def test_what_only_breaks_the_schema_is_less_than_right_but_not_less_than_half_wrong() -> None:
    """Two keys, of which one is too long: a judge of alternatives must still prefer what is right."""
    rules = prepare(tool(parameters(a={"maxLength": 4}, b=INTEGER)))
    node = Node(
        "t", {"a": "Rome", "b": 1}, None, alternatives=({"a": "Rome", "b": 2}, {"a": "Rome ", "b": 1})
    )
    one = compare(rules, '{"a": "Rome ", "b": 1}', node.arguments)
    assert ([it.rule for it in one.faults], 0.0 < one.likeness < 1.0) == (["args.schema"], True)
    assert judge_call(rules, '{"a": "Rome ", "b": 1}', node).right


def test_arguments_that_cannot_be_read_are_wrong_by_every_alternative() -> None:
    rules = prepare(tool(parameters(a=INTEGER)))
    found = judge_call(rules, '{"a": ', Node("t", {"a": 1}, None, alternatives=({"a": 2},)))
    assert ([it.rule for it in found.faults], found.likeness) == (["args.invalid_json"], 0.0)


def test_any_alternative_makes_a_call_right() -> None:
    node = Node("t", {"city": "Rome"}, None, alternatives=({"city": "Roma"}, {"place": "Rome"}))
    rules = prepare(tool(parameters(city=STRING, place=STRING)))
    verdicts = [judge_call(rules, text, node).right for text in ('{"city": "roma"}', '{"place": "Rome"}')]
    assert verdicts == [True, True]


def test_of_several_alternatives_the_likeliest_is_told_and_the_reference_of_equals() -> None:
    rules = prepare(tool(parameters(a=INTEGER, b=INTEGER)))
    node = Node("t", {"a": 1, "b": 1}, None, alternatives=({"a": 2, "b": 2},))
    nearer = judge_call(rules, '{"a": 2, "b": 3}', node)
    equal = judge_call(rules, '{"a": 5, "b": 5}', node)
    assert [(it.path, it.expected) for it in nearer.faults] == [("$.b", 2)]
    assert [(it.path, it.expected) for it in equal.faults] == [("$.a", 1), ("$.b", 1)]


# --- Whatever comes in -------------------------------------------------------

TEXT = st.text(st.characters(), max_size=8)
"""Lone surrogates too."""

KEYS = st.sampled_from(["id", "type", "a", "tags", "$ref", "properties", "when", ""]) | TEXT
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**310),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(
        ["2024-7-13", "8 pm", "http://a.b/%7e", "http://[", "Do not fly to Rome", "1", "true", "默认为1"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
TYPES = st.sampled_from(
    [
        "string",
        "integer",
        "float",
        "number",
        "boolean",
        "array",
        "object",
        "null",
        "any",
        ["string", "null"],
        5,
        None,
    ]
)
WORDS: dict[str, Any] = {
    "type": TYPES,
    "enum": st.lists(SCALARS, max_size=3) | SCALARS,
    "const": SCALARS,
    "pattern": st.sampled_from(["^a", "(", 5]),
    "format": st.sampled_from(["date", "uuid", 5, []]),
    "default": VALUES,
    "description": st.sampled_from(["The default is 10.", "默认为'a'", "defaults to", 5]),
    "uniqueItems": st.booleans() | SCALARS,
    "required": st.lists(KEYS, max_size=2) | SCALARS,
    "additionalProperties": st.booleans() | SCALARS,
    "patternProperties": st.dictionaries(st.sampled_from(["(", "^a", ""]), st.just({}), max_size=2),
    "multipleOf": st.sampled_from([0, 1, 0.1, 1e-300]),
    "maxLength": st.integers(0, 3),
    "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/x", "http://nowhere.invalid/x", "#/%", 5]),
    "$schema": st.sampled_from(["http://json-schema.org/draft-07/schema#", "what", 5, []]),
    "nullable": st.booleans(),
}


def with_parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts: dict[str, Any] = {
        "properties": st.dictionaries(KEYS, inner, max_size=3) | SCALARS,
        "items": inner | st.lists(inner, max_size=2),
        "prefixItems": st.lists(inner, max_size=2),
        **{word: st.lists(inner, max_size=2) | SCALARS for word in ("anyOf", "oneOf", "allOf")},
    }
    return st.fixed_dictionaries({}, optional={**WORDS, **parts})


SCHEMAS = st.recursive(
    st.booleans() | SCALARS | st.fixed_dictionaries({}, optional=WORDS), with_parts, max_leaves=6
)
PATHS = st.frozensets(st.sampled_from(["a", "tags", "tags[]", "id", "when", "a.a"]), max_size=4)
NOTES = st.builds(
    ToolNotes,
    free_text=PATHS,
    unordered=PATHS,
    defaults=st.dictionaries(st.sampled_from(["a", "id"]), VALUES),
)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, VALUES | TEXT.map(lambda it: "{" + it), OBJECTS, NOTES)
def test_nothing_raises_whatever_schema_and_arguments_are(
    schema: Any, actual: Any, expected: dict[str, Any], notes: ToolNotes
) -> None:
    rules = prepare(tool(schema), notes)
    for arguments in (actual, json.dumps(actual), json.dumps(actual, ensure_ascii=False)):
        found = compare(rules, arguments, expected)
        assert (found.likeness == 1.0) == found.right
        assert 0.0 <= found.likeness <= 1.0
        assert {it.rule for it in found.faults} <= RULES.keys()
        assert all(is_safe_line(it.message) for it in found.faults)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, OBJECTS, NOTES, st.booleans(), st.booleans())
def test_the_arguments_of_the_reference_are_always_right(
    schema: Any, expected: dict[str, Any], notes: ToolNotes, ascii_only: bool, ordered: bool
) -> None:
    text = json.dumps(expected, ensure_ascii=ascii_only, sort_keys=ordered)
    # Two halves of a pair that stand side by side are one character in JSON text.
    if json.loads(text) == expected:
        assert compare(prepare(tool(schema), notes), text, expected) == Comparison((), 1.0)


@settings(max_examples=40, deadline=None)
@given(SCHEMAS, OBJECTS, OBJECTS, NOTES)
def test_a_verdict_does_not_depend_on_what_was_judged_before(
    schema: Any, actual: dict[str, Any], expected: dict[str, Any], notes: ToolNotes
) -> None:
    """The validator is made once, when it is first needed."""
    rules = prepare(tool(schema), notes)
    text = json.dumps(actual)
    first = compare(rules, text, expected)
    compare(rules, json.dumps(expected), expected)
    assert compare(rules, text, expected) == first == compare(prepare(tool(schema), notes), text, expected)


# --- The vectors of the released checker -------------------------------------


def test_what_equals_the_reference_is_right_for_every_vector_of_the_released_checker(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "arguments.jsonl").read_text("utf-8").splitlines()]
    verdicts = [
        judged(row["tool"]["function"]["parameters"], row["predicted"], row["reference"]).right
        for row in rows
        if canonical(row["predicted"]) == json.dumps(row["reference"], sort_keys=True)
    ]
    assert (len(verdicts) > 200, all(verdicts)) == (True, True)


def canonical(text: Any) -> str | None:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, TypeError):
        return None


def test_exact_arguments_need_no_json_schema() -> None:
    """Making a validator and asking it would cost a hundred times as much as all the rest."""

    def unwanted() -> Any:
        raise AssertionError("a validator was asked for")

    expected = {"city": "Rome", "days": 3, "filters": {"tags": ["a", "b"]}}
    rules = replace(prepare(tool(parameters(("city",), city=STRING))), validator=unwanted)
    assert judge_call(rules, json.dumps(expected), Node("t", expected, None)) == Comparison((), 1.0)
