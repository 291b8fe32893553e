"""What a terminal may be given."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.terminal.text import (
    count,
    duration,
    moment,
    one_line,
    padded,
    parse_since,
    seconds_text,
    visible_json,
    wrapped,
)
from scenarios.text import visible, width


@given(st.text())
def test_nothing_that_comes_out_is_a_control_character(text: str) -> None:
    shown = one_line(text, 20)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_visible_json_is_the_same_value_without_what_a_terminal_would_obey(value: object) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert visible(shown, keep="\n") == shown


def test_line_breaks_are_shown_in_one_line() -> None:
    assert one_line("one\ntwo\r\nthree", 80) == "one ⏎ two ⏎ three"


def test_a_long_text_ends_with_the_number_of_characters_left_out() -> None:
    assert one_line("x" * 20, 20) == "x" * 20
    assert one_line("x" * 1_221, 20) == "x" * 20 + "… (+1,201)"


def test_a_text_is_cut_and_filled_up_by_columns_not_characters() -> None:
    assert one_line("你好吗朋友", 6) == "你好吗… (+2)"
    assert padded("你", 4) == "你  "


def test_a_text_of_combining_marks_alone_has_an_end_too() -> None:
    assert one_line("\u0301" * 1_000, 10) == "\u0301" * 40 + "… (+960)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.00 s"), (0.414, "0.41 s"), (12.34, "12.3 s"), (130, "2 min 10 s"), (3900, "1 h 5 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (130, "2 min 10 s"),
        (3900, "1 h 5 min"),
        (-1, "0 s"),
    ],
)
def test_durations_in_whole_seconds(seconds: float, text: str) -> None:
    assert duration(seconds, whole=True) == text


@pytest.mark.parametrize(
    ("seconds", "text", "whole"),
    [
        (-1.0, "0.00s", "0s"),
        (0.414, "0.41s", "0s"),
        (9.996, "10.0s", "10s"),
        (99.94, "99.9s", "1m40s"),
        (99.96, "1m40s", "1m40s"),
        (5_999.0, "99m59s", "99m59s"),
        (6_000.0, "1h40m", "1h40m"),
        (359_999.0, "99h59m", "99h59m"),
        (360_000.0, "4d04h", "4d04h"),
    ],
)
def test_seconds_in_short(seconds: float, text: str, whole: str) -> None:
    assert (seconds_text(seconds), seconds_text(seconds, whole=True)) == (text, whole)


@given(st.floats(0, 99 * 86_400))
def test_seconds_in_short_take_at_most_six_columns(seconds: float) -> None:
    assert len(seconds_text(seconds)) <= 6
    assert len(seconds_text(seconds, whole=True)) <= 6


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0k"),
        (99_949, "99.9k"),
        (99_950, "100k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_250_000, "1.2M"),
        (999_400_000_000, "999G"),
        (10**12, "1e+12"),
    ],
)
def test_counts_in_short(number: int, text: str) -> None:
    assert count(number) == text


@given(st.integers(0, 10**14))
def test_counts_in_short_take_at_most_five_columns(number: int) -> None:
    assert len(count(number)) <= 5


@given(st.text(), st.integers(12, 30), st.integers(1, 5), st.booleans())
def test_a_text_in_lines_has_no_more_and_no_wider_ones_than_wanted(
    text: str, columns: int, most: int, counted: bool
) -> None:
    lines = wrapped(text, columns, most, counted=counted)
    assert 1 <= len(lines) <= most
    assert all(width(line) <= columns and visible(line) == line for line in lines)


@given(st.text("ab \n", max_size=60), st.integers(3, 12))
def test_a_text_in_lines_loses_nothing_but_blanks(text: str, columns: int) -> None:
    lines = wrapped(text, columns, 100)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_text_that_goes_on_after_its_last_line_says_so() -> None:
    assert wrapped("one two three four", 8, 2) == ["one two", "t… (+9)"]
    assert wrapped("one two three four", 8, 2, counted=False) == ["one two", "three f…"]


def test_a_span_is_counted_back_from_now() -> None:
    assert [parse_since(text, 10_000.0) for text in ("30s", "10m", "2h", "1.5 m")] == [9970, 9400, 2800, 9910]


def test_an_iso_time_is_local_unless_it_says_otherwise() -> None:
    there = datetime(2026, 1, 31, 14, 5, tzinfo=UTC).timestamp()
    assert parse_since("2026-01-31T14:05Z", 0) == there
    assert parse_since("2026-01-31 15:05+01:00", 0) == there
    assert parse_since("2026-01-31T14:05", 0) == datetime(2026, 1, 31, 14, 5).timestamp()
    assert moment(there, timezone(timedelta(hours=2))).hour == 16


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=-12))])
def test_a_moment_that_no_calendar_has_is_the_nearest_that_one_has(zone: tzinfo | None) -> None:
    last = [moment(at, zone).replace(tzinfo=None) for at in (253_402_300_800 + 86_400, 1e300, float("inf"))]
    assert last == [datetime(9999, 12, 31, 23, 59, 59)] * 3
    assert moment(-1e300, zone).replace(tzinfo=None) == datetime(1, 1, 1)


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "5w", "2026-13-01", "-5m"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"10m.*ISO time such as 2026"):
        parse_since(text, 0)
