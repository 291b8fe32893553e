"""The same Session in each mode: the same Trajectory, the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from openai import AsyncOpenAI
from support.playing import Proxy, serving

from proxy.session import SESSION_OVER
from proxy.settings import PlayConfig
from scoring.logs.reader import open_log
from scoring.verdicts.wildtoolbench import score_session

Body = dict[str, Any]
CarryOut = Callable[[str, Body], Awaitable[str]]

SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {}}}
OWN = [{"type": "function", "function": SEARCH}]
SESSIONS = ("home_6", "ledger_1")
MODES = ("intercept", "relay", "mcp")


async def converse(client: AsyncOpenAI, tools: list[Body], carry_out: CarryOut) -> None:
    """An agent's loop over all turns of a Session."""
    messages: list[Any] = [{"role": "system", "content": "You help."}]
    text = None
    turn = 0
    while text != SESSION_OVER:
        turn += 1
        messages.append({"role": "user", "content": f"[[next-user-turn {turn}]]"})
        while True:
            answer = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                content = await carry_out(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        text = said.content


async def play(proxy: Proxy, session: str, mode: str, prefix: str = "") -> None:
    async def unknown(name: str, arguments: Body) -> str:
        return f"there is no tool {name}"

    client = proxy.sdk(session)
    if mode != "mcp":
        await converse(client, OWN, unknown)
        return
    async with Client(f"{proxy.url}/s/{session}/mcp") as mcp:

        async def over_mcp(name: str, arguments: Body) -> str:
            result = await mcp.call_tool(name.removeprefix(prefix), arguments)
            return "".join(getattr(part, "text", "") for part in result.content)

        listed = (await mcp.list_tools()).tools
        tools = [
            {
                "type": "function",
                "function": {
                    "name": prefix + tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema,
                },
            }
            for tool in listed
        ]
        await converse(client, tools, over_mcp)


def config(mode: Any, **more: Any) -> PlayConfig:
    return PlayConfig(tools=mode, agent_tools="keep" if mode == "mcp" else "replace", **more)


async def played(
    folder: Path, policy: str, play_config: PlayConfig, prefix: str = ""
) -> tuple[list[Any], list[Any]]:
    """(Trajectories, verdicts) of some bundled Scenarios."""
    folder.mkdir()
    async with serving(folder, policy, environ=None, scenarios=("bundled",), play=play_config) as proxy:
        for session in SESSIONS:
            await play(proxy, session, play_config.tools, prefix)
        log = open_log(proxy.log)
        trajectories = log.trajectories(proxy.run_id)
    told = [trajectory for trajectory in trajectories if trajectory.scenario.id in SESSIONS]
    steps = [[[_reply(reply) for reply in task.replies] for task in it.tasks] for it in told]
    return steps, [[task.label for task in score_session(it).tasks] for it in told]


def _reply(reply: Any) -> Any:
    """What a reply says, without the ids, which belong to a conversation."""
    return reply.content or None, [(call.name, call.arguments) for call in reply.calls]


@pytest.mark.parametrize("policy", ["sim:oracle", "sim:noisy:0.3:3"])
@pytest.mark.parametrize("history", ["gold", "live"])
async def test_every_tool_mode_gives_the_same_trajectory_and_the_same_verdicts(
    tmp_path: Path, policy: str, history: Any
) -> None:
    more: Any = {"history": history, "on_mismatch": "continue" if history == "live" else "stop"}
    first = await played(tmp_path / "intercept", policy, config("intercept", **more))
    for mode in MODES[1:]:
        assert await played(tmp_path / mode, policy, config(mode, **more)) == first
    if policy == "sim:oracle":
        assert {label for labels in first[1] for label in labels} == {"correct"}


async def test_tools_that_the_agent_has_renamed_are_the_same_tools(tmp_path: Path) -> None:
    plain = await played(tmp_path / "plain", "sim:oracle", config("mcp"))
    assert await played(tmp_path / "renamed", "sim:oracle", config("mcp"), prefix="mcp__mock__") == plain


@pytest.mark.parametrize("history_from", ["agent", "proxy"])
async def test_live_and_gold_are_both_right_for_an_llm_that_is(tmp_path: Path, history_from: Any) -> None:
    live = config("intercept", history="live", history_from=history_from, on_mismatch="continue")
    gold = await played(tmp_path / "gold", "sim:oracle", config("intercept"))
    assert await played(tmp_path / "live", "sim:oracle", live) == gold
