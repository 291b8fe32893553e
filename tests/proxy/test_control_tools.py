"""The agent's control tools: offered beside the Scenario's, and their calls are no Steps."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from support import scenes

from proxy.conversation import control_tools, provider_body
from proxy.handing import hand_control
from proxy.outcomes import handed_over, results_of, without_control_calls
from proxy.play import begin, open_turn
from proxy.session import Session
from proxy.settings import PlayConfig, config_hash
from proxy.wire.chat import completion, read_message, reply_of

USER = {"role": "user", "content": "[[next-user-turn]]"}
SHOP = begin(open_turn(Session("shop.e1", scenes.scenario())), {"role": "user", "content": "Hi"})


def shop(**config: Any) -> Session:
    return replace(SHOP, config=PlayConfig(**config))


MOCK = ["getPrice", "countStock", "book", "weigh"]
SEARCH, SALES, MINE = (scenes.tool(name) for name in ("search", "transfer_to_sales", "my_handoff"))
PATTERNS = ("transfer_to_*",)


def offered(*tools: Any, **config: Any) -> list[str]:
    body = provider_body({"messages": [USER], "tools": list(tools)}, shop(**config)).body
    return [tool["function"]["name"] for tool in body["tools"]]


def call(name: str, id: str | None = "c1") -> dict[str, Any]:
    given = {} if id is None else {"id": id}
    return {**given, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calling(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def taken(message: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    judged, calls = without_control_calls(message, PATTERNS)
    return judged, [it.name for it in calls]


# What the LLM is offered


def test_handoffs_stay_beside_the_scenarios_tools_and_all_else_goes() -> None:
    assert offered(SEARCH, SALES, MINE) == ["transfer_to_sales", *MOCK]


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        ((), []),
        (("my_*",), ["my_handoff"]),
        (("my_handoff", "transfer_*"), ["transfer_to_sales", "my_handoff"]),
        (("MY_*", "handoff"), []),
    ],
)
def test_which_tools_stay_can_be_told(patterns: tuple[str, ...], kept: list[str]) -> None:
    assert offered(SEARCH, SALES, MINE, keep_tools=patterns) == [*kept, *MOCK]


def test_functions_stay_in_the_older_dialect_too() -> None:
    asked = {"messages": [USER], "functions": [SEARCH["function"], SALES["function"]]}
    body = provider_body(asked, SHOP).body
    assert [it["name"] for it in body["functions"]] == ["transfer_to_sales", *MOCK]
    assert control_tools(asked, SHOP) == ("transfer_to_sales",)


def test_tools_without_a_proper_name_are_no_control_tools() -> None:
    odd = ["odd", {}, {"function": {"name": ["transfer_to_x"]}}, {"function": None}]
    assert offered(*odd) == MOCK
    assert control_tools({"tools": odd}, SHOP) == ()


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_tool_of_the_scenario_and_the_last_of_smolagents_are_never_control_tools(mode: Any) -> None:
    final = scenes.tool("final_answer", answer="string")
    body = {"messages": [USER], "tools": [scenes.TOOLS[0], final, SALES]}
    shopping = shop(agent_tools=mode, keep_tools=("*",))
    assert control_tools(body, shopping) == ("transfer_to_sales",)


def test_two_runs_with_other_control_tools_are_not_the_same_run() -> None:
    one, other = (PlayConfig(keep_tools=patterns).as_json() for patterns in (("a",), ("b",)))
    assert config_hash(one) != config_hash(other)


# What is judged


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Hello."},
        calling(call("getPrice"), call("")),
        calling("odd", None, {"function": "odd"}),
        {"role": "assistant", "content": "Hello.", "tool_calls": []},
        {"role": "assistant", "content": None, "tool_calls": "odd", "function_call": "odd"},
        {"role": "assistant", "function_call": {"name": "getPrice", "arguments": "{}"}},
    ],
)
def test_without_control_calls_a_message_is_judged_as_it_is(message: dict[str, Any]) -> None:
    assert without_control_calls(message, PATTERNS) == (message, [])


def test_control_calls_are_taken_out_of_a_batch() -> None:
    price, stock = call("getPrice", "a"), call("countStock", "b")
    message = calling(price, call("transfer_to_sales"), stock, call("transfer_to_x"), reasoning_content="hm")
    judged, names = taken(message)
    assert judged == calling(price, stock, reasoning_content="hm")
    assert names == ["transfer_to_sales", "transfer_to_x"]
    assert len(message["tool_calls"]) == 4


def test_nothing_is_left_to_judge_where_there_was_nothing_else() -> None:
    judged, names = taken(calling(call("transfer_to_sales")))
    assert reply_of(judged) == (None, ())
    assert names == ["transfer_to_sales"]


def test_a_control_call_in_the_older_dialect_is_taken_out() -> None:
    function = {"name": "transfer_to_sales", "arguments": "{}"}
    message = {"role": "assistant", "content": None, "function_call": function}
    assert taken(message) == ({"role": "assistant", "content": None}, ["transfer_to_sales"])


# What the agent gets, and what it brings back


def test_the_agent_gets_the_llms_message_as_it_is_and_the_tokens_so_far() -> None:
    message = calling(call("transfer_to_sales", "a"), call("transfer_to_x", "b"), content="One moment.")
    response = completion(id="x", created=1, model="m", usage=(1, 2))
    given = handed_over(response, message, (30, 12), ["x", "y"])
    said = calling(call("transfer_to_sales", "x"), call("transfer_to_x", "y"), content="One moment.")
    assert given["choices"] == [{"index": 0, "message": said, "finish_reason": "tool_calls"}]
    assert given["usage"] == {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}


def test_control_calls_get_ids_that_no_other_call_of_the_run_has() -> None:
    message = calling(call("a", None), call("b", "x"), call("c", "x"), call("d", ""))
    response = completion(id="x", created=1, model="m")
    session, first = hand_control(SHOP, response, message, reply_of(message)[1], (0, 0), 0)
    session, second = hand_control(session, response, message, reply_of(message)[1], (0, 0), 1)
    ids = [it["id"] for one in (first, second) for it in read_message(one.outcome.response)["tool_calls"]]
    assert len(set(ids)) == 8
    assert all(re.fullmatch("call_[0-9a-f]{24}", it) for it in ids)
    assert set(session.aliases) == set(ids)


def test_a_handed_over_call_of_the_older_dialect_ends_in_its_own_way() -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": "{}"}}
    given = handed_over(completion(id="x", created=1, model="m"), message, (0, 0), [])
    assert given["choices"] == [{"index": 0, "message": message, "finish_reason": "function_call"}]


def test_the_results_of_handed_over_calls_are_known_by_their_ids() -> None:
    _, calls = reply_of(calling(call("transfer_to_sales", "a"), call("transfer_to_x", "b")))
    first, second = ({"role": "tool", "tool_call_id": id, "content": id} for id in "ab")
    earlier = {"role": "tool", "tool_call_id": "z", "content": "other"}
    odd = ["odd", {"role": "tool", "tool_call_id": ["a"]}, {"role": "tool"}]
    assert results_of([USER, earlier, *odd, second, first, USER], calls) == [second, first]
    assert results_of([USER, earlier], calls) == []


def test_results_without_ids_are_known_by_the_name_and_must_be_the_last() -> None:
    _, calls = reply_of({"function_call": {"name": "transfer_to_sales", "arguments": "{}"}})
    result = {"role": "function", "name": "transfer_to_sales", "content": "ok"}
    said = {"role": "assistant", "content": "Hi."}
    assert results_of([USER, result, said, USER], calls) == []
    assert results_of([USER, said, result], calls) == [result]
