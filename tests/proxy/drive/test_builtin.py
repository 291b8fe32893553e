"""The builtin agent: what it sends, what it keeps, how it fails."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from proxy.drive.agent import Agent, AgentAnswer, AgentFailure, AgentSession, Delivery
from proxy.drive.builtin import MAX_TOOL_ROUNDS, builtin

CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"q": 1}'}}


def seat(session: str, base_url: str, api_key: str) -> AgentSession:
    async def delivery(turn: int, timeout: float | None) -> Delivery:
        raise AssertionError("the builtin agent knows when a turn is over")

    return AgentSession(session, base_url, api_key, delivery)


@pytest.fixture
async def agent_of() -> AsyncIterator[Callable[..., Any]]:
    """`await agent_of(stand_in, stream=True)`: the agent of Session a.e1."""
    contexts = []

    async def make(stand_in: Any, **options: Any) -> Agent:
        stand_in.turns.setdefault("a.e1", 1)
        contexts.append(builtin("some-model", **options))
        factory = await contexts[-1].__aenter__()
        return factory(seat("a.e1", f"{stand_in.url}/s/a.e1/v1", "sk-eval-a.e1"))

    yield make
    for context in contexts:
        await context.__aexit__(None, None, None)


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def streaming(*parts: bytes) -> Any:
    async def chat(request: Any) -> web.Response:
        return web.Response(body=b"".join(parts), content_type="text/event-stream")

    return chat


async def test_a_turn_sends_exactly_messages_model_and_temperature(serve: Any, agent_of: Any) -> None:
    stand_in = await serve({"a": 1})
    agent = await agent_of(stand_in)
    assert await agent.turn("[[next-user-turn 1]]") == AgentAnswer("answer 1")
    assert [request.body for request in stand_in.asked] == [
        {
            "messages": [{"role": "user", "content": "[[next-user-turn 1]]"}],
            "model": "some-model",
            "temperature": 0.0,
        }
    ]
    assert stand_in.asked[0].headers["Authorization"] == "Bearer sk-eval-a.e1"


async def test_a_later_turn_sends_what_was_said_before(serve: Any, agent_of: Any) -> None:
    stand_in = await serve({"a": 2})
    agent = await agent_of(stand_in)
    await agent.turn("one")
    await agent.turn("two")
    assert stand_in.asked[-1].body["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "answer 1"},
        {"role": "user", "content": "two"},
    ]


async def test_streaming_adds_only_what_streaming_needs(serve: Any, agent_of: Any) -> None:
    parts = (
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        b": keep-alive\n\n",
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
        b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n',
        b"data: [DONE]\n\n",
    )
    stand_in = await serve({"a": 1}, streaming(*parts))
    agent = await agent_of(stand_in, stream=True)
    assert await agent.turn("hi") == AgentAnswer("Hello")
    assert stand_in.asked[0].body == {
        "messages": [{"role": "user", "content": "hi"}],
        "model": "some-model",
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("ending", [b"", b"data: [DONE]\n\n"])
async def test_a_stream_that_ends_before_the_answer_is_a_failure(
    serve: Any, agent_of: Any, ending: bytes
) -> None:
    agent = await agent_of(await serve({"a": 1}, streaming(chunk({"content": "Hal"}), ending)), stream=True)
    with pytest.raises(AgentFailure, match="the stream ended before the answer did"):
        await agent.turn("hi")


async def test_tool_calls_are_answered_with_errors_and_the_turn_goes_on(
    serve: Any, agent_of: Any, bodies: Any
) -> None:
    answers = [bodies.completion(None, [CALL]), bodies.completion("done")]

    async def chat(request: Any) -> web.Response:
        return web.json_response(answers.pop(0))

    stand_in = await serve({"a": 1}, chat)
    agent = await agent_of(stand_in)
    assert await agent.turn("hi") == AgentAnswer("done")
    assert stand_in.asked[1].body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Error: there is no tool 'look_up' here."},
    ]


async def test_streamed_tool_calls_are_put_together_by_their_index(serve: Any, agent_of: Any) -> None:
    calls = streaming(
        chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "two", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "one", "arguments": '{"x"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}, "tool_calls"),
    )
    text = streaming(chunk({"content": "done"}, "stop"))

    async def chat(request: Any) -> web.Response:
        tools_were_called = len(request.body["messages"]) > 1
        response: web.Response = await (text if tools_were_called else calls)(request)
        return response

    stand_in = await serve({"a": 1}, chat)
    agent = await agent_of(stand_in, stream=True)
    assert await agent.turn("hi") == AgentAnswer("done")
    assert stand_in.asked[1].body["messages"][1]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "one", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "two", "arguments": "{}"}},
    ]


async def test_a_model_that_only_calls_tools_is_given_up(serve: Any, agent_of: Any, bodies: Any) -> None:
    async def chat(request: Any) -> web.Response:
        return web.json_response(bodies.completion(None, [CALL]))

    stand_in = await serve({"a": 1}, chat)
    agent = await agent_of(stand_in)
    with pytest.raises(AgentFailure, match="went on calling tools after 50 rounds"):
        await agent.turn("hi")
    assert len(stand_in.asked) == MAX_TOOL_ROUNDS + 1


@pytest.mark.parametrize("status", [400, 401, 429, 500, 502])
async def test_an_error_answer_is_a_failure_with_its_status_and_is_not_retried(
    serve: Any, agent_of: Any, bodies: Any, status: int
) -> None:
    async def chat(request: Any) -> web.Response:
        response: web.Response = bodies.error(status, "the provider is tired")
        return response

    stand_in = await serve({"a": 1}, chat)
    agent = await agent_of(stand_in)
    with pytest.raises(AgentFailure, match=f"HTTP {status}: .*the provider is tired"):
        await agent.turn("hi")
    assert len(stand_in.asked) == 1


async def test_a_turn_that_fails_midway_leaves_no_trace_in_the_history(
    serve: Any, agent_of: Any, bodies: Any
) -> None:
    answers = [
        web.json_response(bodies.completion(None, [CALL])),
        bodies.error(500, "no"),
        web.json_response(bodies.completion("yes")),
    ]

    async def chat(request: Any) -> Any:
        return answers.pop(0)

    stand_in = await serve({"a": 2}, chat)
    agent = await agent_of(stand_in)
    with pytest.raises(AgentFailure):
        await agent.turn("one")
    await agent.turn("two")
    assert stand_in.asked[-1].body["messages"] == [{"role": "user", "content": "two"}]


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": []}, {"choices": [{"index": 0}]}])
async def test_an_answer_without_a_message_is_a_failure(serve: Any, agent_of: Any, body: Any) -> None:
    async def chat(request: Any) -> web.Response:
        return web.json_response(body)

    agent = await agent_of(await serve({"a": 1}, chat))
    with pytest.raises(AgentFailure, match="no chat completion"):
        await agent.turn("hi")


async def test_an_answer_without_text_is_an_empty_one(serve: Any, agent_of: Any, bodies: Any) -> None:
    async def chat(request: Any) -> web.Response:
        return web.json_response(bodies.completion(None))

    agent = await agent_of(await serve({"a": 1}, chat))
    assert await agent.turn("hi") == AgentAnswer("")


async def test_a_proxy_that_is_gone_is_a_failure_that_says_so(serve: Any, agent_of: Any) -> None:
    stand_in = await serve({"a": 1})
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        stand_in.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        agent = await agent_of(stand_in)
        with pytest.raises(AgentFailure, match="the connection to the proxy failed"):
            await agent.turn("hi")


async def test_an_http_proxy_of_the_environment_has_no_part_in_it(
    serve: Any, agent_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    agent = await agent_of(await serve({"a": 1}))
    assert await agent.turn("hi") == AgentAnswer("answer 1")


async def test_agents_of_one_factory_do_not_share_histories(serve: Any) -> None:
    stand_in = await serve({"a": 1})
    stand_in.turns.update({"a.e1": 1, "a.e2": 1})
    async with builtin("some-model") as factory:
        for epoch in (1, 2):
            agent = factory(seat(f"a.e{epoch}", f"{stand_in.url}/s/a.e{epoch}/v1", f"key {epoch}"))
            await agent.turn("hi")
            await agent.close()
    assert [(it.session, it.headers["Authorization"], it.body["messages"]) for it in stand_in.asked] == [
        ("a.e1", "Bearer key 1", [{"role": "user", "content": "hi"}]),
        ("a.e2", "Bearer key 2", [{"role": "user", "content": "hi"}]),
    ]
