"""What clients of the Responses API make of a conversation in their requests, as it was seen on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Body, Proxy, playing

from proxy.settings import PlayConfig
from scoring.logs.reader import open_log
from scoring.verdicts.wildtoolbench import score_session

LAMP, STOCK = ("getPrice", {"thing": "lamp"}), ("countStock", {"thing": "lamp"})
CHAIR = ("getPrice", {"thing": "chair"})
OBSERVATIONS = ['{"price": 3, "unit": "€"}', '{"price": 7}', "12 lamps"]
RECORD = {**scenes.SHOP, "tasks": scenes.SHOP["tasks"][:2], "answer_list": scenes.SHOP["answer_list"][:2]}
TOOL = {"type": "function", **scenes.tool("search", words="string")["function"]}
DATE = "Current Date: 2025-03-04 09:30:00 Tuesday"
PROMPT = "Be helpful."

Form = Callable[[Body], Body]


def same(item: Body) -> Body:
    return item


def without_id(item: Body) -> Body:
    """Without the item's id, and with arguments read and written again."""
    item = {key: it for key, it in item.items() if key != "id"}
    if "arguments" in item:
        item["arguments"] = json.dumps(json.loads(item["arguments"]), separators=(",", ":"))
    return item


def reference(item: Body) -> Body:
    return {"type": "item_reference", "id": item["id"]} if item["type"] == "message" else item


def typed(item: Body) -> Body:
    return {"type": "message", **item, "content": [{"type": "input_text", "text": item["content"]}]}


def in_parts(item: Body) -> Body:
    return {**item, "output": [{"type": "input_text", "text": item["output"]}]}


@dataclass(frozen=True)
class Client:
    """How a client writes each item; `role` None means `instructions`. With `refers` it sends what
    is new behind `previous_response_id`, with `repeats` the turn's user message once more.
    """

    role: str | None = None
    user: Form = same
    output: Form = same
    result: Form = same
    refers: bool = False
    repeats: bool = False
    fields: Body = field(default_factory=dict)


CLIENTS = {
    "openai-agents": Client(fields={"include": []}),
    "@openai_agents": Client(user=typed, fields={"include": [], "text": {"verbosity": "low"}}),
    "langchain": Client(role="system"),
    "pydantic-ai": Client(output=without_id, fields={"include": ["reasoning.encrypted_content"]}),
    "llama-index": Client(
        role="developer",
        fields={"store": False, "temperature": 0.1, "instructions": None, "truncation": None, "top_p": None},
    ),
    "strands": Client(user=typed, fields={"store": False}),
    "agno": Client(role="developer", refers=True, fields={"store": True, "reasoning": {}}),
    "haystack": Client(role="system", result=in_parts),
    "semantic-kernel": Client(refers=True, repeats=True, fields={"store": True, "metadata": {}}),
    "ai-sdk": Client(role="system", user=typed, output=reference, fields={"tool_choice": "auto"}),
    "ai-sdk of a reasoning model": Client(role="developer", user=typed, output=reference),
    "openai-js": Client(role="system", user=typed),
}


class Agent:
    """A loop around responses that writes its items as a client does."""

    def __init__(self, proxy: Proxy, client: Client) -> None:
        self._proxy, self._client = proxy, client
        self._history: list[Body] = []
        self._again: list[Body] = []
        self._previous: str | None = None
        if client.role is not None:
            self._history = [{"role": client.role, "content": PROMPT}]

    async def say(self, text: str) -> str:
        client = self._client
        said = client.user({"role": "user", "content": text})
        new, self._again = [said], [said] if client.repeats else []
        for _ in range(9):
            response = await self._ask(new)
            self._history += [*new, *map(client.output, response["output"])]
            calls = [it for it in response["output"] if it["type"] == "function_call"]
            if not calls:
                return str(response["output"][-1]["content"][0]["text"])
            ids = [call["call_id"] for call in calls]
            told = [{"type": "function_call_output", "call_id": it, "output": "no such tool"} for it in ids]
            new = [*map(client.result, told)]
        raise AssertionError("nine steps and not at the end")

    async def _ask(self, new: list[Body]) -> Body:
        client = self._client
        body: Body = {"model": "m", "tools": [TOOL], **client.fields}
        if client.role is None:
            body["instructions"] = PROMPT
        if client.refers and self._previous is not None:
            again = self._again if new[0].get("type") == "function_call_output" else []
            body |= {"previous_response_id": self._previous, "input": [*again, *new]}
        else:
            body["input"] = [*self._history, *new]
        answer = await self._proxy.send("POST", "/s/shop/v1/responses", json=body)
        assert answer.status == 200, answer.raw
        response: Body = answer.json
        self._previous = response["id"]
        return response


@pytest.mark.parametrize("history", ["gold", "live"])
@pytest.mark.parametrize("tools", ["intercept", "relay"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_conversation_in_the_form_of(
    provider: Any, tmp_path: Path, client: str, tools: Any, history: Any
) -> None:
    provider.reply("Let me see.", calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    provider.reply("7, and 12.")
    play = PlayConfig(tools=tools, history=history)
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        agent = Agent(proxy, CLIENTS[client])
        assert await agent.say("[[next-user-turn 1]]") == "A lamp costs 3."
        assert await agent.say("[[next-user-turn 2]]") == "7, and 12."
        found = open_log(proxy.log)
        [trajectory] = found.trajectories(proxy.run_id)
    assert [task.label for task in score_session(trajectory).tasks] == ["correct", "correct"]
    last = provider.requests[-1].body["messages"]
    assert [it["content"] for it in last if it["role"] == "tool"] == OBSERVATIONS
    assert [it["content"] for it in last if it["role"] == "user"] == RECORD["tasks"]
    assert last[0]["content"] == f"{PROMPT}\n\n{DATE}"
    for request in provider.requests:
        assert not {"input", "instructions", "include", "previous_response_id"} & set(request.body)
        assert not any(request.body[key] is None for key in request.body)
        for message in request.body["messages"]:
            assert set(message) <= {"role", "content", "tool_calls", "tool_call_id"}
