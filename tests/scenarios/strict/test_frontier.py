"""What a Reference allows in any order and grouping, and what a reply is taken for."""

from __future__ import annotations

import json
from collections import UserDict
from itertools import combinations, islice, permutations
from typing import Any

import pytest

from scenarios.strict.arguments import Rules
from scenarios.strict.by_name import takes_by_name
from scenarios.strict.frontier import MOST_MASKS, Frontier, Refused, Taken, begin, rulebook, take
from scenarios.types import ASK, CLOSE, Node, Reply, Tool, ToolCall

Nodes = tuple[Node, ...]
TEXT = Reply("Some words.")


def call(name: str, *needs: int, alternatives: tuple[dict[str, Any], ...] = (), **arguments: Any) -> Node:
    return Node(name, arguments, f"{name} {arguments}", needs, alternatives=alternatives)


def ask(*needs: int) -> Node:
    return Node(ASK, {}, "Which?", needs, "This.")


def close(*needs: int) -> Node:
    return Node(CLOSE, {}, "Done.", needs)


def calls(*wanted: tuple[str, dict[str, Any]]) -> Reply:
    return Reply(
        None,
        tuple(ToolCall(f"id{i}", name, json.dumps(given)) for i, (name, given) in enumerate(wanted)),
    )


def of(*nodes: Node) -> Reply:
    """Calls with the arguments of these nodes."""
    return calls(*((node.name, node.arguments) for node in nodes))


def tools_for(nodes: Nodes) -> list[Tool]:
    properties: dict[str, Any] = {key: {} for node in nodes for key in node.arguments}
    parameters = {"type": "object", "properties": properties}
    return [Tool(name, "", parameters, {}) for name in sorted({node.name for node in nodes if node.is_call})]


def walk(nodes: Nodes, *replies: Reply) -> Taken | Refused:
    """What the last reply is taken for; all before it must be accepted."""
    book = rulebook(tools_for(nodes), {})
    frontier = begin(nodes)
    for reply in replies[:-1]:
        taken = take(frontier, book, reply)
        assert isinstance(taken, Taken)
        frontier = taken.frontier
    return take(frontier, book, replies[-1])


def kind(taken: Taken | Refused) -> str:
    return taken.kind if isinstance(taken, Taken) else "refused"


# Calls

A, B, C = call("a", n=1), call("b", n=2), call("c", n=3)
WIDE = (A, B, C, close(0, 1, 2))


@pytest.mark.parametrize("order", list(permutations((A, B, C))))
def test_independent_calls_are_taken_in_any_order_and_grouping(order: Nodes) -> None:
    first, second, third = order
    for replies in (
        [of(*order)],
        [of(first, second), of(third)],
        [of(first), of(second, third)],
        [of(first), of(second), of(third)],
    ):
        assert kind(walk(WIDE, *replies, TEXT)) == "close"


def test_the_nodes_of_a_step_come_in_the_order_of_its_calls() -> None:
    taken = walk(WIDE, of(C, A))
    assert isinstance(taken, Taken)
    assert (taken.kind, taken.nodes) == ("call", (2, 0))
    assert taken.frontier.done_count == 2


def test_three_calls_of_one_tool_are_taken_as_two_and_one() -> None:
    nodes = (call("a", n=1), call("a", n=2), call("a", n=3), close(0, 1, 2))
    assert kind(walk(nodes, of(nodes[2], nodes[0]), of(nodes[1]), TEXT)) == "close"


def test_a_call_may_follow_at_once_on_the_one_that_it_waits_for_though_others_are_left() -> None:
    nodes = (call("a", n=1), call("a", n=2), call("b", 0, n=3), close(1, 2))
    assert kind(walk(nodes, of(nodes[0]), of(nodes[2]), of(nodes[1]), TEXT)) == "close"


def test_a_call_in_the_same_reply_as_the_one_that_it_waits_for_is_refused() -> None:
    nodes = (A, call("b", 0, n=2), close(0, 1))
    assert kind(walk(nodes, of(nodes[0], nodes[1]))) == "refused"


def test_a_call_stands_for_one_node_alone() -> None:
    twins = (call("a", n=1), call("a", n=1), close(0, 1))
    assert kind(walk(twins, of(twins[0]), TEXT)) == "refused"
    assert kind(walk(twins, of(twins[0], twins[1]), TEXT)) == "close"
    assert kind(walk((A, close(0)), of(A, A))) == "refused"


def test_calls_are_told_apart_by_their_arguments_and_not_by_their_text() -> None:
    nodes = (call("a", x="lamp", y=1), call("a", x="chair", y=2), close(0, 1))
    turned = (ToolCall(None, "a", '{"y": 2, "x": "chair"}'), ToolCall(None, "a", '{"y":1,"x":"lamp"}'))
    taken = walk(nodes, Reply(None, turned))
    assert isinstance(taken, Taken)
    assert taken.nodes == (1, 0)


def test_a_call_that_fits_two_nodes_leaves_the_one_that_another_call_needs() -> None:
    either = call("a", x="lamp", alternatives=({"x": "chair"},))
    nodes = (either, call("a", x="chair"), close(0, 1))
    chair, lamp = ("a", {"x": "chair"}), ("a", {"x": "lamp"})
    for replies in ([calls(chair, lamp)], [calls(lamp, chair)], [calls(chair), calls(lamp)]):
        assert kind(walk(nodes, *replies, TEXT)) == "close"
    assert kind(walk(nodes, calls(chair), calls(chair), TEXT)) == "close"
    assert kind(walk(nodes, calls(lamp), calls(lamp))) == "refused"


def test_which_of_two_like_calls_was_made_stays_open_until_it_matters() -> None:
    nodes = (call("a", n=1), call("a", n=1), call("b", 0, n=2), call("c", 1, n=3), close(2, 3))
    for follower, other in ((2, 3), (3, 2)):
        steps = [of(nodes[0]), of(nodes[follower]), of(nodes[1]), of(nodes[other])]
        assert kind(walk(nodes, *steps, TEXT)) == "close"
    assert kind(walk(nodes, of(nodes[0]), of(nodes[2], nodes[3]))) == "refused"


def test_arguments_decide_at_once() -> None:
    assert kind(walk(WIDE, calls(("a", {"n": 9})))) == "refused"
    assert kind(walk(WIDE, calls(("a", {})))) == "refused"


def test_a_refused_reply_has_its_calls_at_the_nodes_that_they_are_most_like() -> None:
    nodes = (call("a", x=1, y=1), call("a", x=2, y=2), close(0, 1))
    refused = walk(nodes, calls(("a", {"x": 2, "y": 9}), ("a", {"x": 1, "y": 1}), ("a", {"x": 7, "y": 7})))
    assert isinstance(refused, Refused)
    assert (refused.did, refused.done) == ("call", 0)
    assert [(it.node, it.right) for it in refused.placed] == [(1, False), (0, True), (None, False)]


def test_a_call_that_no_ready_node_has_use_for_leaves_the_others_their_nodes() -> None:
    refused = walk(WIDE, calls(("d", {"n": 9}), ("b", {"n": 2}), ("a", {"n": 9})))
    assert isinstance(refused, Refused)
    assert [(it.node, it.right) for it in refused.placed] == [(None, False), (1, True), (0, False)]


def test_a_refused_reply_is_held_against_the_done_nodes_that_it_fits_best() -> None:
    """After the first call either of two equal nodes may be done; each has a follower of its own."""
    equal = (call("a", n=1), call("a", n=1))
    by_tool = (*equal, call("b", 0, x=1, y=1), call("c", 1, x=1, y=1), close(2, 3))
    by_arguments = (*equal, call("b", 0, x=1, y=1), call("b", 1, x=2, y=2), close(2, 3))
    for nodes, wrong, done in (
        (by_tool, ("b", {"x": 1, "y": 9}), 0b01),
        (by_tool, ("c", {"x": 1, "y": 9}), 0b10),
        (by_arguments, ("b", {"x": 1, "y": 9}), 0b01),
        (by_arguments, ("b", {"x": 2, "y": 9}), 0b10),
    ):
        refused = walk(nodes, of(nodes[0]), calls(wrong))
        assert isinstance(refused, Refused)
        assert refused.done == done


def test_of_equal_calls_the_first_is_the_right_one() -> None:
    nodes = (call("a", n=1), call("a", n=2), close(0, 1))
    refused = walk(nodes, calls(("a", {"n": 2}), ("a", {"n": 2})))
    assert isinstance(refused, Refused)
    assert [(it.node, it.right) for it in refused.placed] == [(1, True), (0, False)]


def test_a_tool_that_does_not_exist_is_no_step_even_if_the_reference_has_it() -> None:
    taken = take(begin((A, close(0))), {}, of(A))
    assert kind(taken) == "refused"


@pytest.mark.parametrize("arguments", [None, "", "{}", "  ", {}])
def test_a_call_without_arguments_may_write_that_in_any_way(arguments: Any) -> None:
    nodes = (call("a"), close(0))
    assert kind(walk(nodes, Reply(None, (ToolCall(None, "a", arguments),)))) == "call"


# Text


def test_text_beside_calls_is_ignored() -> None:
    assert kind(walk(WIDE, Reply("I will look.", of(A).calls))) == "call"


def test_text_closes_a_task_when_nothing_is_left_and_not_before() -> None:
    early = (A, B, close(0))
    assert kind(walk(early, of(A), TEXT)) == "refused"
    assert kind(walk(early, of(A), of(B), TEXT)) == "close"
    assert kind(walk((close(),), TEXT)) == "close"


def test_text_is_the_question_where_one_is_due_though_calls_are_too() -> None:
    nodes = (A, ask(), call("b", 1, n=2), close(0, 2))
    for replies in ([TEXT, of(A), of(B)], [of(A), TEXT, of(B)], [TEXT, of(A, B)]):
        assert kind(walk(nodes, *replies, TEXT)) == "close"
    taken = walk(nodes, TEXT)
    assert isinstance(taken, Taken)
    assert (taken.kind, taken.nodes) == ("ask", (1,))
    assert kind(walk(nodes, TEXT, TEXT)) == "refused"


def test_a_question_that_nothing_waits_for_is_due_until_the_task_is_closed() -> None:
    nodes = (ask(), A, close(1))
    assert [kind(walk(nodes, *it)) for it in ([TEXT], [of(A), TEXT])] == ["ask", "ask"]
    assert kind(walk(nodes, TEXT, of(A), TEXT)) == "close"


def test_what_stands_behind_a_closing_node_does_not_keep_it_back() -> None:
    assert kind(walk((A, close(0), call("b", 1, n=2)), of(A), TEXT)) == "close"


def test_what_stands_behind_a_closing_node_at_any_distance_does_not_keep_it_back_but_all_else_does() -> None:
    branches = call("b", 1, n=2), call("c", 1, n=3)
    for behind in ((*branches, call("d", 2, n=4)), (*branches, call("d", 3, n=4))):
        nodes = (A, close(), *behind)
        assert kind(walk(nodes, TEXT)) == "refused"
        assert kind(walk(nodes, of(A), TEXT)) == "close"


def test_of_two_closing_nodes_the_one_that_waits_for_the_other_is_not_due() -> None:
    taken = walk((close(1), close()), TEXT)
    assert isinstance(taken, Taken)
    assert (taken.kind, taken.nodes) == ("close", (1,))


@pytest.mark.parametrize("content", [None, "", " ", "\n\t", "\u200b", "\ufeff \u2060"])
def test_a_reply_with_neither_text_nor_calls_is_refused(content: str | None) -> None:
    refused = walk((close(),), Reply(content))
    assert isinstance(refused, Refused)
    assert refused.did == "none"


# By name


def test_by_name_wrong_arguments_are_taken_and_go_to_the_node_they_are_most_like() -> None:
    nodes = (call("a", x=1, y=1), call("a", x=2, y=2), call("b", 0, n=3), close(0, 1, 2))
    none: frozenset[int] = frozenset()
    assert takes_by_name(nodes, none, calls(("a", {"x": 2, "y": 9}))) == ("call", (1,))
    assert takes_by_name(nodes, none, calls(("a", {"x": 2}), ("a", {}))) == ("call", (1, 0))
    assert takes_by_name(nodes, none, calls(("a", {}), ("a", {}), ("a", {}))) is None
    assert takes_by_name(nodes, none, calls(("b", {"n": 3}))) is None
    assert takes_by_name(nodes, frozenset({0}), calls(("b", {}), ("a", {}))) == ("call", (2, 1))


def test_by_name_text_is_the_question_or_the_end_or_nothing() -> None:
    nodes = (ask(), call("a", 0, n=1), close(1))
    assert takes_by_name(nodes, frozenset(), TEXT) == ("ask", (0,))
    assert takes_by_name(nodes, frozenset({0}), TEXT) is None
    assert takes_by_name(nodes, frozenset({0, 1}), TEXT) == ("close", (2,))
    assert takes_by_name(nodes, frozenset({0, 1}), Reply(None)) is None


def test_by_name_a_question_whose_dependents_are_all_done_is_skipped() -> None:
    nodes = (ask(), call("a", 0, n=1), close(1))
    assert takes_by_name(nodes, frozenset({1}), TEXT) == ("close", (2,))


def test_by_name_what_waits_for_a_node_whose_alternative_was_called_is_taken() -> None:
    """The call n=1 was served for node 0, and fits node 1 by its alternative: what waits for 1 may come."""
    nodes = (call("a", n=1), call("a", n=2, alternatives=({"n": 1},)), call("b", 1, n=3), close(0, 2))
    assert takes_by_name(nodes, frozenset({0}), of(nodes[2])) == ("call", (2,))
    apart = (nodes[0], call("a", n=2, alternatives=({"n": 9},)), *nodes[2:])
    assert takes_by_name(apart, frozenset({0}), of(nodes[2])) is None


def test_by_name_a_closing_node_does_not_keep_a_question_from_being_skipped() -> None:
    nodes = (ask(), call("a", 0, n=1), close(0, 1))
    assert takes_by_name(nodes, frozenset({1}), TEXT) == ("close", (2,))
    alone = (ask(), close(0))
    assert takes_by_name(alone, frozenset(), TEXT) == ("ask", (0,))


def test_by_name_no_node_is_served_twice_wherever_it_stands() -> None:
    """The call served for node 1 is taken to have been for node 2, so the second such call is for node 2."""
    equal = (call("a", n=1), call("a", n=1))
    nodes = (call("d", n=0), *equal, call("b", 1, n=2), call("c", 2, n=3), close(0, 3, 4))
    assert takes_by_name(nodes, frozenset({1}), of(nodes[2], nodes[4])) == ("call", (2, 4))


def test_by_name_what_waits_for_the_other_of_two_equal_nodes_is_taken() -> None:
    nodes = (call("a", n=1), call("a", n=1), call("b", 0, n=2), call("c", 1, n=3), close(2, 3))
    assert takes_by_name(nodes, frozenset({0}), of(nodes[3])) == ("call", (3,))
    assert takes_by_name(nodes, frozenset({0}), of(nodes[1], nodes[3])) == ("call", (1, 3))
    assert takes_by_name(nodes, frozenset({0}), of(nodes[2], nodes[3])) is None
    assert takes_by_name(nodes, frozenset({0, 3}), of(nodes[2])) is None
    assert takes_by_name(nodes, frozenset({0, 3}), of(nodes[1])) == ("call", (1,))
    other = (nodes[0], call("a", n=9), *nodes[2:])
    assert takes_by_name(other, frozenset({0}), of(nodes[3])) is None


# Size


class CountingRulebook(UserDict[str, Rules]):
    """A rulebook that counts how often it is asked: once for each comparison of arguments."""

    asked = 0

    def __getitem__(self, name: str) -> Rules:
        self.asked += 1
        return super().__getitem__(name)


def compared(nodes: Nodes, reply: Reply) -> tuple[str, int]:
    book = CountingRulebook(rulebook(tools_for(nodes), {}))
    book.asked = 0
    return kind(take(begin(nodes), book, reply)), book.asked


def alike(count: int, *, followed: bool) -> Nodes:
    """Calls that all look the same; `followed` gives each a dependent of its own."""
    same = [call("a", n=1) for _ in range(count)]
    after = [call("b", i, n=i) for i in range(count)] if followed else []
    return (*same, *after, close(*range(count + len(after))))


@pytest.mark.parametrize("count", [12, 20])
def test_independent_calls_cost_a_comparison_for_each_node_of_their_name(count: int) -> None:
    distinct = (*(call(f"tool{i}", n=i) for i in range(count)), close(*range(count)))
    assert compared(distinct, of(*reversed(distinct[:-1]))) == ("call", count)
    of_one_tool = (*(call("a", n=i) for i in range(count)), close(*range(count)))
    assert compared(of_one_tool, of(*reversed(of_one_tool[:-1]))) == ("call", count * count)
    taken = walk(of_one_tool, of(*of_one_tool[:-1]))
    assert isinstance(taken, Taken)
    assert taken.frontier.masks == (2**count - 1,)


def test_twelve_of_twenty_four_interchangeable_nodes_are_one_set_and_one_comparison() -> None:
    nodes = alike(24, followed=False)
    assert compared(nodes, of(*nodes[:12])) == ("call", 1)
    taken = walk(nodes, of(*nodes[:12]))
    assert isinstance(taken, Taken)
    assert taken.frontier.masks == (2**12 - 1,)
    assert kind(walk(nodes, of(*nodes[:12]), of(*nodes[:12]), TEXT)) == "close"


def test_equal_nodes_are_interchangeable_whatever_the_order_of_their_keys() -> None:
    nodes = (call("a", x=1, y=2), call("a", y=2, x=1), close(0, 1))
    taken = walk(nodes, of(nodes[1]))
    assert isinstance(taken, Taken)
    assert taken.frontier.masks == (0b01,)


def test_nodes_that_other_calls_wait_for_are_not_interchangeable() -> None:
    nodes = alike(4, followed=True)
    taken = walk(nodes, of(*nodes[:2]))
    assert isinstance(taken, Taken)
    assert taken.frontier.masks == (0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100)


def test_beyond_the_limit_the_earliest_sets_are_kept() -> None:
    nodes = alike(14, followed=True)
    taken = walk(nodes, of(*nodes[:7]))
    assert isinstance(taken, Taken)
    earliest = islice(combinations(range(14), 7), MOST_MASKS)
    assert taken.frontier.masks == tuple(sum(1 << i for i in chosen) for chosen in earliest)
    assert kind(walk(nodes, of(*nodes[:7]), of(*nodes[:7]))) == "call"


def test_beyond_the_limit_no_set_is_kept_that_leaves_another_call_without_its_node() -> None:
    """Nodes 0 and 1 fit both calls and come first, but all of the second call's nodes are needed for it.

    Of the sets of four nodes that fit the first call, more than the limit have node 0 or 1.
    """
    both = [call("a", n=1, alternatives=({"n": 2},))] * 2
    ones, twos = [call("a", n=1)] * 16, [call("a", n=2)] * 16
    after = [call("b", i, n=i) for i in range(18)]
    nodes = (*both, *ones, *twos, *after, close(*range(52)))
    taken = walk(nodes, of(*[ones[0]] * 4, *[twos[0]] * 18))
    assert isinstance(taken, Taken)
    assert len(taken.frontier.masks) == MOST_MASKS
    assert all(mask & 0b11 == 0b11 for mask in taken.frontier.masks)


def test_hundreds_of_calls_for_two_nodes_are_refused_with_the_right_ones_known() -> None:
    nodes = (call("a", n=1), call("a", n=2), close(0, 1))
    refused = walk(nodes, calls(*(("a", {"n": i}) for i in range(300))))
    assert isinstance(refused, Refused)
    assert [i for i, it in enumerate(refused.placed) if it.right] == [1, 2]
    assert refused.frontier == Frontier(begin(nodes).order)
