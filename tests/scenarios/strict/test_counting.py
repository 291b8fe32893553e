"""Numbers that are spelt out."""

from __future__ import annotations

import pytest

from scenarios.strict.counting import spelt_numbers


@pytest.mark.parametrize(
    "text, values",
    [
        ("two rooms and three beds", ["2", "3"]),
        ("two, three and four", ["2", "3", "4"]),
        ("twenty-five", ["25"]),
        ("twenty one two", ["21", "2"]),
        ("two hundred and five rooms", ["205"]),
        ("one thousand two hundred", ["1200"]),
        ("five hundred thousand", ["500000"]),
        ("two million three hundred", ["2000300"]),
        ("a hundred", ["100"]),
        ("one hundred", ["100"]),
        ("twenty ten", ["20", "10"]),
        ("sixteen, seventeen, nineteen", ["16", "17", "19"]),
        ("the second item, twice", ["2", "2"]),
        ("one room, first of all", []),
        ("someone often wrote tents", []),
        ("half past eight", ["8", "0.5"]),
    ],
)
def test_english_words_that_follow_one_another_are_one_number(text: str, values: list[str]) -> None:
    assert spelt_numbers(text) == values


@pytest.mark.parametrize(
    "text, values",
    [
        ("预订二十个房间", ["20"]),
        ("预订三十五个房间", ["35"]),
        ("预订十二个房间", ["12"]),
        ("转账一百元", ["100"]),
        ("两百元", ["200"]),
        ("三百二十五元", ["325"]),
        ("万元", ["10000"]),
        ("亿元", ["100000000"]),
        ("两亿", ["200000000"]),
        ("三十亿", ["3000000000"]),
        ("三万五千", ["35000"]),
        ("一亿二千万", ["120000000"]),
        ("二〇二四", ["2024"]),
        ("三块钱的两倍", ["3", "2"]),
        ("星期一和第二季度", ["1", "2"]),
        ("一个人一起去", ["1"]),
        ("一个人", ["1"]),
        ("一起去", []),
        ("八点半", ["8", "0.5"]),
        ("万一十分好就千万别去", []),
        ("十分钟", ["10"]),
        ("百分之二十", ["20"]),
    ],
)
def test_chinese_numerals_have_their_value(text: str, values: list[str]) -> None:
    assert spelt_numbers(text) == values


def test_digits_without_an_end_are_one_number() -> None:
    assert spelt_numbers("零" + "二" * 5_000) == ["2" * 5_000]


@pytest.mark.parametrize("word", ["hundred ", "亿"])
def test_words_said_over_and_over_make_numbers_that_are_told_apart(word: str) -> None:
    often, oftener = (spelt_numbers((word * count).strip()) for count in (5_000, 5_001))
    assert (len(often), often == oftener) == (1, False)
