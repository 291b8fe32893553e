from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.sentinel import fill, find, prompt


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
