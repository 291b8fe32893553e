"""What a turn comes to for the agent: a text, a call of its `final_answer`, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import playing, prompt

from proxy.outcomes import as_final_answer
from proxy.settings import PlayConfig
from proxy.wire.chat import completion

CHAT = scenes.chat("chat", 2)
LAMP = ("getPrice", {"thing": "lamp"})
FINAL = scenes.tool("final_answer", answer="string")
SEARCH = scenes.tool("search", words="string")


def parameters(value: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "final_answer", "parameters": value}}


# The text as a call. Pure.


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        (FINAL, "answer"),
        (parameters({"type": "object", "properties": {"result": {"type": "any"}}}), "result"),
        (parameters({"type": "object", "properties": {}}), "answer"),
        (parameters(None), "answer"),
        ({"type": "function", "function": {"name": "final_answer"}}, "answer"),
    ],
)
def test_the_text_becomes_the_one_argument_of_the_agents_own_tool(tool: Any, parameter: str) -> None:
    text = 'It is "3" €.\n'
    response = completion(id="c", created=1, model="m", content=text, usage=(3, 4))
    given = as_final_answer(response, {"tools": [SEARCH, tool]}, "call_7")
    [choice] = given["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    [call] = choice["message"]["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("call_7", "function", "final_answer")
    assert json.loads(call["function"]["arguments"]) == {parameter: text}
    assert {**given, "choices": []} == {**response, "choices": []}


@pytest.mark.parametrize(
    "tools", [None, [], [SEARCH], ["final_answer"], {"final_answer": 1}, [{"function": 1}]]
)
def test_an_agent_without_that_tool_gets_the_text_as_it_is(tools: Any) -> None:
    response = completion(id="c", created=1, model="m", content="3.")
    assert as_final_answer(response, {"tools": tools}, "call_7") is response
    assert as_final_answer(response, {}, "call_7") is response


# Over HTTP


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_that_ends_with_final_answer_gets_each_turns_text_as_that_call(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply('It costs "3" €.')
    provider.reply("No idea.")
    tools, required = [SEARCH, FINAL], {"tool_choice": "required", "stop": ["Observation:"]}
    async with playing(tmp_path, provider.url) as proxy:
        completions = proxy.sdk("shop").chat.completions
        said = []
        for turn in (1, 2):
            asked = prompt(turn, tools=tools, **required)
            if stream:
                async with completions.stream(**asked) as events:
                    answer: Any = await events.get_final_completion()
            else:
                answer = await completions.create(**asked)
            [choice] = answer.choices
            assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
            [call] = choice.message.tool_calls
            assert (call.type, call.function.name) == ("function", "final_answer")
            said.append((call.id, json.loads(call.function.arguments)))
        assert [arguments for _, arguments in said] == [
            {"answer": 'It costs "3" €.'},
            {"answer": "[task over]"},
        ]
        ids = [call_id for call_id, _ in said]
        assert len(set(ids)) == 2
        assert all(call_id.startswith("call_") and len(call_id) <= 40 for call_id in ids)
        for request in provider.requests:
            assert b"final_answer" not in request.raw
            assert "stop" not in request.body
            assert request.body["tool_choice"] == "auto"
        decisions = [step["decision"] for step in proxy.rows("SELECT decision FROM steps ORDER BY seq")]
        assert decisions == ["observe", "close", "stop"]


async def test_final_answer_is_hidden_from_the_llm_where_the_agents_tools_stay_too(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT, play=PlayConfig(agent_tools="append")) as proxy:
        answer = await proxy.chat("chat", 1, tools=[SEARCH, FINAL])
        assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
        names = [tool["function"]["name"] for tool in provider.requests[0].body["tools"]]
        assert names == ["search", *(tool["function"]["name"] for tool in scenes.TOOLS)]


async def test_the_end_of_the_session_is_told_by_final_answer_too(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, scenes.chat("chat", 1)) as proxy:
        for turn, text in ((1, "chat is told 1"), (2, "[session over]")):
            answer = await proxy.chat("chat.e1", turn, tools=[FINAL])
            [call] = answer.json["choices"][0]["message"]["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"answer": text}
        assert len(provider.requests) == 1


async def test_a_turn_asked_for_again_is_told_in_the_way_that_it_is_asked_for(
    provider: Any, tmp_path: Path
) -> None:
    """Not every request of a turn offers the same tools: a last call without any, for one."""
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        called = await proxy.chat("chat", 1, tools=[FINAL])
        told = await proxy.chat("chat", 1, tools=[SEARCH])
        assert called.json["choices"][0]["finish_reason"] == "tool_calls"
        assert told.text == "chat is told 1"
        assert len(provider.requests) == 1


# Requests that are not let in


@pytest.mark.parametrize(
    ("sent", "status", "kind"),
    [
        ({"json": prompt(1, n=2)}, 400, "invalid_request_error"),
        ({"data": b"{"}, 400, "invalid_request_error"),
        ({"json": prompt(4)}, 400, "turn_not_open"),
    ],
)
async def test_a_refused_request_is_in_the_log_and_in_the_state_of_its_session(
    provider: Any, tmp_path: Path, sent: dict[str, Any], status: int, kind: str
) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        await proxy.control("POST", "/sessions/chat.e1/turns")
        answer = await proxy.send("POST", "/s/chat.e1/v1/chat/completions", **sent)
        assert answer.status == status
        assert answer.headers["x-should-retry"] == "false"
        [row] = proxy.exchanges()
        assert (row["reason"], row["finish_state"], row["status"]) == ("refused", "proxy_error", status)
        assert row["error"] == answer.error["message"]
        assert row["error_type"] == kind
        assert (row["session_id"], row["turn"]) == (f"{proxy.run_id}/chat.e1", 1)
        state = (await proxy.control("GET", "/sessions/chat.e1?answered=1&wait=30")).json
        assert (state["refused_turn"], state["answered"], state["turn"]) == (1, 0, 1)
        # The turn itself stands as it stood.
        assert (await proxy.chat("chat.e1", 1)).text == "Something."
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["answered"], state["refused_turn"]) == (1, 1)


@pytest.mark.parametrize("opened", [False, True])
async def test_a_turn_with_the_number_nought_is_refused(provider: Any, tmp_path: Path, opened: bool) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        if opened:
            await proxy.control("POST", "/sessions/chat.e1/turns")
        answer = await proxy.chat("chat.e1", 0)
        assert answer.status == 400
        assert "turn 0" in answer.error["message"]
        [row] = proxy.exchanges()
        assert (row["finish_state"], row["status"]) == ("proxy_error", 400)
        assert provider.requests == []


async def test_an_endpoint_that_is_not_played_is_refused_in_the_log_too(
    provider: Any, tmp_path: Path
) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        await proxy.control("POST", "/sessions/chat.e1/turns")
        await proxy.send("POST", "/s/chat.e1/v1/completions", json={"prompt": "Hello"})
        [row] = proxy.exchanges()
        assert (row["reason"], row["error_type"]) == ("refused", "endpoint_not_played")
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert state["refused_turn"] == 1


async def test_a_request_for_a_session_that_does_not_exist_is_in_the_log_without_one(
    provider: Any, tmp_path: Path
) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.chat("chatt", 1)
        [row] = proxy.exchanges()
        assert (row["reason"], row["session_id"], row["status"]) == ("refused", None, 404)
        assert proxy.rows("SELECT * FROM sessions") == []
