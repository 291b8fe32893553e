"""What an agent's own messages come to before the LLM gets them, and what is found lost in them."""

from __future__ import annotations

from typing import Any

import pytest
from support.own_history import (
    QUESTIONS,
    SYSTEM,
    Message,
    answer,
    calling,
    entry,
    is_acceptable,
    messages,
    now,
    prompt,
    says,
    sent,
    spoken,
    step,
    told,
    turn,
    user,
)

from proxy.live_blocks import NO_RESULT
from proxy.live_history import Finding, Sent

# The user's words


def test_each_numbered_prompt_gets_the_words_of_its_turn_and_the_system_prompt_stays() -> None:
    own = [SYSTEM, prompt(1), answer(1), prompt(2), answer(2), user("Ask: [[next-user-turn 3]]!")]
    assert sent(own, turn(1), turn(2), now(3)) == Sent(
        (SYSTEM, spoken(1), answer(1), spoken(2), answer(2), user(f"Ask: {QUESTIONS[2]}!")),
        ("user_turn",),
        (),
    )


def test_a_prompt_may_stand_twice_in_a_message_and_in_content_parts() -> None:
    parts = [
        {"type": "text", "text": "Q: [[next-user-turn 1]] / [[next-user-turn 1]]"},
        {"type": "image_url"},
    ]
    filled = [{"type": "text", "text": f"Q: {QUESTIONS[0]} / {QUESTIONS[0]}"}, {"type": "image_url"}]
    assert messages([user(parts)], now(1)) == [user(filled)]


def test_prompts_without_a_number_count_back_from_the_last() -> None:
    bare = user("[[next-user-turn]]")
    turns = [turn(n, template="[[next-user-turn]]") for n in (1, 2)]
    own = [bare, answer(2), user("A note."), bare]
    assert messages(own, *turns, now(3)) == [spoken(2), answer(2), user("A note."), spoken(3)]


def test_a_message_that_quotes_earlier_prompts_is_of_the_latest_turn_in_it() -> None:
    own = [user("Now: [[next-user-turn 2]]\nBefore: [[next-user-turn 1]] A lamp costs 5.")]
    assert sent(own, turn(1, *step("a")), now(2)) == Sent(
        (user(f"Now: {QUESTIONS[1]}\nBefore: {QUESTIONS[0]} A lamp costs 5."),), ("user_turn",), ()
    )


def test_more_bare_prompts_than_turns_are_repeats_of_the_first() -> None:
    bare = user("[[next-user-turn]]")
    assert messages([bare, bare, answer(1), bare], turn(1), now(2)) == [spoken(1), answer(1), spoken(2)]


def test_a_bare_prompt_is_of_the_turn_whose_calls_follow() -> None:
    bare = user("[[next-user-turn]]")
    turns = [turn(1, *step("a"), handed=["a"]), turn(2), now(3)]
    own = [bare, *step("a"), answer(1), bare]
    assert messages(own, *turns) == [spoken(1), *step("a"), answer(1), spoken(3)]


def test_a_text_of_the_agents_own_is_known_by_what_it_sent_at_first() -> None:
    """Content parts or a string, and a fixed text that is the same in each turn."""
    turns = [turn(n, template="Go on.") for n in (1, 2)]
    own = [user("Go on."), answer(1), user([{"type": "text", "text": "Go on."}]), answer(2), user("Go on.")]
    assert messages(own, *turns, now(3, template="Go on.")) == [
        spoken(1),
        answer(1),
        user([{"type": "text", "text": QUESTIONS[1]}]),
        answer(2),
        spoken(3),
    ]


def test_words_that_the_agent_knew_are_found_in_whatever_it_puts_around_them() -> None:
    """`drive --inject driver` gives the agent the words themselves."""
    turns = [turn(1, *step("a"), template=QUESTIONS[0]), now(2, template=QUESTIONS[1])]
    own = [user(f"Earlier: {QUESTIONS[0]}"), answer(1), user(f"<q>{QUESTIONS[1]}</q>")]
    assert sent(own, *turns) == Sent((own[0], *step("a"), *own[1:]), ("hidden_steps",), ())


@pytest.mark.parametrize(
    "text",
    ["Now it's time you MUST give your absolute best final answer.", "Observation:\n[5]", "Go on.", ""],
)
def test_other_user_messages_stay(text: str) -> None:
    own = [user(text), prompt(1), user(text)]
    assert messages(own, now(1)) == [user(text), spoken(1), user(text)]


def test_a_task_appended_to_an_observation_is_the_turn() -> None:
    """As smolagents sends it; its calls are text, and the answer stands in one of them."""
    call = says("Calling tools:\n[{'name': 'final_answer', 'arguments': {'answer': 'Two cost\\n10.'}}]")
    own = [prompt(2), call, user("Observation:\nTwo cost\n10.\nNew task:\n[[next-user-turn 3]]")]
    assert sent(own, turn(2, *step("a")), now(3)) == Sent(
        (spoken(2), *step("a"), call, user(f"Observation:\nTwo cost\n10.\nNew task:\n{QUESTIONS[2]}")),
        ("hidden_steps", "user_turn"),
        (),
    )


def test_a_lost_message_of_the_current_turn_is_put_back_at_the_end() -> None:
    assert sent([SYSTEM, prompt(1), answer(1)], turn(1), now(2, *step("a"))) == Sent(
        (SYSTEM, spoken(1), answer(1), spoken(2), *step("a")),
        ("hidden_steps", "user_turn"),
        (Finding(2, "lost_turn", "what the user said is not in the request"),),
    )


def test_a_lost_message_of_the_current_turn_is_put_back_before_its_calls() -> None:
    own = [prompt(1), answer(1), *step("a")]
    turns = (turn(1), now(2, *step("a"), handed=["a"]))
    assert messages(own, *turns) == [spoken(1), answer(1), spoken(2), *step("a")]


def test_a_user_message_repeated_before_a_result_is_left_out() -> None:
    """As Semantic Kernel sends it, also without a number: it is no turn of its own."""
    for it in (prompt(2), user("[[next-user-turn]]")):
        call, result = step("a")
        own = [prompt(1), answer(1), it, call, it, told("a", "mine")]
        assert sent(own, turn(1), now(2, call, result, handed=["a"])) == Sent(
            (spoken(1), answer(1), spoken(2), call, result),
            ("dropped_repeat", "tool_result", "user_turn"),
            (),
        )


# Steps that the agent could not see


def test_hidden_steps_go_before_the_answer_and_those_of_the_current_turn_to_the_end() -> None:
    own = [prompt(1), user("Be brief."), answer(1), prompt(2), user("Be brief.")]
    turns = (turn(1, *step("a", "b"), *step("c")), now(2, *step("d")))
    assert messages(own, *turns) == [
        spoken(1),
        user("Be brief."),
        *step("a", "b"),
        *step("c"),
        answer(1),
        spoken(2),
        user("Be brief."),
        *step("d"),
    ]


def test_without_the_answer_hidden_steps_follow_the_users_message() -> None:
    own = [prompt(1), user("Be brief."), prompt(2)]
    assert sent(own, turn(1, *step("a")), now(2)) == Sent(
        (spoken(1), *step("a"), user("Be brief."), spoken(2)),
        ("hidden_steps", "user_turn"),
        (Finding(1, "lost_answer", "not in the request: A lamp costs 5."),),
    )


def test_hidden_steps_stand_around_the_calls_that_the_agent_was_handed() -> None:
    handoff = step("h", name="transfer_to_sales")
    record = (*step("a"), *handoff, *step("b"))
    own = [prompt(1), *handoff, answer(1), prompt(2), *step("i"), user("Note.")]
    turns = (turn(1, *record, handed=["h"]), now(2, *step("c"), *step("i"), *step("d"), handed=["i"]))
    expected = [spoken(1), *record, answer(1), spoken(2), *step("c"), *step("i"), user("Note."), *step("d")]
    assert messages(own, *turns) == expected


def test_hidden_calls_beside_one_that_was_handed_are_put_back_into_its_message() -> None:
    both = (calling(entry("a"), entry("h", "transfer_to_sales")), told("a", "5"))
    own = [prompt(1), calling(entry("h", "transfer_to_sales")), told("h", "Hello from sales.")]
    assert messages(own, now(1, *both, handed=["h"])) == [
        spoken(1),
        both[0],
        told("h", "Hello from sales."),
        told("a", "5"),
    ]


def test_what_is_there_already_is_not_put_back_again() -> None:
    turns = (turn(1, *step("a")), now(2, *step("b")))
    once = messages([SYSTEM, prompt(1), answer(1), prompt(2)], *turns)
    assert sent(once, *turns) == Sent(tuple(once), (), ())


def test_steps_of_a_turn_that_the_agent_forgot_stay_forgotten() -> None:
    turns = (turn(1, *step("a")), turn(2, *step("b")), now(3, *step("c")))
    own = [prompt(2), answer(2), prompt(3)]
    assert messages(own, *turns) == [spoken(2), *step("b"), answer(2), spoken(3), *step("c")]


# Calls and results


def test_the_agents_ids_and_results_become_those_of_the_record() -> None:
    own = [prompt(1), calling(entry("x"), entry("y")), told("y", "mine"), told("x", [{"type": "text"}])]
    turns = now(1, *step("a", "b"), handed=["a", "b"])
    assert sent(own, turns, x="a", y="b") == Sent(
        (spoken(1), step("a", "b")[0], told("b", "b: 5"), told("a", [{"type": "text", "text": "a: 5"}])),
        ("tool_result", "user_turn"),
        (),
    )


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ('{"result": "mine"}', "a: 5"),
        (None, "a: 5"),
        ([{"type": "input_text", "text": "m"}, {"type": "x"}], [{"type": "input_text", "text": "a: 5"}]),
        ([{"type": "text", "text": "m", "cache": 1}, "odd"], [{"type": "text", "text": "a: 5"}]),
        ([], [{"type": "text", "text": "a: 5"}]),
    ],
)
def test_whatever_a_tool_said_the_observation_takes_its_place(content: Any, kept: Any) -> None:
    own = [prompt(1), step("a")[0], {**told("a", content), "name": "price"}]
    assert messages(own, now(1, *step("a"), handed=["a"]))[-1] == {**told("a", kept), "name": "price"}


def test_of_several_results_the_first_is_kept_and_missing_ones_are_added_behind() -> None:
    own = [prompt(1), step("a", "b", "c")[0], told("b", "1"), told("b", "2"), told("z", "3"), user("Note.")]
    result = sent(own, now(1, *step("a", "b", "c"), handed=["a", "b", "c"]))
    assert result.messages[2:] == (told("b", "b: 5"), told("a", "a: 5"), told("c", "c: 5"), user("Note."))
    assert result.changes == ("added_result", "dropped_result", "tool_result", "user_turn")


def test_results_come_right_behind_their_calls_wherever_they_stood() -> None:
    own = [prompt(1), step("a")[0], step("b")[0], user("Note."), told("b", ""), told("a", "")]
    expected = [spoken(1), *step("a"), *step("b"), user("Note.")]
    assert messages(own, now(1, *step("a"), *step("b"), handed=["a", "b"])) == expected


def test_calls_of_the_agents_own_stay_with_its_results() -> None:
    handoff = calling(entry("h", "transfer_to_sales"))
    own = [prompt(1), handoff, told("h", "Hello."), handoff, told("h", "Hello again."), calling(entry("i"))]
    assert sent(own, now(1)) == Sent(
        (spoken(1), *own[1:], told("i", NO_RESULT)), ("added_result", "user_turn"), ()
    )


def test_a_call_that_is_sent_twice_is_sent_once() -> None:
    own = [prompt(1), *step("a"), calling(entry("a"), entry("b")), told("a", "a: 5"), told("b", "b: 5")]
    record = (*step("a"), *step("b"))
    result = sent([*own, *step("b")], now(1, *record, handed=["a", "b"]))
    assert result.messages == (spoken(1), *record)
    assert result.changes == ("dropped_repeat", "dropped_result", "user_turn")


def test_keys_that_providers_refuse_are_taken_off() -> None:
    part = {"type": "text", "text": "Hi.", "role": "assistant", "annotations": []}
    extra: Message = dict.fromkeys(("annotations", "refusal", "audio", "function_call", "parsed"))
    own = [
        {**says([part], **extra), "tool_calls": None},
        {**prompt(1), "cache_breakpoint": True, "name": "user"},
        {**calling(entry("a")), **extra, "reasoning_content": "Hm."},
    ]
    result = sent(own, now(1, *step("a"), handed=["a"]))
    assert result.messages[:3] == (
        says([{"type": "text", "text": "Hi."}]),
        {**spoken(1), "name": "user"},
        calling(entry("a"), reasoning_content="Hm."),
    )
    assert "message_keys" in result.changes


@pytest.mark.parametrize("role", ["system", "user", "odd", "tool"])
def test_a_message_that_is_not_the_assistants_has_no_calls(role: str) -> None:
    """Providers refuse them there, and they have no results."""
    calls: Message = {"tool_calls": [entry("z"), {"id": []}, 5], "function_call": {"name": "price"}}
    other: Message = {"role": role, "content": "a: 5", **({"tool_call_id": "a"} if role == "tool" else {})}
    own = [prompt(1), step("a")[0], {**other, **calls}]
    result = sent(own if role != "system" else own[::-1], now(1, *step("a"), handed=["a"]))
    assert "dropped_call" in result.changes
    assert other in result.messages
    assert is_acceptable(result.messages)


@pytest.mark.parametrize("call_id", [None, "", 5, [], {}, [["a"]]])
def test_a_call_whose_id_is_no_text_is_left_out_with_its_result(call_id: Any) -> None:
    calls = calling({**entry("x"), "id": call_id}, entry("a"), {"function": {"name": "price"}})
    own = [prompt(1), calls, told(call_id, "mine"), told("a", "a: 5")]
    assert sent(own, now(1, *step("a"), handed=["a"])) == Sent(
        (spoken(1), *step("a")), ("dropped_call", "dropped_result", "user_turn"), ()
    )


def test_a_function_without_a_name_has_a_result_without_one() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "", "arguments": "{}"}}
    own = [prompt(1), call, {"role": "function", "name": ["odd"], "content": "5"}]
    assert messages(own, now(1))[2] == {"role": "function", "name": "", "content": "5"}


def test_whether_content_is_null_or_absent_beside_calls_is_kept() -> None:
    absent = {key: value for key, value in calling(entry("a")).items() if key != "content"}
    assert messages([prompt(1), absent], now(1, *step("a"), handed=["a"]))[1] == absent


@pytest.mark.parametrize("empty", [None, "", [], [{"type": "text", "text": ""}]])
def test_an_assistant_message_with_nothing_in_it_is_left_out(empty: Any) -> None:
    """haystack sends one in place of a call that it could not read."""
    own = [prompt(1), {**says(empty), "tool_calls": []}]
    assert sent(own, now(1, *step("a"), handed=["a"])) == Sent(
        (spoken(1),),
        ("dropped_empty", "user_turn"),
        (Finding(1, "lost_calls", "1 of 1 calls are not in the request: price"),),
    )


def test_the_dialect_of_functions_is_matched_by_name() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "price", "arguments": "{}"}}
    own = [prompt(1), call, {"role": "function", "name": "price", "content": "mine"}, call]
    record = (*step("a"), *step("b"))
    assert messages(own, now(1, *record, handed=["a", "b"])) == [
        spoken(1),
        call,
        {"role": "function", "name": "price", "content": "a: 5"},
        call,
        {"role": "function", "name": "price", "content": "b: 5"},
    ]
