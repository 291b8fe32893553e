from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.sentinel import fill, find, find_words, prompt


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@given(st.integers(0, 999_999_999))
def test_a_numbered_prompt_is_found_with_its_number(turn: int) -> None:
    message = user(prompt(turn))
    found = find([message])
    assert found is not None
    assert (found.message, found.turn, found.session) == (message, turn, None)


@pytest.mark.parametrize(
    ("text", "turn", "session"),
    [
        ("[[next-user-turn]]", None, None),
        ("[[next-user-turn 12]]", 12, None),
        ("[[next-user-turn session=shop.e2]]", None, "shop.e2"),
        ("[[next-user-turn 3 session=a_b-c~1.e2]]", 3, "a_b-c~1.e2"),
        ("User request: [[next-user-turn  3 ]]\nAnswer briefly.", 3, None),
    ],
)
def test_a_sentinel_may_have_a_number_and_a_session(text: str, turn: int | None, session: str | None) -> None:
    found = find([user(text)])
    assert found is not None
    assert (found.turn, found.session) == (turn, session)


@pytest.mark.parametrize(
    "text",
    [
        "next-user-turn 1",
        "[[next-user-turn x]]",
        "[[next-user-turn1]]",
        "[[next-user-turn 1 session=a b]]",
        "[next-user-turn 1]",
        "[[next-user-turn 9999999999]]",
        "",
    ],
)
def test_what_is_not_quite_a_sentinel_is_none(text: str) -> None:
    assert find([user(text)]) is None


def test_the_last_user_message_with_a_sentinel_is_the_prompt() -> None:
    first, second = user("[[next-user-turn 1]]"), user("[[next-user-turn 2]]")
    found = find([first, {"role": "assistant", "content": "Yes."}, second, user("no prompt")])
    assert found is not None
    assert found.message is second


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool", None])
def test_a_sentinel_quoted_by_anybody_but_the_user_is_no_prompt(role: str | None) -> None:
    assert find([{"role": role, "content": "[[next-user-turn 1]]"}]) is None


def test_a_sentinel_is_found_in_content_parts() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "[[next-user-turn 4]]"},
    ]
    found = find([user(parts)])
    assert found is not None
    assert found.turn == 4


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(),
            st.dictionaries(st.sampled_from(["role", "content"]), st.sampled_from(["user", None, 5, [1]])),
        )
    )
)
def test_no_list_of_messages_is_too_odd_to_be_searched(messages: list[Any]) -> None:
    assert find(messages) is None


@given(st.text())
def test_the_words_take_the_place_of_the_sentinel_as_they_are(words: str) -> None:
    filled = fill(user("<q>[[next-user-turn 1]]</q> [[next-user-turn 1]]"), words)
    assert filled == user(f"<q>{words}</q> {words}")


def test_only_text_parts_are_filled_and_all_else_is_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "http://x/[[next-user-turn 1]].png"}}
    marked = {"type": "text", "text": "Q: [[next-user-turn 1]]", "cache_control": {"type": "ephemeral"}}
    message = {"role": "user", "name": "ann", "content": [image, marked, "odd"]}
    assert fill(message, "Hello") == {
        "role": "user",
        "name": "ann",
        "content": [image, {**marked, "text": "Q: Hello"}, "odd"],
    }
    assert marked["text"] == "Q: [[next-user-turn 1]]"


# The words themselves

BLANKS = st.text(st.sampled_from(" \t\n\r\u00a0\u2028\u3000"), min_size=1, max_size=3)
PARTS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1)


@given(st.lists(st.tuples(PARTS, BLANKS, BLANKS), min_size=1), st.integers(1, 99))
def test_words_are_found_whatever_became_of_their_whitespace_and_get_it_back(
    parts: list[tuple[str, str, str]], turn: int
) -> None:
    words = "".join(part + blanks for part, blanks, _ in parts).strip()
    changed = "".join(part + blanks for part, _, blanks in parts).strip()
    message = user(f"<{changed}>")
    found = find_words([message], words, turn)
    assert found is not None
    assert (found.message, found.turn, found.session) == (message, turn, None)
    assert fill(message, words) == user(f"<{words}>")


@pytest.mark.parametrize(
    ("words", "text", "there"),
    [
        ("lamp", "a lamp.", True),
        ("lamp", "lamps", False),
        ("lamp", "clamp", False),
        ("lamp", "lamp2", False),
        ("lamp", "Lamp", False),
        ("a lamp", "a big lamp", False),
        ("(lamp)", "x(lamp)x", True),
        # These scripts put no spaces between words.
        ("天气", "问题：天气怎么样", True),
        ("天気はどう", "質問天気はどうですか", True),
        ("lamp", "买lamp吧", True),
        ("", "anything", False),
        (" \n", " \n", False),
    ],
)
def test_only_all_of_the_words_are_the_words(words: str, text: str, there: bool) -> None:
    assert (find_words([user(text)], words, 1) is not None) is there


ANSWER = {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    ("messages", "at"),
    [
        ([user("Hello"), ANSWER, user("other")], None),
        ([user("Hello"), ANSWER, user("Hello"), user("other")], 2),
        ([user("Hello"), user("Hello")], 1),
        # Nothing of the user's follows the last answer: an agent goes on with its turn.
        ([user("Hello"), ANSWER, {"role": "tool", "content": "Hello"}], 0),
        ([user("Hello"), ANSWER, user("other"), ANSWER], None),
        ([{"role": "system", "content": "Hello"}, user("other")], None),
        ([{"role": "developer", "content": "Hello"}], None),
        ([user([{"type": "text", "text": "<Hello>"}, {"type": "image_url"}])], 0),
    ],
)
def test_only_what_the_user_says_now_counts(messages: list[Any], at: int | None) -> None:
    found = find_words(messages, "Hello", 1)
    assert (found and found.message) is (None if at is None else messages[at])


def test_words_of_earlier_turns_get_their_whitespace_back_too() -> None:
    flat = user("User: one two\nBot: Yes.\nUser: three  four five")
    earlier = {1: "one\n\ntwo", 2: "four\nfive"}
    assert fill(flat, "three\nfour\nfive", earlier) == user(
        "User: one\n\ntwo\nBot: Yes.\nUser: three\nfour\nfive"
    )


def test_beside_a_sentinel_nothing_is_taken_for_the_words() -> None:
    assert fill(user("a  b: [[next-user-turn 1]]"), "a b") == user("a  b: a b")


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(),
            st.dictionaries(st.sampled_from(["role", "content"]), st.sampled_from(["user", None, 5, [1]])),
        )
    )
)
def test_no_list_of_messages_is_too_odd_to_be_searched_for_words(messages: list[Any]) -> None:
    assert find_words(messages, "words", 1) is None
