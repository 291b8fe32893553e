"""Agents that still offer `functions`: everything is said to the LLM in that dialect."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.driving import verdicts
from support.playing import history, playing

from proxy.conversation import provider_body
from proxy.play import begin, judge, open_turn
from proxy.session import Session
from proxy.settings import PlayConfig
from proxy.wire.chat import reply_of

USER = {"role": "user", "content": "[[next-user-turn]]"}
OWN = scenes.tool("search", words="string")["function"]
ASKED = {"messages": [USER], "functions": [OWN]}
MOCK = ["getPrice", "countStock", "book", "weigh"]


def speaking(session: Session, *said: dict[str, Any]) -> Session:
    """The user speaks, and these assistant messages are judged."""
    session = open_turn(session)
    assert session.turn is not None
    session = begin(session, {"role": "user", "content": session.turn.words})
    for message in said:
        session, decision = judge(session, message, *reply_of(message))
        assert decision.action != "stop", decision.reason
    return session


def calling(name: str, **arguments: str) -> dict[str, Any]:
    """A call as an LLM makes it that was offered `functions`."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "function_call": function}


SHOP = Session("shop.e1", scenes.scenario())
LAMP = calling("getPrice", thing="lamp")
ANSWER = {"role": "assistant", "content": "It costs 3."}


def sent(body: dict[str, Any], session: Session | None = None, **config: Any) -> Any:
    sending = provider_body(body, replace(session or speaking(SHOP), config=PlayConfig(**config)))
    return sending.body, sending.changes


def names(body: dict[str, Any]) -> list[str]:
    return [function["name"] for function in body["functions"]]


def test_the_scenarios_tools_go_out_as_functions_and_not_as_tools() -> None:
    body, changes = sent(ASKED)
    assert body.keys() == {"messages", "functions"}
    assert body["functions"][:3] == [tool["function"] for tool in scenes.TOOLS[:3]]
    assert names(body) == MOCK
    assert changes == ("messages", "functions")


def test_an_empty_list_of_tools_beside_functions_is_left_out() -> None:
    body, changes = sent({**ASKED, "tools": [], "tool_choice": "auto"})
    assert body.keys() == {"messages", "functions"}
    assert changes == ("messages", "tools", "tool_choice", "functions")


def test_functions_beside_tools_are_left_out() -> None:
    tools = [scenes.tool("search", words="string")]
    body, changes = sent({**ASKED, "tools": tools, "function_call": {"name": "search"}})
    assert body.keys() == {"messages", "tools"}
    assert changes == ("messages", "functions", "function_call", "tools")


def test_functions_can_be_joined_without_those_of_a_scenarios_name_or_smolagents_last() -> None:
    own = [OWN, {"name": "getPrice"}, {"name": "final_answer"}]
    body, _ = sent({**ASKED, "functions": own}, agent_tools="append")
    assert names(body) == ["search", *MOCK]


def test_a_call_forced_to_a_function_that_is_gone_becomes_auto() -> None:
    body, changes = sent({**ASKED, "function_call": {"name": "search"}})
    assert body["function_call"] == "auto"
    assert changes == ("messages", "functions", "function_call")


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_any_other_choice_is_left_alone(choice: str) -> None:
    body, changes = sent({**ASKED, "function_call": choice})
    assert body["function_call"] == choice
    assert changes == ("messages", "functions")


def test_an_accepted_call_comes_back_with_its_result_under_its_name() -> None:
    thought = {**LAMP, "reasoning_content": "hm"}
    body, _ = sent(ASKED, speaking(SHOP, thought))
    assert body["messages"][-2:] == [
        thought,
        {"role": "function", "name": "getPrice", "content": '{"price": 3, "unit": "€"}'},
    ]


def test_parallel_calls_of_an_earlier_task_come_one_by_one_each_with_its_result() -> None:
    chair, stock = calling("getPrice", thing="chair"), calling("countStock", thing="lamp")
    session = speaking(SHOP, LAMP, ANSWER)
    session = speaking(session, chair, stock, {"role": "assistant", "content": "7, and 12."})
    body, _ = sent(ASKED, speaking(session))
    second = [it["content"] for it in body["messages"]].index(scenes.SHOP["tasks"][1])
    assert body["messages"][second + 1 : second + 5] == [
        {**chair, "content": ""},
        {"role": "function", "name": "getPrice", "content": '{"price": 7}'},
        {**stock, "content": ""},
        {"role": "function", "name": "countStock", "content": '"12 lamps"'},
    ]
    assert not [it for it in body["messages"] if it["role"] == "tool" or "tool_calls" in it]


def test_what_was_said_beside_calls_is_said_once() -> None:
    calls = [
        {"id": "a", "type": "function", "function": call["function_call"]}
        for call in (calling("countStock", thing="lamp"), calling("getPrice", thing="chair"))
    ]
    both = {"role": "assistant", "content": "Both.", "reasoning_content": "hm", "tool_calls": calls}
    body, _ = sent(ASKED, speaking(speaking(SHOP, LAMP, ANSWER), both))
    first, told, second, told_too = body["messages"][-4:]
    assert (first["content"], first["reasoning_content"], told["content"]) == ("Both.", "hm", "12 lamps")
    assert second == {**calling("getPrice", thing="chair"), "content": ""}
    assert told_too == {"role": "function", "name": "getPrice", "content": '{"price": 7}'}


async def test_a_session_is_played_through_in_the_older_dialect(tmp_path: Path) -> None:
    async with playing(tmp_path, "sim:oracle", scenes.SHOP) as proxy:
        for turn in range(1, 6):
            answer = await proxy.chat("shop", turn, functions=[OWN], function_call={"name": "search"})
            assert answer.text
        for row in proxy.exchanges("provider"):
            body = json.loads(row["body"])
            assert not body.keys() & {"tools", "tool_choice"}
            assert names(body) == MOCK
            assert body["function_call"] == "auto"
            asked = history(proxy.log, row["tip"])
            assert not [it for it in asked if it["role"] == "tool" or "tool_calls" in it]
    ends = verdicts(tmp_path / "log.db")
    assert {key for key, (verdict, _) in ends.items() if verdict == "correct"} >= {
        ("shop", 1, 1),
        ("shop", 1, 3),
        ("shop", 1, 4),
    }
