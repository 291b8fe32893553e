from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import logs, scored
from support.commands import error_line
from support.scored import rate, right, session, unscored

from proxy.log.writer import LogWriter
from scoring.gates import Gate, GateError, Outcome, check, outcome_line, outcome_lines, parse_gate
from scoring.metrics.figures import Figure
from scoring.metrics.null_agents import NullAgent, NullFigures
from scoring.metrics.writes import WriteFinding
from scoring.report import RunReport


def run_of(
    *figures: Figure, strict: tuple[Figure, ...] = (), own: tuple[Figure, ...] = (), **of: Any
) -> RunReport:
    return scored.report(
        scored.scored(figures=figures), scored.scored(scorer="strict", figures=strict), figures=own, **of
    )


def outcome_of(gate: str, report: RunReport, kind: Any = "under") -> Outcome:
    [outcome] = check([parse_gate(gate, kind)], [report])
    return outcome


def refusal(gate: str, report: RunReport | None = None) -> str:
    """Why a threshold is refused: one line that begins with what it is about."""
    with pytest.raises(GateError) as refused:
        parsed = parse_gate(gate, "under")
        assert report is not None, "it is not refused without a report"
        check([parsed], [report])
    line = str(refused.value)
    assert line.isprintable()
    what, colon, why = line.partition(": ")
    assert (what[:13], colon) == ("--fail-under ", ": ")
    return why


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("session_accuracy=0.10", Gate(None, "session_accuracy", None, 0.1, "under")),
        ("session_accuracy=10%", Gate(None, "session_accuracy", None, 0.1, "under")),
        ("session_accuracy = 12.5 %", Gate(None, "session_accuracy", None, 0.125, "under")),
        ("session_accuracy=0", Gate(None, "session_accuracy", None, 0.0, "under")),
        ("session_accuracy=.5", Gate(None, "session_accuracy", None, 0.5, "under")),
        ("session_accuracy=1e-1", Gate(None, "session_accuracy", None, 0.1, "under")),
        ("session_accuracy=29%", Gate(None, "session_accuracy", None, 0.29, "under")),
        ("writes=4", Gate(None, "writes", None, 4.0, "under")),
        ("accuracy_by_label[Chat]=0.9", Gate(None, "accuracy_by_label", "Chat", 0.9, "under")),
        (
            "strict:accuracy_by_label[Single-Tool]=90%",
            Gate("strict", "accuracy_by_label", "Single-Tool", 0.9, "under"),
        ),
        ("accuracy_by_label[a=b:c[d]]=1", Gate(None, "accuracy_by_label", "a=b:c[d]", 1.0, "under")),
    ],
)
def test_a_threshold_is_a_figure_and_a_value(text: str, gate: Gate) -> None:
    assert parse_gate(text, "under") == gate


def test_a_ratio_may_be_written_in_per_cent_and_exceed_one() -> None:
    gate = Gate(None, "live_steps_over_optimal", None, 1.1, "over")
    assert parse_gate("live_steps_over_optimal=110%", "over") == gate
    assert parse_gate("live_steps_over_optimal=1.1", "over") == gate


def test_a_gate_is_named_as_it_was_asked_for() -> None:
    gates = ["session_accuracy=0.1", "strict:accuracy_by_label[Chat]=0.1"]
    assert [f"{parse_gate(gate, 'over').key}=0.1" for gate in gates] == gates


@pytest.mark.parametrize(
    "text", ["", "session_accuracy", "=0.1", "accuracy_by_label[Chat=0.1", "a:b:c=1", "strict:=1"]
)
def test_what_is_no_threshold_is_refused_with_an_example(text: str) -> None:
    assert refusal(text).endswith("is no threshold: write FIGURE=VALUE, such as session_accuracy=0.10")


@pytest.mark.parametrize("value", ["", "ten", "nan", "inf", "-inf", "1e999", "0,1", "1_0", "0x1", "%", "٣"])
def test_a_threshold_that_is_no_finite_number_is_refused(value: str) -> None:
    assert refusal(f"task_accuracy={value}") == f"{value!r} is no finite number: write it as 0.10 or 10%"


@pytest.mark.parametrize("value", ["10", "101%", "-0.1"])
def test_a_rate_is_not_gated_on_what_it_cannot_be(value: str) -> None:
    assert refusal(f"task_accuracy={value}") == "the figure is a rate, from 0 to 1: write 0.10 or 10%"


def test_per_cent_of_what_is_no_share_is_refused() -> None:
    assert refusal("task_seconds=10%") == "the figure is in seconds, not in per cent: leave the % away"


def test_an_unknown_figure_is_refused_with_the_nearest_one() -> None:
    assert (
        refusal("sesion_acuracy=0.1") == "there is no figure sesion_acuracy: did you mean session_accuracy?"
    )
    assert refusal("qqqq=0.1") == "there is no figure qqqq: --format csv lists them"


def test_text_that_a_terminal_would_obey_is_spelt_out() -> None:
    assert refusal("\x1b[2J\n=0.1").startswith("is no threshold")
    assert refusal("a\x1b\n=0.1") == "there is no figure a\\x1b: --format csv lists them"


def test_nothing_is_gated_on_the_experimental_scorer() -> None:
    why = "published is a reconstruction that nobody has confirmed, so that nothing is gated on it"
    assert refusal("published:task_accuracy=0.1") == f"{why}: choose wildtoolbench or strict"
    first = scored.report(scored.scored(scorer="published", figures=[rate("task_accuracy", 1, 2)]))
    assert refusal("task_accuracy=0.1", first) == f"{why}: name another --scorer before it"


def test_an_unknown_scorer_and_one_that_did_not_score_are_refused() -> None:
    assert (
        refusal("strickt:task_accuracy=0.1") == "there is no scorer strickt: choose wildtoolbench or strict"
    )
    alone = scored.report(scored.scored(figures=[rate("task_accuracy", 1, 2)]))
    assert (
        refusal("strict:task_accuracy=0.1", alone) == "the run is not scored by strict: add --scorer strict"
    )


def test_an_unknown_group_is_refused_with_those_that_there_are() -> None:
    report = run_of(rate("accuracy_by_label", 1, 2, "Chat"), rate("accuracy_by_label", 1, 2, "Clarify"))
    expected = (
        "run r1 of agent.db does not have it; it has accuracy_by_label[Chat], accuracy_by_label[Clarify]"
    )
    assert refusal("accuracy_by_label[Chatt]=0.1", report) == expected
    assert refusal("accuracy_by_label=0.1", report) == expected
    report = run_of(rate("task_accuracy", 1, 2))
    assert (
        refusal("task_accuracy[Chat]=0.1", report)
        == "run r1 of agent.db does not have it; it has task_accuracy"
    )


def test_very_many_groups_are_counted() -> None:
    report = run_of(*(rate("accuracy_by_label", 1, 2, f"label {i}") for i in range(25)))
    assert refusal("accuracy_by_label[x]=0.1", report).endswith(", accuracy_by_label[label 19], 5 more")


def test_a_figure_that_the_run_does_not_have_is_refused() -> None:
    report = run_of(own=(Figure("writes", None, 3.0, 4),))
    assert refusal("completed_sessions=0.1", report) == (
        "run r1 of agent.db does not have this figure; --format csv lists those that it has"
    )
    assert refusal("strict:writes=3", report) == "writes is of no scorer: leave strict: away"


@pytest.mark.parametrize(
    "gate", ["steps_per_task=4", "strict:steps_over_optimal=1", "flip_rate=10%", "latency_per_step[p95]=1"]
)
def test_a_figure_that_is_better_when_lower_has_no_least_value(gate: str) -> None:
    figure = parse_gate(gate, "over").name
    assert refusal(gate) == f"{figure} is better when it is lower: use --fail-over"


def test_without_a_scorer_the_first_one_is_meant_then_the_run() -> None:
    first, other, own = (
        rate("task_accuracy", 1, 2),
        rate("task_accuracy", 2, 2),
        Figure("writes", None, 3.0, 4),
    )
    report = run_of(first, strict=(other,), own=(own,))
    found = [
        outcome_of(gate, report).figure for gate in ("task_accuracy=0", "strict:task_accuracy=0", "writes=0")
    ]
    assert found == [first, other, own]


def test_what_agents_without_a_model_get_can_be_gated_by_each_scorer() -> None:
    def null(scorer: str, count: int) -> NullFigures:
        of = "reference"
        return NullFigures(
            scorer, "1", rate("null_session_accuracy", 1, 2, of), rate("null_task_accuracy", count, 8, of)
        )

    agent = NullAgent("reference", "words", (null("wildtoolbench", 8), null("strict", 7)))
    report = run_of(null_agents=(agent,))
    gates = ("null_task_accuracy[reference]=1", "strict:null_task_accuracy[reference]=1")
    assert [outcome_of(gate, report).passed for gate in gates] == [True, False]
    sessions = outcome_of("null_session_accuracy[reference]=1", report)
    assert sessions.figure == agent.figures[0].session_accuracy
    assert refusal("null_task_accuracy[refrence]=1", report) == (
        "run r1 of agent.db does not have it; it has null_task_accuracy[reference]"
    )


@pytest.mark.parametrize(
    ("successes", "kind", "passed"),
    [
        (2, "under", False),
        (3, "under", True),
        (4, "under", True),
        (2, "over", True),
        (3, "over", True),
        (4, "over", False),
    ],
)
def test_a_figure_exactly_at_its_threshold_keeps_it(successes: int, kind: str, passed: bool) -> None:
    """3 of 10 is the same number as 0.3 and as 30%, though none of them is a binary fraction."""
    report = run_of(rate("task_accuracy", successes, 10))
    assert [outcome_of(f"task_accuracy={value}", report, kind).passed for value in ("0.3", "30%")] == [
        passed
    ] * 2


def test_a_figure_over_none_neither_passes_nor_fails() -> None:
    outcome = outcome_of("accuracy_by_label[Chat]=0.5", run_of(rate("accuracy_by_label", 0, 0, "Chat")))
    assert outcome.passed is None
    assert outcome_line(outcome) == (
        "accuracy_by_label[Chat] has nothing to tell, as it is over none; the threshold is 50.0 %"
    )


def test_an_outcome_is_told_with_counts_and_threshold() -> None:
    report = run_of(
        rate("session_accuracy", 2, 25),
        own=(Figure("task_seconds", None, 12.345, 40), Figure("cost_total", None, 0.5, 4)),
    )
    lines = [
        outcome_line(outcome_of(*gate))
        for gate in [
            ("session_accuracy=0.10", report, "under"),
            ("session_accuracy=8%", report, "under"),
            ("session_accuracy=0.05", report, "over"),
            ("task_seconds=10", report, "over"),
            ("cost_total=1", report, "over"),
        ]
    ]
    assert lines == [
        "session_accuracy is 8.0 % (2 of 25), under the threshold of 10.0 %",
        "session_accuracy is 8.0 % (2 of 25), not under the threshold of 8.0 %",
        "session_accuracy is 8.0 % (2 of 25), over the threshold of 5.0 %",
        "task_seconds is 12.35 s (n = 40), over the threshold of 10.00 s",
        "cost_total is 0.5 (n = 4), not over the threshold of 1",
    ]


def test_an_outcome_says_how_many_tasks_were_not_scored_by_the_scorer_that_left_out_most() -> None:
    report = scored.report(
        scored.scored(
            session(right(), unscored()),
            session(right(), right(), name="rooms.e2", epoch=2),
            figures=[rate("task_accuracy", 3, 3)],
        ),
        scored.scored(
            session(right(), unscored()),
            session(unscored(), right(), name="rooms.e2", epoch=2),
            scorer="strict",
            figures=[rate("accuracy_by_label", 0, 0, "Chat")],
        ),
    )
    told = outcome_of("task_accuracy=1", report)
    assert (told.passed, told.unscored) == (True, 2)
    assert outcome_line(told) == (
        "task_accuracy is 100.0 % (3 of 3), not under the threshold of 100.0 %; 2 tasks were not scored"
    )
    assert outcome_of("task_accuracy=1", run_of(rate("task_accuracy", 1, 1))).unscored == 0


def write(kind: str, name: str, epoch: int) -> WriteFinding:
    return WriteFinding(name, epoch, 0, 0, 0, "bookRoom", kind, "{}", "is wanted by nobody")


@pytest.mark.parametrize(
    ("whole", "passed", "line"),
    [
        (
            2,
            False,
            "wrong_writes is 1 (n = 2), and 1 in sessions that were not scored, over the threshold of 1",
        ),
        (
            0,
            True,
            "wrong_writes is 0 (n = 0), and 1 in sessions that were not scored, not over the threshold of 1",
        ),
    ],
)
def test_a_write_is_counted_against_a_threshold_though_its_session_was_not_scored(
    whole: int, passed: bool, line: str
) -> None:
    sessions = [
        session(right(), right(), name=f"rooms.e{epoch}", epoch=epoch) for epoch in range(1, whole + 1)
    ]
    left_out = session(right(), unscored(), name="rooms.e9", epoch=9)
    writes = (
        *(write("wrong_write", it.session, it.epoch) for it in sessions[:1]),
        write("wrong_write", "rooms.e9", 9),
        write("early_write", "rooms.e9", 9),
    )
    own = (Figure("wrong_writes", None, 1.0 if whole else None, whole),)
    report = scored.report(scored.scored(*sessions, left_out), figures=own, writes=writes)
    outcome = outcome_of("wrong_writes=1", report, "over")
    assert (outcome.passed, outcome.beyond) == (passed, 1)
    assert outcome_line(outcome) == f"{line}; 1 task was not scored"


def test_a_miss_by_a_hair_does_not_look_like_the_threshold() -> None:
    report = run_of(rate("task_accuracy", 1999, 20_000), own=(Figure("task_seconds", None, 10.001, 3),))
    assert outcome_line(outcome_of("task_accuracy=10%", report)) == (
        "task_accuracy is 9.995 % (1999 of 20000), under the threshold of 10 %"
    )
    assert outcome_line(outcome_of("task_seconds=10", report, "over")) == (
        "task_seconds is 10.001 (n = 3), over the threshold of 10"
    )


def test_each_run_is_judged_and_named_where_there_are_several() -> None:
    first = run_of(rate("task_accuracy", 1, 2))
    gates = [parse_gate("task_accuracy=0.6", "under"), parse_gate("task_accuracy=0.6", "over")]
    outcomes = check(gates, [first, replace(first, log="b.db", run="r\x1b2")])
    assert [(it.log, it.run, it.gate.kind, it.passed) for it in outcomes] == [
        ("agent.db", "r1", "under", False),
        ("agent.db", "r1", "over", True),
        ("b.db", "r\x1b2", "under", False),
        ("b.db", "r\x1b2", "over", True),
    ]
    told = "task_accuracy is 50.0 % (1 of 2), under the threshold of 60.0 %"
    assert outcome_lines(outcomes[:2])[0] == told
    assert outcome_lines(outcomes)[2] == f"b.db, run r\\x1b2: {told}"


def test_the_command_tells_thresholds_below_the_table_and_exits_by_them(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    kept = scored.run_score(log, "--fail-under", "task_accuracy=50%", "--fail-over", "steps_per_task=9")
    assert (kept.exit_code, kept.stderr) == (0, "")
    first, second = kept.stdout.splitlines()[-2:]
    assert first == "passed: task_accuracy is 50.0 % (1 of 2), not under the threshold of 50.0 %"
    assert second.startswith("passed: steps_per_task is ")
    missed = scored.run_score(
        log, "--fail-under", "task_accuracy=50%", "--fail-under", "session_accuracy=0.1"
    )
    told = "session_accuracy is 0.0 % (0 of 1), under the threshold of 10.0 %"
    assert error_line(missed, 1) == f"Error: {told}"
    assert missed.stdout.splitlines()[-1] == f"failed: {told}"
    empty = scored.run_score(log, "--fail-under", "accuracy_by_label[Clarify]=0.1")
    assert "has nothing to tell" in error_line(empty, 3)


def test_a_missed_threshold_counts_for_more_than_a_run_without_a_scored_task(tmp_path: Path) -> None:
    played = scored.write_log(tmp_path / "a.db")
    empty = tmp_path / "b.db"
    with LogWriter.open(empty) as writer:
        writer.commit_blocking(logs.run("r2", history="gold"), logs.scenario(), logs.session(run_id="r2"))
    nothing = scored.run_score(played, empty, "--fail-under", "task_accuracy=50%")
    assert error_line(nothing, 3).startswith("Error: b.db, run r2: no scored task. ")
    missed = scored.run_score(played, empty, "--fail-under", "task_accuracy=60%")
    told = "task_accuracy is 50.0 % (1 of 2), under the threshold of 60.0 %"
    assert error_line(missed, 1).endswith(told)
    lost = scored.run_score(empty, "--fail-over", "unscored_tasks=0")
    assert error_line(lost, 1).startswith("Error: unscored_tasks is 2 (n = 2), over the threshold of 0")


def test_the_command_refuses_a_broken_threshold_before_it_prints(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    for gate in ("task_acuracy=0.1", "published:task_accuracy=0.1", "accuracy_by_label[Chatt]=0.1"):
        result = scored.run_score(log, "--fail-under", gate)
        assert error_line(result, 2).startswith("Error: --fail-under ")
        assert result.stdout == ""


def test_the_json_document_has_the_thresholds(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    plain = scored.run_score(log, "--format", "json")
    gated = scored.run_score(log, "--format", "json", "--fail-over", "strict:task_accuracy=0.4")
    assert gated.exit_code == 1
    assert json.loads(gated.stdout) == json.loads(plain.stdout) | {
        "gates": [
            {
                "log": "a.db",
                "run": "r1",
                "figure": "strict:task_accuracy",
                "fail": "over",
                "threshold": 0.4,
                "value": 0.5,
                "n": 2,
                "successes": 1,
                "passed": False,
                "unscored_tasks": 0,
                "in_unscored_sessions": 0,
            }
        ]
    }
