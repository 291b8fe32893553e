from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.metrics import Estimate, Unscored
from scoring.report import SCORERS, RunReport
from scoring.tables import align, interval, moment, percent, run_table, unscored_line
from scoring.types import SessionScore, TaskScore


def session_of(
    name: str, labels: Sequence[str], correct: Sequence[bool | None], reason: str | None = None
) -> SessionScore:
    tasks = [Task("t", label, "Partial Information" if i else None, NODES) for i, label in enumerate(labels)]
    scores = [
        TaskScore(
            None if right is None else "correct" if right else "error",
            None,
            None,
            bool(right),
            1,
            1,
            1,
            reason,
        )
        for right in correct
    ]
    return SessionScore(name, 1, Scenario(name, "d", (), tuple(tasks), "h", {}), tuple(scores))


NODES = (Node(CLOSE, {}, "bye"), Node(CLOSE, {}, "bye"))
LABELS = ("Single-Tool", "Mixed Multi-Tool", "Chat", "Chat")


def report_of(*sessions: SessionScore, **changes: Any) -> RunReport:
    fields: dict[str, Any] = {
        "log": "run.db",
        "run": "r1",
        "model": "some-model",
        "config": {"history": "gold"},
        "scorer": SCORERS["wildtoolbench"],
        "sessions": sessions,
    }
    return RunReport(**(fields | changes))


def line_of(table: str, label: str) -> list[str]:
    [line] = [line for line in table.splitlines() if line.strip().startswith(label)]
    return line.strip().removeprefix(label).split()


def test_a_table_has_each_rate_with_count_and_interval() -> None:
    sessions = [session_of(f"s{i}", LABELS, [True, i < 81, True, True]) for i in range(263)]
    table = run_table(report_of(*sessions))
    # Newcombe 1998, Table I, method 3: 81 of 263 is 0.2553 to 0.3662.
    assert line_of(table, "Session accuracy") == ["30.8", "81/263", "25.5-36.6"]
    assert line_of(table, "Task 2") == ["30.8", "81/263", "25.5-36.6"]
    assert line_of(table, "Single-Tool") == ["100.0", "263/263", "98.6-100.0"]
    assert line_of(table, "Subsequent Turn")[1] == "607/789"
    assert line_of(table, "Coreferential Reference") == ["-", "0/0", "-"]


def test_the_optimal_path_rate_and_the_progress_rate_have_their_own_parts() -> None:
    table = run_table(report_of(session_of("s", LABELS, [True, True, True, False])))
    _, optimal = table.split("Optimal path rate\n")
    optimal, progress = optimal.split("Progress rate\n")
    assert line_of(optimal, "Total") == ["100.0", "1/1", "20.7-100.0"]
    assert line_of(progress, "Total") == ["50.0", "1/2", "-"]


def test_the_header_says_what_was_scored() -> None:
    session = session_of("s", LABELS, [True] * 4)
    table = run_table(report_of(session, session, session_of("t", LABELS, [True] * 4)))
    assert line_of(table, "Log") == ["run.db"]
    assert line_of(table, "Run") == ["r1"]
    assert line_of(table, "Model") == ["some-model"]
    assert line_of(table, "History") == ["gold"]
    assert line_of(table, "Scenarios") == ["2", "(3", "sessions)"]
    assert line_of(table, "Scorer")[0] == "wildtoolbench"


def test_a_run_without_model_or_history_mode_says_so() -> None:
    table = run_table(report_of(model=None, config={}))
    assert line_of(table, "Model") == line_of(table, "History") == ["-"]
    assert "Not scored: the run has no sessions." in table


def test_nothing_left_out_is_said_too() -> None:
    assert "\nNot scored: none.\n" in run_table(report_of(session_of("s", LABELS, [True] * 4)))


def test_tasks_left_out_are_counted_with_their_reasons() -> None:
    sessions = [
        session_of("s", LABELS, [True, None, True, None], reason="provider: 503"),
        session_of("t", LABELS, [True, True, True]),
        session_of("u", LABELS, [True] * 4),
    ]
    expected = "Not scored: 3 of 12 tasks, so 2 of 3 sessions: provider: 503 (2), not reached (1)"
    assert expected in run_table(report_of(*sessions)).splitlines()


def test_many_reasons_are_cut_short_but_counted() -> None:
    reasons = tuple((f"reason {i}", 1) for i in range(7))
    assert unscored_line(Unscored(7, 8, 2, 2, reasons)).endswith("reason 4 (1), 2 other reasons")
    assert unscored_line(Unscored(6, 8, 2, 2, reasons[:6])).endswith("reason 4 (1), 1 other reason")


def test_a_long_reason_is_cut_short() -> None:
    line = unscored_line(Unscored(1, 1, 1, 1, (("x" * 5000, 1),)))
    assert line.endswith("xxx... (1)")
    assert len(line) < 200


def test_columns_line_up_when_labels_are_wide_characters() -> None:
    rows = [("多工具", "1.0", "1/1", "a"), ("Chat", "100.0", "10/10", "bb"), ("Cafe\u0301", "-", "0/0", "-")]
    assert align(rows) == [
        "多工具    1.0    1/1   a",
        "Chat    100.0  10/10  bb",
        "Cafe\u0301        -    0/0   -",
    ]


def test_control_characters_in_names_from_the_log_are_spelt_out() -> None:
    table = run_table(
        report_of(
            session_of("s", LABELS, [None] * 4, reason="a\nb\u202e"),
            log="\x1b]0;x\x07.db",
            run="r\r1",
            model="m\x1b[2J\x9b\ud800",
            config={"history": "\x00"},
        )
    )
    assert "\\x1b]0;x\\x07.db" in table
    assert "r\\r1" in table
    assert "m\\x1b[2J\\x9b\\ud800" in table
    assert "\\x00" in table
    assert "a\\nb\\u202e (4)" in table


def test_rates_are_per_cent_with_one_decimal() -> None:
    assert [percent(value) for value in (37 / 256, 0.0, 1.0, None)] == ["14.5", "0.0", "100.0", "-"]


def test_an_interval_is_two_rates_or_a_dash() -> None:
    assert interval(Estimate(37 / 256, 256, 37, 0.10671, 0.19281)) == "10.7-19.3"
    assert interval(Estimate(None, 0, 0, None, None)) == "-"


def test_a_moment_is_told_in_utc() -> None:
    assert moment(86_400.9) == "1970-01-02 00:00:00 UTC"
