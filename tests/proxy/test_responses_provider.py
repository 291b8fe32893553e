"""Providers that are asked over the Responses API, whatever the agent speaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.driving import driven, verdicts
from support.playing import playing, prompt, soon

CHAT = scenes.chat("chat", 2)
TOOL = {"type": "function", "name": "search", "parameters": {"type": "object", "properties": {}}}


def item(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(arguments)
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": text,
    }


def response(number: int, *output: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1700000000, "model": "m-2"}
    return {**whole, "status": "completed", "output": list(output), "usage": usage, **more}


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def answer(provider: Any, *output: dict[str, Any], **more: Any) -> None:
    """A reply as JSON, or as the stream that says the same."""

    def say(request: Any) -> Any:
        whole = response(len(provider.requests), *output, **more)
        if not request.body.get("stream"):
            return provider.as_json(whole)
        begun = event("response.created", response={**whole, "status": "in_progress", "output": []})
        done = [event("response.output_item.done", output_index=at, item=it) for at, it in enumerate(output)]
        return provider.as_stream([begun, *done, event("response.completed", response=whole)])

    provider.queued(say)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("speaks", ["chat", "responses"])
async def test_a_session_is_played_over_the_responses_api(
    provider: Any, tmp_path: Path, stream: bool, speaks: str
) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
    answer(provider, reasoning, call("c1", "getPrice", {"thing": "lamp"}))
    answer(provider, item("It costs 3."))
    async with playing(tmp_path, provider.url, provider_api="responses") as proxy:
        client = proxy.sdk("shop")
        if speaks == "chat":
            got: Any = await client.chat.completions.create(**prompt(1), stream=stream)
            if stream:
                got = "".join([it.choices[0].delta.content or "" async for it in got if it.choices])
            else:
                got = got.choices[0].message.content
        elif stream:
            async with client.responses.stream(model="m", input="[[next-user-turn 1]]") as events:
                got = (await events.get_final_response()).output_text
        else:
            got = (await client.responses.create(model="m", input="[[next-user-turn 1]]")).output_text
        assert got == "It costs 3."
        first, second = provider.requests
        assert {first.path, second.path} == {"/v1/responses"}
        assert first.body["instructions"] == "Current Date: 2025-03-04 09:30:00 Tuesday"
        assert first.body["input"] == [
            {"type": "message", "role": "user", "content": "What does a lamp cost?"}
        ]
        assert first.body["store"] is False
        assert [tool["name"] for tool in first.body["tools"]] == [
            tool["function"]["name"] for tool in scenes.TOOLS
        ]
        kinds = [it["type"] for it in second.body["input"]]
        assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
        assert second.body["input"][1] == reasoning
        assert second.body["include"] == ["reasoning.encrypted_content"]
        assert second.body["input"][-1]["call_id"] == second.body["input"][-2]["call_id"]
        rows = proxy.exchanges("provider")
        assert [row["path"] for row in rows] == ["/responses"] * 2
        assert [(row["input_tokens"], row["output_tokens"]) for row in rows] == [(10, 5)] * 2
        assert [row["response_id"] for row in rows] == ["resp_1", "resp_2"]
    assert verdicts(tmp_path / "log.db")["shop", 1, 1] == ("correct", True)


@pytest.mark.parametrize(
    "last",
    [
        event("response.failed", response=response(1, status="failed", error={"message": "it broke"})),
        event("error", code="server_error", message="it broke"),
        None,
    ],
)
async def test_a_stream_that_breaks_is_asked_for_again(
    provider: Any, tmp_path: Path, last: bytes | None
) -> None:
    begun = event("response.created", response=response(1, status="in_progress"))
    provider.stream([begun, last or provider.CUT])
    answer(provider, item("Hi."))
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses", provider_retries=1) as proxy:
        got = await soon(proxy.chat("chat", 1, stream=True))
        assert got.status == 200
        assert b'"Hi."' in got.raw
        states = [row["finish_state"] for row in proxy.exchanges("provider")]
        assert states == ["provider_abort" if last is None else "error_event", "complete"]


async def test_an_answer_is_over_with_its_last_event_though_the_connection_stays_open(
    provider: Any, tmp_path: Path
) -> None:
    whole = response(1, item("Hi."))
    provider.stream([event("response.completed", response=whole), asyncio.Event()])
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses") as proxy:
        assert b'"Hi."' in (await soon(proxy.chat("chat", 1, stream=True))).raw


async def test_an_answer_that_was_cut_is_judged_like_one_over_chat(provider: Any, tmp_path: Path) -> None:
    answer(provider, item("Hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses") as proxy:
        assert (await proxy.chat("chat", 1)).text == "Hel"
        assert json.loads(proxy.exchanges("provider")[0]["finish_reasons"]) == ["length"]


async def test_a_failure_reaches_the_agent_as_the_provider_told_it(provider: Any, tmp_path: Path) -> None:
    provider.fail(400, "no such model")
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses") as proxy:
        got = await proxy.chat("chat", 1)
        assert (got.status, got.error["message"]) == (400, "no such model")


async def test_a_side_call_over_the_responses_api_goes_to_it(provider: Any, tmp_path: Path) -> None:
    answer(provider, item("Hi."))
    answer(provider, item("A title"))
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses") as proxy:
        client = proxy.sdk("chat")
        tools: Any = [TOOL]
        await client.responses.create(model="m", input="[[next-user-turn 1]]", tools=tools)
        aside = await client.responses.create(
            model="small", instructions="Write a title.", input="For: [[next-user-turn 1]]"
        )
        assert aside.output_text == "A title"
        sent = provider.requests[1]
        assert sent.path == "/v1/responses"
        assert sent.body["instructions"] == "Write a title."
        assert sent.body["input"] == [{"type": "message", "role": "user", "content": "For: chat asks 1"}]


async def test_an_agent_that_speaks_functions_gets_its_turn(provider: Any, tmp_path: Path) -> None:
    answer(provider, call("c1", "getPrice", {"thing": "lamp"}))
    answer(provider, item("It costs 3."))
    async with playing(tmp_path, provider.url, provider_api="responses") as proxy:
        functions = [{"name": "search", "parameters": {"type": "object", "properties": {}}}]
        assert (await proxy.chat("shop", 1, functions=functions)).text == "It costs 3."
        kinds = [it["type"] for it in provider.requests[1].body["input"]]
        assert kinds == ["message", "function_call", "function_call_output"]
    assert verdicts(tmp_path / "log.db")["shop", 1, 1] == ("correct", True)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_simulated_provider_can_be_asked_over_the_responses_api(
    tmp_path: Path, stream: bool
) -> None:
    log = tmp_path / "log.db"
    await driven(log, "sim:oracle", ("bundled",), stream=stream, provider_api="responses")
    assert {label for label, _ in verdicts(log).values()} == {"correct"}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_over_chat_gets_no_items_of_the_providers(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    answer(
        provider,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"},
        item("Hi."),
    )
    async with playing(tmp_path, provider.url, CHAT, provider_api="responses") as proxy:
        raw = (await proxy.chat("chat", 1, stream=stream)).raw
        assert b"Hi." in raw
        assert b"secret" not in raw
