from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.log.chains import (
    LINK_CHARS,
    PLACE_CHARS,
    TOO_DEEP,
    chain,
    content_hash,
    json_text,
    link_hash,
    quick_json,
    storable,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_a_value_is_read_back_as_it_was_written(value: Any) -> None:
    assert json.loads(json_text(value)) == value


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_even_with_lone_surrogates_can_be_stored(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        written = json_text(text)
        stored, valid = connection.execute("SELECT ?, json_valid(?)", (written, written)).fetchone()

    assert json.loads(stored) == text
    assert valid == 1


def test_text_is_plain_and_keys_stay_in_order() -> None:
    assert json_text({"z": "naïve 你好", "a": [1, None]}) == '{"z":"naïve 你好","a":[1,null]}'


def test_numbers_that_json_lacks_become_strings() -> None:
    value = {"a": [float("nan"), float("inf")], "b": (-float("inf"), 1.5)}

    assert json_text(value) == '{"a":["NaN","Infinity"],"b":["-Infinity",1.5]}'


def test_integers_of_any_size_stay_exact() -> None:
    assert json_text(2**80) == "1208925819614629174706176"


def test_a_bottomless_value_does_not_raise() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    assert json_text(value) == TOO_DEEP
    while value:  # one level at a time: freeing it at once would be as deep
        value = value.pop()


def test_a_lone_surrogate_in_a_plain_text_is_spelled_out() -> None:
    assert storable('{"a": "\ud83d"}') == '{"a": "\\ud83d"}'
    assert storable("naïve 😀") == "naïve 😀"


def test_a_hash_is_the_first_132_bits_of_the_sha256_in_base64() -> None:
    digest = hashlib.sha256('"ä"'.encode()).digest()
    assert content_hash('"ä"') == base64.urlsafe_b64encode(digest).decode()[:22]


def test_a_longer_history_continues_the_chain_of_the_shorter_one() -> None:
    short, long = chain(["m1", "m2"]), chain(["m1", "m2", "m3"])

    assert long[:2] == short
    assert [(link.parent, link.message, link.position) for link in long] == [
        (None, "m1", 0),
        (short[0].hash, "m2", 1),
        (short[1].hash, "m3", 2),
    ]


def test_the_same_message_at_another_place_is_another_link() -> None:
    links = chain(["m", "m", "m"])

    assert len({link.hash for link in links}) == 3


@pytest.mark.parametrize("other", [("p", "n"), ("q", "m"), (None, "m")])
def test_a_link_depends_on_parent_and_message(other: tuple[str | None, str]) -> None:
    assert link_hash("p", "m", 2) != link_hash(*other, 2)


def test_links_after_the_second_begin_as_the_one_before_does() -> None:
    first, *others = (link.hash for link in chain(map(str, range(50))))

    assert {len(it) for it in (first, *others)} == {LINK_CHARS}
    assert {it[:PLACE_CHARS] for it in others} == {others[0][:PLACE_CHARS]}
    assert first[:PLACE_CHARS] != others[0][:PLACE_CHARS]
    assert len({it[PLACE_CHARS:] for it in others}) == 49


@pytest.mark.parametrize(
    "value",
    [float("nan"), [1, float("nan"), None], {"a": float("inf")}, -float("inf"), 2**64, "\ud800", {1: 2}],
)
def test_what_could_be_taken_for_something_else_is_not_written_quickly(value: Any) -> None:
    assert quick_json(value) is None


@pytest.mark.parametrize(
    "value", ["null", "a null", {"type": "null"}, ["null"], {"null": 1}, "[null]x", 'x": null']
)
def test_a_text_about_null_is_written_as_what_it_is(value: Any) -> None:
    assert json.loads(json_text(value)) == value


@given(json_values)
def test_what_is_written_quickly_is_as_json_writes_it(value: Any) -> None:
    quick = quick_json(value)
    if quick is not None and not _has_float(value):
        assert quick.decode() == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _has_float(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, float) or any(map(_has_float, inner))


def test_an_empty_history_has_no_links() -> None:
    assert chain([]) == ()
