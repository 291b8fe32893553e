"""How many nodes of the Reference were done."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from support.references import orderly_reference

from scenarios.reference import minimal_path
from scenarios.types import CLOSE, Node, Reply, Scenario, Task, Tool, ToolCall
from scoring.metrics.figures import Figure
from scoring.metrics.progress import DEFINITIONS, progress_figures
from scoring.types import SessionScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts.strict import score_session

PARALLEL, SEQUENTIAL, MIXED = "Parallel Multi-Tool", "Sequential Multi-Tool", "Mixed Multi-Tool"
NAME = "progress_nodes"


def task_of(label: str, nodes: int) -> Task:
    return Task("hello", label, None, tuple(Node(CLOSE, {}, "bye") for _ in range(nodes)))


def score(matched: int | None, label: str | None = "error") -> TaskScore:
    """`steps_kept` is far off on purpose: nothing here may look at it."""
    return TaskScore(label, label, label, False, 1, 99, 1, matched=matched)


def session_of(tasks: Sequence[Task], scores: Sequence[TaskScore]) -> SessionScore:
    return SessionScore("s", 1, Scenario("s", "2024-01-01", (), tuple(tasks), "hash", {}), tuple(scores))


THREE = [task_of(SEQUENTIAL, 3), task_of(MIXED, 5), task_of(PARALLEL, 7)]


def test_progress_is_the_nodes_done_over_all_nodes_of_sequential_and_mixed_tasks() -> None:
    """Two sessions: 2 + 0 of 3 + 3 nodes, 4 + 5 of 5 + 5; the parallel task is in none."""
    sessions = [
        session_of(THREE, [score(2), score(4), score(1)]),
        session_of(THREE, [score(0), score(5, "correct"), score(7, "correct")]),
    ]
    assert progress_figures(sessions) == [
        Figure(NAME, "Total", 11 / 16, 16, 11),
        Figure(NAME, SEQUENTIAL, 2 / 6, 6, 2),
        Figure(NAME, MIXED, 9 / 10, 10, 9),
    ]


def test_a_task_that_a_session_has_no_verdict_on_is_in_no_progress() -> None:
    assert progress_figures([session_of(THREE, [score(2)])]) == [
        Figure(NAME, "Total", 2 / 3, 3, 2),
        Figure(NAME, SEQUENTIAL, 2 / 3, 3, 2),
        Figure(NAME, MIXED, None, 0, 0),
    ]


def test_a_task_whose_score_does_not_say_how_far_it_came_is_left_out() -> None:
    assert progress_figures([session_of(THREE, [score(None), score(2), score(None)])]) == [
        Figure(NAME, "Total", 2 / 5, 5, 2),
        Figure(NAME, SEQUENTIAL, None, 0, 0),
        Figure(NAME, MIXED, 2 / 5, 5, 2),
    ]


def test_a_task_that_was_not_scored_is_left_out_whatever_was_done_of_it() -> None:
    [total, *_] = progress_figures([session_of(THREE, [score(3, None), score(5), score(7)])])
    assert total == Figure(NAME, "Total", 1.0, 5, 5)


def test_without_tasks_there_is_nothing_to_tell() -> None:
    assert progress_figures([]) == [Figure(NAME, group, None, 0, 0) for group in ("Total", SEQUENTIAL, MIXED)]


def test_the_definition_is_of_the_one_figure() -> None:
    assert list(DEFINITIONS) == [NAME]


TASKS = st.tuples(
    st.sampled_from([SEQUENTIAL, MIXED, PARALLEL, "Chat"]), st.integers(1, 20), st.integers(0, 20)
)


@settings(deadline=None, max_examples=30)
@given(st.lists(TASKS))
def test_progress_is_between_none_and_all_and_it_is_all_only_if_every_node_was_done(
    drawn: list[tuple[str, int, int]],
) -> None:
    drawn = [(label, nodes, min(matched, nodes)) for label, nodes, matched in drawn]
    session = session_of(
        [task_of(label, nodes) for label, nodes, _ in drawn], [score(it) for _, _, it in drawn]
    )
    left = [nodes - matched for label, nodes, matched in drawn if label in (SEQUENTIAL, MIXED)]
    total, sequential, mixed = progress_figures([session])
    assert (total.n, total.successes) == (
        sequential.n + mixed.n,
        (sequential.successes or 0) + (mixed.successes or 0),
    )
    assert (total.value == 1.0) == (left != [] and not any(left))
    assert total.value is None or 0 <= total.value <= 1


N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def judged(references: Sequence[tuple[Node, ...]], replies: Sequence[Sequence[Reply]]) -> SessionScore:
    tools = tuple(Tool(name, "", N, {}) for name in "abc")
    tasks = tuple(Task("t", MIXED, None, nodes) for nodes in references)
    digest = repr(references)
    own = tuple(TaskTrajectory(tuple(it), "closed") for it in replies)
    return score_session(Trajectory("s.e1", 1, Scenario("s", "d", tools, tasks, digest, {}), own))


def replay(nodes: tuple[Node, ...], upto: int | None = None) -> list[Reply]:
    """The first Steps of the shortest path."""
    return [
        Reply(None, tuple(ToolCall(None, nodes[i].name, json.dumps(nodes[i].arguments)) for i in batch))
        if nodes[batch[0]].is_call
        else Reply("Text.")
        for batch in minimal_path(nodes)[:upto]
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(orderly_reference(), min_size=1, max_size=3))
def test_a_replay_of_the_references_has_all_progress(references: list[tuple[Node, ...]]) -> None:
    session = judged(references, [replay(nodes) for nodes in references])
    assert session.correct
    assert progress_figures([session])[0].value == 1.0


@settings(deadline=None, max_examples=30)
@given(orderly_reference(), st.data())
def test_a_replay_that_is_broken_off_has_the_progress_of_its_steps(
    nodes: tuple[Node, ...], data: st.DataObject
) -> None:
    steps = data.draw(st.integers(0, len(minimal_path(nodes)) - 1))
    done = sum(len(batch) for batch in minimal_path(nodes)[:steps])
    [total, *_] = progress_figures([judged([nodes], [replay(nodes, steps)])])
    assert (total.successes, total.n) == (done, len(nodes))
