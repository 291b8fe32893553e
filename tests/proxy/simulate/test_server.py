"""The scripted provider over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from io import BytesIO
from itertools import count
from typing import Any

import aiohttp
import openai
import pytest

from proxy.simulate.policies import FIXED_TEXT, Answer, parse_policy
from proxy.simulate.server import running
from scenarios.history import released_tools
from scenarios.reference import depth
from scenarios.types import Scenario, ToolCall

Post = Callable[..., Any]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def provider(library: Scenario) -> AsyncIterator[Callable[..., Any]]:
    """await provider(policy, **settings): the base URL of a provider of the library."""
    async with AsyncExitStack() as stack:

        async def start(policy: str = "oracle", **settings: Any) -> str:
            return await stack.enter_async_context(running([library], parse_policy(policy), **settings))

        yield start


def request_for(scenario: Scenario, messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "tested", "messages": messages, "tools": released_tools(scenario), **more}


async def ask(http: aiohttp.ClientSession, url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    data = BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    async with http.post(f"{url}/chat/completions", data=data, headers=headers) as response:
        return response.status, await response.read()


async def test_a_whole_answer_has_what_every_client_needs(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    url = await provider()
    body = request_for(library, start_of(library, 1))
    async with http.post(f"{url}/chat/completions", json=body) as response:
        assert (response.status, response.content_type) == (200, "application/json")
        answer = await response.json()
    characters = len(json.dumps(body["messages"])) + len(json.dumps(body["tools"]))
    # "Of which book?" has 14 characters.
    usage = {"prompt_tokens": -(-characters // 4), "completion_tokens": 4}
    assert answer == {
        "id": answer["id"],
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tested",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Of which book?"},
                "finish_reason": "stop",
            }
        ],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


async def test_an_answer_with_calls_has_their_ids_and_arguments_as_text(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    _, answer = await ask(http, await provider(), request_for(library, start_of(library, 0)))
    choice = json.loads(answer)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    ids = [call.pop("id") for call in choice["message"]["tool_calls"]]
    assert len(set(ids)) == 2 and all(id.startswith("call_") and len(id) <= 40 for id in ids)
    assert choice["message"]["tool_calls"] == [
        {"type": "function", "function": {"name": "find", "arguments": '{"title": "Dune"}'}},
        {"type": "function", "function": {"name": "find", "arguments": '{"title": "Emma"}'}},
    ]


async def test_the_same_request_gets_the_same_bytes_from_any_server(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    body = request_for(library, start_of(library, 0))
    urls = [await provider("noisy:0.5"), await provider("noisy:0.5")]
    answers = {(await ask(http, url, body, **{"x-eval-session": "s.1"}))[1] for url in (*urls, urls[0])}
    assert len(answers) == 1


async def test_the_session_header_tells_epochs_apart(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    url, body = await provider("noisy:0.5"), request_for(library, start_of(library, 0))
    answers = [(await ask(http, url, body, **{"x-eval-session": f"s.{epoch}"}))[1] for epoch in range(8)]
    assert len(set(answers)) == 8
    said = [json.loads(a)["choices"][0]["message"] for a in answers]
    assert any(message != said[0] for message in said)


async def test_a_deliberate_mistake_is_named_in_a_header(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    body = request_for(library, start_of(library, 2))
    named = []
    for policy in ("noisy:1", "oracle"):
        async with http.post(f"{await provider(policy)}/chat/completions", json=body) as response:
            named.append(response.headers.get("x-simulate-mistake"))
    assert named[0] in ("empty", "call_instead_of_text")
    assert named[1] is None


async def test_created_comes_from_the_clock_that_was_given(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    ticks = count(1_800_000_000)
    url = await provider(clock=lambda: next(ticks))
    body = request_for(library, start_of(library, 2))
    created = [json.loads((await ask(http, url, body))[1])["created"] for _ in range(2)]
    assert created == [1_800_000_000, 1_800_000_001]


# Streaming


def chunks_of(stream: bytes) -> list[Any]:
    events = stream.decode().split("\n\n")
    assert events.pop() == "" and events.pop() == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize("usage", [True, False])
async def test_a_stream_ends_with_its_reason_and_usage_only_if_asked(
    usage: bool, http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    options = {"stream_options": {"include_usage": True}} if usage else {}
    body = request_for(library, start_of(library, 0), stream=True, **options)
    async with http.post(f"{await provider()}/chat/completions", json=body) as response:
        assert response.content_type == "text/event-stream"
        chunks = chunks_of(await response.read())
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    if usage:
        assert chunks[-1]["choices"] == [] and chunks.pop()["usage"]["completion_tokens"] == 11
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "tool_calls"}


@pytest.mark.parametrize("policy", ["oracle", "always-call", "text-only"])
async def test_a_client_library_reads_the_same_from_a_stream_as_from_a_whole_answer(
    policy: str, provider: Any, library: Scenario, start_of: Any
) -> None:
    async with openai.AsyncOpenAI(base_url=await provider(policy), api_key="none") as client:
        for task in range(3):
            asked: Any = request_for(library, start_of(library, task))
            whole = await client.chat.completions.create(**asked)
            async with client.chat.completions.stream(**asked) as stream:
                streamed = await stream.get_final_completion()
            said, heard = whole.choices[0], streamed.choices[0]
            assert (heard.finish_reason, heard.message.content) == (
                said.finish_reason,
                said.message.content,
            )
            assert [
                (c.id, c.function.name, c.function.arguments) for c in heard.message.tool_calls or []
            ] == [(c.id, c.function.name, c.function.arguments) for c in said.message.tool_calls or []]


async def test_an_empty_reply_has_empty_text_and_no_calls(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    url, body = await provider("empty"), request_for(library, start_of(library, 0))
    answer = json.loads((await ask(http, url, body))[1])
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": ""}
    assert answer["usage"]["completion_tokens"] == 0
    chunks = chunks_of((await ask(http, url, {**body, "stream": True}))[1])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "stop"
    assert not any(chunk["choices"][0]["delta"].get("content") for chunk in chunks)


# Dialects and paths


async def test_a_request_with_functions_is_answered_in_their_dialect(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    functions = [tool["function"] for tool in released_tools(library)]
    body = {"model": "m", "messages": start_of(library, 0), "functions": functions}
    choice = json.loads((await ask(http, await provider("serial"), body))[1])["choices"][0]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "find", "arguments": '{"title": "Dune"}'},
    }


async def test_the_paths_without_v1_work_too(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    url = await provider("text-only")
    root = url.removesuffix("/v1")
    assert (await ask(http, root, request_for(library, start_of(library, 0))))[0] == 200
    async with http.get(f"{root}/healthz") as response:
        assert await response.json() == {"status": "ok", "policy": "text-only", "scenarios": 1}
    for base in (url, root):
        async with http.get(f"{base}/models") as response:
            assert [model["id"] for model in (await response.json())["data"]] == ["sim:text-only"]


# Errors


@pytest.mark.parametrize("stream", [True, False])
async def test_a_conversation_that_matches_no_scenario_is_refused_as_openai_would(
    stream: bool, http: aiohttp.ClientSession, provider: Any, write: Any
) -> None:
    tools = [write.tool("fly")]
    body = {"model": "m", "messages": [write.user("Who are you?")], "tools": tools, "stream": stream}
    status, answer = await ask(http, await provider("oracle"), body)
    error = json.loads(answer)["error"]
    assert (status, error["type"], error["code"], error["param"]) == (
        400,
        "invalid_request_error",
        "no_matching_scenario",
        "messages",
    )
    assert "matches no scenario" in error["message"]
    assert (await ask(http, await provider("text-only"), body))[0] == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "`messages`, a list"),
        (b"{}", "`messages`, a list"),
        (b'{"messages": []}', "`messages`, a list"),
        (b'{"messages": ["hi"]}', "messages[0] must be an object"),
        (b'{"messages": [{}], "tools": {}}', "`tools` must be a list"),
        (b'{"messages": [{}], "functions": 1}', "`functions` must be a list"),
    ],
)
async def test_a_broken_request_gets_400_and_one_line(
    body: bytes, says: str, http: aiohttp.ClientSession, provider: Any
) -> None:
    status, answer = await ask(http, await provider("text-only"), body)
    assert status == 400
    assert says in json.loads(answer)["error"]["message"]


async def test_unknown_paths_and_methods_get_errors_that_clients_can_read(
    http: aiohttp.ClientSession, provider: Any
) -> None:
    url = await provider()
    async with http.post(f"{url}/messages", json={}) as response:
        assert response.status == 404
        assert (await response.json())["error"]["message"] == "POST /v1/messages: Not Found"
    async with http.get(f"{url}/chat/completions") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert (await response.json())["error"]["code"] == "405"


async def test_a_long_conversation_is_not_too_large(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any, write: Any
) -> None:
    system = {"role": "system", "content": "x" * 3_000_000}
    body = request_for(library, [system, *start_of(library, 2)])
    status, answer = await ask(http, await provider(), body)
    assert status == 200
    assert json.loads(answer)["choices"][0]["message"]["content"] == "You are welcome."


async def test_text_that_is_not_valid_unicode_is_answered(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, write: Any
) -> None:
    body = json.dumps({"model": "\ud800", "messages": [write.user("\ud800 Thank you!")]}).encode()
    status, answer = await ask(http, await provider(), body, **{"x-eval-session": "s"})
    assert status == 200
    assert json.loads(answer)["choices"][0]["message"]["content"] == "You are welcome."


# Starting and stopping


async def test_a_stopped_provider_is_gone(library: Scenario) -> None:
    async with running([library], parse_policy("oracle")) as url:
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/v1")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{url}/models")


async def test_a_port_in_use_is_an_os_error(library: Scenario, provider: Any) -> None:
    port = int((await provider()).split(":")[2].split("/")[0])
    with pytest.raises(OSError):
        async with running([library], parse_policy("oracle"), port=port):
            raise AssertionError("two servers on one port")


async def test_answers_wait_for_the_latency_side_by_side(
    http: aiohttp.ClientSession, provider: Any, library: Scenario, start_of: Any
) -> None:
    url, loop = await provider("text-only", latency=0.2), asyncio.get_running_loop()
    began = loop.time()
    body = request_for(library, start_of(library, 0))
    answers = await asyncio.gather(*(ask(http, url, body) for _ in range(20)))
    assert {status for status, _ in answers} == {200}
    assert loop.time() - began >= 0.2


# A whole run


async def test_all_real_sessions_at_once_are_played_to_the_end_in_the_fewest_steps(
    real: tuple[Scenario, ...], play_with: Any
) -> None:
    """Every Task of 18 sessions in threads of their own against one provider."""

    async with running(real, parse_policy("oracle")) as url:
        loop = asyncio.get_running_loop()
        async with aiohttp.ClientSession() as session:

            async def fetch(messages: list[Any], tools: list[Any]) -> Answer:
                body = {"model": "m", "messages": messages, "tools": tools}
                status, answer = await ask(session, url, body)
                assert status == 200, answer
                message = json.loads(answer)["choices"][0]["message"]
                calls = [
                    ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
                    for c in message.get("tool_calls", [])
                ]
                return Answer(message["content"] or "", tuple(calls), "")

            def answer_to(messages: list[Any], tools: list[Any]) -> Answer:
                return asyncio.run_coroutine_threadsafe(fetch(messages, tools), loop).result(30)

            tasks = [(scenario, task) for scenario in real for task in range(len(scenario.tasks))]
            played = await asyncio.gather(
                *(asyncio.to_thread(play_with, scenario, task, answer_to) for scenario, task in tasks)
            )
    assert all(one.correct for one in played)
    assert [len(one.answers) for one in played] == [depth(s.tasks[t].nodes) for s, t in tasks]


def test_the_fixed_text_is_never_empty() -> None:
    assert FIXED_TEXT.strip()
