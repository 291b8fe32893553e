"""Patterns of schemas that could take for ever."""

from __future__ import annotations

import json

import pytest

from scenarios.strict.arguments import compare, prepare
from scenarios.strict.patterns import is_usable
from scenarios.types import Tool


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(a|a)*b", "(x*)*", "((ab)*c|d)+", "(a+){2,}", "(", "a" * 501, 5]
)
def test_a_repeated_choice_or_repetition_is_not_searched_for(pattern: object) -> None:
    assert not is_usable(pattern)


@pytest.mark.parametrize(
    "pattern", ["^[A-Z]{2}-\\d+$", "^(red|green)$", "(ab)+", "\\(a+\\)*", "^x-", "a" * 500]
)
def test_plain_patterns_are(pattern: str) -> None:
    assert is_usable(pattern)


def test_arguments_are_judged_though_a_pattern_of_their_schema_would_never_end() -> None:
    schema = {
        "type": "object",
        "properties": {"d": {"type": "string", "allOf": [{"pattern": "^(a|a)*$"}]}},
        "patternProperties": {"^(a+)+$": {}},
    }
    rules = prepare(Tool("f", "", schema, {}))
    long = "a" * 60 + "!"
    found = compare(rules, json.dumps({long: "1", "d": "x"}), {"d": long})
    assert [it.path for it in found.faults] == [f'$["{long}"]', "$.d"]
