from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from proxy.log.rows import FINISH_STATES
from proxy.provider import Answer, Provider, ProviderFailure
from proxy.provider_errors import explain

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def outcome(answer: Answer) -> tuple[str, int | None, str | None]:
    assert answer.finish_state in FINISH_STATES
    assert (answer.response is None) == (answer.error_type is not None) == (answer.error is not None)
    assert "\n" not in (answer.error or "")
    return answer.finish_state, answer.status, answer.error_type


def content(answer: Answer) -> Any:
    assert answer.response is not None, answer
    return answer.response["choices"][0]["message"]["content"]


@pytest.fixture
async def client(provider: Any) -> AsyncIterator[Provider]:
    async with Provider(provider.url, "own-provider-key") as client:
        yield client


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that is bound but not listened on: connections to it are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


# Whole answers


async def test_a_plain_answer_is_read_whole(provider: Any, client: Provider):
    provider.reply("Hello 你好.", usage=(3, 4))
    answer = await client.complete(ASK)
    assert outcome(answer) == ("complete", 200, None)
    assert answer.response == json.loads(answer.raw)
    assert content(answer) == "Hello 你好."
    assert answer.headers["content-type"] == "application/json"
    assert answer.time_to_first_chunk is None
    assert (provider.requests[0].path, provider.requests[0].body) == ("/v1/chat/completions", ASK)


async def test_a_stream_is_folded_into_the_same_answer_as_a_plain_one(provider: Any, client: Provider):
    for _ in range(2):
        provider.reply("Let me see.", calls=[("add", {"a": "é" * 50}), ("now", "{}")], reasoning="hm", id="x")
    plain = await client.complete(ASK)
    streamed = await client.complete({**STREAM, "stream_options": {"include_usage": True}})
    ids = [
        call.pop("id")
        for a in (plain, streamed)
        for call in a.response["choices"][0]["message"]["tool_calls"]
    ]
    assert len(set(ids)) == 4
    assert streamed.response == plain.response
    assert streamed.raw.startswith(b"data: ") and streamed.raw.endswith(b"data: [DONE]\n\n")


async def test_times_come_from_the_clocks(provider: Any):
    wall, monotonic = count(100), count(7, 5)
    provider.reply("Hello.")
    async with Provider(provider.url, wall=lambda: next(wall), monotonic=lambda: next(monotonic)) as client:
        answer = await client.complete(STREAM)
    assert (answer.started_at, answer.finished_at, answer.time_to_first_chunk) == (100, 101, 5)


async def test_a_stream_cut_up_anywhere_is_read(provider: Any, client: Provider):
    wire = (
        f"data: {json.dumps(chunk('stop', content='你' * 3), ensure_ascii=False)}\r\n\r\ndata: [DONE]\r\n\r\n"
    )
    provider.stream([bytes([byte]) for byte in wire.encode()])
    answer = await client.complete(STREAM)
    assert content(answer) == "你你你"
    assert answer.raw == wire.encode()


async def test_an_answer_with_a_line_of_400_kilobytes_is_read(provider: Any, client: Provider):
    provider.stream([chunk("stop", content="x" * 400_000)])
    assert len(content(await client.complete(STREAM))) == 400_000


async def test_a_request_of_three_megabytes_is_sent(provider: Any, client: Provider):
    provider.reply("ok")
    body = {**ASK, "messages": [{"role": "user", "content": "é" * 1_500_000}]}
    assert content(await client.complete(body)) == "ok"
    assert provider.requests[0].body == body


async def test_big_integers_and_lone_surrogates_in_a_request_survive(provider: Any, client: Provider):
    provider.reply("ok")
    body = {**ASK, "seed": 2**70, "stop": "\ud800"}
    await client.complete(body)
    assert provider.requests[0].body == body


async def test_done_ends_the_answer_though_the_connection_stays_open(provider: Any, client: Provider):
    provider.stream([chunk("stop", content="hi"), provider.DONE, asyncio.Event()])
    assert content(await client.complete(STREAM)) == "hi"
    await provider.disconnected.wait()


async def test_a_stream_without_done_but_with_finish_reason_is_complete(provider: Any, client: Provider):
    provider.stream([chunk(content="hi"), chunk("stop")])
    assert outcome(await client.complete(STREAM)) == ("complete", 200, None)


async def test_an_answer_compressed_against_our_wish_is_decompressed(provider: Any, client: Provider):
    raw = b'{"choices": [{"message": {"content": "hi"}}]}'
    provider.body(gzip.compress(raw), headers={"Content-Encoding": "gzip"})
    answer = await client.complete(ASK)
    assert provider.requests[0].headers["Accept-Encoding"] == "identity"
    assert answer.raw == raw
    assert "content-encoding" not in answer.headers


# What goes out


async def test_complete_sends_the_agents_headers_with_the_providers_key(provider: Any, client: Provider):
    provider.reply("ok")
    headers = {
        "Authorization": "Bearer agent",
        "X-Custom": "1",
        "X-Eval-Session": "no",
        "Content-Type": "x/y",
    }
    await client.complete(ASK, headers=headers)
    sent = provider.requests[0].headers
    assert sent["Authorization"] == "Bearer own-provider-key"
    assert sent.getall("Content-Type") == ["application/json"]
    assert sent["X-Custom"] == "1"
    assert "X-Eval-Session" not in sent
    assert sent["Host"] in provider.url


async def test_the_agents_key_is_used_when_the_provider_has_none(provider: Any):
    async with Provider(provider.url) as client:
        for key in ("agent-key", "sk-eval-session-1", None):
            provider.reply("ok")
            await client.complete(ASK, key=key)
    assert [r.headers.get("Authorization") for r in provider.requests] == ["Bearer agent-key", None, None]


async def test_the_session_is_named_only_when_asked(provider: Any, client: Provider):
    for session in ("run.s1.0", None):
        provider.reply("ok")
        await client.complete(ASK, session=session)
    assert [r.headers.get("x-eval-session") for r in provider.requests] == ["run.s1.0", None]


async def test_cookies_of_the_provider_are_not_sent_back(provider: Any):
    # By name, because cookies of plain addresses are never kept.
    async with Provider(provider.url.replace("127.0.0.1", "localhost")) as client:
        for _ in range(2):
            provider.json({}, headers={"Set-Cookie": "a=b; Path=/"})
            await client.complete(ASK)
    assert "Cookie" not in provider.requests[1].headers


async def test_user_and_query_of_the_base_url_are_sent_but_not_shown(provider: Any):
    url = provider.url.replace("http://", "http://me:hidden-word@") + "?api-key=hidden-query"
    async with Provider(url) as client:
        provider.fail(401, "bad key hidden-query, bWU6aGlkZGVuLXdvcmQ=")
        answer = await client.complete(ASK)
    request = provider.requests[0]
    assert (request.path, request.query) == ("/v1/chat/completions", "api-key=hidden-query")
    assert request.headers["Authorization"] == "Basic bWU6aGlkZGVuLXdvcmQ="
    assert client.display_url == provider.url
    assert answer.error == "HTTP 401: bad key [masked], [masked]"


def test_a_key_that_cannot_be_a_key_is_refused_without_showing_it():
    with pytest.raises(ValueError, match="check where it is set") as caught:
        Provider("http://host/v1", "secret\nkey")
    assert "secret" not in str(caught.value)
    Provider("http://host/v1", "key-with-line-end\n")


@pytest.mark.parametrize("url", ["host/v1", "http://", "http://" + "a" * 70 + "é.example/v1"])
def test_a_url_of_no_use_is_refused(url: str):
    with pytest.raises(ValueError, match="the provider URL"):
        Provider(url)


async def test_use_outside_of_the_context_is_an_error_of_the_caller():
    with pytest.raises(RuntimeError, match="async with"):
        await Provider("http://host/v1").complete(ASK)


# Providers that misbehave


async def test_an_error_status_keeps_its_body_and_headers(provider: Any, client: Provider):
    provider.fail(429, "slow down", headers={"Retry-After": "7"})
    answer = await client.complete(STREAM)
    assert outcome(answer) == ("provider_error", 429, "429")
    assert answer.error == "HTTP 429: slow down"
    assert answer.headers["retry-after"] == "7"
    assert json.loads(answer.raw)["error"]["message"] == "slow down"


async def test_keys_in_error_texts_are_hidden(provider: Any):
    async with Provider(provider.url) as client:
        provider.fail(401, "bad key agents-own-key")
        answer = await client.complete(ASK, key="agents-own-key")
    assert answer.error == "HTTP 401: bad key [masked]"


async def test_a_redirect_is_not_followed(provider: Any, client: Provider):
    provider.json({}, 307, headers={"Location": "/v1/elsewhere"})
    assert outcome(await client.complete(ASK)) == ("provider_error", 307, "307")
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("body", "error_type"),
    [(b"<html>", "not_json"), (b"", "not_json"), (b"[]", "not_an_object"), (b'{"error": "x"}', "error_body"),
     (b'{"choices": []}', "no_message")],
)  # fmt: skip
async def test_a_body_that_is_no_answer_is_a_provider_error(
    provider: Any, client: Provider, body: bytes, error_type: str
):
    provider.body(body)
    answer = await client.complete(ASK)
    assert outcome(answer) == ("provider_error", 200, error_type)
    assert answer.raw == body


async def test_an_error_event_ends_the_answer(provider: Any, client: Provider):
    provider.stream([chunk(content="hi"), {"error": {"message": "overloaded"}}, asyncio.Event()])
    answer = await client.complete(STREAM)
    assert outcome(answer) == ("error_event", 200, "error_event")
    assert answer.error == "error in the stream: overloaded"


async def test_a_stream_that_ends_early_is_an_abort(provider: Any, client: Provider):
    provider.stream([chunk(content="hi")])
    assert outcome(await client.complete(STREAM)) == ("provider_abort", 200, "stream_ended_early")


async def test_a_connection_dropped_before_the_answer_is_an_abort(provider: Any, client: Provider):
    provider.drop()
    answer = await client.complete(ASK)
    assert outcome(answer) == ("provider_abort", None, "connection_lost")
    assert len(provider.requests) == 1


async def test_a_connection_dropped_in_the_body_is_an_abort(provider: Any, client: Provider):
    provider.drop(after=b'{"choices": [')
    assert outcome(await client.complete(ASK)) == ("provider_abort", 200, "connection_lost")


async def test_a_connection_dropped_in_the_stream_is_an_abort(provider: Any, client: Provider):
    provider.stream([chunk(content="hi"), provider.CUT])
    assert outcome(await client.complete(STREAM)) == ("provider_abort", 200, "connection_lost")


async def test_a_provider_that_falls_silent_is_given_up(provider: Any):
    provider.stream([chunk(content="hi"), asyncio.Event()])
    provider.hang()
    async with Provider(provider.url, read_timeout=0.05) as client:
        assert outcome(await client.complete(STREAM)) == ("provider_abort", 200, "read_timeout")
        assert outcome(await client.complete(ASK)) == ("provider_abort", None, "read_timeout")


async def test_a_provider_that_refuses_connections_is_named(free_port: int):
    async with Provider(f"http://127.0.0.1:{free_port}/v1?k=hidden") as client:
        answer = await client.complete(ASK)
    assert outcome(answer) == ("provider_error", None, "connect_failure")
    assert answer.error == (
        f"cannot connect to the provider http://127.0.0.1:{free_port}/v1: Connection refused"
    )


async def test_a_host_that_does_not_exist_is_named():
    async with Provider("http://no-such-host.invalid/v1") as client:
        answer = await client.complete(ASK)
    assert outcome(answer) == ("provider_error", None, "dns_failure")
    assert answer.error == "cannot find the host of the provider http://no-such-host.invalid/v1"


async def test_a_plain_server_behind_an_https_url_is_a_tls_failure(provider: Any):
    async with Provider(provider.url.replace("http://", "https://")) as client:
        answer = await client.complete(ASK)
    assert outcome(answer) == ("provider_error", None, "tls_failure")


async def test_a_compression_that_cannot_be_undone_is_a_protocol_error(provider: Any, client: Provider):
    provider.body(b"\x00\x01\x02\x03", headers={"Content-Encoding": "gzip"})
    assert outcome(await client.complete(ASK))[::2] == ("provider_error", "protocol_error")


def test_a_connect_timeout_is_named():
    failure = explain(aiohttp.ConnectionTimeoutError("x"), "http://host/v1")
    assert (failure.finish_state, failure.error_type, failure.text) == (
        "provider_error",
        "connect_timeout",
        "the provider http://host/v1 does not accept connections",
    )


async def test_a_server_that_speaks_no_http_is_a_protocol_error():
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 smtp.example ESMTP\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Provider(f"http://127.0.0.1:{port}/v1") as client:
            assert outcome(await client.complete(ASK)) == ("provider_error", None, "protocol_error")


async def test_cancelling_closes_the_providers_connection(provider: Any, client: Provider):
    provider.hang()
    task = asyncio.create_task(client.complete(ASK))
    await provider.arrived()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(provider.disconnected.wait(), 5)


async def test_cancelling_in_the_middle_of_a_stream_closes_the_providers_connection(provider: Any):
    begun = asyncio.Event()

    def clock() -> float:
        if provider.requests:
            begun.set()  # the second time: at the first chunk
        return 0.0

    provider.stream([chunk(content="hi"), asyncio.Event()])
    async with Provider(provider.url, monotonic=clock) as client:
        task = asyncio.create_task(client.complete(STREAM))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(provider.disconnected.wait(), 5)


async def test_many_requests_are_open_at_once(provider: Any, client: Provider):
    events = [provider.hang(str(number)) for number in range(120)]
    tasks = [asyncio.create_task(client.complete(ASK)) for _ in events]
    await provider.arrived(len(events))
    for event in events:
        event.set()
    answers = [content(answer) for answer in await asyncio.gather(*tasks)]
    assert sorted(answers, key=int) == [str(number) for number in range(120)]


# Forwarding


async def test_a_forwarded_request_and_its_answer_are_passed_on_verbatim(provider: Any):
    raw, back = b'{ "input":\t"x\xc3\xa9",  "big": 1180591620717411303424 }', b'{"data" : []\n}'
    provider.body(back, headers={"X-Request-Id": "r1"})
    async with (
        Provider(provider.url) as client,
        client.forward(
            "POST",
            "/embeddings?v=1",
            [
                ("Authorization", "Bearer agent"),
                ("Content-Type", "application/json"),
                ("X-Two", "a"),
                ("X-Two", "b"),
            ],
            raw,
        ) as answer,
    ):
        body = b"".join([part async for part in answer.chunks()])
    sent = provider.requests[0]
    assert (sent.method, sent.path, sent.query, sent.raw) == ("POST", "/v1/embeddings", "v=1", raw)
    assert {name: sent.headers.getall(name) for name in sent.headers} == {
        "Host": [provider.url[7:-3]],
        "Authorization": ["Bearer agent"],
        "Content-Type": ["application/json"],
        "X-Two": ["a", "b"],
        "Accept-Encoding": ["identity"],
        "Content-Length": [str(len(raw))],
    }
    assert (answer.status, body) == (200, back)
    assert answer.headers["X-Request-Id"] == "r1"
    assert "Content-Length" not in answer.headers


async def test_a_forwarded_get_has_no_body(provider: Any, client: Provider):
    provider.json({"data": []})
    async with client.forward("GET", "/models", [("Authorization", "Bearer sk-eval-x")]) as answer:
        assert [part async for part in answer.chunks()] == [b'{"data": []}']
    sent = provider.requests[0]
    assert (sent.method, sent.path, sent.raw) == ("GET", "/v1/models", b"")
    assert sent.headers["Authorization"] == "Bearer own-provider-key"
    assert "Content-Type" not in sent.headers


async def test_a_forwarded_stream_arrives_chunk_by_chunk(provider: Any, client: Provider):
    gates = [asyncio.Event(), asyncio.Event()]
    provider.stream([b"data: 1\n\n", gates[0], b": ping\n", gates[1], b"data: 2\n\n"])
    async with client.forward("POST", "/chat/completions", [], b"{}") as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"data: 1\n\n"
        gates[0].set()
        assert await anext(chunks) == b": ping\n"
        gates[1].set()
        assert [part async for part in chunks] == [b"data: 2\n\n"]


async def test_a_forwarded_error_is_passed_on(provider: Any, client: Provider):
    provider.fail(503, "busy", headers={"Retry-After": "2"})
    async with client.forward("POST", "/chat/completions", [], b"{}") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert b"busy" in b"".join([part async for part in answer.chunks()])


async def test_a_forwarded_answer_that_breaks_off_says_so(provider: Any, client: Provider):
    gate = asyncio.Event()
    provider.stream([b"data: 1\n\n", gate, provider.CUT])
    async with client.forward("POST", "/chat/completions", [], b"{}") as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"data: 1\n\n"
        gate.set()
        with pytest.raises(ProviderFailure) as caught:
            await anext(chunks)
    assert (caught.value.failure.finish_state, caught.value.failure.error_type) == (
        "provider_abort",
        "connection_lost",
    )


async def test_forwarding_to_nobody_says_so(free_port: int):
    async with Provider(f"http://127.0.0.1:{free_port}/v1") as client:
        with pytest.raises(ProviderFailure, match="cannot connect"):
            async with client.forward("GET", "/models", []):
                pytest.fail("there is no answer")


async def test_an_error_in_writing_to_the_agent_is_not_the_providers(provider: Any, client: Provider):
    provider.stream([b"data: 1\n\n", asyncio.Event()])
    with pytest.raises(aiohttp.ClientConnectionResetError):
        async with client.forward("POST", "/chat/completions", [], b"{}") as answer:
            async for _ in answer.chunks():
                raise aiohttp.ClientConnectionResetError("the agent has gone")
    await asyncio.wait_for(provider.disconnected.wait(), 5)


async def test_leaving_a_forwarded_answer_closes_the_providers_connection(provider: Any, client: Provider):
    provider.stream([b"data: 1\n\n", asyncio.Event()])
    async with client.forward("POST", "/chat/completions", [], b"{}"):
        pass
    await asyncio.wait_for(provider.disconnected.wait(), 5)


async def test_a_compressed_answer_is_forwarded_decompressed(provider: Any, client: Provider):
    provider.body(gzip.compress(b"data: 1\n\n"), "text/event-stream", headers={"Content-Encoding": "gzip"})
    async with client.forward("POST", "/chat/completions", [("Accept-Encoding", "gzip")], b"{}") as answer:
        assert b"".join([part async for part in answer.chunks()]) == b"data: 1\n\n"
        assert "Content-Encoding" not in answer.headers


async def test_forwarding_passes_through_a_real_server_without_mixing_up_hops(
    provider: Any, client: Provider
):
    """The whole way: agent, a relay built on `forward`, provider."""

    async def relay(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = request.headers.items()
        async with client.forward(request.method, "/chat/completions", headers, body) as answer:
            response = web.StreamResponse(status=answer.status, headers=answer.headers)
            await response.prepare(request)
            async for part in answer.chunks():
                await response.write(part)
            return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", relay)
    runner = web.AppRunner(app, handler_cancellation=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    provider.reply("Hello.", calls=[("add", {"a": 1})])
    async with Provider(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "agent") as agent:
        answer = await agent.complete(STREAM)
    await runner.cleanup()
    assert content(answer) == "Hello."
    assert provider.requests[0].headers["Authorization"] == "Bearer own-provider-key"
