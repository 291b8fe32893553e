"""Numbers that a text spells out, in English and Chinese: `two hundred`, `twenty-five`, `二十五`, `三百`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
    *("seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_WORDS = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **{word: value for value, word in enumerate(_ORDINALS, start=2)},
    "twice": 2,
    "thrice": 3,
    "dozen": 12,
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
NUMBER_WORD = re.compile(rf"\b(?:{'|'.join((*_WORDS, *_SCALES))})\b")
"""An English word for a number, in a text in normal form."""
_BETWEEN = re.compile(r"(?: |-| and )")

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = "万亿"
_COUNTED = "个张份人天月日号点次件位间晚周年页条本杯元块角分倍名台部辆层楼课章节季小岁期"
_RUN = re.compile(r"(?P<before>第|星期|周|礼拜)?(?P<run>[零〇一二两三四五六七八九十百千万亿]+)(?P<after>.)?")
_MOST_BITS = 14_000
"""Python refuses to write, and to read, integers of more than 4300 digits."""
_HALF = re.compile(r"半|\bhalf\b")
_NO_NUMBER = re.compile("万一|千万(?=[别不要小记])|十分(?!钟|之)|百分之|千分之")
"""Words with a sign of a number in them that count nothing."""


def spelt_numbers(text: str) -> list[str]:
    """The values of all numbers that are spelt out in a text in normal form, as digits.

    "one" and 一 alone seldom count: they are numbers only within a larger one, and 一 before what is
    counted or after what numbers (第一, 星期一).
    """
    whole = [*map(_written, _english(text)), *_chinese(_NO_NUMBER.sub(" ", text))]
    return whole + ["0.5"] * len(_HALF.findall(text))


def _written(value: int) -> str:
    """As digits; what a word makes that is said over and over in hexadecimal, which has no limit."""
    return str(value) if value.bit_length() <= _MOST_BITS else hex(value)


def _english(text: str) -> Iterator[int]:
    group: list[str] = []
    end = 0
    for match in NUMBER_WORD.finditer(text):
        if group and not _BETWEEN.fullmatch(text[end : match.start()]):
            yield from _group_values(group)
            group = []
        group.append(match[0])
        end = match.end()
    yield from _group_values(group)


def _group_values(words: list[str]) -> Iterator[int]:
    """The values of words that follow one another: those of "two hundred five" are one number."""
    total, part, last = 0, 0, 0
    started = False
    for word in words:
        if word in _SCALES:
            scale = _SCALES[word]
            part = (part or 1) * scale
            if scale > 100:
                total, part = total + part, 0
            last = scale
        else:
            value = _WORDS[word]
            if started and not (last >= 100 or (20 <= last < 100 and value < 10)):
                yield total + part
                total, part = 0, 0
            part += value
            last = value
        started = True
    if started and (len(words) > 1 or words[0] != "one"):
        yield total + part


def _chinese(text: str) -> Iterator[str]:
    for match in _RUN.finditer(text):
        run = match["run"]
        alone = run == "一" and not match["before"] and (match["after"] or " ") not in _COUNTED
        if not alone:
            yield _run_value(run)


def _run_value(run: str) -> str:
    if not any(sign in _UNITS or sign in _MYRIADS for sign in run):
        return "".join(str(_DIGITS[sign]) for sign in run).lstrip("0") or "0"
    total = section = digit = 0
    for sign in run:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _UNITS:
            section += (digit or 1) * _UNITS[sign]
            digit = 0
        elif sign == "万":
            total += (section + digit or 1) * 10_000
            section = digit = 0
        else:
            total = (total + section + digit or 1) * 100_000_000
            section = digit = 0
    return _written(total + section + digit)
