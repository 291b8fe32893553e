from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

from pytest import approx

from scenarios.load import load
from scenarios.replies import read_reply
from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.metrics.accuracy import (
    DEFINITIONS,
    NOT_REACHED,
    SECTIONS,
    core_figures,
    count,
    released_metrics,
    unscored,
)
from scoring.metrics.cells import cell_figures
from scoring.metrics.figures import Figure
from scoring.types import SessionScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts.error_classes import ErrorClass
from scoring.verdicts.wildtoolbench import score_session

SINGLE, CHAT = "Single-Tool", "Chat"
PARALLEL, SEQUENTIAL, MIXED = "Parallel Multi-Tool", "Sequential Multi-Tool", "Mixed Multi-Tool"


def task_of(label: str, subtype: str | None = None, nodes: int = 1) -> Task:
    return Task("hello", label, subtype, tuple(Node(CLOSE, {}, "bye") for _ in range(nodes)))


def verdict(
    label: str | None, *, optimal: bool = False, kept: int = 1, reason: str | None = None
) -> TaskScore:
    return TaskScore(label, label, label, optimal, kept, kept, 1, reason)


RIGHT, WRONG = verdict("correct"), verdict("error")


def session_of(tasks: Sequence[Task], scores: Sequence[TaskScore], epoch: int = 1) -> SessionScore:
    scenario = Scenario("s", "2024-01-01", (), tuple(tasks), "hash", {})
    return SessionScore(f"s.e{epoch}", epoch, scenario, tuple(scores))


def accuracy(section: str, row: str, sessions: Sequence[SessionScore]) -> tuple[Any, Any, Any]:
    figure = released_metrics(sessions)[section][row]
    return figure["accuracy"], figure["correct_count"], figure["total_count"]


FOUR = [
    task_of(SINGLE),
    task_of(PARALLEL, "Partial Information"),
    task_of(MIXED, "Coreferential Reference", nodes=4),
    task_of(CHAT, "Partial Information"),
]


def test_a_session_is_correct_only_if_all_its_tasks_are() -> None:
    sessions = [session_of(FOUR, [RIGHT] * 4), session_of(FOUR, [RIGHT, RIGHT, WRONG, RIGHT])]
    assert accuracy("total_info", "session", sessions) == (0.5, 1, 2)
    assert accuracy("total_info", "task", sessions) == (7 / 8, 7, 8)


def test_repeats_of_a_scenario_are_sessions_of_their_own() -> None:
    sessions = [session_of(FOUR, [RIGHT] * 4, epoch) for epoch in (1, 2, 3)]
    assert accuracy("total_info", "session", sessions) == (1.0, 3, 3)


def test_multi_tool_sums_the_labels_that_contain_it() -> None:
    sessions = [session_of(FOUR, [WRONG, RIGHT, WRONG, WRONG])]
    assert accuracy("task_type_info", "Multi-Tool", sessions) == (0.5, 1, 2)
    assert accuracy("task_type_info", PARALLEL, sessions) == (1.0, 1, 1)
    assert accuracy("task_type_info", MIXED, sessions) == (0.0, 0, 1)


def test_a_task_labelled_multi_tool_counts_once() -> None:
    assert accuracy("task_type_info", "Multi-Tool", [session_of([task_of("Multi-Tool")], [RIGHT])]) == (
        1.0,
        1,
        1,
    )


def test_every_turn_but_the_first_is_a_subsequent_turn_with_a_subtype() -> None:
    sessions = [session_of(FOUR, [WRONG, RIGHT, WRONG, WRONG])]
    assert accuracy("turn_subtype_info", "First Turn", sessions) == (0.0, 0, 1)
    assert accuracy("turn_subtype_info", "Subsequent Turn", sessions) == (1 / 3, 1, 3)
    assert accuracy("turn_subtype_info", "Partial Information", sessions) == (0.5, 1, 2)
    assert accuracy("turn_subtype_info", "Coreferential Reference", sessions) == (0.0, 0, 1)


def test_a_later_turn_without_subtype_is_only_a_subsequent_turn() -> None:
    rows = released_metrics([session_of([task_of(CHAT), task_of(CHAT)], [RIGHT, RIGHT])])["turn_subtype_info"]
    assert {row: figure["total_count"] for row, figure in rows.items() if figure["total_count"]} == {
        "First Turn": 1,
        "Subsequent Turn": 1,
    }


def test_a_cell_counts_the_tasks_with_both_properties_and_a_later_one_without_subtype_apart() -> None:
    tasks = [task_of(CHAT), task_of(CHAT), task_of(CHAT, "Partial Information"), task_of(CHAT)]
    wrong = ErrorClass("skipped_tool")
    found = cell_figures([session_of(tasks, [RIGHT, WRONG, RIGHT, RIGHT])], [(None, wrong, None, None)])
    assert {it.key: (it.successes, it.n) for it in found} == {
        "accuracy_by_label_and_subtype[Chat / First Turn]": (1, 1),
        "accuracy_by_label_and_subtype[Chat / No Subtype]": (1, 2),
        "accuracy_by_label_and_subtype[Chat / Partial Information]": (1, 1),
        "error_share_by_label[Chat / skipped_tool]": (1, 1),
    }


def test_the_optimal_path_rate_is_over_all_parallel_and_mixed_tasks_failed_ones_included() -> None:
    tasks = [task_of(PARALLEL), task_of(PARALLEL), task_of(MIXED), task_of(SEQUENTIAL), task_of(SINGLE)]
    optimal = verdict("correct", optimal=True)
    sessions = [session_of(tasks, [optimal, RIGHT, WRONG, optimal, optimal])]
    assert accuracy("optimal_info", "Total", sessions) == (1 / 3, 1, 3)
    assert accuracy("optimal_info", PARALLEL, sessions) == (0.5, 1, 2)
    assert accuracy("optimal_info", MIXED, sessions) == (0.0, 0, 1)


def test_the_progress_rate_is_kept_steps_over_nodes_of_sequential_and_mixed_tasks() -> None:
    tasks = [task_of(SEQUENTIAL, nodes=3), task_of(MIXED, nodes=5), task_of(PARALLEL, nodes=7)]
    sessions = [
        session_of(tasks, [verdict("error", kept=2), verdict("correct", kept=4), verdict("correct", kept=2)])
    ]
    assert released_metrics(sessions)["progress_info"] == {
        "Total": {"rate": 6 / 8, "complete_step": 6, "total_step": 8},
        SEQUENTIAL: {"rate": 2 / 3, "complete_step": 2, "total_step": 3},
        MIXED: {"rate": 4 / 5, "complete_step": 4, "total_step": 5},
    }


def test_a_session_with_more_than_four_tasks_extends_the_positions_in_order() -> None:
    tasks = [task_of(CHAT)] * 12
    gap = [verdict(None)] * 11
    layers = released_metrics([session_of(tasks, [*gap, RIGHT]), session_of(tasks, [RIGHT] * 12)])[
        "layer_info"
    ]
    assert list(layers) == [str(position) for position in range(12)]
    assert (layers["4"]["total_count"], layers["11"]["total_count"]) == (1, 2)


def test_a_label_that_the_released_data_does_not_have_gets_a_row_of_its_own() -> None:
    assert accuracy("task_type_info", "Ledger", [session_of([task_of("Ledger")], [RIGHT])]) == (1.0, 1, 1)


def test_no_data_is_null_by_default_and_zero_on_request() -> None:
    nulls, zeros = released_metrics([]), released_metrics([], empty=0.0)
    assert nulls["total_info"]["session"] == {"accuracy": None, "correct_count": 0, "total_count": 0}
    assert zeros["total_info"]["session"] == {"accuracy": 0.0, "correct_count": 0, "total_count": 0}
    assert zeros["progress_info"]["Total"] == {"rate": 0.0, "complete_step": 0, "total_step": 0}


def test_an_unscored_task_is_in_no_figure_and_its_session_not_in_the_session_accuracy() -> None:
    lost = verdict(None, reason="provider: 503")
    whole, broken = session_of(FOUR, [RIGHT] * 4), session_of(FOUR, [RIGHT, RIGHT, lost, WRONG])
    sessions = [whole, broken]
    assert accuracy("total_info", "session", sessions) == (1.0, 1, 1)
    assert accuracy("total_info", "task", sessions) == (6 / 7, 6, 7)
    assert accuracy("layer_info", "2", sessions) == (1.0, 1, 1)
    assert accuracy("optimal_info", MIXED, sessions)[2] == 1
    assert released_metrics(sessions)["progress_info"][MIXED]["total_step"] == 4


def test_what_was_not_scored_is_counted_by_reason() -> None:
    late, early = verdict(None, reason="provider: 503"), verdict(None, reason="agent not started")
    sessions = [
        session_of(FOUR, [RIGHT, late, late, early]),
        session_of(FOUR, [RIGHT]),
        session_of(FOUR, [RIGHT] * 4),
        session_of(FOUR, [RIGHT, RIGHT, RIGHT, verdict(None)]),
    ]
    left_out = unscored(sessions)
    assert (left_out.tasks, left_out.all_tasks) == (7, 16)
    assert (left_out.sessions, left_out.all_sessions) == (3, 4)
    assert left_out.reasons == (
        (NOT_REACHED, 3),
        ("provider: 503", 2),
        ("agent not started", 1),
        ("no reason recorded", 1),
    )
    ties = [session_of(FOUR[:3], [verdict(None, reason=it) for it in ("late", "early", "never")])]
    assert unscored(ties).reasons == (("early", 1), ("late", 1), ("never", 1))


def test_a_session_whose_last_tasks_are_missing_is_not_whole() -> None:
    assert accuracy("total_info", "session", [session_of(FOUR, [RIGHT] * 3)]) == (None, 0, 0)


def test_the_order_of_sessions_changes_no_figure() -> None:
    sessions = [session_of(FOUR, [RIGHT] * 4), session_of([task_of("B"), task_of("A")], [WRONG, RIGHT])]
    assert released_metrics(sessions) == released_metrics(sessions[::-1])


def by_scenario(*sessions: Sequence[TaskScore], label: str = CHAT) -> list[SessionScore]:
    """A Session of a Scenario of its own for each, its Tasks all of one label."""
    return [
        renamed(session_of([task_of(label, nodes=2)] * len(scores), scores), f"s{number}")
        for number, scores in enumerate(sessions)
    ]


def renamed(session: SessionScore, name: str) -> SessionScore:
    return replace(session, session=f"{name}.e{session.epoch}", scenario=replace(session.scenario, id=name))


def by_key(sessions: Sequence[SessionScore]) -> dict[str, Figure]:
    return {figure.key: figure for figure in core_figures(sessions)}


def half_wilson(n: float, quantile: float) -> tuple[float, float]:
    """Wilson's bounds at a rate of 1/2, where they are 1/2 -+ z / (2 sqrt(n + z^2))."""
    half = quantile / (2 * sqrt(n + quantile**2))
    return 0.5 - half, 0.5 + half


def test_every_figure_is_told_under_a_name_that_is_defined() -> None:
    figures = core_figures([session_of(FOUR, [RIGHT] * 4)])
    assert {figure.name for figure in figures} == DEFINITIONS.keys()
    keys = [figure.key for figure in figures]
    assert len(set(keys)) == len(keys)
    assert [key for key in keys if "[" not in key] == [
        "task_accuracy",
        "session_accuracy",
        "unscored_tasks",
    ]
    positions = [key for key in keys if key.startswith("accuracy_by_position")]
    assert positions == [f"accuracy_by_position[{place}]" for place in (1, 2, 3, 4)]


def test_the_figures_have_the_counts_of_the_released_file() -> None:
    sessions = [session_of(FOUR, [RIGHT, WRONG, WRONG, RIGHT]), renamed(session_of(FOUR, [RIGHT] * 4), "t")]
    expected = {
        (SECTIONS[section], row): cell
        for section, rows in count(sessions).items()
        for row, cell in rows.items()
    }
    found = {}
    *rates, left_out = core_figures(sessions)
    assert left_out == Figure("unscored_tasks", None, 0, 8)
    for figure in rates:
        if figure.name in ("task_accuracy", "session_accuracy"):
            row = figure.name.removesuffix("_accuracy")
            found["", row] = figure.successes, figure.n
        else:
            group = str(figure.group)
            row = str(int(group) - 1) if figure.name == "accuracy_by_position" else group
            found[figure.name, row] = figure.successes, figure.n
        assert figure.value == (
            figure.successes / figure.n if figure.n and figure.successes is not None else None
        )
    assert found == expected


def test_what_was_never_seen_has_no_value_and_no_interval() -> None:
    sessions = by_scenario([RIGHT], [RIGHT])
    assert by_key(sessions)[f"optimal_path_rate[{PARALLEL}]"] == Figure(
        "optimal_path_rate", PARALLEL, None, 0, 0, None, None
    )
    assert {(figure.value, figure.low, figure.high) for figure in core_figures([])} == {(None, None, None)}


def test_the_tasks_of_one_scenario_are_one_cluster() -> None:
    """Residuals 1, 0 and -1 over three clusters of 2: a design effect of 2, so 3 draws in effect."""
    task = by_key(by_scenario([RIGHT, RIGHT], [RIGHT, WRONG], [WRONG, WRONG]))["task_accuracy"]
    low, high = half_wilson(3, 4.302653)  # t(0.975) with 2 degrees of freedom
    assert task == Figure("task_accuracy", None, 0.5, 6, 3, approx(low), approx(high))
    assert (low, high) == (approx(0.0362, abs=5e-5), approx(0.9638, abs=5e-5))


def test_a_rate_of_0_has_the_bounds_of_as_many_draws_as_scenarios() -> None:
    task = by_key(by_scenario(*[[WRONG] * 4] * 20))["task_accuracy"]
    t = 2.093024  # t(0.975) with 19 degrees of freedom
    assert task == Figure("task_accuracy", None, 0.0, 80, 0, 0.0, approx(t**2 / (20 + t**2)))


def test_over_a_single_scenario_there_is_no_interval_however_often_it_was_played() -> None:
    sessions = [session_of(FOUR, [RIGHT, WRONG, RIGHT, WRONG], epoch) for epoch in (1, 2, 3)]
    figures = by_key(sessions)
    assert figures["task_accuracy"] == Figure("task_accuracy", None, 0.5, 12, 6)
    assert figures["session_accuracy"] == Figure("session_accuracy", None, 0.0, 3, 0)
    assert {(figure.low, figure.high) for figure in figures.values()} == {(None, None)}


def test_a_scenario_without_such_a_task_is_no_cluster() -> None:
    only, other = (
        session_of([task_of(SINGLE)] * 2, [RIGHT, WRONG]),
        session_of([task_of(CHAT)] * 2, [WRONG] * 2),
    )
    figures = by_key([only, renamed(other, "t")])
    assert figures[f"accuracy_by_label[{SINGLE}]"] == Figure("accuracy_by_label", SINGLE, 0.5, 2, 1)
    assert figures["task_accuracy"].low is not None
    # Nor where it has a row that the released file would not have.
    own = session_of([task_of("Ledger")] * 2, [RIGHT, WRONG])
    ledger = by_key([own, renamed(other, "t"), renamed(other, "u")])["accuracy_by_label[Ledger]"]
    assert ledger == Figure("accuracy_by_label", "Ledger", 0.5, 2, 1)


def test_sessions_are_draws_of_their_own_until_a_scenario_is_played_twice() -> None:
    sessions = by_scenario(*([[RIGHT]] * 81 + [[WRONG]] * 182))
    # Newcombe 1998, Table I, method 3: 81 of 263 is 0.2553 to 0.3662.
    assert by_key(sessions)["session_accuracy"] == Figure(
        "session_accuracy", None, 81 / 263, 263, 81, approx(0.2553, abs=5e-5), approx(0.3662, abs=5e-5)
    )


def test_sessions_of_a_repeated_scenario_are_one_cluster() -> None:
    """Two Scenarios twice each, one always right and one never: worth one draw."""
    once = by_scenario([RIGHT], [WRONG])
    twice = once + [replace(session, session=f"{session.scenario.id}.e2", epoch=2) for session in once]
    low, high = half_wilson(1, 12.706205)  # t(0.975) with 1 degree of freedom
    expected = Figure("session_accuracy", None, 0.5, 4, 2, approx(low), approx(high))
    assert by_key(twice)["session_accuracy"] == expected


def test_the_progress_rate_has_no_interval_and_may_exceed_the_nodes() -> None:
    figures = by_key(by_scenario([WRONG] * 20, [verdict("error", kept=3)] * 20, label=MIXED))
    assert figures[f"progress_released[{MIXED}]"] == Figure("progress_released", MIXED, 1.0, 80, 80)
    alone = by_key(by_scenario([verdict("error", kept=3)], label=MIXED))
    assert alone["progress_released[Total]"] == Figure("progress_released", "Total", 1.5, 2, 3)


def played_sessions(vectors: Sequence[dict[str, Any]], files: Sequence[Path]) -> list[SessionScore]:
    scenarios = {scenario.id: scenario for file in load(files) for scenario in file.scenarios}
    return [
        score_session(
            Trajectory(
                vector["id"],
                1,
                scenarios[vector["id"]],
                tuple(TaskTrajectory(tuple(map(read_reply, replies))) for replies in vector["replies"]),
            )
        )
        for vector in vectors
    ]


def test_recorded_replies_to_real_sessions_give_every_released_figure(
    shared: Path, real_session_files: list[Path]
) -> None:
    vectors = json.loads((shared / "parity" / "metrics.json").read_text("utf-8"))
    sessions = played_sessions(vectors["sessions"], real_session_files)
    assert json.dumps(released_metrics(sessions, empty=0.0)) == json.dumps(vectors["expect"])
    for session, vector in zip(sessions, vectors["sessions"], strict=True):
        assert [task.label for task in session.tasks] == vector["labels"]
        assert [task.is_optimal for task in session.tasks] == vector["is_optimal"]
