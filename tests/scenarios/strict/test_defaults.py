"""Defaults: who says them, and when words say one for certain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.load import load
from scenarios.strict.arguments import compare, prepare
from scenarios.strict.defaults import default_of
from scenarios.strict.places import Place, root_place
from scenarios.strict.rules import ABSENT
from scenarios.types import NO_NOTES, Tool, ToolNotes

NOTHING = "nothing"
"""Stands for "no default" in the tables."""


def said(description: str, **schema: Any) -> Any:
    """The default of a parameter with that description."""
    parameters = {"type": "object", "properties": {"q": {"description": description, **schema}}}
    found = default_of(root_place(parameters, NO_NOTES).member("q"))
    return NOTHING if found is ABSENT else found


@pytest.mark.parametrize(
    ("description", "schema", "default"),
    [
        ("Results per page, default is 10.", {"type": "integer"}, 10),
        ("Results per page. Defaults to 10", {"type": "number"}, 10),
        ("Results per page (default 10)", {"type": "integer"}, 10),
        ("Results per page [default: -1]", {"type": "integer"}, -1),
        ("Default: 0.5; at most 1", {"type": "float"}, 0.5),
        ("with a default value of 1, at most 9", {"type": ["integer", "null"]}, 1),
        ("The default is '10'.", {"type": "integer"}, 10),
        ("A default value of 0 represents all.", {"type": "integer"}, 0),
        ("每页数量，默认为10。", {"type": "integer"}, 10),
        ("每页数量，默认值为 10", {"type": "integer"}, 10),
        ("每页数量（默认10）", {"type": "integer"}, 10),
        ("默认值：20，最大100", {"type": "integer"}, 20),
        ("Whether to sort, default is false", {"type": "boolean"}, False),
        ("Whether to sort. The default value is True.", {"type": "boolean"}, True),
        ("是否排序，默认为是", {"type": "boolean"}, True),
        ("是否排序，默认false", {"type": "boolean"}, False),
        ("'XML', 'JSON', with the default being 'JSON'.", {"type": "string"}, "JSON"),
        ("Size. The default value is `600x400`.", {"type": "string"}, "600x400"),
        ("Language, default is English.", {"type": "string"}, "English"),
        ("The memo, default is empty", {"type": "string"}, ""),
        ("格式，默认为“JSON”", {"type": "string"}, "JSON"),
        ("Defaults to 'all' for all", {"enum": ["all", "one"]}, "all"),
        ("Defaults to celsius.", {"enum": ["Celsius", "Fahrenheit"]}, "Celsius"),
        ("默认为城市", {"enum": ["城市", "国家"]}, "城市"),
        ("Defaults to 2", {"enum": [1, 2]}, 2),
        ("Defaults to 'CELSIUS'.", {"enum": ["Celsius", "Fahrenheit"]}, "Celsius"),
        ("Defaults to 'A'.", {"enum": ["a", "A"]}, "A"),
        ("The default is 'JSON'.", {}, "JSON"),
        ("The default is ''.", {"type": "string"}, ""),
        ("The default is +5.", {"type": "integer"}, 5),
        ("Tags, default is []", {"type": "array"}, []),
        ("Default is 5. It defaults to 5.", {"type": "integer"}, 5),
    ],
)
def test_a_description_that_says_one_value_gives_it(
    description: str, schema: dict[str, Any], default: Any
) -> None:
    found = said(description, **schema)
    assert (found, type(found)) == (default, type(default))


@pytest.mark.parametrize(
    ("description", "schema"),
    [
        ("The default is the current date.", {"type": "string"}),
        ("Defaults to today.", {"type": "string"}),
        ("Defaults to all languages.", {"enum": ["all", "one"]}),
        ("The default value is all types.", {"type": "string"}),
        ("Defaults to none", {"type": "string"}),
        ("By default, all fields are returned.", {"type": "array"}),
        ("including all metrics by default.", {"type": "string"}),
        ("defaulting to the current year.", {"type": "integer"}),
        ("The default is 10 minutes.", {"type": "integer"}),
        ("The default is 10%.", {"type": "number"}),
        ("The default is 1,000", {"type": "integer"}),
        ("The default is 1.5", {"type": "integer"}),
        ("The default is 10 or 20", {"type": "integer"}),
        ("The default is 'a' or 'b'", {"type": "string"}),
        ("The default is 'a' OR 'b'", {"type": "string"}),
        ("The default is 'a' if sorted", {"type": "string"}),
        ("The default is 'a'", {"type": ["integer", "string"]}),
        ("The default is true when sorted", {"type": "boolean"}),
        ("The default is {}", {"type": "array"}),
        ("Default is 5. In Asia it defaults to 6.", {"type": "integer"}),
        ("The default is 'x'", {"enum": ["a", "b"]}),
        ("The default is ten", {"type": "integer"}),
        ("default to empty.", {"type": "object"}),
        ("The default is JSON", {}),
        ("默认为当前日期", {"type": "string"}),
        ("默认为10条", {"type": "integer"}),
        ("是否排序，默认是否排序未知", {"type": "boolean"}),
        ("There is no default", {"type": "string"}),
        ("The default is 9", {"type": ["integer", "string"]}),
        ("The default is " + "9" * 5000, {"type": "integer"}),
        ("defaults to", {"type": "string"}),
    ],
)
def test_a_description_that_can_be_read_in_two_ways_gives_no_default(
    description: str, schema: dict[str, Any]
) -> None:
    assert said(description, **schema) == NOTHING


def test_notes_go_before_the_schema_and_the_schema_before_words() -> None:
    parameters = {"properties": {"q": {"type": "integer", "default": 2, "description": "The default is 3."}}}
    by_notes = default_of(root_place(parameters, ToolNotes(defaults={"q": 1})).member("q"))
    assert (by_notes, said("The default is 3.", type="integer", default=2)) == (1, 2)


@pytest.mark.parametrize(
    ("actual", "expected", "rules_broken"),
    [
        ({}, {"format": "JSON"}, []),
        ({"format": "JSON"}, {}, []),
        ({}, {"format": "XML"}, ["args.missing"]),
        ({"format": "XML"}, {}, ["args.extra"]),
        ({"page": 1.0}, {}, []),
        ({"page": "1"}, {}, ["args.type"]),
        ({"filter": {}}, {"filter": {"sort": "up"}}, []),
        ({"filter": {"sort": "up"}}, {"filter": {}}, []),
        ({"list": [{}]}, {"list": [{"n": 4}]}, []),
        ({"list": [{"n": 5}]}, {"list": [{}]}, ["args.extra"]),
    ],
)
def test_a_default_counts_as_given_on_both_sides_and_at_any_depth(
    actual: dict[str, Any], expected: dict[str, Any], rules_broken: list[str]
) -> None:
    """Row 8 of the defects: passing a documented default, or leaving it out, is no mistake."""
    properties = {
        "format": {"type": "string", "description": "'XML' or 'JSON', default is 'JSON'."},
        "page": {"type": "integer", "default": 1},
        "filter": {"type": "object", "properties": {"sort": {"type": "string", "default": "up"}}},
        "list": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}},
    }
    notes = ToolNotes(defaults={"list[].n": 4})
    rules = prepare(Tool("t", "", {"type": "object", "properties": properties}, {}), notes)
    assert [it.rule for it in compare(rules, json.dumps(actual), expected).faults] == rules_broken


def test_of_the_104_defaults_in_words_of_the_real_sessions_only_the_sure_ones_are_taken(
    real_session_files: list[Path],
) -> None:
    """The rest speak of current dates, of "all types", of "all fields": all were read one by one."""
    places = [
        place
        for file in load(real_session_files)
        for scenario in file.scenarios
        for tool in scenario.tools
        for place in members(root_place(tool.parameters, NO_NOTES))
        if any("default" in text.lower() for text in place.descriptions())
    ]
    unsure = [place for place in places if default_of(place) is ABSENT]
    vague = ("the current", "the whole", "the past", " all ", "empty", "no limit", "the Google")
    assert (len(places), len(unsure)) == (104, 17)
    assert [it.path for it in unsure if not any(word in next(it.descriptions()) for word in vague)] == []


def members(place: Place) -> list[Place]:
    """Everything below `place`."""
    found: list[Place] = []
    for schema in place.schemas:
        children = [place.member(key) for key in schema.get("properties", {})]
        children += [place.item(0)] if "items" in schema else []
        for child in children:
            found += [child, *members(child)]
    return found
