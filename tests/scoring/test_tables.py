from __future__ import annotations

from dataclasses import replace

import pytest

from scoring.metrics.accuracy import Unscored
from scoring.metrics.figures import Figure, Unit
from scoring.output.tables import (
    align,
    interval,
    moment,
    pairs,
    percent,
    quantity,
    unscored_line,
    worded,
)


def test_a_run_without_sessions_is_told_from_one_with_nothing_left_out() -> None:
    assert unscored_line(Unscored(0, 0, 0, 0, ())) == "Not scored: the run has no sessions."
    assert unscored_line(Unscored(0, 8, 0, 2, ())) == "Not scored: none."


def test_tasks_left_out_are_counted_with_their_reasons() -> None:
    left_out = Unscored(3, 12, 2, 3, (("provider: 503", 2), ("not reached", 1)))
    assert unscored_line(left_out) == (
        "Not scored: 3 of 12 tasks, so 2 of 3 sessions: provider: 503 (2), not reached (1)"
    )


def test_many_reasons_are_cut_short_but_counted() -> None:
    reasons = tuple((f"reason {i}", 1) for i in range(7))
    assert unscored_line(Unscored(7, 8, 2, 2, reasons)).endswith("reason 4 (1), 2 other reasons")
    assert unscored_line(Unscored(6, 8, 2, 2, reasons[:6])).endswith("reason 4 (1), 1 other reason")
    assert unscored_line(Unscored(5, 8, 2, 2, reasons[:5])).endswith("reason 4 (1)")


def test_a_long_reason_is_cut_short() -> None:
    line = unscored_line(Unscored(1, 1, 1, 1, (("x" * 5000, 1),)))
    assert line.endswith("xxx... (1)")
    assert len(line) < 200


def test_a_reason_from_a_foreign_log_cannot_move_the_cursor() -> None:
    line = unscored_line(Unscored(4, 4, 1, 1, (("a\nb\u202e\x1b[2J", 4),)))
    assert line.endswith(": a\\nb\\u202e\\x1b[2J (4)")


def test_columns_line_up_when_labels_are_wide_characters() -> None:
    rows = [("多工具", "1.0", "1/1", "a"), ("Chat", "100.0", "10/10", "bb"), ("Cafe\u0301", "-", "0/0", "-")]
    assert align(rows) == [
        "多工具    1.0    1/1   a",
        "Chat    100.0  10/10  bb",
        "Cafe\u0301        -    0/0   -",
    ]


def test_an_empty_last_column_leaves_no_blanks_behind() -> None:
    assert align([("a", "1", ""), ("bb", "2", "")]) == ["a   1", "bb  2"]


def test_pairs_have_their_values_in_one_column() -> None:
    assert pairs({"Log": "run.db", "模型": "m", "Scorers": ""}) == [
        "Log      run.db",
        "模型     m",
        "Scorers",
    ]
    assert pairs({}) == []


def test_rates_are_per_cent_with_one_decimal() -> None:
    assert [percent(value) for value in (37 / 256, 0.0, 1.0, None)] == ["14.5", "0.0", "100.0", "-"]


def test_an_interval_is_two_rates_or_a_dash() -> None:
    figure = Figure("task_accuracy", None, 37 / 256, 256, 37, 0.10671, 0.19281)
    assert interval(figure) == "10.7-19.3"
    assert interval(replace(figure, low=0.0, high=1.0)) == "0.0-100.0"
    assert interval(replace(figure, low=None, high=None)) == "-"


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("rate", 0.14453, "14.5 %"),
        ("seconds", 1.005001, "1.01 s"),
        ("ratio", 2.5, "2.50"),
        ("money", 0.00125, "0.00125 EUR"),
        ("money", 0.000123456, "0.0001235 EUR"),
        ("money", 12.3456, "12.35 EUR"),
        ("count", 1234567, "1,234,567"),
        ("count", 1234567.0, "1,234,567"),
        ("tokens", 1234.5, "1,234.50"),
        *((unit, None, "-") for unit in ("rate", "seconds", "ratio", "money", "count", "tokens")),
        ("count", 0, "0"),
        ("rate", 0.0, "0.0 %"),
    ],
)
def test_a_quantity_has_its_unit_and_a_dash_for_nothing(unit: Unit, value: float | None, text: str) -> None:
    assert quantity(Figure("f", None, value, 1), unit, "EUR") == text


def test_money_without_a_currency_is_a_number_and_a_foreign_currency_is_spelt_out() -> None:
    cost = Figure("cost_total", None, 2.0, 1)
    assert quantity(cost, "money") == "2"
    assert quantity(cost, "money", "\x1b[2J") == "2 \\x1b[2J"


def test_a_moment_is_told_in_utc() -> None:
    assert moment(86_400.9) == "1970-01-02 00:00:00 UTC"


def test_a_moment_that_no_calendar_has_is_told_in_seconds() -> None:
    assert moment(253_402_300_799) == "9999-12-31 23:59:59 UTC"
    assert [moment(at) for at in (1e12, -1e300, float("inf"))] == ["1e+12 s", "-1e+300 s", "inf s"]


def test_names_become_words() -> None:
    assert (worded("lost_turn"), worded("correct_after_errors")) == ("Lost turn", "Correct after errors")
