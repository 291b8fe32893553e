"""What an agent's own messages come to before the LLM gets them, and what is found lost in them."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.findings import same_arguments
from proxy.live_blocks import NO_RESULT
from proxy.live_history import Finding, PlayedTurn, Sent, live_messages

Message = dict[str, Any]

SYSTEM = {"role": "system", "content": "You are asked with [[next-user-turn 1]] and the like."}
QUESTIONS = ("What does a lamp cost?", "And two of them?", "Thanks. Is it sunny?")
ANSWERS = ("A lamp costs 5.", "Two cost\n10.", "It's sunny — \U0001f31e.")


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def says(content: Any, **keys: Any) -> Message:
    return {"role": "assistant", "content": content, **keys}


def entry(call_id: str, name: str = "price", arguments: str = '{"item": "lamp"}') -> Message:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, "id": call_id}


def calling(*calls: Message, **keys: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **keys}


def told(call_id: str, content: Any) -> Message:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def step(*ids: str, name: str = "price") -> tuple[Message, ...]:
    """A Step of the record: its calls, then what each was told, `<id>: 5`."""
    return (calling(*(entry(it, name) for it in ids)), *(told(it, f"{it}: 5") for it in ids))


def turn(
    number: int,
    *messages: Message,
    handed: Sequence[str] = (),
    done: bool = True,
    template: str = "[[next-user-turn {}]]",
) -> PlayedTurn:
    """A turn of the record; if `done`, its answer is at the end of its messages."""
    words = QUESTIONS[number - 1]
    asked = template.format(number)
    said = asked.replace(f"[[next-user-turn {number}]]", words).replace("[[next-user-turn]]", words)
    if "[[" not in asked and words not in asked:
        said = words
    answer = (says(ANSWERS[number - 1]),) if done else ()
    return PlayedTurn(number, words, user(asked), user(said), (*messages, *answer), frozenset(handed), done)


def now(number: int, *messages: Message, **keys: Any) -> PlayedTurn:
    return turn(number, *messages, done=False, **keys)


def spoken(number: int) -> Message:
    return user(QUESTIONS[number - 1])


def prompt(number: int) -> Message:
    return user(f"[[next-user-turn {number}]]")


def answer(number: int) -> Message:
    return says(ANSWERS[number - 1])


def sent(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> Sent:
    kept = copy.deepcopy(own)
    result = live_messages(own, turns, aliases)
    assert own == kept
    return result


def messages(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> list[Message]:
    return list(sent(own, *turns, **aliases).messages)


def found(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> list[tuple[int, str]]:
    return [(it.turn, it.what) for it in sent(own, *turns, **aliases).findings]


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


# Findings


def test_an_agent_that_remembers_nothing_is_one_finding() -> None:
    turns = (turn(1, *step("a")), turn(2), now(3))
    assert sent([SYSTEM, prompt(3)], *turns).findings == (
        Finding(3, "lost_history", "nothing of turns 1 to 2 is in the request"),
    )
    assert sent([prompt(2)], turns[0], now(2)).findings == (
        Finding(2, "lost_history", "nothing of turn 1 is in the request"),
    )


def test_an_agent_that_summarises_loses_turn_by_turn() -> None:
    own = [SYSTEM, user("So far: a lamp; then: Two cost 10."), prompt(3)]
    turns = (turn(1, *step("a"), handed=["a"]), turn(2), now(3))
    assert found(own, *turns) == [(1, "lost_turn"), (1, "lost_calls"), (1, "lost_answer"), (2, "lost_turn")]


def test_an_answer_that_became_another_is_a_finding_with_both() -> None:
    own = [prompt(1), says("It costs 6."), prompt(2)]
    assert sent(own, turn(1), now(2)).findings == (
        Finding(1, "changed_answer", "given: A lamp costs 5.; sent: It costs 6."),
    )


@pytest.mark.parametrize(
    "own",
    [
        says("  It's sunny —\n\U0001f31e.\n"),
        says([{"type": "text", "text": "It's sunny — \U0001f31e."}]),
        calling(entry("f", "final_answer", json.dumps({"answer": ANSWERS[2]}))),
        says(f"Calling tools:\n{[{'answer': ANSWERS[2]}]!r}"),
        says("[{'answer': 'It\\'s sunny — \U0001f31e.'}]"),
    ],
)
def test_an_answer_in_another_form_is_there(own: Message) -> None:
    assert not found([prompt(3), own, prompt(2)], turn(3), now(2))


@pytest.mark.parametrize(
    ("name", "arguments", "changed"),
    [
        ("price", '{"item":"lamp"}', False),
        ("Shop-price", '{ "item": "l\\u0061mp" }', False),
        ("price", '{"INVALID_JSON": "{"}', True),
        ("price", '{"item": "lamp", "more": 1}', True),
        ("price", "{", True),
        ("cost", '{"item": "lamp"}', True),
        ("", '{"item": "lamp"}', True),
    ],
)
def test_calls_with_other_values_are_findings_and_stay(name: str, arguments: str, changed: bool) -> None:
    call = calling(entry("a", name, arguments))
    result = sent([prompt(1), call], now(1, *step("a"), handed=["a"]))
    assert result.messages[1] == call
    assert [it.what for it in result.findings] == ["changed_calls"] * changed


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"n": 1}', '{"n": 1.0}', True),
        ('{"n": 1}', '{"n": true}', False),
        ("", "{}", True),
        (None, "{}", True),
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}, True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ("[" * 100_000, "[" * 100_001, False),
        ("9" * 5000, "8" * 5000, False),
        ("{", "{", True),
    ],
)
def test_arguments_are_compared_by_value(first: Any, second: Any, same: bool) -> None:
    assert same_arguments(first, second) is same


def test_a_finding_is_one_line_of_bounded_length() -> None:
    odd = step(*(f"c{n}" for n in range(99)), name="a\nb\x1b")
    [finding] = sent([prompt(1)], now(1, *odd, handed=[f"c{n}" for n in range(99)])).findings
    assert len(finding.detail) == 200
    assert finding.detail.isprintable()


# Whatever is sent

texts = st.text(max_size=8)
FORMS = (
    ("[[next-user-turn {n}]]", "{words}"),
    ("<q>[[next-user-turn]]</q>", "<q>{words}</q>"),
    ("Next.", "{words}"),
    ("Q: {words}", "Q: {words}"),
)
"""What an agent sends for a turn, and what the LLM gets."""


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[PlayedTurn], dict[str, str], list[Message], list[Message]]:
    """Turns, aliases, what a faithful agent sends, and what the LLM has seen.

    Any Step may be hidden or handed; results are the agent's own. Prompts are of one form.
    """
    form = draw(st.sampled_from(FORMS))
    system = [SYSTEM] if draw(st.booleans()) else []
    turns: list[PlayedTurn] = []
    aliases: dict[str, str] = {}
    own, full = list(system), list(system)
    last = draw(st.integers(1, 4))
    for number in range(1, last + 1):
        words = draw(texts.filter(lambda text: text.strip() and "[" not in text))
        asked, said = (it.format(n=number, words=words) for it in form)
        own.append(user(asked))
        record: list[Message] = []
        handed: set[str] = set()
        for at in range(draw(st.integers(0, 3))):
            ids = [f"p{number}.{at}.{k}" for k in range(draw(st.integers(1, 3)))]
            record += step(*ids)
            if draw(st.booleans()):
                handed |= set(ids)
                aliases |= {f"call{it}": it for it in ids}
                own.append(calling(*(entry(f"call{it}") for it in ids)))
                own += [told(f"call{it}", draw(texts)) for it in ids]
        done = number < last
        if done:
            record.append(says(draw(texts.map(lambda text: f"{text}."))))
            own.append(record[-1])
        turns.append(
            PlayedTurn(number, words, user(asked), user(said), tuple(record), frozenset(handed), done)
        )
        full += [user(said), *record]
    return turns, aliases, own, full


def is_acceptable(messages: Sequence[Message]) -> bool:
    """Every call has one result, before anything else comes, and every result a call.

    Only the assistant calls, and ids are texts.
    """
    due: list[str] = []
    for message in messages:
        if message.get("role") != "assistant" and not {"tool_calls", "function_call"}.isdisjoint(message):
            return False
        if message.get("role") == "tool":
            if message["tool_call_id"] not in due:
                return False
            due.remove(message["tool_call_id"])
            continue
        if due:
            return False
        if message.get("role") == "assistant":
            due = [call["id"] for call in message.get("tool_calls", ())]
            if not all(isinstance(it, str) and it for it in due):
                return False
            if len(set(due)) < len(due) or message.get("tool_calls", [0]) == []:
                return False
    return not due


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_a_faithful_agent_comes_to_the_whole_record(session: Any) -> None:
    turns, aliases, own, full = session
    result = live_messages(own, turns, aliases)
    assert (list(result.messages), result.findings) == (full, ())
    assert is_acceptable(result.messages)
    assert live_messages(own, turns, aliases, findings=False) == result


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.data())
def test_whatever_an_agent_loses_or_repeats_providers_accept_it(session: Any, data: st.DataObject) -> None:
    turns, aliases, own, _ = session
    places = data.draw(st.lists(st.integers(0, len(own) - 1), max_size=2 * len(own)))
    result = live_messages([own[at] for at in places], turns, aliases)
    assert is_acceptable(result.messages)
    assert any(turns[-1].words in it["content"] for it in result.messages if it["role"] == "user")
    called = [it["id"] for message in result.messages for it in message.get("tool_calls", ())]
    assert len(called) == len(set(called))
    again = live_messages(result.messages, turns, {})
    assert is_acceptable(again.messages)
    unasked = live_messages([own[at] for at in places], turns, aliases, findings=False)
    assert unasked == Sent(result.messages, result.changes, ())


scalars = st.none() | st.booleans() | st.integers() | texts | st.sampled_from(["a", "text", "price", "x"])
values = st.recursive(scalars, lambda it: st.lists(it, max_size=3) | st.dictionaries(texts, it, max_size=3))
parts = st.lists(st.fixed_dictionaries({"type": values, "text": values}) | values, max_size=3)
entries = st.fixed_dictionaries(
    {},
    optional={
        "id": values,
        "function": st.fixed_dictionaries({"name": values, "arguments": values}) | values,
    },
)
odd_messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer"]) | values,
        "content": values | parts | st.just("[[next-user-turn 1]][[next-user-turn 9]]"),
        "tool_calls": st.lists(entries | values, max_size=3) | values,
        "function_call": st.fixed_dictionaries({"name": values}) | values,
        "tool_call_id": values,
        "name": values,
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(odd_messages | values, max_size=8))
def test_whatever_json_the_messages_are_nothing_is_raised(own: list[Any]) -> None:
    turns = (turn(1, *step("a"), handed=["a"]), now(2, *step("b"), *step("c"), handed=["c"]))
    result = live_messages(own, turns, {"x": "a"})
    assert is_acceptable(result.messages)
    assert any(QUESTIONS[1] in str(it.get("content")) for it in result.messages)
    assert is_acceptable(live_messages(own, (), {}).messages)


# How much work it is

Workload = tuple[list[Message], list[PlayedTurn]]


def user_messages(count: int) -> Workload:
    return [user("Go on.") for _ in range(count)], [turn(1), now(2)]


def own_calls(count: int) -> Workload:
    return [prompt(1), *(it for n in range(count) for it in step(f"own{n}"))], [now(1)]


def late_results(count: int) -> Workload:
    """All results at the end, and the prompt again before each."""
    ids = [f"c{n}" for n in range(count)]
    calls = [it for call_id in ids for it in (step(call_id)[0], prompt(1))]
    return [prompt(1), *calls, *(told(it, "mine") for it in ids)], [now(1)]


def known_steps(count: int) -> Workload:
    """Every other Step is hidden from the agent, in the turn that is over and in the current one."""
    own: list[Message] = []
    turns: list[PlayedTurn] = []
    for number, done in ((1, True), (2, False)):
        ids = [f"c{number}.{n}" for n in range(count)]
        own += [prompt(number), *(it for n in ids[::2] for it in step(n)), *([answer(1)] if done else [])]
        record = [it for n in ids for it in step(n)]
        turns.append(turn(number, *record, handed=ids[::2], done=done))
    return own, turns


def one_batch(count: int) -> Workload:
    """A Step of many calls, every other one hidden; the agent sends the others one by one."""
    ids = [f"c{n}" for n in range(count)]
    own = [prompt(1), *(calling(entry(n)) for n in ids[::2]), *(told(n, "mine") for n in ids[::2])]
    return own, [now(1, *step(*ids), handed=ids[::2])]


def functions(count: int) -> Workload:
    call = says(None, function_call={"name": "price", "arguments": "{}"})
    result: Message = {"role": "function", "name": "price", "content": "mine"}
    ids = [f"c{n}" for n in range(count)]
    own = [prompt(1), *[call, result] * count]
    return own, [now(1, *(it for n in ids for it in step(n)), handed=ids)]


def lost_answers(count: int) -> Workload:
    """An answer that is nowhere is looked for everywhere."""
    own, turns = known_steps(count)
    return [it for it in own if it != answer(1)], turns


def work(own: list[Message], turns: list[PlayedTurn]) -> int:
    """How many bytecodes are run: the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        live_messages(own, turns, {})
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "workload",
    [user_messages, own_calls, late_results, known_steps, one_batch, functions, lost_answers],
)
def test_twice_as_long_a_conversation_is_about_twice_the_work(workload: Callable[[int], Workload]) -> None:
    work(*workload(10))
    few, many = work(*workload(100)), work(*workload(200))
    assert many < 2.15 * few
