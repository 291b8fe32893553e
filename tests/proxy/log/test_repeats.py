from __future__ import annotations

from typing import Any

import pytest

from proxy.log.repeats import BRANCHES, CONVERSATIONS, TEXT_BYTES, TEXTS, Histories, Texts


def said(*texts: Any) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def remembered(histories: Histories, messages: list[Any]) -> None:
    looked = histories.look(messages)
    new = range(looked.known.count if looked.known else 0, len(messages))
    histories.remember(looked, messages, [f"tip of {place + 1}" for place in new])


def known(histories: Histories, messages: list[Any]) -> tuple[int, str] | None:
    found = histories.look(messages).known
    return None if found is None else (found.count, found.tip)


def test_a_history_is_known_by_the_longest_one_it_begins_with() -> None:
    histories = Histories()
    for length in (1, 3, 4):
        remembered(histories, said(*"abcd"[:length]))

    assert known(histories, said(*"abcde")) == (4, "tip of 4")
    assert known(histories, said(*"abcd")) == (4, "tip of 4")
    assert known(histories, said(*"abcx")) == (3, "tip of 3")
    assert known(histories, said(*"abx")) is None
    assert known(histories, said("x")) is None


@pytest.mark.parametrize("content", ["text", None, 1])
def test_where_histories_part_is_known_once_one_of_them_was_new(content: Any) -> None:
    histories, begun = Histories(), said("begin", "go", *"abcd", content)
    remembered(histories, [*begun, *said("x", "y")])

    assert known(histories, [*begun, *said("other", "ways")]) == (7, "tip of 7")
    for number in range(2 * BRANCHES):
        remembered(histories, [*begun, *said(number, "on")])
        assert known(histories, [*begun, *said("other", "ways")]) == (7, "tip of 7")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (None, float("nan")),
        ("1", 1),
        ("a", "a\x00"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([], [[]]),
        (2**70, 2**70 + 1),
        ("\ud800", "\ud801"),
    ],
)
def test_values_that_are_written_differently_are_not_taken_for_each_other(one: Any, other: Any) -> None:
    for first, second in ((one, other), (other, one)):
        histories, texts = Histories(), Texts()
        remembered(histories, said("begin", "go", first))
        assert known(histories, said("begin", "go", first, "on")) == (3, "tip of 3")
        assert known(histories, said("begin", "go", second, "on")) is None
        assert (texts.made(first, repr), texts.made(second, repr)) == (repr(first), repr(second))


def test_a_number_that_goes_on_is_another_element() -> None:
    histories = Histories()
    remembered(histories, ["a", "b", 1])

    assert known(histories, ["a", "b", 12]) is None
    assert known(histories, ["a", "b", 1, 2]) == (3, "tip of 3")


def test_nothing_is_known_of_what_is_nested_too_deeply_to_be_told_apart() -> None:
    histories, texts, deep = Histories(), Texts(), nested(3000)
    remembered(histories, deep)
    assert known(histories, deep) is None
    assert [texts.made(deep, len), texts.made(deep, lambda it: "again")] == [1, "again"]


def test_what_was_made_of_a_value_is_made_once_until_it_is_forgotten() -> None:
    texts, made = Texts(), []

    def make(value: Any) -> str:
        made.append(value)
        return str(value)

    assert [texts.made({"a": 1}, make), texts.made({"a": 1}, make)] == ["{'a': 1}"] * 2
    assert made == [{"a": 1}]
    texts.clear()
    texts.made({"a": 1}, make)
    assert made == [{"a": 1}] * 2


def test_values_of_one_size_with_the_same_ends_are_told_apart() -> None:
    texts = Texts()
    values = ["x" * 200 + middle + "x" * 200 for middle in "abab"]
    assert [texts.made(value, str) for value in values] == values
    long = ["x" * TEXT_BYTES + middle for middle in "aba"]
    assert [texts.made(value, str) for value in long] == long


def test_only_the_latest_are_remembered() -> None:
    histories, texts = Histories(), Texts()
    for number in range(CONVERSATIONS + 1):
        remembered(histories, said("a", number))
    assert [known(histories, said("a", it)) is None for it in (0, 1, CONVERSATIONS)] == [True, False, False]

    for number in range(BRANCHES + 1):
        remembered(histories, said("a", "b", number))
    assert [known(histories, said("a", "b", it)) is None for it in (0, 1, BRANCHES)] == [True, False, False]

    for number in range(TEXTS + 1):
        texts.made(number, str)
    assert [texts.made(it, lambda _: "made anew") for it in (1, 0)] == ["1", "made anew"]
