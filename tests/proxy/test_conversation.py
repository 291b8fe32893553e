"""What is sent to the LLM in place of what the agent sent, without any network."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from support import scenes

from proxy import sentinel
from proxy.conversation import leading, provider_body
from proxy.play import begin, judge, open_turn
from proxy.session import Session
from proxy.settings import PlayConfig
from proxy.wire.chat import reply_of

DATE = "Current Date: 2025-03-04 09:30:00 Tuesday"
USER = {"role": "user", "content": "[[next-user-turn]]"}
SAID = {"role": "user", "content": "What does a lamp cost?"}


def asked(session: Session, message: dict[str, Any]) -> Session:
    """The agent asks for the open turn with this message, whose sentinel gets the user's words."""
    assert session.turn is not None
    return begin(session, sentinel.fill(message, session.turn.words))


def at_first_task(message: dict[str, Any] = USER) -> Session:
    return asked(open_turn(Session("shop.e1", scenes.scenario())), message)


def sent(
    body: dict[str, Any], session: Session | None = None, **config: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    configured = replace(session or at_first_task(), config=PlayConfig(**config))
    sending = provider_body(body, configured)
    return sending.body, sending.changes


def messages(*own: dict[str, Any]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = sent({"messages": list(own)})[0]["messages"]
    return result


def test_without_a_system_prompt_the_date_is_one() -> None:
    assert messages(USER) == [{"role": "system", "content": DATE}, SAID]


def test_the_date_is_appended_to_the_agents_system_prompt() -> None:
    own = {"role": "system", "content": "Be brief.", "name": "boss"}
    assert messages(own, USER) == [{**own, "content": f"Be brief.\n\n{DATE}"}, SAID]


def test_of_several_leading_prompts_the_last_gets_the_date() -> None:
    first, second = {"role": "system", "content": "One."}, {"role": "developer", "content": "Two."}
    few_shot = {"role": "assistant", "content": "Hello!"}
    assert messages(first, second, few_shot, USER) == [
        first,
        {"role": "developer", "content": f"Two.\n\n{DATE}"},
        few_shot,
        SAID,
    ]


def test_a_system_prompt_of_content_parts_gets_the_date_as_one_more() -> None:
    parts = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    own = {"role": "system", "content": parts}
    assert messages(own, USER)[0]["content"] == [*parts, {"type": "text", "text": DATE}]


@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_system_prompt_becomes_the_date(content: Any) -> None:
    [first, *_] = messages({"role": "system", "content": content}, USER)
    assert first["content"] in (DATE, [{"type": "text", "text": DATE}])


def test_only_what_comes_before_the_first_user_message_is_the_agents_own() -> None:
    late = {"role": "system", "content": "Late."}
    assert messages(USER, late, USER) == [{"role": "system", "content": DATE}, SAID]
    assert leading(["odd", USER]) == []


def test_the_agents_template_stays_around_the_words() -> None:
    wrapped = {"role": "user", "name": "ann", "content": "Request: [[next-user-turn]] (be kind)"}
    body, _ = sent({"messages": [wrapped]}, at_first_task(wrapped))
    assert body["messages"][-1] == {
        "role": "user",
        "name": "ann",
        "content": "Request: What does a lamp cost? (be kind)",
    }


def test_earlier_tasks_come_from_their_references_whatever_the_agent_says_of_them() -> None:
    session = at_first_task()
    call = {"id": "x", "type": "function", "function": {"name": "getPrice", "arguments": '{"thing": "sofa"}'}}
    for message in (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "It costs 1,000,000."},
    ):
        session, _ = judge(session, message, *reply_of(message))
    session = asked(open_turn(session), USER)
    lie = {"role": "assistant", "content": "It was free."}
    body, _ = sent({"messages": [USER, lie, USER]}, session)
    _, user, calling, result, closing, now = body["messages"]
    assert user == SAID
    assert calling["tool_calls"][0]["function"] == {"name": "getPrice", "arguments": '{"thing": "lamp"}'}
    assert result == {
        "role": "tool",
        "content": '{"price": 3, "unit": "€"}',
        "tool_call_id": calling["tool_calls"][0]["id"],
    }
    assert closing == {"role": "assistant", "content": "A lamp costs 3."}
    assert now["content"] == "Price of a chair, and how many lamps are there?"


# Tools and parameters


def tool_names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


MOCK = ["getPrice", "countStock", "book", "weigh"]
OWN = scenes.tool("search", words="string")


@pytest.mark.parametrize("own", [{}, {"tools": []}, {"tools": None}, {"tools": [OWN]}])
def test_the_scenarios_tools_take_the_place_of_the_agents(own: dict[str, Any]) -> None:
    body, changes = sent({"messages": [USER], **own})
    assert tool_names(body) == MOCK
    assert changes == ("messages", "tools")


def test_the_type_float_is_sent_as_number_and_nothing_else_is_changed() -> None:
    body, _ = sent({"messages": [USER]})
    weigh = copy.deepcopy(scenes.TOOLS[3])
    weigh["function"]["parameters"]["properties"]["kilos"]["type"] = "number"
    assert body["tools"] == [*scenes.TOOLS[:3], weigh]


def test_tools_can_be_joined_and_the_scenarios_win_over_one_of_the_same_name() -> None:
    theirs = scenes.tool("getPrice", nothing="string")
    body, _ = sent({"messages": [USER], "tools": [OWN, theirs, "odd"]}, agent_tools="append")
    assert body["tools"][:2] == [OWN, "odd"]
    assert tool_names({"tools": body["tools"][2:]}) == MOCK
    assert theirs not in body["tools"]


@pytest.mark.parametrize("config", [{}, {"agent_tools": "append"}, {"keep_tools": ("*",)}])
def test_the_tool_that_ends_a_smolagents_turn_is_never_offered(config: dict[str, Any]) -> None:
    final = scenes.tool("final_answer", answer="string")
    body, _ = sent({"messages": [USER], "tools": [OWN, final]}, **config)
    assert tool_names(body) == [*(["search"] if config else []), *MOCK]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "search"}}])
def test_a_tool_choice_that_forbids_a_closing_text_becomes_auto(choice: Any) -> None:
    body, changes = sent({"messages": [USER], "tool_choice": choice})
    assert body["tool_choice"] == "auto"
    assert changes == ("messages", "tools", "tool_choice")


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_any_other_tool_choice_is_left_alone(choice: str) -> None:
    body, changes = sent({"messages": [USER], "tool_choice": choice})
    assert body["tool_choice"] == choice
    assert changes == ("messages", "tools")


def test_stop_and_response_format_are_dropped_and_listed() -> None:
    asked = {"messages": [USER], "stop": ["\n"], "response_format": {"type": "json_object"}}
    body, changes = sent(asked)
    assert body.keys() == {"messages", "tools"}
    assert changes == ("messages", "stop", "response_format", "tools")


def test_a_user_message_that_was_replaced_as_a_whole_is_listed() -> None:
    body = {"messages": [SAID]}
    sending = provider_body(body, at_first_task(), replaced_user=True)
    assert sending.changes == ("messages", "user_message", "tools")
    assert sending.body == sent(body)[0]


def test_every_other_field_passes_as_it_came() -> None:
    others = {
        "model": "m",
        "temperature": 0.7,
        "seed": 2**70,
        "parallel_tool_calls": False,
        "max_completion_tokens": None,
        "reasoning": {"effort": "low"},
        "x-unknown": [1, {"a": None}],
        "user": "someone",
    }
    body, _ = sent({"messages": [USER], **others})
    assert {key: value for key, value in body.items() if key not in ("messages", "tools")} == others


def test_the_agents_own_request_is_not_touched() -> None:
    asked = {"messages": [{"role": "system", "content": "S"}, USER], "tool_choice": "required", "stop": "x"}
    before = copy.deepcopy(asked)
    sent(asked)
    assert asked == before


@pytest.mark.parametrize("options", [{}, {"stream_options": None}, {"stream_options": {}}])
def test_a_stream_is_asked_for_its_token_counts(options: dict[str, Any]) -> None:
    body, changes = sent({"messages": [USER], "stream": True, **options})
    assert body["stream_options"] == {"include_usage": True}
    assert changes[-1] == "stream_options"


def test_an_agents_own_stream_options_are_kept() -> None:
    options = {"include_usage": False}
    body, changes = sent({"messages": [USER], "stream": True, "stream_options": options})
    assert body["stream_options"] == options
    assert "stream_options" not in changes
