"""Calls in vain: repeats, and calls made one after another that could be made at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.references import orderly_reference

from scenarios.load import load
from scenarios.reference import minimal_path
from scenarios.types import ASK, CLOSE, Node, Reply, Scenario, Task, Tool, ToolCall
from scoring.metrics.calls import (
    DEFINITIONS,
    Answers,
    Made,
    allows_parallel,
    answers_of,
    call_figures,
    call_key,
    never_parallel,
    redundant_calls,
)
from scoring.metrics.figures import Figure
from scoring.types import SessionScore, TaskScore, TaskTrajectory, Trajectory

PARAMETERS = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}
TOOLS = tuple(Tool(name, "", PARAMETERS, {}) for name in ("getPrice", "countStock"))
TEXT = Reply("Here you are.")
LAMP, CHAIR = {"thing": "lamp"}, {"thing": "chair"}

Call = tuple[str, Any]


def calling(*calls: Call) -> Reply:
    """Arguments that are no text are written as JSON."""
    made = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    return Reply(None, tuple(ToolCall(None, name, text) for name, text in made))


PRICE, STOCK = ("getPrice", LAMP), ("countStock", LAMP)


def node(call: Call, *needs: int, **more: Any) -> Node:
    name, arguments = call
    return Node(name, arguments, "observed", needs, **more)


def closing(*needs: int) -> Node:
    return Node(CLOSE, {}, "bye", needs)


def task_of(*nodes: Node) -> Task:
    return Task("hello", "Single-Tool", None, nodes)


ONE = task_of(node(PRICE), closing(0))
TWO = task_of(node(("getPrice", CHAIR)), node(STOCK), closing(0, 1))
"""Two calls that can be made at once: two Steps at least."""
CHAT = task_of(closing())
BOTH = (("getPrice", CHAIR), STOCK)


def scenario_of(*tasks: Task) -> Scenario:
    return Scenario("s", "2024-01-01", TOOLS, tasks, "hash", {})


def played(
    tasks: Sequence[Task], replies: Sequence[Sequence[Reply]], session: str = "s.e1", epoch: int = 1
) -> Trajectory:
    own = tuple(TaskTrajectory(tuple(it), "closed") for it in replies)
    return Trajectory(session, epoch, scenario_of(*tasks), own)


def score(label: str | None, requests: int = 1, least: int = 1) -> TaskScore:
    return TaskScore(label, label, label, False, requests, requests, least)


def scored(trajectory: Trajectory, *scores: TaskScore) -> SessionScore:
    return SessionScore(trajectory.session, trajectory.epoch, trajectory.scenario, scores)


def redundant(tasks: Sequence[Task], *replies: Sequence[Reply]) -> list[tuple[int, int, int]]:
    """(task, step, place) of the redundant calls."""
    return [(it.task, it.step, it.place) for it in redundant_calls(played(tasks, replies))]


# --- Redundant calls ---------------------------------------------------------


def test_the_second_of_two_equal_calls_is_redundant_and_the_first_is_not() -> None:
    assert redundant([ONE], [calling(PRICE), calling(PRICE), TEXT]) == [(0, 1, 0)]


def test_a_repeat_in_the_same_reply_is_redundant() -> None:
    assert redundant([ONE], [calling(PRICE, STOCK, PRICE, PRICE), TEXT]) == [(0, 0, 2), (0, 0, 3)]


def test_a_repeat_of_an_earlier_tasks_call_is_redundant() -> None:
    assert redundant([ONE, CHAT], [calling(PRICE), TEXT], [calling(PRICE), TEXT]) == [(1, 0, 0)]


def test_a_call_that_this_tasks_reference_wants_again_is_not_redundant_the_first_time() -> None:
    replies = [calling(PRICE), TEXT]
    assert redundant([ONE, ONE], replies, replies) == []
    assert redundant([ONE, ONE], replies, [calling(PRICE), *replies]) == [(1, 1, 0)]


def test_a_call_that_the_reference_wants_twice_is_redundant_the_third_time() -> None:
    twice = task_of(node(PRICE), node(PRICE), closing(0, 1))
    assert redundant([twice], [calling(PRICE, PRICE), calling(PRICE), TEXT]) == [(0, 1, 0)]


def test_what_an_earlier_task_wanted_does_not_excuse_a_repeat() -> None:
    """The first task wants two, got one; the chat wants none."""
    twice = task_of(node(PRICE), node(PRICE), closing(0, 1))
    assert redundant([twice, CHAT], [calling(PRICE), TEXT], [calling(PRICE), TEXT]) == [(1, 0, 0)]


def test_a_call_that_nobody_wants_is_not_redundant_before_it_is_repeated() -> None:
    sofa = ("getPrice", {"thing": "sofa"})
    assert redundant([CHAT], [calling(sofa), calling(("countStock", {"thing": "sofa"})), TEXT]) == []


def test_an_alternative_of_the_reference_is_wanted_as_often_as_its_node() -> None:
    open_minded = task_of(
        *(node(PRICE, alternatives=(CHAIR,)) for _ in range(2)),
        closing(0, 1),
    )
    chair = ("getPrice", CHAIR)
    assert redundant([open_minded], [calling(chair, chair), calling(chair), TEXT]) == [(0, 1, 0)]


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        ('{"a": 1, "b": [2, {"c": 3}]}', '{ "b": [2.0, {"c": 3}], "a": 1.0 }', True),
        ("", "{}", True),
        ('{"a": "é"}', '{"a": "\\u00e9"}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": "Lamp"}', '{"a": "lamp"}', False),
        ('{"a": null}', "{}", False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": 1', '{"a": 1', True),
        ('{"a": 1', '{"a": 2', False),
        ("null", "{}", False),
    ],
)
def test_arguments_are_compared_as_json_values(first: str, second: str, repeats: bool) -> None:
    replies = [calling(("getPrice", first)), calling(("getPrice", second)), TEXT]
    assert (redundant([CHAT], replies) == [(0, 1, 0)]) == repeats


def test_absent_arguments_are_none_at_all() -> None:
    assert call_key("f", None) == call_key("f", "") == call_key("f", {})


def test_a_call_answers_a_node_by_equal_arguments_or_by_the_rules_of_its_tool() -> None:
    by_rules, without = answers_of(scenario_of()), Answers({})
    wanted = Node("getPrice", {"thing": "lamp"}, "3")
    told = []
    for arguments in ('{"thing": "lamp"}', '{"thing": "LAMP"}', '{"thing": "bed"}'):
        call = ToolCall(None, "getPrice", arguments)
        made = Made(0, 0, 0, call, call_key(call.name, call.arguments))
        told.append((by_rules.answers(made, wanted), without.answers(made, wanted)))
    assert told == [(True, True), (True, False), (False, False)]


def test_the_same_arguments_for_another_tool_are_no_repeat() -> None:
    assert redundant([CHAT], [calling(PRICE, STOCK), TEXT]) == []


def test_arguments_nested_too_deep_to_be_written_again_are_compared_as_they_came() -> None:
    depth = sys.getrecursionlimit() // 2 + 100
    deep = '{"a": ' + "[" * depth + "]" * depth + "}"
    replies = [
        calling(("getPrice", deep)),
        calling(("getPrice", deep + " ")),
        calling(("getPrice", deep)),
        TEXT,
    ]
    assert (0, 2, 0) in redundant([CHAT], replies)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, -0.0])
    | st.sampled_from("aA"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values (JSON Schema 2020-12 core, 4.2.2), written out plainly."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


@settings(deadline=None)
@given(JSON_VALUES, JSON_VALUES)
def test_two_calls_have_one_key_exactly_if_their_arguments_are_equal(left: Any, right: Any) -> None:
    keys = [call_key("f", json.dumps({"x": value})) for value in (left, right)]
    assert (keys[0] == keys[1]) == equal(left, right)


# --- Calls at once -----------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "possible"),
    [
        ((node(PRICE), closing(0)), False),
        ((node(PRICE), node(STOCK, 0), closing(1)), False),
        ((node(PRICE), node(STOCK), closing(0, 1)), True),
        ((node(PRICE), node(STOCK, 0), node(STOCK, 0), closing(1, 2)), True),
        ((closing(),), False),
        # A call beside the question or the closing text is no two calls.
        ((node(PRICE), closing()), False),
        ((Node(ASK, {}, "Which?", (), "Any."), node(PRICE), closing(0, 1)), False),
        # The two wait for the same question, not for each other.
        ((Node(ASK, {}, "Which?", (), "Any."), node(PRICE, 0), node(STOCK, 0), closing(1, 2)), True),
        # One waits for the other by way of the question.
        ((node(PRICE), Node(ASK, {}, "Which?", (0,), "Any."), node(STOCK, 1), closing(2)), False),
    ],
)
def test_two_calls_can_be_made_at_once_if_neither_waits_for_the_other(
    nodes: tuple[Node, ...], possible: bool
) -> None:
    assert allows_parallel(nodes) == possible


@settings(deadline=None, max_examples=30)
@given(orderly_reference())
def test_a_reference_allows_calls_at_once_exactly_if_its_shortest_path_makes_some(
    nodes: tuple[Node, ...],
) -> None:
    assert allows_parallel(nodes) == any(len(batch) > 1 for batch in minimal_path(nodes))


SINGLY = [calling(BOTH[0]), calling(BOTH[1]), TEXT]


def test_an_agent_that_calls_one_by_one_where_it_need_not_is_never_parallel() -> None:
    assert never_parallel([played([ONE, TWO], [[calling(PRICE), TEXT], SINGLY])])


def test_an_agent_that_once_made_two_calls_in_a_reply_is_not_never_parallel() -> None:
    once = played([ONE, TWO], [[calling(*BOTH), TEXT], SINGLY])
    assert not never_parallel([once])
    assert not never_parallel([played([TWO], [SINGLY]), once])


@pytest.mark.parametrize(
    ("tasks", "replies"),
    [([], []), ([ONE], [[calling(PRICE), TEXT]]), ([ONE, TWO], [[calling(PRICE), TEXT], [TEXT]])],
)
def test_an_agent_that_had_no_occasion_is_not_never_parallel(
    tasks: list[Task], replies: list[list[Reply]]
) -> None:
    """No task at all; none that allows it; none that allows it in which it called."""
    assert not never_parallel([played(tasks, replies)])


# --- Figures -----------------------------------------------------------------


def test_the_figures_of_a_run() -> None:
    """Session 1, scored: the lamp's price twice, then both calls of task 2 one by one, in 3 Steps for 2.
    Session 2, scored: one call, then both in one reply in 2 Steps, and in the chat the lamp's price again.
    Session 3: task 1 was lost, with its calls; task 2 was correct, with both calls at once, in 2 Steps.
    """
    tasks = [ONE, TWO, CHAT]
    first = played(tasks, [[calling(PRICE), calling(PRICE), TEXT], SINGLY, [TEXT]])
    second = played(tasks, [[calling(PRICE), TEXT], [calling(*BOTH), TEXT], [calling(PRICE)]], "s.e2", 2)
    third = played(tasks, [[calling(PRICE, PRICE)], [calling(*BOTH), TEXT], [TEXT]], "s.e3", 3)
    sessions = [
        scored(third, score(None), score("correct", 2, 2), score("correct")),
        scored(first, score("error", 2, 2), score("correct", 3, 2), score("correct")),
        scored(second, score("correct", 2, 2), score("correct", 2, 2), score("error")),
    ]
    unknown = played(tasks, [[calling(PRICE, PRICE)], [], []], "s.e4", 4)
    figures = call_figures([first, second, third, unknown], sessions)
    assert [(it.name, it.value, it.successes, it.n) for it in figures] == [
        # One in each of the two scored sessions, of 4 calls in each.
        ("redundant_calls", 2.0, None, 2),
        ("redundant_calls_per_session", 1.0, None, 2),
        ("redundant_call_rate", 2 / 8, 2, 8),
        # Task 2 of three sessions; session 1 took one Step too many.
        ("missed_parallelism", 1 / 3, 1, 3),
        ("steps_lost", 1 / 3, None, 3),
        # Replies with calls: 2 + 2, 1 + 1 + 1, and 1 in the scored task of session 3.
        ("parallel_batches", 2 / 8, 2, 8),
    ]
    # Epochs of one scenario are one cluster, which has no interval.
    assert not any(it.low is not None for it in figures)


def test_wrong_tasks_have_no_part_in_missed_parallelism() -> None:
    wrong = played([TWO], [SINGLY])
    figures = {it.name: it for it in call_figures([wrong], [scored(wrong, score("error", 3, 2))])}
    assert figures["missed_parallelism"] == Figure("missed_parallelism", None, None, 0, 0)
    assert figures["steps_lost"] == Figure("steps_lost", None, None, 0)


def test_without_sessions_there_is_nothing_to_tell() -> None:
    assert [(it.value, it.n) for it in call_figures([], [])] == [(None, 0)] * 6


def test_a_session_without_calls_has_no_redundant_ones_and_no_rate() -> None:
    quiet = played([CHAT], [[TEXT]])
    figures = call_figures([quiet], [scored(quiet, score("correct"))])
    assert [(it.name, it.value, it.n) for it in figures[:3]] == [
        ("redundant_calls", 0.0, 1),
        ("redundant_calls_per_session", 0.0, 1),
        ("redundant_call_rate", None, 0),
    ]


def test_there_is_a_definition_for_exactly_the_figures_that_are_made() -> None:
    assert list(DEFINITIONS) == [it.name for it in call_figures([], [])]


# --- Laws --------------------------------------------------------------------

N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def session_of(references: Sequence[tuple[Node, ...]], replies: Sequence[Sequence[Reply]]) -> Trajectory:
    tools = tuple(Tool(name, "", N, {}) for name in "abc")
    tasks = tuple(Task("t", "Chat", None, nodes) for nodes in references)
    own = tuple(TaskTrajectory(tuple(it), "closed") for it in replies)
    return Trajectory("s.e1", 1, Scenario("s", "d", tools, tasks, "h", {}), own)


def replay(nodes: tuple[Node, ...]) -> list[Reply]:
    return [
        calling(*((nodes[i].name, nodes[i].arguments) for i in batch)) if nodes[batch[0]].is_call else TEXT
        for batch in minimal_path(nodes)
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(orderly_reference(), max_size=3))
def test_a_replay_of_the_references_has_no_redundant_call_and_loses_no_step(
    references: list[tuple[Node, ...]],
) -> None:
    replies = [replay(nodes) for nodes in references]
    trajectory = session_of(references, replies)
    assert redundant_calls(trajectory) == []
    assert not never_parallel([trajectory])
    scores = [
        score("correct", len(own), len(minimal_path(nodes)))
        for nodes, own in zip(references, replies, strict=True)
    ]
    figures = {it.name: it for it in call_figures([trajectory], [scored(trajectory, *scores)])}
    assert figures["missed_parallelism"].value in (None, 0.0)
    assert figures["steps_lost"].value in (None, 0.0)


BATCH = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=5)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(orderly_reference(), st.lists(BATCH, max_size=3)), min_size=1, max_size=3), st.data()
)
def test_the_order_of_calls_in_a_reply_changes_no_count(
    drawn: list[tuple[tuple[Node, ...], list[list[tuple[str, int]]]]], data: st.DataObject
) -> None:
    references = [nodes for nodes, _ in drawn]
    orders = [[(batch, data.draw(st.permutations(batch))) for batch in batches] for _, batches in drawn]
    figures = []
    for which in (0, 1):
        replies = [
            [calling(*((name, {"n": n}) for name, n in pair[which])) for pair in batches]
            for batches in orders
        ]
        trajectory = session_of(references, replies)
        figures.append(call_figures([trajectory], [scored(trajectory, *(score("error") for _ in drawn))]))
    assert figures[0] == figures[1]


def test_real_sessions_replayed_have_nothing_in_vain_and_one_by_one_they_lose_steps_alone(
    real_session_files: list[Path],
) -> None:
    """One by one, a reply for each node: as many Steps are lost as there are nodes beyond the least Steps."""
    for scenario in load(real_session_files[:1])[0].scenarios:
        references = [task.nodes for task in scenario.tasks]
        at_once = [replay(nodes) for nodes in references]
        singly = [
            [TEXT if it.name in (ASK, CLOSE) else calling((it.name, it.arguments)) for it in nodes]
            for nodes in references
        ]
        lost = [len(nodes) - len(minimal_path(nodes)) for nodes in references if allows_parallel(nodes)]
        for replies, missed in ((at_once, [0] * len(lost)), (singly, lost)):
            own = tuple(TaskTrajectory(tuple(it), "closed") for it in replies)
            trajectory = Trajectory("s.e1", 1, scenario, own)
            scores = [
                score("correct", len(it), len(minimal_path(nodes)))
                for it, nodes in zip(replies, references, strict=True)
            ]
            figures = {it.name: it for it in call_figures([trajectory], [scored(trajectory, *scores)])}
            assert figures["redundant_calls"].value == 0.0
            assert figures["missed_parallelism"].successes == sum(steps > 0 for steps in missed)
            assert figures["steps_lost"].value == (sum(missed) / len(missed) if missed else None)
            assert never_parallel([trajectory]) == (replies is singly and bool(lost))
