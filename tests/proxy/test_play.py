"""What happens next in a Session, without any network."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import scenes

from proxy.play import NOT_RELEASED, begin, judge, open_turn
from proxy.session import Decision, Session
from proxy.wire.chat import reply_of
from scenarios.replies import read_reply
from scenarios.steps import Mismatch
from scoring.verdicts.wildtoolbench import score_task

PROMPT = {"role": "user", "content": "[[next-user-turn]]"}


def new(record: scenes.Record = scenes.SHOP) -> Session:
    return Session("shop.e1", scenes.scenario(record))


def asked(session: Session) -> Session:
    """The agent asks for the turn that is open, with the user's words and nothing around them."""
    assert session.turn is not None
    return begin(session, {"role": "user", "content": session.turn.words})


def opened(record: scenes.Record = scenes.SHOP) -> Session:
    return asked(open_turn(new(record)))


def text(content: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def calls(*wanted: tuple[str, dict[str, Any]], ids: list[Any] | None = None) -> dict[str, Any]:
    entries = [
        {
            "id": f"call_{i}" if ids is None else ids[i],
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for i, (name, arguments) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def say(session: Session, message: dict[str, Any], observations: str = "matched") -> tuple[Session, Decision]:
    content, made = reply_of(message)
    config = replace(session.config, observations=observations)
    return judge(replace(session, config=config), message, content, made)


def played(session: Session, *messages: dict[str, Any]) -> Session:
    for message in messages:
        session, _ = say(session, message)
    return session


PRICE = ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})


def second_task() -> Session:
    session = played(opened(), calls(LAMP), text("3"))
    return asked(open_turn(session))


def third_task() -> Session:
    session = played(second_task(), calls(PRICE, STOCK), text("7 and 12"))
    return asked(open_turn(session))


# Turns


def test_the_first_turn_says_the_words_of_the_first_task() -> None:
    session = open_turn(new())
    assert session.turn is not None
    assert (session.turn.number, session.turn.task, session.turn.kind) == (1, 0, "task")
    assert session.turn.words == "What does a lamp cost?"


def test_the_agents_message_joins_the_thread_once() -> None:
    said = {"role": "user", "name": "ann", "content": "Q: What does a lamp cost??"}
    session = begin(open_turn(new()), said)
    assert session.thread == (said,)
    assert begin(session, said) == session


def test_after_an_ask_the_user_gives_the_scripted_reply_within_the_same_task() -> None:
    session, decision = say(third_task(), text("When shall it be?"))
    assert decision.action == "ask"
    session = asked(open_turn(session))
    assert session.turn is not None
    assert (session.turn.task, session.turn.kind, session.turn.words) == (2, "reply", "On Monday.")
    assert [message["role"] for message in session.thread] == ["user", "assistant", "user"]
    assert session.thread[-1]["content"] == "On Monday."


def test_a_turn_that_is_opened_while_a_task_is_open_leaves_that_task_behind() -> None:
    session = open_turn(played(opened(), calls(LAMP)))
    assert session.ends == ("agent_stopped",)
    assert session.turn is not None
    assert (session.turn.number, session.turn.task, session.thread) == (2, 1, ())


def test_a_session_is_over_after_its_last_task() -> None:
    session = opened(scenes.chat("c", 1))
    assert not session.over
    session = played(session, text("Bye."))
    assert (session.over, session.ends) == (True, ("closed",))
    assert open_turn(session).turn == session.turn


def test_a_session_is_over_too_when_its_last_task_is_left() -> None:
    session = open_turn(open_turn(new(scenes.chat("c", 1))))
    assert (session.over, session.ends) == (True, ("agent_stopped",))


# Steps


def test_a_right_call_is_told_its_observation_and_the_task_goes_on() -> None:
    message = {**calls(LAMP), "content": "Let me see.", "reasoning_content": "hm"}
    session, decision = say(opened(), message)
    assert (decision.action, decision.nodes) == ("observe", (0,))
    assert session.ends == ()
    assert list(session.thread[1:]) == [
        message,
        {"role": "tool", "tool_call_id": "call_0", "content": '{"price": 3, "unit": "€"}'},
    ]


def test_names_decide_while_playing_and_a_call_with_wrong_arguments_is_answered() -> None:
    session, decision = say(opened(), calls(("getPrice", {"thing": "sofa"})))
    assert decision.action == "observe"
    assert decision.served[0].observation == '{"price": 3, "unit": "€"}'
    assert session.ends == ()


@pytest.mark.parametrize(
    ("message", "did"),
    [
        (calls(STOCK), "called countStock"),
        (calls(LAMP, LAMP), "called getPrice, getPrice"),
        (text("I do not know."), "replied in text"),
        (text(""), "replied with neither text nor tool calls"),
        (text(None), "replied with neither text nor tool calls"),
        (calls(("prepare_to_answer", {})), "called prepare_to_answer"),
    ],
)
def test_a_wrong_step_ends_the_task_and_the_reason_says_what_was_due(
    message: dict[str, Any], did: str
) -> None:
    session, decision = say(opened(), message)
    assert decision.action == "stop"
    assert decision.reason == Mismatch(did, (("getPrice",),)).reason
    assert decision.reason == f"{did}; allowed here: getPrice"
    assert session.ends == ("stopped",)
    assert not session.over


def test_text_beside_calls_is_no_reply_of_its_own() -> None:
    _, decision = say(opened(), {**calls(LAMP), "content": "It costs 3."})
    assert decision.action == "observe"


def test_any_text_that_is_not_empty_closes_a_task_when_nothing_else_is_due() -> None:
    session, decision = say(played(opened(), calls(LAMP)), text("No idea."))
    assert (decision.action, decision.nodes, session.ends) == ("close", (1,), ("closed",))


# Observations


def told(decision: Decision) -> list[tuple[str, str | None]]:
    return [(it.call.name, it.observation) for it in decision.served]


@pytest.mark.parametrize("order", [(PRICE, STOCK), (STOCK, PRICE)])
def test_parallel_calls_in_any_order_are_each_told_what_they_asked_for(order: Any) -> None:
    session, decision = say(second_task(), calls(*order))
    expected = {"getPrice": '{"price": 7}', "countStock": "12 lamps"}
    assert told(decision) == [(name, expected[name]) for name, _ in order]
    results = [m for m in session.thread if m["role"] == "tool"]
    assert [(m["tool_call_id"], m["content"]) for m in results] == [
        (f"call_{i}", expected[name]) for i, (name, _) in enumerate(order)
    ]


@pytest.mark.parametrize("order", [(LAMP, CHAIR), (CHAIR, LAMP)])
def test_calls_of_one_name_are_told_apart_by_their_arguments(order: Any) -> None:
    prices = {"lamp": '{"price": 3}', "chair": '{"price": 7}'}
    _, decision = say(opened(scenes.TWINS), calls(*order))
    assert told(decision) == [("getPrice", prices[arguments["thing"]]) for _, arguments in order]


def test_calls_of_one_name_made_one_by_one_in_reverse_are_told_what_they_asked_for() -> None:
    session, first = say(opened(scenes.TWINS), calls(CHAIR))
    _, second = say(session, calls(LAMP))
    assert told(first) + told(second) == [("getPrice", '{"price": 7}'), ("getPrice", '{"price": 3}')]


def test_on_request_results_go_by_the_order_of_names_as_the_released_harness_gives_them() -> None:
    _, decision = say(second_task(), calls(PRICE, STOCK), "released")
    assert told(decision) == [("getPrice", "12 lamps"), ("countStock", '{"price": 7}')]
    assert [it.id for it in decision.served] == ["call_0", "call_1"]


def test_on_request_calls_of_one_name_get_results_in_the_order_of_the_reference() -> None:
    _, decision = say(opened(scenes.TWINS), calls(CHAIR, LAMP), "released")
    assert told(decision) == [("getPrice", '{"price": 3}'), ("getPrice", '{"price": 7}')]


def test_a_call_that_was_told_the_result_of_another_is_done_all_the_same() -> None:
    """What waits for it may come next, as `strict` has it."""
    nodes = [
        scenes.call("getPrice", {"thing": "lamp"}, "3"),
        scenes.call("getPrice", {"thing": "chair"}, "7"),
        scenes.call("countStock", {"thing": "chair"}, "12", 1),
        scenes.close("Done.", 0, 1, 2),
    ]
    stock = ("countStock", {"thing": "chair"})
    session, first = say(opened(scenes.record("told", ("All.", nodes))), calls(CHAIR), "released")
    assert told(first) == [("getPrice", "3")]
    for message in (calls(stock), calls(LAMP)):
        session, decision = say(session, message, "released")
        assert decision.action == "observe"
    assert say(session, text("Done."), "released")[1].action == "close"


# Steps that the released harness does not take, and the graph allows


BED = ("getPrice", {"thing": "bed"})
BEYOND = "right by the graph, but the released harness ends the task here: called getPrice, getPrice"


def test_a_grouping_that_the_graph_allows_goes_on_though_the_released_harness_would_end_the_task() -> None:
    session, first = say(opened(scenes.TRIPLETS), calls(BED, LAMP))
    assert first.action == "observe" and (first.reason or "").startswith(BEYOND)
    assert told(first) == [("getPrice", '{"price": 90}'), ("getPrice", '{"price": 3}')]
    session, second = say(session, calls(CHAIR))
    assert (second.nodes, second.reason) == ((1,), None)
    session, third = say(session, text("3, 7 and 90."))
    assert (third.action, session.ends, session.names_right) == ("close", ("closed",), (False,))
    session = open_turn(session)
    assert say(asked(session), text("Nothing."))[1].reason is None


@pytest.mark.parametrize("wrong", [calls(LAMP, CHAIR), text("All done."), text("")])
def test_after_it_a_step_that_the_graph_does_not_allow_ends_the_task(wrong: dict[str, Any]) -> None:
    session, decision = say(played(opened(scenes.TRIPLETS), calls(BED, LAMP)), wrong)
    assert (decision.action, session.ends) == ("stop", ("stopped",))
    assert (decision.reason or "").endswith("; allowed here: getPrice")


@pytest.mark.parametrize("ready", ["at once", "after a call"])
def test_a_close_that_was_called_like_a_tool_is_still_to_be_said(ready: str) -> None:
    """As the released harness takes the call; what it makes of the text is in its verdict."""
    session = opened() if ready == "after a call" else opened(scenes.chat("chat", 1))
    if ready == "after a call":
        session = played(session, calls(LAMP))
    session, called = say(session, calls(("prepare_to_answer", {})))
    assert called.action == "observe"
    session, said = say(session, text("Hello."))
    assert (said.action, session.ends, session.names_right) == ("close", ("closed",), (False,))


# Ids


@pytest.mark.parametrize("ids", [["x", "x"], [None, None], ["", 5], [{"a": 1}, "x"]])
def test_missing_and_doubled_call_ids_are_replaced(ids: list[Any]) -> None:
    session, decision = say(second_task(), calls(PRICE, STOCK, ids=ids))
    own = [it.id for it in decision.served]
    assert len(set(own)) == 2
    assert all(isinstance(it, str) and it and len(it) <= 40 for it in own)
    echoed = next(m for m in session.thread if m.get("tool_calls"))
    assert [entry["id"] for entry in echoed["tool_calls"]] == own
    assert [m["tool_call_id"] for m in session.thread if m["role"] == "tool"] == own


def test_an_id_that_came_before_in_the_task_is_replaced() -> None:
    session, first = say(opened(scenes.TWINS), calls(LAMP, ids=["x"]))
    _, second = say(session, calls(CHAIR, ids=["x"]))
    assert first.served[0].id == "x"
    assert second.served[0].id not in ("", "x")


# Whatever a provider sends

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
functions = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["getPrice", "countStock", "prepare_to_answer"]) | json_values,
        "arguments": st.sampled_from(["{}", "", '{"thing": "lamp"}', "{", '{"a": NaN}']) | json_values,
    },
)
entries = st.fixed_dictionaries({}, optional={"id": json_values, "function": functions | json_values})
messages = st.fixed_dictionaries(
    {},
    optional={
        "content": json_values,
        "tool_calls": st.lists(entries | json_values, max_size=3) | json_values,
        "function_call": functions | json_values,
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(messages, min_size=1, max_size=3))
def test_whatever_a_provider_sends_is_judged(replies: list[dict[str, Any]]) -> None:
    session = second_task()
    for reply in replies:
        if session.ends != ("closed",):
            break
        session, decision = say(session, reply)
        assert decision.action in ("observe", "close", "stop")
        assert (decision.action == "observe") == session.task_is_open
        if decision.action == "observe":
            json.dumps(session.thread)


@pytest.mark.parametrize(
    "odd",
    [
        {"content": "Hi.", "tool_calls": {"function": {"name": "getPrice"}}},
        {"content": "Hi.", "tool_calls": "getPrice"},
        {"content": "Hi.", "function_call": "getPrice"},
        {"content": ["Hi."]},
        {"content": None, "tool_calls": [{"type": "custom", "custom": {"name": "getPrice", "input": "{}"}}]},
    ],
)
@pytest.mark.parametrize("record", [scenes.SHOP, scenes.chat("c", 1)], ids=["tools", "chat"])
def test_an_odd_message_is_the_same_step_while_playing_and_in_the_score(
    record: scenes.Record, odd: dict[str, Any]
) -> None:
    agree(record, [odd])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([scenes.SHOP, scenes.TWINS, scenes.chat("c", 1)]), st.lists(messages, max_size=3))
def test_play_and_score_agree_on_whatever_a_provider_sends(
    record: scenes.Record, replies: list[dict[str, Any]]
) -> None:
    agree(record, replies)


def agree(record: scenes.Record, replies: list[dict[str, Any]]) -> None:
    """The Task ends for the same reason, at the same reply, on both sides."""
    session, decisions = opened(record), []
    for message in replies:
        if not session.task_is_open:
            break
        session, decision = say(session, message)
        if (decision.reason or "").startswith(NOT_RELEASED):
            break
        decisions.append(decision)
    task = session.scenario.tasks[0]
    made = [read_reply(message) for message in replies[: len(decisions)]]
    steps = score_task(session.scenario.tools, task.nodes, made).steps
    ways = {"observe": "call", "ask": "ask", "close": "close"}
    for decision, step in zip(decisions, steps, strict=False):
        if step.verdict == "argument_error":
            return
        assert (ways.get(decision.action), decision.reason) == (
            step.action if step.verdict == "correct" else None,
            step.reason,
        )
