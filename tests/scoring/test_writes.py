"""Calls of tools with side effects: made twice, too early, with the old one not undone, or for nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.references import orderly_reference

from scenarios.reference import minimal_path
from scenarios.types import ASK, CLOSE, Node, Reply, Scenario, Task, Tool, ToolCall, ToolNotes
from scoring.metrics.figures import Figure
from scoring.metrics.writes import DEFINITIONS, write_figures, write_findings, writes_made
from scoring.types import SessionScore, TaskScore, TaskTrajectory, Trajectory

TEXT = Reply("Here you are.")
EMPTY = Reply(None)
Call = tuple[str, Any]


def figures_of(trajectories: Sequence[Trajectory], sessions: Sequence[SessionScore]) -> list[Figure]:
    return write_figures(trajectories, sessions, write_findings(trajectories))


def tool(name: str, *parameters: str) -> Tool:
    properties = {key: {"type": "string"} for key in parameters}
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(parameters)}, {})


TOOLS = (tool("look", "thing"), tool("book", "thing", "day"), tool("cancel", "thing"))
NOTES = {
    "book": ToolNotes(side_effects=True),
    "cancel": ToolNotes(side_effects=True, undoes=frozenset({"book"})),
}


def book(thing: str, day: str) -> Call:
    return "book", {"thing": thing, "day": day}


LOOK, CANCEL = ("look", {"thing": "lamp"}), ("cancel", {"thing": "lamp"})
MONDAY, FRIDAY, CHAIR = book("lamp", "Monday"), book("lamp", "Friday"), book("chair", "Tuesday")


def calling(*calls: Call) -> Reply:
    return Reply(None, tuple(ToolCall(None, name, json.dumps(arguments)) for name, arguments in calls))


def node(call: Call, *needs: int, **more: Any) -> Node:
    return Node(*call, "observed", needs, **more)


def asking(*needs: int) -> Node:
    return Node(ASK, {}, "Which?", needs, "That one.")


def closing(*needs: int) -> Node:
    return Node(CLOSE, {}, "bye", needs)


def task_of(*nodes: Node) -> Task:
    return Task("hello", "Single-Tool", None, nodes)


BOOKING = task_of(node(LOOK), node(MONDAY, 0), closing(1))
CLARIFY = task_of(asking(), node(CHAIR, 0), closing(1))
CORRECTION = task_of(node(CANCEL), node(FRIDAY, 0), closing(1))
CHAT = task_of(closing())
ALL = (BOOKING, CLARIFY, CORRECTION, CHAT)
RIGHT: tuple[list[Reply], ...] = (
    [calling(LOOK), calling(MONDAY), TEXT],
    [TEXT, calling(CHAIR), TEXT],
    [calling(CANCEL), calling(FRIDAY), TEXT],
    [TEXT],
)


def played(
    tasks: Sequence[Task],
    replies: Sequence[Sequence[Reply]],
    *,
    session: str = "s.e1",
    epoch: int = 1,
    finished: bool = True,
    notes: dict[str, ToolNotes] = NOTES,
) -> Trajectory:
    own = tuple(TaskTrajectory(tuple(it), "closed" if finished else None, finished) for it in replies)
    return Trajectory(
        session, epoch, Scenario("s", "2024-01-01", TOOLS, tuple(tasks), "hash", {}, notes), own
    )


Place = tuple[str, int, int, int | None]


def found(tasks: Sequence[Task], *replies: Sequence[Reply], **more: Any) -> list[Place]:
    """(kind, task, step, call) of each finding."""
    findings = write_findings([played(tasks, replies, **more)])
    return [(it.kind, it.task, it.step, it.call) for it in findings]


def of_kind(kind: str, places: Sequence[Place]) -> list[tuple[int, int, int | None]]:
    return [(task, step, call) for own, task, step, call in places if own == kind]


def test_a_session_done_as_the_references_say_has_no_findings() -> None:
    assert found(ALL, *RIGHT) == []


# --- Repeated writes ---------------------------------------------------------


def test_a_write_made_twice_is_repeated_and_the_second_is_one_that_nobody_wants() -> None:
    places = found([BOOKING], [calling(LOOK), calling(MONDAY), calling(MONDAY), TEXT])
    assert places == [("repeated_write", 0, 2, 0), ("wrong_write", 0, 2, 0)]


def test_a_read_made_twice_is_no_write() -> None:
    assert found([BOOKING], [calling(LOOK, LOOK), calling(MONDAY), TEXT]) == []


def test_a_write_is_repeated_in_a_later_task_and_in_one_reply_too() -> None:
    places = found([BOOKING, BOOKING], [calling(MONDAY), TEXT], [calling(MONDAY, MONDAY), TEXT])
    assert of_kind("repeated_write", places) == [(1, 0, 1)]
    places = found([BOOKING, CHAT], [calling(MONDAY), TEXT], [calling(MONDAY), TEXT])
    assert of_kind("repeated_write", places) == [(1, 0, 0)]


def test_a_repeat_does_not_use_up_what_a_later_reference_wants() -> None:
    places = found([BOOKING, BOOKING], [calling(MONDAY, MONDAY), TEXT], [calling(MONDAY), TEXT])
    assert of_kind("repeated_write", places) == [(0, 0, 1)]


def test_a_write_that_an_earlier_reference_wanted_and_did_not_get_is_no_repeat() -> None:
    places = found([BOOKING, BOOKING], [TEXT], [calling(MONDAY), calling(MONDAY), TEXT])
    assert of_kind("repeated_write", places) == []
    assert of_kind("wrong_write", places) == [(1, 1, 0)]


def test_a_write_that_nobody_wants_is_repeated_the_second_time() -> None:
    places = found([CHAT], [calling(MONDAY), calling(MONDAY), TEXT])
    assert of_kind("repeated_write", places) == [(0, 1, 0)]


def test_arguments_of_a_repeat_are_compared_as_json_values() -> None:
    upside_down = Reply(None, (ToolCall(None, "book", '{"day":"Monday", "thing":"lamp"}'),))
    places = found([BOOKING], [calling(MONDAY), upside_down, calling(FRIDAY), TEXT])
    assert of_kind("repeated_write", places) == [(0, 1, 0)]


# --- Early writes ------------------------------------------------------------


def test_any_write_in_a_chat_is_early() -> None:
    places = found([CHAT], [calling(LOOK, CANCEL), TEXT, calling(MONDAY), TEXT])
    assert of_kind("early_write", places) == [(0, 0, 1), (0, 2, 0)]


def test_a_write_before_the_first_text_is_early_where_the_reference_asks() -> None:
    places = found([CLARIFY], [calling(FRIDAY), calling(CHAIR), EMPTY, calling(CHAIR), TEXT, calling(CHAIR)])
    assert of_kind("early_write", places) == [(0, 0, 0), (0, 1, 0), (0, 3, 0)]


def test_text_beside_calls_is_no_question() -> None:
    both = Reply("Which one? I take this.", calling(CHAIR).calls)
    assert of_kind("early_write", found([CLARIFY], [both, calling(CHAIR), TEXT])) == [(0, 0, 0), (0, 1, 0)]


def test_a_write_is_not_early_where_nothing_is_to_be_asked() -> None:
    assert of_kind("early_write", found([BOOKING], [calling(FRIDAY), TEXT])) == []


def test_a_write_that_the_reference_has_before_its_question_is_not_early() -> None:
    task = task_of(node(MONDAY), asking(0), node(CHAIR, 1), closing(2))
    assert found([task], [calling(MONDAY), TEXT, calling(CHAIR), TEXT]) == []
    assert of_kind("early_write", found([task], [calling(MONDAY, CHAIR), TEXT])) == [(0, 0, 1)]


def test_a_write_that_the_reference_has_before_and_after_its_question_is_early_nowhere() -> None:
    task = task_of(node(CHAIR), asking(0), node(CHAIR, 1), closing(2))
    assert found([task], [calling(CHAIR), TEXT, calling(CHAIR), TEXT]) == []


def test_a_write_that_waits_for_two_questions_is_early_after_one() -> None:
    task = task_of(asking(), node(LOOK, 0), asking(1), node(CHAIR, 2), closing(3))
    replies = [TEXT, calling(LOOK), calling(CHAIR), TEXT, calling(CHAIR), TEXT]
    assert of_kind("early_write", found([task], replies)) == [(0, 2, 0)]


# --- Stale writes ------------------------------------------------------------


def test_a_new_write_without_the_undoing_call_leaves_the_old_one() -> None:
    assert found([CORRECTION], [calling(FRIDAY), TEXT]) == [("stale_write", 0, 1, None)]


def test_undoing_something_else_leaves_the_old_write() -> None:
    other = ("cancel", {"thing": "chair"})
    places = found([CORRECTION], [calling(other), TEXT])
    assert places == [("wrong_write", 0, 0, 0), ("stale_write", 0, 1, None)]


def test_the_undoing_call_may_come_after_the_new_write() -> None:
    assert of_kind("stale_write", found([CORRECTION], [calling(FRIDAY), calling(CANCEL), TEXT])) == []


def test_a_task_in_which_nothing_was_written_leaves_nothing_stale() -> None:
    assert found([CORRECTION], [calling(LOOK), TEXT]) == []
    assert found([CORRECTION], [TEXT]) == []
    assert found([BOOKING, CORRECTION], RIGHT[0], [TEXT]) == []


def test_an_undoing_call_in_another_task_does_not_count() -> None:
    places = found(
        [CHAT, CORRECTION, CHAT], [calling(CANCEL), TEXT], [calling(FRIDAY), TEXT], [calling(CANCEL)]
    )
    assert of_kind("stale_write", places) == [(1, 1, None)]


def test_each_write_that_should_have_been_undone_is_told() -> None:
    chair = ("cancel", {"thing": "chair"})
    task = task_of(node(CANCEL), node(chair), node(FRIDAY, 0, 1), closing(2))
    assert of_kind("stale_write", found([task], [calling(FRIDAY), TEXT])) == [(0, 1, None)] * 2
    assert of_kind("stale_write", found([task], [calling(chair), calling(FRIDAY), TEXT])) == [(0, 2, None)]


def test_a_task_that_was_broken_off_had_no_end_at_which_a_write_could_stand() -> None:
    assert found([CORRECTION], [calling(FRIDAY)], finished=False) == []


def test_a_step_that_ended_its_task_counts_with_all_its_calls() -> None:
    """With gold history a wrong reply ends the Task, its calls unanswered."""
    places = found([CORRECTION], [calling(CHAIR, FRIDAY)])
    assert places == [("wrong_write", 0, 0, 0), ("stale_write", 0, 0, None)]


# --- Wrong writes ------------------------------------------------------------


def test_a_write_with_other_arguments_or_of_another_task_is_wrong() -> None:
    places = found([BOOKING, CLARIFY], [calling(LOOK), calling(FRIDAY)], [TEXT, calling(MONDAY)])
    assert of_kind("wrong_write", places) == [(0, 1, 0), (1, 1, 0)]


def test_a_write_with_arguments_that_cannot_be_read_is_wrong() -> None:
    broken = Reply(None, (ToolCall(None, "book", '{"thing": "lamp"'), ToolCall(None, "book", None)))
    assert of_kind("wrong_write", found([BOOKING], [broken])) == [(0, 0, 0), (0, 0, 1)]


def test_a_write_that_is_right_by_the_rules_of_arguments_is_not_wrong() -> None:
    """Blanks make no difference to a text."""
    spaced = book("lamp", " Monday ")
    assert found([BOOKING], [calling(LOOK), calling(spaced), TEXT]) == []


def test_each_node_is_answered_once_by_as_many_writes_as_possible() -> None:
    """The first node takes either; though the first call fits both, both calls have a node."""
    task = task_of(node(MONDAY, alternatives=(FRIDAY[1],)), node(FRIDAY), closing(0, 1))
    assert found([task], [calling(FRIDAY, MONDAY), TEXT]) == []
    assert found([task], [calling(FRIDAY, FRIDAY), TEXT]) == []
    assert of_kind("wrong_write", found([task], [calling(MONDAY, FRIDAY, FRIDAY)])) == [(0, 0, 2)]


def test_an_alternative_of_the_undoing_call_undoes() -> None:
    chair = {"thing": "chair"}
    task = task_of(node(CANCEL, alternatives=(chair,)), node(FRIDAY, 0), closing(1))
    assert found([task], [calling(("cancel", chair)), calling(FRIDAY), TEXT]) == []


# --- What a finding says -----------------------------------------------------


def test_a_finding_says_where_and_what() -> None:
    replies = [RIGHT[0], [calling(CHAIR), TEXT], [calling(FRIDAY, FRIDAY), TEXT], [calling(MONDAY), TEXT]]
    said = [
        (
            1,
            0,
            0,
            "book",
            "early_write",
            'book {"day": "Tuesday", "thing": "chair"} was made before the user had answered',
        ),
        (2, 0, 1, "book", "repeated_write", 'book {"day": "Friday", "thing": "lamp"} was made before'),
        (
            2,
            0,
            1,
            "book",
            "wrong_write",
            'book {"day": "Friday", "thing": "lamp"} was made more often than the task wants',
        ),
        (
            2,
            1,
            None,
            "cancel",
            "stale_write",
            'cancel {"thing": "lamp"} was not made: the write of book stands',
        ),
        (3, 0, 0, "book", "repeated_write", 'book {"day": "Monday", "thing": "lamp"} was made before'),
        (
            3,
            0,
            0,
            "book",
            "early_write",
            'book {"day": "Monday", "thing": "lamp"} was made, though the task asks for nothing to be done',
        ),
        (
            3,
            0,
            0,
            "book",
            "wrong_write",
            'book {"day": "Monday", "thing": "lamp"} is no call that the task wants',
        ),
    ]
    found = write_findings([played(ALL, replies, session="shop.e2", epoch=2)])
    assert {(it.session, it.epoch) for it in found} == {("shop.e2", 2)}
    assert [(it.task, it.step, it.call, it.tool, it.kind, it.detail) for it in found] == said


def test_a_detail_is_one_short_line_whatever_the_agent_wrote() -> None:
    [_, finding] = write_findings(
        [played([CHAT], [[Reply(None, (ToolCall(None, "book", "\x1b[2J\n" * 200),))]])]
    )
    assert "\n" not in finding.detail
    assert "\x1b" not in finding.detail
    assert "\\x1b[2J\\n" in finding.detail
    assert len(finding.detail) < 1000


# --- Figures -----------------------------------------------------------------

KINDS = ("repeated", "early", "stale", "wrong")


def scored(trajectory: Trajectory, label: str | None = "error") -> SessionScore:
    scores = tuple(TaskScore(label, label, label, False, 1, 1, 1) for _ in trajectory.tasks)
    return SessionScore(trajectory.session, trajectory.epoch, trajectory.scenario, scores)


def test_the_figures_of_a_run() -> None:
    """Session 1 is right: 4 writes. Session 2 makes 4: the first right, the second wrong and repeated, in
    the correction the new one alone, which leaves the old; one in the chat, that is wrong and early.
    Session 3 was not scored, session 4 has no tool that writes, and session 5 has no score.
    """
    second = [
        [calling(LOOK), calling(MONDAY), calling(MONDAY)],
        [TEXT],
        [calling(FRIDAY), TEXT],
        [calling(CHAIR)],
    ]
    own = [
        played(ALL, RIGHT),
        played(ALL, second, session="s.e2", epoch=2),
        played(ALL, second, session="s.e3", epoch=3),
        played(ALL, second, session="s.e4", epoch=4, notes={}),
        played(ALL, second, session="s.e5", epoch=5),
    ]
    scores = [scored(own[3]), scored(own[2], None), scored(own[1]), scored(own[0], "correct")]
    figures = figures_of(own, scores)
    assert [(it.name, it.value, it.successes, it.n) for it in figures] == [
        ("writes", 8.0, None, 2),
        ("repeated_writes", 1.0, None, 2),
        ("early_writes", 1.0, None, 2),
        ("stale_writes", 1.0, None, 2),
        ("wrong_writes", 2.0, None, 2),
        *((f"sessions_without_{kind}_writes", 0.5, 1, 2) for kind in KINDS),
    ]
    # Epochs of one scenario are one cluster, which has no interval; sessions of two are independent draws.
    assert not any(it.low is not None for it in figures)
    apart = [own[0], replace(own[1], scenario=replace(own[1].scenario, id="t"))]
    figures = figures_of(apart, [scored(it) for it in apart])
    # Wilson, 1 of 2: 0.0945 to 0.9055.
    assert {(round(it.low or 0, 4), round(it.high or 0, 4)) for it in figures[5:]} == {(0.0945, 0.9055)}


def test_without_annotated_tools_there_is_nothing_to_tell() -> None:
    plain = played(ALL, [[calling(MONDAY, MONDAY)]] * 4, notes={"book": ToolNotes()})
    assert write_findings([plain]) == ()
    assert figures_of([plain], [scored(plain)]) == [
        Figure("writes", None, None, 0),
        *(Figure(f"{kind}_writes", None, None, 0) for kind in KINDS),
        *(Figure(f"sessions_without_{kind}_writes", None, None, 0, 0) for kind in KINDS),
    ]


def test_a_session_that_wrote_nothing_is_free_of_every_kind() -> None:
    quiet = played([CHAT], [[TEXT]])
    figures = figures_of([quiet], [scored(quiet)])
    assert [(it.value, it.n) for it in figures] == [(0.0, 1)] * 5 + [(1.0, 1)] * 4


def test_there_is_a_definition_for_exactly_the_figures_that_are_made() -> None:
    assert list(DEFINITIONS) == [it.name for it in figures_of([], [])]


# --- Laws --------------------------------------------------------------------

N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ABC = {
    "a": ToolNotes(side_effects=True),
    "b": ToolNotes(side_effects=True, undoes=frozenset("a")),
}


def session_of(references: Sequence[tuple[Node, ...]], replies: Sequence[Sequence[Reply]]) -> Trajectory:
    tools = tuple(Tool(name, "", N, {}) for name in "abc")
    tasks = tuple(task_of(*nodes) for nodes in references)
    own = tuple(TaskTrajectory(tuple(it), "closed") for it in replies)
    return Trajectory("s.e1", 1, Scenario("s", "d", tools, tasks, "h", {}, ABC), own)


def replay(nodes: tuple[Node, ...]) -> list[Reply]:
    return [
        calling(*((nodes[i].name, nodes[i].arguments) for i in batch)) if nodes[batch[0]].is_call else TEXT
        for batch in minimal_path(nodes)
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(orderly_reference(), max_size=3))
def test_a_replay_of_the_references_has_no_findings(references: list[tuple[Node, ...]]) -> None:
    trajectory = session_of(references, [replay(nodes) for nodes in references])
    assert write_findings([trajectory]) == ()
    wanted = sum(node.name in "ab" for nodes in references for node in nodes)
    assert len(writes_made(trajectory)) == wanted


BATCH = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=4)
PLAYED = st.tuples(orderly_reference(), st.lists(st.none() | BATCH, max_size=3))


@settings(deadline=None, max_examples=30)
@given(st.lists(PLAYED, min_size=1, max_size=2), st.data())
def test_the_order_of_calls_in_a_reply_changes_no_count(
    drawn: list[tuple[tuple[Node, ...], list[list[tuple[str, int]] | None]]], data: st.DataObject
) -> None:
    orders = [
        [(batch or [], data.draw(st.permutations(batch or []))) for batch in batches] for _, batches in drawn
    ]
    figures = []
    for which in (0, 1):
        replies = [
            [calling(*((name, {"n": n}) for name, n in pair[which])) if pair[0] else TEXT for pair in batches]
            for batches in orders
        ]
        trajectory = session_of([nodes for nodes, _ in drawn], replies)
        figures.append(figures_of([trajectory], [scored(trajectory)]))
    assert figures[0] == figures[1]


@settings(deadline=None, max_examples=30)
@given(orderly_reference(), st.lists(BATCH, max_size=3))
def test_wrong_writes_are_those_left_over_by_the_nodes_of_each_tool_and_argument(
    nodes: tuple[Node, ...], batches: list[list[tuple[str, int]]]
) -> None:
    """Nodes here have no alternatives, so each kind of call can be counted by itself."""
    trajectory = session_of([nodes], [[calling(*((name, {"n": n}) for name, n in it)) for it in batches]])
    made = [call for batch in batches for call in batch if call[0] in "ab"]
    wanted = [(it.name, it.arguments["n"]) for it in nodes if it.name in "ab"]
    left = sum(max(0, made.count(call) - wanted.count(call)) for call in set(made))
    assert sum(it.kind == "wrong_write" for it in write_findings([trajectory])) == left


@pytest.mark.parametrize("kind", KINDS)
def test_definitions_say_whether_more_is_better(kind: str) -> None:
    assert DEFINITIONS[f"{kind}_writes"].better == "lower"
    assert DEFINITIONS[f"sessions_without_{kind}_writes"].better == "higher"
