from __future__ import annotations

from copy import copy
from itertools import islice
from time import thread_time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples
from support.references import any_reference, node, orderly_reference, released_paths

from scenarios.matcher import Match, State, allowed, match_calls, match_text, start
from scenarios.reference import depth, minimal_path
from scenarios.types import ASK, CLOSE, Node

NAMES = ["a", "b", "c", ASK, CLOSE]

reply = st.one_of(st.none(), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
"""None is a text; a list holds the names of the tools called."""


class PathList:
    """The released harness in miniature: keeps all paths and strikes out what does not fit."""

    def __init__(self, nodes: tuple[Node, ...], steps: int | None = None) -> None:
        self.nodes = nodes
        self.paths = list(released_paths(nodes, steps))
        self.step = 0

    def take(self, names: list[str] | None) -> tuple[str, tuple[int, ...]] | None:
        here = [path[self.step] for path in self.paths if self.step < len(path)]
        found = self._find(names, here)
        if found and found[0] == "call":
            self.paths = [p for p in self.paths if self.step < len(p) and p[self.step] == found[1]]
        self.step += 1
        return found

    def _find(
        self, names: list[str] | None, here: list[tuple[int, ...]]
    ) -> tuple[str, tuple[int, ...]] | None:
        for batch in here:
            own = sorted(self.nodes[i].name for i in batch)
            if names is None and ASK in own:
                return "ask", batch
            if names is None and CLOSE in own:
                return "close", batch
            if names is not None and own == sorted(names):
                return "call", batch
        return None


def take(state: State, names: list[str] | None) -> Match | None:
    return match_text(state) if names is None else match_calls(state, names)


@examples(150)
@given(any_reference(), st.data())
def test_agrees_with_the_path_listing_on_any_reference(nodes: tuple[Node, ...], data: st.DataObject) -> None:
    state, listing = start(nodes), PathList(nodes)
    for _ in range(len(nodes) + 1):
        # Mostly replies that some path allows, else nearly every play ends at once.
        here = [p[listing.step] for p in listing.paths if listing.step < len(p)]
        allowed = st.sampled_from([[nodes[i].name for i in batch] for batch in here]) if here else reply
        names = data.draw(st.one_of(allowed, st.none(), reply))
        match, expected = take(state, names), listing.take(names)
        assert (match and (match.kind, match.nodes)) == expected
        if match is None or match.kind == "close":
            return
        state = match.state


def test_agrees_with_the_path_listing_where_an_ask_leaves_hundreds_of_places_open() -> None:
    calls = [node("g", (1, 2), 0), *(node(name, (), i) for i, name in enumerate("abcdef", 1))]
    nodes = (*calls, node(ASK, (), 7), node(CLOSE, tuple(range(8)), 8))
    replies = [None, *map(list, ("a", "g", "ab", "gc", "ga", "bcdef", "abcdef", "gabcdef", "cdef", "gcdef"))]
    asked, listing = match_text(start(nodes)), PathList(nodes, 3)
    assert asked is not None and listing.take(None) == ("ask", asked.nodes)
    found, expected = [], []
    for second in replies:
        match, before = take(asked.state, second), copy(listing)
        found.append((second, match and (match.kind, match.nodes)))
        expected.append((second, before.take(second)))
        for third in replies if match else []:
            after = match and take(match.state, third)
            found.append((third, after and (after.kind, after.nodes)))
            expected.append((third, copy(before).take(third)))
    assert found == expected


@examples(80)
@given(orderly_reference(), st.data())
def test_what_is_accepted_is_legal_under_the_graph(nodes: tuple[Node, ...], data: st.DataObject) -> None:
    state, done = start(nodes), set[int]()
    for _ in range(len(nodes)):
        match = take(state, data.draw(reply))
        if match is None:
            return
        for position in match.nodes:
            assert position not in done
            assert set(nodes[position].dependencies) <= done
        done.update(match.nodes)
        if match.kind == "close":
            assert done == set(range(len(nodes)))
            return
        state = match.state


@examples(100)
@given(any_reference())
def test_the_minimal_path_is_the_first_of_the_shortest_paths(nodes: tuple[Node, ...]) -> None:
    paths = list(released_paths(nodes))
    shortest = min(map(len, paths))
    assert shortest == depth(nodes)
    assert list(minimal_path(nodes)) == next(path for path in paths if len(path) == shortest)


@examples(80)
@given(orderly_reference())
def test_the_minimal_path_is_accepted_in_as_many_steps_as_the_graph_is_deep(nodes: tuple[Node, ...]) -> None:
    names = [node.name for node in nodes if node.is_call]
    # Where a name repeats, a batch may be taken for an earlier one of the same names.
    assume(len(set(names)) == len(names))
    state, kinds = start(nodes), []
    for batch in minimal_path(nodes):
        names = [nodes[i].name for i in batch]
        match = take(state, None if names in ([ASK], [CLOSE]) else names)
        assert match is not None
        kinds.append(match.kind)
        state = match.state
    assert len(kinds) == depth(nodes)
    assert kinds[-1] == "close"


def independent(names: list[str], ask: bool = False) -> tuple[Node, ...]:
    every = [*names, ASK] if ask else names
    calls = [node(name, (), i) for i, name in enumerate(every)]
    return (*calls, node(CLOSE, tuple(range(len(calls))), len(calls)))


@pytest.mark.parametrize(
    ("nodes", "plays"),
    [
        pytest.param(
            independent([f"tool_{i}" for i in range(14)]),
            [
                [[f"tool_{i}" for i in range(14)], None],
                [[f"tool_{i}"] for i in range(14)],
                [["tool_0", "other"]],
            ],
            id="14 independent calls",
        ),
        pytest.param(
            independent(["tool"] * 20),
            [[["tool"] * 20, None], [["tool"]] * 20, [["tool"] * 7]],
            id="20 calls of one tool",
        ),
        pytest.param(
            independent([f"tool_{i}" for i in range(14)], ask=True),
            [
                [None, [f"tool_{i}" for i in range(14)], None],
                [None, None],
                [None, ["tool_0", "tool_1"], ["tool_2"], ["tool_2"]],
                [None, ["tool_3", "tool_3"]],
                [None, ["tool_4", "tool_5"], ["tool_4", "tool_4"]],
                [None, ["tool_6"], None, ["tool_6"]],
            ],
            id="an ask beside 14 independent calls",
        ),
    ],
)
def test_many_independent_calls_are_judged_without_listing_orders(
    nodes: tuple[Node, ...], plays: list
) -> None:
    steps = 0
    begun = thread_time()
    for play in plays:
        state = start(nodes)
        for names in play:
            match = take(state, names)
            steps += 1
            if match is None:
                break
            state = match.state
    # Listing orders or subsets takes seconds to centuries here; this bound is only to tell the two apart.
    assert (thread_time() - begun) / steps < 0.1


def test_a_run_of_equal_names_is_taken_one_by_one_or_whole() -> None:
    nodes = independent(["a", "a", "a"])
    one = match_calls(start(nodes), ["a"])
    assert one is not None
    assert one.nodes == (0,)
    assert match_calls(one.state, ["a", "a"]) is None
    second = match_calls(one.state, ["a"])
    assert second is not None
    assert second.nodes == (1,)
    assert match_calls(start(nodes), ["a", "a"]) is None
    whole = match_calls(start(nodes), ["a", "a", "a"])
    assert whole is not None
    assert whole.nodes == (0, 1, 2)


def test_an_accepted_ask_leaves_every_other_move_open() -> None:
    nodes = (node("a", (), 0), node(ASK, (), 1), node(CLOSE, (0, 1), 2))
    asked = match_text(start(nodes))
    assert asked is not None
    assert asked.kind == "ask"
    # The harness does not strike out the path on which `a` came first, so the next text is
    # taken for the ask again (facts: section 5, row 12).
    again = match_text(asked.state)
    assert again is not None
    assert (again.kind, again.nodes) == ("ask", (1,))


def test_two_calls_behind_an_ask_are_no_part_of_a_run_of_three() -> None:
    """The third of the run waits for `b`: where `b` came in place of the ask, two alone were no step."""
    nodes = (*(node("a", needs, i) for i, needs in enumerate([(), (), (3,)])), node("b", (), 3))
    nodes = (*nodes, node(ASK, (), 4), node(CLOSE, tuple(range(5)), 5))
    state, listing = start(nodes), PathList(nodes)
    for names, expected in ((None, ("ask", (4,))), (["a", "a"], ("call", (0, 1)))):
        match = take(state, names)
        assert match is not None
        assert (match.kind, match.nodes) == listing.take(names) == expected
        state = match.state
    assert match_calls(state, ["a"]) is None
    assert listing.take(["a"]) is None


def test_behind_an_ask_a_call_may_wait_for_another_that_could_have_come_in_place_of_the_ask() -> None:
    names = "abcdefhi"
    calls = [node("g", (2,), 0), *(node(name, (), i) for i, name in enumerate(names, 1))]
    nodes = (*calls, node(ASK, (), 9), node(CLOSE, tuple(range(10)), 10))
    asked = match_text(start(nodes))
    assert asked is not None
    first = match_calls(asked.state, ["a"])
    assert first is not None
    # On the path `b`, `a`, `g` the text was the step of `b` (facts: section 5, row 12).
    waiting = match_calls(first.state, ["g"])
    assert waiting is not None
    assert waiting.nodes == (0,)
    assert match_calls(first.state, ["g", "b"]) is None


def test_an_ask_that_waited_is_open_again_however_much_could_have_come_in_its_place() -> None:
    calls = [
        node("a", (), 0),
        node(ASK, (0,), 1),
        *(node(name, (), i) for i, name in enumerate("bcdefgh", 2)),
    ]
    state = start((*calls, node(CLOSE, tuple(range(9)), 9)))
    for names, expected in ((["a"], ("call", (0,))), (None, ("ask", (1,))), (None, ("ask", (1,)))):
        match = take(state, names)
        assert match is not None
        assert (match.kind, match.nodes) == expected
        state = match.state


def test_nothing_follows_the_closing_text() -> None:
    closed = match_text(start((node(CLOSE, (), 0),)))
    assert closed is not None
    assert closed.kind == "close"
    assert match_text(closed.state) is None
    assert match_calls(closed.state, ["a"]) is None
    assert allowed(closed.state) == []


def test_what_is_allowed_is_told_in_the_released_order_up_to_a_limit() -> None:
    nodes = independent([f"tool_{i}" for i in range(9)])
    assert allowed(start(nodes)) == [(f"tool_{i}",) for i in range(8)]
    assert allowed(start(nodes), 10) == [*((f"tool_{i}",) for i in range(9)), ("tool_0", "tool_1")]
    assert allowed(start(independent(["a", "b"]))) == [("a",), ("b",), ("a", "b")]
    begun = match_calls(start(independent(["a", "a", "a"])), ["a"])
    assert begun is not None
    assert allowed(begun.state) == [("a",)]


def test_what_is_allowed_behind_an_ask_is_what_any_path_allows_there() -> None:
    nodes = independent([f"tool_{i}" for i in range(6)], ask=True)
    asked = match_text(start(nodes))
    assert asked is not None
    listed = (tuple(nodes[i].name for i in path[1]) for path in released_paths(nodes, 2) if len(path) > 1)
    assert allowed(asked.state) == list(islice(dict.fromkeys(listed), 8))
