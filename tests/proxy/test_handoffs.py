"""Calls of the agent's own control tools: given to the agent, never judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support import scenes
from support.playing import playing

CHAT, OTHER = scenes.chat("chat", 1), scenes.chat("other", 1)
SALES = scenes.tool("transfer_to_sales")
PROMPT = {"role": "user", "content": "[[next-user-turn 1]]"}


def asked(*messages: dict[str, Any], system: str = "You route.") -> dict[str, Any]:
    own = {"role": "system", "content": system}
    return {"model": "m", "messages": [own, *messages], "tools": [SALES]}


async def test_a_handoff_is_carried_out_by_the_agent_and_the_turn_goes_on(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("transfer_to_sales", {})])
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT, OTHER) as proxy:
        first = (await proxy.send("POST", "/s/chat/v1/chat/completions", json=asked(PROMPT))).json
        [choice] = first["choices"]
        assert choice["finish_reason"] == "tool_calls"
        [call] = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "transfer_to_sales"
        result = {"role": "tool", "tool_call_id": call["id"], "content": "You are sales now."}
        # To the bare address, with another system prompt: the call's id says whose it is.
        body = asked(PROMPT, choice["message"], result, system="You sell.")
        second = (await proxy.send("POST", "/v1/chat/completions", json=body)).json
        assert second["choices"][0]["message"]["content"] == "chat is told 1"
        sent = provider.requests[1].body["messages"]
        assert [message["role"] for message in sent[-2:]] == ["assistant", "tool"]
        assert sent[-1]["content"] == "You are sales now."
        assert [row["decision"] for row in proxy.rows("SELECT decision FROM steps")] == ["close"]
        ways = proxy.rows("SELECT correlation FROM exchanges WHERE side = 'agent' ORDER BY arrival")
        assert [row["correlation"] for row in ways] == ["path", "tool_call_id"]


async def test_a_handoff_that_is_asked_for_again_is_given_again(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("transfer_to_sales", {})])
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answers = [
            (await proxy.send("POST", "/s/chat/v1/chat/completions", json=asked(PROMPT))).json
            for _ in range(2)
        ]
        assert answers[0]["choices"] == answers[1]["choices"]
        assert len(provider.requests) == 1
