"""Colours, marks and columns, and what stands for them where a terminal has none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.terminal.environment import size_of, wants_color
from proxy.terminal.look import CODES, MARKS, Look
from scenarios.text import visible, width


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "choice", "environ", "wanted"),
    [
        (True, "auto", {}, True),
        (True, "auto", {"NO_COLOR": ""}, True),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (False, "auto", {}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {}, False),
    ],
)
def test_colours_are_where_they_are_wanted(
    terminal: bool, choice: str, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_color(Stream(terminal), choice, environ) is wanted


def test_what_is_no_terminal_has_80_columns_unless_the_environment_says_otherwise() -> None:
    assert size_of(Stream(False), {}) == (80, 24)
    assert size_of(Stream(True), {"COLUMNS": "132", "LINES": "50"}) == (132, 50)
    assert size_of(Stream(True), {"COLUMNS": "wide", "LINES": "-3"}) == (80, 24)


def test_every_mark_is_one_column_in_every_encoding() -> None:
    for encoding in ("utf-8", "ascii", "latin-1", "gbk"):
        look = Look(encoding=encoding)
        assert [width(look.mark(meaning)) for meaning in MARKS] == [1] * len(MARKS)
    plain = [Look(encoding="ascii").mark(meaning) for meaning in MARKS]
    assert all(mark.isascii() for mark in plain)
    assert len(set(plain)) == len(MARKS)


def test_marks_that_an_encoding_lacks_have_others_in_their_place() -> None:
    assert Look(encoding="ascii").held("✓✗ 3→5 … ×2 ⏎ ─") == "+x 3>5 ~ x2 | -"
    assert Look(encoding="latin-1").held("é ✓") == "é +"
    assert Look(encoding="ascii").held("é 图") == r"\xe9 \u56fe"
    assert Look(encoding="UTF-8").held("✓ 图") == "✓ 图"


def test_a_colour_is_put_around_a_text_and_around_no_blank() -> None:
    assert Look(color=True).paint("x", "bad") == "\x1b[31mx\x1b[0m"
    assert Look(color=True).paint(" ", "bad") == " "
    assert Look(color=True).paint("x", "") == "x"
    assert [Look().paint("x", meaning) for meaning in CODES] == ["x"] * len(CODES)


@given(st.text(), st.integers(0, 30), st.sampled_from(["utf-8", "ascii", "gbk"]))
def test_what_is_fitted_is_one_line_that_fits_and_is_obeyed_by_nothing(
    text: str, columns: int, encoding: str
) -> None:
    shown = Look(encoding=encoding).fit(text, columns)
    assert width(shown) <= columns
    assert visible(shown) == shown
    shown.encode(encoding)


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("图书馆", 6, "图书馆"),
        ("图书馆", 5, "图书…"),
        ("图书馆", 4, "图…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("a\nb", 5, "a ⏎ b"),
        ("\x1b[2J", 7, r"\x1b[2J"),
        ("\u202eabc", 8, r"\u202ea…"),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_by_columns_with_an_ellipsis_within_them(text: str, columns: int, shown: Any) -> None:
    assert Look().fit(text, columns) == shown
