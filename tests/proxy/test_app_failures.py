"""What the agent gets when the provider fails, and while it is waited for, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from support import scenes
from support.playing import playing, prompt

from proxy.wire.sse import SSEDecoder

LAMP = ("getPrice", {"thing": "lamp"})
CHAT = scenes.chat("chat", 3)


# When the provider fails


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "error"), [(401, openai.AuthenticationError), (400, openai.BadRequestError)]
)
async def test_an_error_of_the_provider_reaches_the_agent_as_it_came(
    provider: Any, tmp_path: Path, stream: bool, status: int, error: type[openai.APIStatusError]
) -> None:
    headers = {"x-request-id": "req-7", "x-ratelimit-remaining-requests": "0", "x-should-retry": "true"}
    body = {"error": {"message": "überlastet", "type": "t", "param": None, "code": "c"}, "extra": [1]}
    provider.json(body, status, headers)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat", retries=2)
        with pytest.raises(error) as caught:
            await client.chat.completions.create(**prompt(1), stream=stream)
        response = caught.value.response
        assert (response.status_code, response.json()) == (status, body)
        assert response.headers["x-request-id"] == "req-7"
        assert response.headers["x-ratelimit-remaining-requests"] == "0"
        assert response.headers["x-should-retry"] == "false"
        assert len(provider.requests) == 1
        [row] = proxy.exchanges("agent")
        assert (row["finish_state"], row["status"]) == ("provider_error", status)
        assert "überlastet" in row["error"]


async def test_a_provider_that_breaks_off_is_a_bad_gateway(provider: Any, tmp_path: Path) -> None:
    provider.drop(after=b'{"id": "x", "choices": [')
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"
        assert (await proxy.chat("chat", 1)).text == "Hi."
        failed, _ = proxy.exchanges("provider")
        assert failed["finish_state"] == "provider_abort"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>busy</html>", "text/html"),
        (b"{}", "application/json"),
        (b'{"error": {"message": "no"}}', "application/json"),
    ],
)
async def test_an_answer_that_is_no_completion_is_an_error_and_never_a_text(
    provider: Any, tmp_path: Path, body: bytes, content_type: str
) -> None:
    provider.body(body, content_type)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert answer.error["message"]
        [row] = proxy.exchanges("provider")
        assert row["finish_state"] == "provider_error"
        assert proxy.rows("SELECT * FROM steps") == []


async def test_after_a_failure_the_turn_goes_on_behind_the_last_accepted_step(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.fail(400, "hiccup")
    provider.reply("It costs 3.")
    async with playing(tmp_path, provider.url) as proxy:
        assert (await proxy.chat("shop", 1)).status == 400
        assert (await proxy.chat("shop", 1)).text == "It costs 3."
        _, failed, again = provider.requests
        assert again.body == failed.body
        steps = proxy.rows("SELECT step, decision FROM steps ORDER BY seq")
        assert steps == [{"step": 0, "decision": "observe"}, {"step": 1, "decision": "close"}]


async def test_a_provider_that_cannot_be_reached_is_a_bad_gateway(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with playing(tmp_path, f"http://127.0.0.1:{unused_tcp_port}/v1", CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert str(unused_tcp_port) in answer.error["message"]
        assert answer.error["code"] == "connect_failure"


# Signs of life


async def test_blanks_before_a_json_answer_keep_the_connection_alive(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("At last.")
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1)) as response:
            first = await response.content.readexactly(3)
            assert (response.status, first) == (200, b"   ")
            release.set()
            rest = await response.read()
        assert json.loads(first + rest)["choices"][0]["message"]["content"] == "At last."


async def test_the_openai_sdk_reads_an_answer_behind_signs_of_life(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        completions = proxy.sdk("chat").chat.completions
        release = provider.hang("At last.")
        # The SDK returns as soon as the head of the answer is there, and that is a sign of life.
        async with completions.with_streaming_response.create(**prompt(1)) as response:
            release.set()
            completion = await response.parse()
        assert completion.choices[0].message.content == "At last."
        release = provider.hang("And again.")
        stream = await completions.create(**prompt(2), stream=True)
        release.set()
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == "And again."


async def test_comments_in_a_stream_keep_the_connection_alive(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("At last.")
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1, stream=True)) as response:
            lines = [await response.content.readline() for _ in range(2)]
            release.set()
            rest = await response.read()
        assert all(line.startswith(b": ") and line.endswith(b"\n") for line in lines)
        decoder = SSEDecoder()
        data = [event.data for event in decoder.feed(b"".join(lines) + rest)]
        assert data.pop() == "[DONE]"
        assert json.loads(data[0])["choices"][0]["delta"]["role"] == "assistant"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_behind_a_sign_of_life_breaks_the_connection_and_the_next_request_goes_on(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    release = asyncio.Event()

    async def fail_late(request: Any) -> Any:
        await release.wait()
        return provider.as_json({"error": {"message": "sorry"}}, 400)

    provider.script(fail_late)
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1, stream=stream)) as response:
            await response.content.readexactly(1)
            release.set()
            with pytest.raises(aiohttp.ClientError):
                await response.read()
        [row] = proxy.exchanges("agent")
        assert (row["finish_state"], row["delivered_at"]) == ("provider_error", None)
        provider.reply("Hi.")
        answers = [await proxy.chat("chat", 1), await proxy.chat("chat", 1)]
        assert answers[-1].text == "Hi."
        assert answers[0].status in (200, 400)
