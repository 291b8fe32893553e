"""A scored Run: rows of Tasks, disagreements, and live Runs by the rules of each scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support import scenes

from scenarios.load import parse_record
from scenarios.types import Reply, ToolCall
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.metrics.usage import Usage
from scoring.report import RunReport, explained, score_run, task_rows
from scoring.types import Finding, TaskTrajectory, Trajectory
from scoring.verdicts import published
from scoring.verdicts.scorers import DEFAULT, SCORERS

GOLD: dict[str, Any] = {"history": "gold"}
LIVE: dict[str, Any] = {"history": "live", "history_from": "agent", "on_mismatch": "continue"}

SCENARIO = parse_record(
    scenes.record(
        "lamps",
        *(
            (
                f"What does lamp {n} cost?",
                [scenes.call("getPrice", {"thing": "lamp"}, {"price": 3}), scenes.close("It costs 3.", 0)],
            )
            for n in (1, 2, 3)
        ),
    )
)
TEXT = Reply("It costs 3.")


def price(*things: str) -> Reply:
    return Reply(None, tuple(ToolCall(None, "getPrice", f'{{"thing": "{thing}"}}') for thing in things))


RIGHT, SIMILAR, FULL_WIDTH, OTHER = price("lamp"), price("lamp."), price("ｌａｍｐ"), price("sofa")
"""As in the Reference; similar enough for the released rules alone; the same for the strict ones alone."""


def session(*tasks: Sequence[Reply] | TaskTrajectory, epoch: int = 1) -> Trajectory:
    """Replies of the first Tasks; those that are missing were not played."""
    played = [it if isinstance(it, TaskTrajectory) else TaskTrajectory(tuple(it), "closed") for it in tasks]
    missing = TaskTrajectory((), finished=False, unfinished_reason="not played")
    rest = [missing] * (len(SCENARIO.tasks) - len(played))
    return Trajectory(f"lamps.e{epoch}", epoch, SCENARIO, (*played, *rest))


def report(*sessions: Trajectory, scorers: Sequence[str] = DEFAULT, **changes: Any) -> RunReport:
    given: dict[str, Any] = {
        **{"log": "a.db", "run": "r1", "model": "m", "config": GOLD, "usage": Usage(len(sessions), {}, {})},
        **changes,
    }
    return score_run(sessions, [SCORERS[name] for name in scorers], **given)


def labels(found: RunReport) -> list[tuple[str | None, ...]]:
    return [tuple(score.label for score in row.scores.values()) for row in task_rows(found)]


def verdicts(found: RunReport) -> list[tuple[str | None, ...]]:
    return [tuple(score.verdict for score in row.scores.values()) for row in task_rows(found)]


def test_a_report_says_what_it_was_given_and_gates_on_the_first_scorer() -> None:
    finding = Finding("lamps.e1", 1, "lost_turn", "not there")
    played = session([RIGHT, TEXT])
    found = report(played, scorers=("strict", "wildtoolbench"), config=LIVE, findings=[finding])
    assert (found.log, found.run, found.model, found.config) == ("a.db", "r1", "m", LIVE)
    assert (found.trajectories, found.findings, found.currency) == ((played,), (finding,), None)
    assert [it.scorer.name for it in found.scored] == ["strict", "wildtoolbench"]
    assert found.sessions is found.scored[0].sessions


def test_every_task_has_a_row_in_order_with_what_each_scorer_says() -> None:
    first, second = session([RIGHT, TEXT], [OTHER], [TEXT]), session([RIGHT, TEXT], [SIMILAR, TEXT], epoch=2)
    rows = list(task_rows(report(first, second)))
    assert [(row.session.session, row.position, row.task) for row in rows] == [
        (f"lamps.e{epoch}", position, SCENARIO.tasks[position]) for epoch in (1, 2) for position in (0, 1, 2)
    ]
    assert [list(row.scores) for row in rows] == [["wildtoolbench", "strict"]] * 6
    value, refusal = "param_value", "refusal"
    assert [tuple(found and found.name for found in row.classes.values()) for row in rows] == [
        (None, None),
        (value, value),
        (refusal, refusal),
        (None, None),
        (None, value),
        (None, None),
    ]


def test_scorers_disagree_where_their_labels_differ_and_nowhere_else() -> None:
    found = report(session([SIMILAR, TEXT], [FULL_WIDTH], [OTHER]), session([RIGHT, TEXT], epoch=2))
    assert labels(found) == [
        ("correct", "error"),
        ("error", "error"),
        ("error", "error"),
        ("correct", "correct"),
        (None, None),
        (None, None),
    ]
    assert [row.disagrees for row in task_rows(found)] == [True, False, False, False, False, False]
    reached = report(session([FULL_WIDTH, TEXT]))
    assert (labels(reached)[0], next(task_rows(reached)).disagrees) == (("error", "correct"), True)


def test_one_scorer_alone_cannot_disagree() -> None:
    found = report(session([SIMILAR, TEXT]), scorers=("strict",))
    assert [row.disagrees for row in task_rows(found)] == [False] * 3


def test_every_wrong_task_has_evidence_and_no_other_has() -> None:
    found = report(session([SIMILAR, TEXT], [OTHER]))
    told = [
        [None if it.evidence is None else it.evidence.rule for it in row.scores.values()]
        for row in task_rows(found)
    ]
    assert told == [[None, "args.text"], ["released.args.text_similarity", "args.text"], [None, None]]


def test_scored_tasks_are_counted_by_the_scorer_that_has_most() -> None:
    found = report(session([RIGHT, TEXT], [OTHER]), session(epoch=2))
    assert [it.scored_tasks for it in found.scored] == [2, 2]
    assert found.scored_tasks == 2


def test_a_scenario_played_twice_is_one_for_agents_without_a_model() -> None:
    found = report(session([RIGHT, TEXT]), session([RIGHT, TEXT], epoch=2))
    counts = {
        (agent.name, it.scorer): (it.task_accuracy.successes, it.task_accuracy.n)
        for agent in found.null_agents
        for it in agent.figures
    }
    assert counts["reference", "wildtoolbench"] == counts["reference", "strict"] == (3, 3)
    assert counts["text-only", "wildtoolbench"] == counts["text-only", "strict"] == (0, 3)


def test_each_scorer_has_its_own_progress_and_its_own_figures_each_key_once() -> None:
    found = report(session([RIGHT, TEXT], [SIMILAR, TEXT], [OTHER]))
    by_name = {it.scorer.name: {figure.key: figure for figure in it.figures} for it in found.scored}
    released, strict = by_name["wildtoolbench"], by_name["strict"]
    for it in found.scored:
        assert len({figure.key for figure in it.figures}) == len(it.figures)
    assert (released["task_accuracy"].successes, strict["task_accuracy"].successes) == (2, 1)
    names = [{key.partition("[")[0] for key in told} for told in (released, strict)]
    assert names[0] - names[1] == {"progress_released"}
    assert names[1] - names[0] == {"progress_nodes"}
    error = "error_share[param_value]"
    assert (released[error].successes, released[error].n) == (1, 1)
    assert (strict[error].successes, strict[error].n) == (2, 2)
    own = [figure.name for figure in found.figures]
    assert not set(own) & (names[0] | names[1])


def test_what_correct_tasks_took_is_told_by_each_scorer_and_not_by_the_run() -> None:
    found = report(session([RIGHT, TEXT], [SIMILAR, TEXT]))
    of_correct = {name for name, it in DEFINITIONS.items() if it.by_verdict}
    assert of_correct == {
        *("missed_parallelism", "steps_lost", "steps_over_optimal", "calls_over_reference"),
        *("tokens_over_optimal", "cost_over_optimal", "cost_per_correct_task"),
    }
    assert not of_correct & {it.name for it in found.figures}
    for scored in found.scored:
        assert {it.name for it in scored.figures} >= of_correct


def test_tasks_that_were_not_scored_are_a_figure_over_all_tasks() -> None:
    found = report(session([RIGHT, TEXT]), session([RIGHT, TEXT], [OTHER], [TEXT], epoch=2))
    for scored in found.scored:
        assert next(it for it in scored.figures if it.name == "unscored_tasks") == Figure(
            "unscored_tasks", None, 2, 6
        )
    assert next(it for it in report().scored[0].figures if it.name == "unscored_tasks") == Figure(
        "unscored_tasks", None, None, 0
    )


@pytest.mark.parametrize("scorer", list(SCORERS))
@pytest.mark.parametrize(
    ("replies", "ending", "expected"),
    [
        ([RIGHT], "stopped", (None, "ended by the proxy at a step that is allowed")),
        ([RIGHT], "agent_stopped", ("error", None)),
        ([RIGHT, TEXT], "stopped", ("correct", None)),
        ([TEXT], "stopped", ("error", None)),
        ([RIGHT, RIGHT], "stopped", ("error", None)),
    ],
)
def test_a_task_that_the_proxy_ended_at_a_step_that_is_allowed_is_not_scored(
    scorer: str, replies: list[Reply], ending: str, expected: tuple[str | None, str | None]
) -> None:
    row = next(task_rows(report(session(TaskTrajectory(tuple(replies), ending)), scorers=(scorer,))))
    score = row.scores[scorer]
    assert (score.label, score.reason if score.label is None else None) == expected


# --- What a report says of itself --------------------------------------------


def test_what_must_be_said_of_a_scorer_is_among_the_notes() -> None:
    played = session([RIGHT, TEXT])
    assert report(played).notes == ()
    assert report(played, scorers=("strict", "published")).notes == (published.NOTE,)
    assert report(played).judged_by is None
    assert report(played, judged_by="later scenarios").judged_by == "later scenarios"


def test_a_session_is_explained_with_evidence_by_every_scorer() -> None:
    played = session([RIGHT, TEXT], [OTHER, TEXT], [TEXT])
    for scorer in SCORERS.values():
        found = explained(scorer, played)
        bare = scorer.score(played)
        assert [task.label for task in found.tasks] == ["correct", "error", "error"]
        assert [task.evidence is None for task in found.tasks] == [True, False, False]
        assert replace(found, tasks=bare.tasks) == bare


# --- Runs that go on ---------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([RIGHT, TEXT], ("correct", "correct")),
        ([OTHER, RIGHT, TEXT], ("correct_after_errors", "correct_after_errors")),
        ([SIMILAR, TEXT], ("correct", "wrong")),
        ([OTHER, SIMILAR, TEXT], ("correct_after_errors", "wrong")),
        ([SIMILAR, RIGHT, TEXT], ("correct_after_errors", "correct_after_errors")),
        ([FULL_WIDTH, TEXT], ("wrong", "correct")),
        ([OTHER, FULL_WIDTH, TEXT], ("wrong", "correct_after_errors")),
        ([price("lamp", "sofa"), TEXT], ("correct_after_errors", "correct_after_errors")),
        ([RIGHT, RIGHT, TEXT], ("correct_after_errors", "correct_after_errors")),
    ],
)
def test_a_verdict_is_by_the_rules_of_its_scorer(replies: list[Reply], expected: tuple[str, str]) -> None:
    found = report(session(replies), config=LIVE)
    assert verdicts(found)[0] == expected


def test_what_a_call_cost_is_counted_by_the_rules_of_its_scorer() -> None:
    [row, *_] = task_rows(report(session([SIMILAR, RIGHT, TEXT]), config=LIVE))
    counted = {name: (it.live.redundant, it.live.unmatched) for name, it in row.scores.items() if it.live}
    # What the released rules serve is made again; the strict ones have nothing for the first.
    assert counted == {"wildtoolbench": (1, 0), "strict": (0, 1)}


def test_the_figures_of_a_live_run_are_by_the_rules_of_their_scorer() -> None:
    found = report(session([SIMILAR, TEXT], [OTHER, SIMILAR, TEXT], [RIGHT, TEXT]), config=LIVE)
    told = {
        it.scorer.name: {
            figure.key: (figure.successes, figure.n)
            for figure in it.figures
            if figure.name in ("verdict_share", "completed_sessions")
        }
        for it in found.scored
    }
    assert told == {
        "wildtoolbench": {
            "verdict_share[correct]": (2, 3),
            "verdict_share[correct_after_errors]": (1, 3),
            "verdict_share[wrong]": (0, 3),
            "verdict_share[not_reached]": (0, 3),
            "completed_sessions": (1, 1),
        },
        "strict": {
            "verdict_share[correct]": (1, 3),
            "verdict_share[correct_after_errors]": (0, 3),
            "verdict_share[wrong]": (2, 3),
            "verdict_share[not_reached]": (0, 3),
            "completed_sessions": (0, 1),
        },
    }


def test_findings_are_figures_only_where_the_agents_own_messages_are_sent() -> None:
    finding = Finding("lamps.e1", 1, "lost_turn", "not there")
    told, kept = [], []
    for config in (LIVE, LIVE | {"history_from": "proxy"}, GOLD | {"on_mismatch": "continue"}, GOLD):
        found = report(session([RIGHT, TEXT]), config=config, findings=[finding])
        live = found.scored[0].live
        told.append(None if live is None else live.findings)
        kept.append(found.findings)
    assert told == [(finding,), None, None, None]
    assert kept == [(finding,), (), (), ()]


def test_a_run_whose_figures_are_comparable_has_no_verdicts() -> None:
    found = report(session([RIGHT, TEXT], [OTHER]))
    assert verdicts(found) == [(None, None)] * 3
    assert [it.live for it in found.scored] == [None, None]
    names = {figure.name for it in found.scored for figure in it.figures}
    assert not {name for name in names if name.startswith(("verdict_share", "completed", "live_"))}
