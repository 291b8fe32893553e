"""Which call answers which node."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.assign import agreement, assign_calls, best_assignment, parse_arguments, same
from scenarios.types import Node, ToolCall


def node(name: str, **arguments: Any) -> Node:
    return Node(name, arguments, None)


def call(name: str, arguments: Any = None, **given: Any) -> ToolCall:
    return ToolCall(None, name, json.dumps(given) if arguments is None else arguments)


weights = st.integers(0, 5).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=columns, max_size=columns),
        min_size=1,
        max_size=5,
    )
)


def every_assignment(rows: int, columns: int) -> list[tuple[int | None, ...]]:
    places = [*range(columns), *[None] * max(rows - columns, 0)]
    return sorted(set(permutations(places, rows)), key=lambda it: [columns if c is None else c for c in it])


@settings(deadline=None)
@given(weights)
def test_an_assignment_is_one_to_one_and_none_is_better(table: list[list[float]]) -> None:
    rows, columns = len(table), len(table[0])
    found = best_assignment(table)
    used = [column for column in found if column is not None]
    assert len(found) == rows
    assert len(set(used)) == len(used) == min(rows, columns)

    def total(assignment: Any) -> float:
        return sum(table[row][column] for row, column in enumerate(assignment) if column is not None)

    assert total(found) == max(map(total, every_assignment(rows, columns)))


def test_equal_calls_are_assigned_in_their_order() -> None:
    assert best_assignment([[1.0] * 3] * 3) == [0, 1, 2]
    assert best_assignment([[1.0] * 2] * 4) == [0, 1, None, None]
    assert best_assignment([[1.0] * 4] * 6) == [0, 1, 2, 3, None, None]
    assert best_assignment([[0.0] * 4] * 2) == [0, 1]


def test_nothing_to_assign_is_no_problem() -> None:
    assert best_assignment([]) == []
    assert best_assignment([[], []]) == [None, None]


def test_twenty_calls_of_one_name_find_their_nodes() -> None:
    nodes = [node("f", n=n, common="x") for n in range(20)]
    calls = [call("f", n=n, common="x") for n in reversed(range(20))]
    assert assign_calls(nodes, range(20), calls) == list(reversed(range(20)))


def test_a_call_answers_only_a_node_of_its_name_among_the_candidates() -> None:
    nodes = [node("f", a=1), node("g", a=1), node("f", a=2)]
    assert assign_calls(nodes, [0, 1, 2], [call("g", a=1), call("f", a=2), call("h", a=1)]) == [1, 2, None]
    assert assign_calls(nodes, [1], [call("f", a=1)]) == [None]
    assert assign_calls(nodes, [], [call("f", a=1)]) == [None]
    assert assign_calls(nodes, [0, 2], []) == []


def test_the_best_total_counts_and_not_the_first_good_match() -> None:
    nodes = [node("f", a=1, b=1), node("f", a=1, b=2)]
    # The first call fits both alike; the second fits the first node only.
    assert assign_calls(nodes, [0, 1], [call("f", a=1), call("f", a=1, b=1)]) == [1, 0]


def test_of_two_calls_for_one_node_the_better_one_answers_it() -> None:
    assert assign_calls([node("f", a=1)], [0], [call("f", a=2), call("f", a=1)]) == [None, 0]


def test_one_more_right_call_counts_more_than_all_likeness() -> None:
    nodes = [node("f", a=1, b=1), node("f", a=2, b=2)]
    calls = [call("f", a=1, b=1), call("f", a=2, b=2)]

    def is_right(made: ToolCall, wanted: Node) -> bool:
        return (made, wanted) == (calls[0], nodes[1])

    assert assign_calls(nodes, [0, 1], calls) == [0, 1]
    assert assign_calls(nodes, [0, 1], calls, is_right) == [1, 0]


def test_position_never_outweighs_the_smallest_difference_between_weights() -> None:
    size = 20
    table = [[0.5 + (column == size - 1 - row) * 5e-6 for column in range(size)] for row in range(size)]
    assert best_assignment(table) == list(reversed(range(size)))
    assert best_assignment([[0.5, 0.51], [0.5, 0.5]]) == [1, 0]


def test_a_call_of_no_candidate_leaves_those_behind_it_their_nodes() -> None:
    assert assign_calls([node("f", a=1)], [0], [call("h", a=1), call("f", a=1)]) == [None, 0]


def test_a_call_with_wrong_arguments_still_answers_a_node_of_its_name() -> None:
    nodes = [node("f", a=1), node("f", a=2)]
    assert assign_calls(nodes, [0, 1], [call("f", "not JSON"), call("f", a=1)]) == [1, 0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("  ", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", [1]),
        ("{", None),
        ("[" * 100_000, None),
        (None, None),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_read_leniently(text: Any, value: Any) -> None:
    assert parse_arguments(text) == value


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        ("Las Vegas", "lasvegas", True),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (1, [1], False),
        ([1, "A"], [1.0, "a"], True),
        ([1], [1, 1], False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
        ({}, [], False),
    ],
)
def test_values_are_compared_as_json(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is same(right, left) is equal


@pytest.mark.parametrize(
    ("given_", "expected", "share"),
    [
        ({"a": 1}, {"a": 1}, 1.0),
        ({}, {}, 1.0),
        ({"a": 1, "b": 2}, {"a": 1}, 0.5),
        ({"a": 1}, {"a": 1, "b": 2}, 0.5),
        ({"a": 2}, {"a": 1}, 0.0),
        ({}, {"a": None}, 0.0),
        ({"a": None}, {}, 0.0),
        ("text", {"a": 1}, 0.0),
        (None, {}, 0.0),
    ],
)
def test_agreement_is_the_share_of_arguments_that_are_equal(given_: Any, expected: Any, share: float) -> None:
    assert agreement(given_, expected) == share


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["f", "g"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(names, st.dictionaries(st.sampled_from("abc"), json_values, max_size=2)), max_size=4),
    st.lists(st.tuples(names, json_values | st.text(max_size=8)), max_size=5),
)
def test_whatever_was_called_no_node_is_answered_twice(
    reference: list[tuple[str, Any]], made: list[tuple[str, Any]]
) -> None:
    nodes = [Node(name, arguments, None) for name, arguments in reference]
    calls = [ToolCall(None, name, arguments) for name, arguments in made]
    found = assign_calls(nodes, range(len(nodes)), calls)
    used = [position for position in found if position is not None]
    assert len(found) == len(calls)
    assert len(set(used)) == len(used)
    for name in ("f", "g"):
        wanted, there = sum(c.name == name for c in calls), sum(n.name == name for n in nodes)
        assert sum(nodes[position].name == name for position in used) == min(wanted, there)
