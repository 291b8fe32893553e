"""What a terminal may be given."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tail.text import duration, moment, one_line, padded, parse_since, visible_json
from scenarios.text import visible


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


def test_a_span_is_counted_back_from_now() -> None:
    assert [parse_since(text, 10_000.0) for text in ("30s", "10m", "2h", "1.5 m")] == [9970, 9400, 2800, 9910]


def test_an_iso_time_is_local_unless_it_says_otherwise() -> None:
    there = datetime(2026, 1, 31, 14, 5, tzinfo=UTC).timestamp()
    assert parse_since("2026-01-31T14:05Z", 0) == there
    assert parse_since("2026-01-31 15:05+01:00", 0) == there
    assert parse_since("2026-01-31T14:05", 0) == datetime(2026, 1, 31, 14, 5).timestamp()
    assert moment(there, timezone(timedelta(hours=2))).hour == 16


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "5w", "2026-13-01", "-5m"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"10m.*ISO time such as 2026"):
        parse_since(text, 0)
