"""Without scenarios everything passes verbatim, chunk by chunk, and is written down."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import openai
import pytest
from support import logs
from support.playing import Answer, Proxy, locked, prompt, recording, soon

from proxy.simulate.policies import parse_policy
from proxy.simulate.server import running as simulating
from scenarios.history import released_tools
from scenarios.load import BUNDLED, read_file

KEY = "sk-test-agent-key-1"
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def chunk(text: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


async def post(proxy: Proxy, body: Any = HELLO, **options: Any) -> Answer:
    return await proxy.send("POST", "/v1/chat/completions", json=body, **options)


def streaming(proxy: Proxy) -> Any:
    """A request for a stream; an `async with` block gets the answer as it begins."""
    return proxy.http.post(f"{proxy.url}/v1/chat/completions", json={**HELLO, "stream": True})


def raw(proxy: Proxy, row: dict[str, Any]) -> bytes:
    return logs.answer(proxy.log, row["id"])


# Requests


async def test_a_request_reaches_the_provider_byte_for_byte(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    odd = (
        b'{ "messages":[{"role":"user","content":"\\u00fc [[next-user-turn 1]]"}],\n'
        b'"model": "m", "n": 3, "big": 123456789012345678901234567890 }'
    )
    async with recording(tmp_path, provider.url) as proxy:
        headers = {
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json; charset=utf-8",
            "X-Custom": "kept",
            "OpenAI-Organization": "org",
            "Connection": "keep-alive, X-Hop",
            "X-Hop": "dropped",
        }
        answer = await proxy.send(
            "POST", "/v1/chat/completions?api-version=7&x=%2525", data=odd, headers=headers
        )
        assert answer.status == 200
        [request] = provider.requests
        assert request.raw == odd
        assert request.query == "api-version=7&x=%25"
        for name in ("Authorization", "Content-Type", "X-Custom", "OpenAI-Organization"):
            assert request.headers.getall(name) == [headers[name]]
        assert "X-Hop" not in request.headers
        assert request.headers["Host"] in provider.url


@pytest.mark.parametrize("authorization", ["Basic dXNlcjpwYXNzd29yZA==", "Bearer a b", "token-alone"])
async def test_any_kind_of_authorization_passes(provider: Any, tmp_path: Path, authorization: str) -> None:
    provider.reply("Hi.")
    async with recording(tmp_path, provider.url) as proxy:
        await post(proxy, headers={"Authorization": authorization})
        assert provider.requests[0].headers.getall("Authorization") == [authorization]


async def test_an_agent_without_a_key_is_given_the_one_of_the_environment(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Hi.")
    async with recording(tmp_path, provider.url, environ={"OPENAI_API_KEY": "sk-own-1234567"}) as proxy:
        await post(proxy)
        assert provider.requests[0].headers["Authorization"] == "Bearer sk-own-1234567"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/models/some%252Fmodel"), ("DELETE", "/v1/files/f-1"), ("POST", "/v1/responses")],
)
async def test_every_endpoint_and_method_passes(
    provider: Any, tmp_path: Path, method: str, path: str
) -> None:
    provider.json({"any": "thing"}, 201)
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send(method, path)
        assert (answer.status, answer.json) == (201, {"any": "thing"})
        assert (provider.requests[0].method, provider.requests[0].path) == (method, unquote(path))
        [row] = proxy.exchanges()
        assert (row["method"], row["path"], row["finish_state"], row["status"]) == (
            method,
            path,
            "complete",
            201,
        )


async def test_a_body_of_three_megabytes_passes_both_ways(provider: Any, tmp_path: Path) -> None:
    text = "ü" * 1_500_000
    provider.script(lambda request: provider.message(request, text))
    async with recording(tmp_path, provider.url) as proxy:
        client = proxy.sdk()
        completion = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}]
        )
        assert completion.choices[0].message.content == text
        assert provider.requests[0].body["messages"][0]["content"] == text
        [row] = await proxy.finished(1)
        assert json.loads(raw(proxy, row))["choices"][0]["message"]["content"] == text


# Answers


async def test_an_answer_comes_with_its_headers_and_bytes(provider: Any, tmp_path: Path) -> None:
    odd = b'{"choices": [ {"message" :{"role":"assistant","content":"\\u00fc"}} ], "x":1e400}\n'
    provider.body(odd, headers={"x-request-id": "r-1", "openai-version": "v", "x-odd": "1"})
    async with recording(tmp_path, provider.url) as proxy:
        answer = await post(proxy)
        assert answer.raw == odd
        assert answer.headers["Content-Length"] == str(len(odd))
        assert [answer.headers[name] for name in ("x-request-id", "openai-version", "x-odd")] == [
            "r-1",
            "v",
            "1",
        ]
        [row] = await proxy.finished(1)
        assert raw(proxy, row) == odd
        assert row["finish_state"] == "complete"


async def test_the_first_chunk_of_a_stream_arrives_while_the_provider_still_holds_the_rest(
    provider: Any, tmp_path: Path
) -> None:
    gates = [asyncio.Event() for _ in range(3)]
    parts = [chunk("One "), gates[0], chunk("two "), gates[1], chunk("three"), gates[2]]
    provider.stream([*parts, chunk(None, "stop"), provider.DONE])
    async with recording(tmp_path, provider.url) as proxy:
        stream = await proxy.sdk().chat.completions.create(**HELLO, stream=True)
        said = []
        async for event in stream:
            if event.choices[0].delta.content:
                said.append(event.choices[0].delta.content)
                # Only now does the provider go on.
                gates[len(said) - 1].set()
        assert said == ["One ", "two ", "three"]
        [row] = await proxy.finished(1)
        assert (row["finish_state"], row["stream"]) == ("complete", 1)
        assert row["time_to_first_chunk"] is not None
        [message] = proxy.rows("SELECT body FROM messages WHERE hash = ?", row["output_message"])
        assert json.loads(message["body"])["content"] == "One two three"


async def test_a_stream_passes_byte_for_byte_with_comments_and_characters_cut_in_two(
    provider: Any, tmp_path: Path
) -> None:
    event = b"data: " + json.dumps(chunk("世界🎉"), ensure_ascii=False).encode() + b"\r\n\r\n"
    pieces = [event[i : i + 1] for i in range(len(event))]
    last = b"data: " + json.dumps(chunk(None, "stop")).encode() + b"\n\n"
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}\n\n'
    sent = [b": ping\n\n", *pieces, b"event: x\nid: 7\n", last, usage, b"data: [DONE]\n\n"]
    provider.stream(sent)
    async with recording(tmp_path, provider.url) as proxy:
        answer = await post(proxy, {**HELLO, "stream": True})
        assert answer.raw == b"".join(sent)
        [row] = await proxy.finished(1)
        assert raw(proxy, row) == answer.raw
        assert (row["input_tokens"], row["output_tokens"]) == (4, 2)
        [message] = proxy.rows("SELECT body FROM messages WHERE hash = ?", row["output_message"])
        assert json.loads(message["body"])["content"] == "世界🎉"


async def test_tool_calls_of_a_stream_are_in_the_log(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("add", {"a": 1}), ("add", {"a": 2})], piece=3)
    async with recording(tmp_path, provider.url) as proxy:
        await post(proxy, {**HELLO, "stream": True})
        [row] = await proxy.finished(1)
        [message] = proxy.rows("SELECT body FROM messages WHERE hash = ?", row["output_message"])
        made = [call["function"] for call in json.loads(message["body"])["tool_calls"]]
        assert [(call["name"], json.loads(call["arguments"])) for call in made] == [
            ("add", {"a": 1}),
            ("add", {"a": 2}),
        ]
        assert json.loads(row["finish_reasons"]) == ["tool_calls"]


async def test_what_the_provider_compressed_arrives_readable(provider: Any, tmp_path: Path) -> None:
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "zip"}}]}).encode()
    provider.body(gzip.compress(body), headers={"Content-Encoding": "gzip"})
    provider.stream([gzip.compress(b"data: [DONE]\n\n")], {"Content-Encoding": "gzip"})
    async with recording(tmp_path, provider.url) as proxy:
        client = proxy.sdk()
        completion = await client.chat.completions.create(**HELLO)
        assert completion.choices[0].message.content == "zip"
        answer = await post(proxy, {**HELLO, "stream": True})
        body = gzip.decompress(answer.raw) if answer.headers.get("Content-Encoding") else answer.raw
        assert body == b"data: [DONE]\n\n"
        first, _ = await proxy.finished(2)
        assert json.loads(raw(proxy, first))["choices"][0]["message"]["content"] == "zip"
        assert provider.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("stream", [False, True])
async def test_the_end_of_an_answer_is_held_back_until_the_log_has_it(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    gate = asyncio.Event()
    if stream:
        provider.stream([chunk("Hi."), gate, chunk(None, "stop"), provider.DONE])
    else:
        gate = provider.hang("Hi.")
    async with recording(tmp_path, provider.url) as proxy:
        asking = asyncio.create_task(post(proxy, {**HELLO, "stream": stream}))
        await soon(provider.arrived(1))
        await proxy.arrived(1)
        with locked(proxy.log):
            gate.set()
            done, _ = await asyncio.wait({asking}, timeout=0.3)
            assert not done
        assert b"Hi." in (await soon(asking)).raw
        [row] = proxy.exchanges()
        assert row["finish_state"] == "complete"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("DELETE", 204)])
async def test_an_answer_without_a_body_passes(
    provider: Any, tmp_path: Path, method: str, status: int
) -> None:
    provider.body(b"", "text/plain", status, {"x-odd": "1"})
    provider.reply("Hi.")
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send(method, "/v1/models")
        assert (answer.status, answer.raw, answer.headers["x-odd"]) == (status, b"", "1")
        # The connection is still good for the next request.
        assert (await post(proxy)).text == "Hi."


async def test_a_compressed_request_arrives_readable(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with recording(tmp_path, provider.url) as proxy:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        body = gzip.compress(json.dumps(HELLO).encode())
        answer = await proxy.send("POST", "/v1/chat/completions", data=body, headers=headers)
        assert answer.text == "Hi."
        assert provider.requests[0].body == HELLO
        [row] = await proxy.finished(1)
        assert row["message_count"] == 1


# Errors


async def test_a_rate_limit_passes_with_its_headers_and_is_not_retried(provider: Any, tmp_path: Path) -> None:
    headers = {"Retry-After": "17", "x-ratelimit-reset-requests": "1s", "x-should-retry": "false"}
    provider.fail(429, "slow down", headers)
    async with recording(tmp_path, provider.url) as proxy:
        with pytest.raises(openai.RateLimitError, match="slow down") as caught:
            await proxy.sdk(retries=2).chat.completions.create(**HELLO)
        for name, value in headers.items():
            assert caught.value.response.headers[name] == value
        assert len(provider.requests) == 1
        [row] = await proxy.finished(1)
        assert (row["finish_state"], row["status"], row["error_type"]) == ("provider_error", 429, "429")
        assert json.loads(row["response_headers"])["retry-after"] == "17"


async def test_a_stream_that_breaks_is_seen_as_broken(provider: Any, tmp_path: Path) -> None:
    provider.stream([chunk("half"), provider.CUT])
    async with recording(tmp_path, provider.url) as proxy:
        async with streaming(proxy) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        [row] = await proxy.finished(1)
        assert (row["finish_state"], row["status"]) == ("provider_abort", 200)
        assert b"half" in raw(proxy, row)


async def test_a_json_answer_that_breaks_is_seen_as_broken(provider: Any, tmp_path: Path) -> None:
    provider.drop(after=b'{"choices": [')
    async with recording(tmp_path, provider.url) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await post(proxy)
        [row] = await proxy.finished(1)
        assert row["finish_state"] == "provider_abort"


async def test_a_stream_without_its_end_passes_and_is_logged_as_incomplete(
    provider: Any, tmp_path: Path
) -> None:
    provider.stream([chunk("half")])
    async with recording(tmp_path, provider.url) as proxy:
        answer = await post(proxy, {**HELLO, "stream": True})
        assert answer.raw.endswith(b"\n\n")
        [row] = await proxy.finished(1)
        assert (row["finish_state"], row["error_type"]) == ("provider_abort", "stream_ended_early")


async def test_a_query_behind_the_path_does_not_hide_a_broken_stream(provider: Any, tmp_path: Path) -> None:
    provider.stream([chunk("half")])
    async with recording(tmp_path, provider.url) as proxy:
        await proxy.send("POST", "/v1/chat/completions?api-version=7", json={**HELLO, "stream": True})
        [row] = await proxy.finished(1)
        assert row["finish_state"] == "provider_abort"


async def test_an_error_inside_a_stream_passes_and_is_logged_as_one(provider: Any, tmp_path: Path) -> None:
    error = b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'
    provider.stream([chunk("half"), error])
    async with recording(tmp_path, provider.url) as proxy:
        answer = await post(proxy, {**HELLO, "stream": True})
        assert answer.raw.endswith(error)
        [row] = await proxy.finished(1)
        assert row["finish_state"] == "error_event"
        assert "overloaded" in row["error"]


async def test_a_provider_that_gives_no_answer_is_a_bad_gateway(
    provider: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    provider.drop()
    async with recording(tmp_path, provider.url) as proxy:
        answer = await post(proxy)
        assert (answer.status, answer.error["type"]) == (502, "provider_error")
        [row] = proxy.exchanges()
        assert (row["finish_state"], row["status"]) == ("provider_abort", 502)
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    async with recording(elsewhere, f"http://127.0.0.1:{unused_tcp_port}/v1") as proxy:
        answer = await post(proxy)
        assert (answer.status, answer.error["code"]) == (502, "connect_failure")
        [row] = proxy.exchanges()
        assert row["finish_state"] == "provider_error"


# Agents that leave


async def test_an_agent_that_leaves_a_stream_takes_the_provider_with_it(
    provider: Any, tmp_path: Path
) -> None:
    provider.stream([chunk("half"), asyncio.Event(), chunk(None, "stop"), provider.DONE])
    async with recording(tmp_path, provider.url, abandon_after=0.0) as proxy:
        async with streaming(proxy) as response:
            await response.content.readline()
            response.close()
        await soon(provider.disconnected.wait())
        [row] = await proxy.finished(1)
        assert (row["finish_state"], row["status"]) == ("client_abort", 200)
        assert row["error_type"] == "client_disconnected"
        assert row["delivered_at"] is None
        assert b"half" in raw(proxy, row)


async def test_an_agent_that_leaves_before_the_first_byte_is_logged_as_gone(
    provider: Any, tmp_path: Path
) -> None:
    provider.hang()
    async with recording(tmp_path, provider.url, abandon_after=0.0) as proxy:
        asking = asyncio.create_task(post(proxy))
        await soon(provider.arrived(1))
        asking.cancel()
        await soon(provider.disconnected.wait())
        [row] = await proxy.finished(1)
        assert row["finish_state"] == "client_abort"


async def test_agents_that_leave_at_any_moment_do_not_stop_the_log(provider: Any, tmp_path: Path) -> None:
    """Each hangs up a little later in the life of its request than the one before."""
    provider.script(lambda request: provider.message(request, "Hi."))
    async with recording(tmp_path, provider.url) as proxy:
        for n in range(80):
            asking = asyncio.create_task(post(proxy, {**HELLO, "stream": bool(n % 2)}))
            for _ in range(n):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        assert (await post(proxy)).text == "Hi."


async def test_a_recording_proxy_knows_no_placeholders_and_no_sessions(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with recording(tmp_path, provider.url) as proxy:
        assert (await proxy.chat("any", 1)).text == "Hi."
        assert provider.requests[0].body == prompt(1)
        assert proxy.rows("SELECT * FROM sessions") == []


# The Responses API


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_recorded_response_says_is_in_its_row(tmp_path: Path, stream: bool) -> None:
    [scenario] = [it for it in read_file(BUNDLED).scenarios if it.id == "home_6"]
    tools = [{**tool["function"], "type": "function"} for tool in released_tools(scenario)]
    async with simulating([scenario], parse_policy("oracle")) as url, recording(tmp_path, url) as proxy:
        asked: Any = {"model": "some-model", "input": scenario.tasks[0].text, "tools": tools}
        client = proxy.sdk()
        if stream:
            async with client.responses.stream(**asked) as events:
                response = await events.get_final_response()
        else:
            response = await client.responses.create(**asked)
        [row] = proxy.exchanges()
        assert (row["finish_state"], row["response_model"]) == ("complete", "some-model")
        assert response.usage is not None
        assert (row["input_tokens"], row["output_tokens"]) == (
            response.usage.input_tokens,
            response.usage.output_tokens,
        )
        [message] = proxy.rows("SELECT body FROM messages WHERE hash = ?", row["output_message"])
        said = json.loads(message["body"])["tool_calls"]
        called = [it for it in response.output if it.type == "function_call"]
        assert [(it["id"], it["function"]["name"]) for it in said] == [(it.call_id, it.name) for it in called]


async def test_a_response_that_is_made_in_the_background_is_no_failure(provider: Any, tmp_path: Path) -> None:
    waiting = {"id": "resp_1", "object": "response", "status": "queued", "output": []}
    provider.json(waiting)
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send("POST", "/v1/responses", json={"input": "Hello", "background": True})
        assert answer.json == waiting
        assert proxy.exchanges()[0]["finish_state"] == "complete"
