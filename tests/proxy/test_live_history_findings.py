"""What is found lost in an agent's own messages, whatever is sent, and how much work that is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.own_history import (
    ANSWERS,
    QUESTIONS,
    SYSTEM,
    Message,
    answer,
    calling,
    entry,
    found,
    is_acceptable,
    now,
    prompt,
    says,
    sent,
    step,
    told,
    turn,
    user,
)

from proxy.findings import same_arguments
from proxy.live_history import Finding, PlayedTurn, Sent, live_messages

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
