from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.text import width
from scoring.output.wrapping import LEAST, folded, wrapped


def test_a_line_that_fits_is_left_as_it_is() -> None:
    assert folded(["  a  b ", ""], 7) == ["  a  b ", ""]


def test_a_line_goes_on_deeper_than_it_began_and_a_sentence_where_it_began() -> None:
    text = "one two three four five six seven"
    assert folded([f"  {text}"], 24) == ["  one two three four", "    five six seven"]
    assert wrapped(text, 24) == ["one two three four five", "six seven"]


def test_a_word_without_room_is_broken_anywhere() -> None:
    assert wrapped("a" * 50, 20) == ["a" * 20, "a" * 20, "a" * 10]


def test_a_number_and_its_sign_stay_together() -> None:
    assert wrapped("it is as much as 99.5 % of it", 22) == ["it is as much as", "99.5 % of it"]


def test_wide_characters_take_two_columns() -> None:
    assert wrapped("京" * 15, 20) == ["京" * 10, "京" * 5]


@given(st.text("ab 京%\u0301", max_size=200), st.integers(0, 60))
def test_nothing_but_blanks_is_lost_and_nothing_is_too_wide(text: str, columns: int) -> None:
    for pieces in (folded([text], columns), wrapped(text, columns)):
        assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
        indents = [len(piece) - len(piece.lstrip(" ")) for piece in pieces]
        assert all(
            width(piece) <= max(columns, indent + LEAST)
            for piece, indent in zip(pieces, indents, strict=True)
            if len(pieces) > 1
        )
