"""The MCP endpoint of a Session: what the agent's calls are told, and what nobody may learn there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Body, Proxy, playing, prompt

from proxy.settings import PlayConfig

MCP = PlayConfig(tools="mcp", agent_tools="keep")
LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})
PATH = "/s/twins/v1/chat/completions"


async def rpc(proxy: Proxy, session: str, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = await proxy.send("POST", f"/s/{session}/mcp", json=body, headers=headers)
    return answer.json


async def call(proxy: Proxy, name: str, arguments: Body, session: str = "twins") -> str:
    answer = await rpc(proxy, session, "tools/call", name=name, arguments=arguments)
    text: str = answer["result"]["content"][0]["text"]
    return text


def asked(prefix: str = "", *more: Body) -> Body:
    mock = json.loads(json.dumps([*scenes.TOOLS, *more]))
    for tool in mock[: len(scenes.TOOLS)]:
        tool["function"]["name"] = prefix + tool["function"]["name"]
    return prompt(1, tools=mock)


async def test_each_call_of_the_llm_is_told_its_observation(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[CHAIR, LAMP])
    async with playing(tmp_path, provider.url, scenes.TWINS, play=MCP) as proxy:
        await proxy.send("POST", PATH, json=asked())
        assert await call(proxy, *LAMP) == '{"price": 3}'
        # A framework has filled in a default: it is still the call that is left.
        assert await call(proxy, "getPrice", {"thing": "chair", "unit": None}) == '{"price": 7}'
        assert await call(proxy, *LAMP) == '{"price": 3}'
        rows = proxy.rows("SELECT reason, error FROM exchanges WHERE path LIKE '%/mcp'")
        assert rows == [{"reason": "mcp", "error": None}] * 3


async def test_a_call_that_the_llm_did_not_make_learns_nothing_and_moves_nothing(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP, CHAIR])
    async with playing(tmp_path, provider.url, scenes.TWINS, play=MCP) as proxy:
        before = [await call(proxy, *CHAIR), await call(proxy, "getPrice", {"thing": "sofa"})]
        assert before[0] == before[1]
        await proxy.send("POST", PATH, json=asked())
        weigh = await call(proxy, "weigh", {"thing": "lamp", "kilos": 1.5})
        assert json.loads(weigh)["error"]["type"] == "not_found"
        assert json.loads(await call(proxy, "fly", {}))["error"]["type"] == "unknown_tool"
        assert len(proxy.rows("SELECT * FROM steps")) == 1
        errors = proxy.rows("SELECT error FROM exchanges WHERE path LIKE '%/mcp' ORDER BY arrival")
        assert all("without the LLM" in row["error"] for row in errors)


async def test_looking_at_the_tools_opens_no_session(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, scenes.TWINS, play=MCP) as proxy:
        for session in ("twins", "twins.e7"):
            tools = (await rpc(proxy, session, "tools/list"))["result"]["tools"]
            assert [tool["name"] for tool in tools] == ["getPrice", "countStock", "book", "weigh"]
        assert tools[3]["inputSchema"]["properties"]["kilos"]["type"] == "number"
        assert proxy.rows("SELECT * FROM sessions") == []


@pytest.mark.parametrize("tools", ["intercept", "relay"])
async def test_without_the_mode_there_is_no_endpoint(provider: Any, tmp_path: Path, tools: Any) -> None:
    async with playing(tmp_path, provider.url, play=PlayConfig(tools=tools)) as proxy:
        answer = await rpc(proxy, "shop", "tools/list")
        assert "--tools mcp" in answer["error"]["message"]


async def test_a_session_that_is_not_there_is_an_error_of_json_rpc(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        assert "nobody" in (await rpc(proxy, "nobody", "tools/list"))["error"]["message"]


@pytest.mark.parametrize("prefix", ["mcp__mock__", "mock-"])
async def test_renamed_tools_are_the_scenarios_by_the_end_of_their_names(
    provider: Any, tmp_path: Path, prefix: str
) -> None:
    # Two tools of the agent's own end like one of the scenario's too.
    own = [scenes.tool("notebook"), scenes.tool("facebook")]
    provider.reply(calls=[(prefix + "getPrice", {"thing": "lamp"})])
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        answer = await proxy.send("POST", "/s/shop/v1/chat/completions", json=asked(prefix, *own))
        [given] = answer.json["choices"][0]["message"]["tool_calls"]
        assert given["function"]["name"] == prefix + "getPrice"
        assert proxy.rows("SELECT name, outcome FROM tool_calls") == [
            {"name": "getPrice", "outcome": "served"}
        ]
        assert [it["function"]["name"] for it in provider.requests[0].body["tools"]] == [
            *(prefix + tool["function"]["name"] for tool in scenes.TOOLS),
            "notebook",
            "facebook",
        ]


async def test_tools_whose_names_are_written_in_another_way_are_the_same(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("get_price", {"thing": "lamp"})])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        body = asked()
        for tool in body["tools"]:
            name = tool["function"]["name"]
            tool["function"]["name"] = "".join(f"_{it.lower()}" if it.isupper() else it for it in name)
        path = "/s/shop/v1/chat/completions"
        message = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
        assert message["tool_calls"][0]["function"]["name"] == "get_price"
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "?"}
        body["messages"] += [message, result]
        await proxy.send("POST", path, json=body)
        assert provider.requests[1].body["messages"][-2]["tool_calls"][0]["function"]["name"] == "get_price"
        assert proxy.rows("SELECT ending FROM tasks") == [{"ending": "closed"}]


async def test_an_agent_that_lacks_the_tools_is_told_which(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        body = prompt(1, tools=[scenes.tool("search"), scenes.TOOLS[0]])
        answer = await proxy.send("POST", "/s/shop/v1/chat/completions", json=body)
        assert answer.status == 400
        assert "countStock, book, weigh" in answer.error["message"]
        assert "search, getPrice" in answer.error["message"]


async def test_the_tool_by_which_an_agent_ends_its_turn_is_hidden_here_too(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        body = asked("", scenes.tool("final_answer", answer="string"))
        path = "/s/shop/v1/chat/completions"
        message = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
        sent = [tool["function"]["name"] for tool in provider.requests[0].body["tools"]]
        assert "final_answer" not in sent
        calling = message["tool_calls"][0]
        body["messages"] += [message, {"role": "tool", "tool_call_id": calling["id"], "content": "?"}]
        message = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
        assert message["tool_calls"][0]["function"]["name"] == "final_answer"


async def test_a_key_that_is_only_seen_here_is_not_in_the_log(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, play=MCP) as proxy:
        secret = "sk-canary-0123456789abcdef"
        await proxy.send("GET", f"/s/shop/mcp?api_key={secret}", headers={"x-api-key": secret})
        log = proxy.log
    assert all(secret.encode() not in path.read_bytes() for path in log.parent.glob("log.db*"))
