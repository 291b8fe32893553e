"""What others wrote, fit to be shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.text import clip, counted, visible, width

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
BIDI = "a\u202egpj.exe\u2066"


def test_what_a_terminal_would_obey_is_spelt_out() -> None:
    assert visible(ESCAPE) == r"\x1b]0;owned\x07\x1b[2J"
    assert visible(BIDI) == r"a\u202egpj.exe\u2066"
    assert visible("\x9b31m\x7f\r\u2028\ud800\U000e0041") == r"\x9b31m\x7f\r\u2028\ud800\U000e0041"
    assert visible("a\nb\tc", keep="\n") == "a\nb\\tc"


def test_plain_words_of_any_script_stay_as_they_are() -> None:
    text = "Grüße, 你好, שלום, e\u0301, 👍, \\x1b"
    assert visible(text) == text


@given(st.text())
def test_visible_text_is_one_printable_line(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize("text", ["gpt-4o mini", "多工具", "Café", "Cafe\u0301", "a\\b"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("多工具", 6), ("Ａ", 2), ("e\u0301", 1), ("", 0)])
def test_width_counts_terminal_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(("text", "clipped"), [("abc", "abc"), ("abcdef", "abcdef"), ("abcdefg", "abc...")])
def test_a_long_text_is_clipped_and_shows_it(text: str, clipped: str) -> None:
    assert clip(text, 6) == clipped


def test_a_count_stands_with_its_noun() -> None:
    assert [counted(n, "task") for n in (0, 1, 2, 1234)] == ["0 tasks", "1 task", "2 tasks", "1,234 tasks"]
    assert [counted(n, "retry", "retries") for n in (1, 2)] == ["1 retry", "2 retries"]
