"""Agents that are servers: what they are sent, and what becomes of their answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.agent_runs import seat
from support.driving import Silence, verdicts

from proxy.drive.agent import AgentAnswer, AgentFailure, AgentUnusable
from proxy.drive.choose import AgentOptions, chosen
from proxy.drive.client import ControlClient
from proxy.drive.driver import drive
from proxy.drive.http_agent import endpoint, fill, http_agents, with_session
from proxy.drive.plan import plan
from proxy.server import running
from proxy.settings import Settings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """A server that says what `handler` says; `asked` are (path, JSON body, cookie) of its requests."""

    handler: Handler
    url: str = ""
    asked: list[tuple[str, Any, str | None]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path_qs, await request.json(), request.cookies.get("who")))
        return await self.handler(request)


@pytest.fixture
async def serve_agent() -> AsyncIterator[Callable[[Handler], Awaitable[Server]]]:
    runners = []

    async def start(handler: Handler) -> Server:
        server = Server(handler)
        app = web.Application()
        app.router.add_post("/{path:.*}", server.handle)
        runners.append(web.AppRunner(app, access_log=None, shutdown_timeout=0.1))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runners[-1].addresses[0][1]}"
        return server

    yield start
    for runner in runners:
        await runner.cleanup()


async def echo(request: web.Request) -> web.Response:
    said = (await request.json())["messages"][-1]["content"]
    return web.json_response({"choices": [{"message": {"role": "assistant", "content": f"You said {said}"}}]})


async def test_a_server_is_asked_for_chat_completions_with_the_session_in_the_prompt(
    serve_agent: Any,
) -> None:
    server = await serve_agent(echo)
    async with http_agents(f"{server.url}/v1", model="m") as factory:
        agent = factory(seat("answered"))
        answers = [await agent.turn(f"[[next-user-turn {n}]]", n) for n in (1, 2)]
        await agent.close()
    said = [f"[[next-user-turn {n} session=a.e1]]" for n in (1, 2)]
    assert answers == [AgentAnswer(f"You said {words}") for words in said]
    first = {"role": "user", "content": said[0]}
    assert server.asked == [
        ("/v1/chat/completions", {"model": "m", "messages": [first]}, None),
        (
            "/v1/chat/completions",
            {
                "model": "m",
                "messages": [
                    first,
                    {"role": "assistant", "content": f"You said {said[0]}"},
                    {"role": "user", "content": said[1]},
                ],
            },
            None,
        ),
    ]


async def test_any_json_can_be_sent_instead(serve_agent: Any) -> None:
    async def plain(request: web.Request) -> web.Response:
        return web.Response(text="ok", status=201)

    server = await serve_agent(plain)
    body = {"input": "{turn}", "to": [{"session": "for {session}"}], "deep": {"n": 1, "none": None}}
    async with http_agents(f"{server.url}/run/{{session}}?x=1", model="m", body=body) as factory:
        agent = factory(seat("answered", name="a/b.e1"))
        with pytest.raises(AgentFailure, match=r"'a/b\.e1' cannot stand in a prompt"):
            await agent.turn("[[next-user-turn 1]]", 1)
        assert await agent.turn('words "of" {session} a user', 2) == AgentAnswer("")
        await agent.close()
    assert server.asked == [
        (
            "/run/a%2Fb.e1?x=1",
            {
                "input": 'words "of" {session} a user',
                "to": [{"session": "for a/b.e1"}],
                "deep": {"n": 1, "none": None},
            },
            None,
        )
    ]


async def test_each_session_has_its_own_cookies(serve_agent: Any) -> None:
    async def remember(request: web.Request) -> web.Response:
        response = web.json_response({})
        response.set_cookie("who", (await request.json())["session"])
        return response

    server = await serve_agent(remember)
    # Cookies are not kept for bare addresses.
    url = server.url.replace("127.0.0.1", "localhost")
    async with http_agents(url, model="m", body={"session": "{session}", "input": "{turn}"}) as factory:
        agents = [factory(seat("answered", name=name)) for name in ("a.e1", "b.e1")]
        for number in (1, 2):
            for agent in agents:
                await agent.turn("x", number)
        for agent in agents:
            await agent.close()
    assert [cookie for _, _, cookie in server.asked] == [None, None, "a.e1", "b.e1"]


async def test_an_error_is_a_failure_with_the_beginning_of_the_body(serve_agent: Any) -> None:
    async def fail(request: web.Request) -> web.Response:
        return web.Response(text="no \x1b[31mmemory\nkey sk-abcdefghijklmnop " + "x" * 1000, status=500)

    server = await serve_agent(fail)
    async with http_agents(server.url, model="m") as factory:
        agent = factory(seat("waiting"))
        with pytest.raises(AgentFailure) as failed:
            await agent.turn("[[next-user-turn 1]]", 1)
        await agent.close()
    reason = str(failed.value)
    assert reason.startswith(
        r"answered HTTP 500 before the turn was answered: no \x1b[31mmemory ⏎ key [masked] xxx"
    )
    assert len(reason) < 250


async def test_an_error_after_the_answer_costs_a_note(serve_agent: Any) -> None:
    async def fail(request: web.Request) -> web.Response:
        return web.Response(status=504)

    server = await serve_agent(fail)
    async with http_agents(server.url, model="m") as factory:
        agent = factory(seat("answered"))
        assert (await agent.turn("x", 1)).note == "answered HTTP 504 after the turn was answered: "
        await agent.close()


async def test_a_server_that_does_not_use_the_proxy_is_told(serve_agent: Any) -> None:
    server = await serve_agent(echo)
    async with http_agents(server.url, model="m") as factory:
        agent = factory(seat("unasked"))
        with pytest.raises(AgentFailure, match="answered HTTP 200 without having sent the proxy a request"):
            await agent.turn("x", 1)
        await agent.close()


async def test_a_server_that_is_not_there_is_a_failure_without_the_password(
    unused_tcp_port: int,
) -> None:
    async with http_agents(f"http://me:hunter2@127.0.0.1:{unused_tcp_port}/", model="m") as factory:
        agent = factory(seat("unasked"))
        with pytest.raises(AgentFailure) as failed:
            await agent.turn("x", 1)
        await agent.close()
    where = f"http://127.0.0.1:{unused_tcp_port}/chat/completions"
    assert str(failed.value).startswith(f"cannot be reached at {where} (")
    assert isinstance(failed.value, AgentUnusable)
    assert "hunter2" not in str(failed.value)


async def test_a_server_that_breaks_off_is_a_failure(serve_agent: Any) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    server = await serve_agent(cut)
    async with http_agents(server.url, model="m") as factory:
        agent = factory(seat("waiting"))
        with pytest.raises(AgentFailure, match=r"the request to .* failed"):
            await agent.turn("x", 1)
        await agent.close()


def test_turns_go_to_the_chat_completions_of_an_address_unless_it_says_where() -> None:
    assert [
        endpoint(url, "a b.e1", chat=chat)
        for url, chat in (
            ("http://h/v1", True),
            ("http://h/v1/", True),
            ("http://h/v1/chat/completions", True),
            ("http://h/v1/chat/completions?key=1", True),
            ("http://h/run/{session}", False),
        )
    ] == [
        "http://h/v1/chat/completions",
        "http://h/v1/chat/completions",
        "http://h/v1/chat/completions",
        "http://h/v1/chat/completions?key=1",
        "http://h/run/a%20b.e1",
    ]


def test_a_prompt_names_its_session_once_and_only_where_there_is_a_sentinel() -> None:
    assert [
        with_session(prompt, "a.e1")
        for prompt in (
            "[[next-user-turn 3]]",
            "[[next-user-turn]]",
            "[[next-user-turn 3 session=b]]",
            "Hello",
        )
    ] == [
        "[[next-user-turn 3 session=a.e1]]",
        "[[next-user-turn session=a.e1]]",
        "[[next-user-turn 3 session=b]]",
        "Hello",
    ]


def test_what_is_filled_in_is_not_filled_again() -> None:
    assert fill(["{turn}{session}", {"{turn}": 1}], {"turn": "{session}", "session": "s"}) == [
        "{session}s",
        {"{turn}": 1},
    ]


@pytest.mark.parametrize("body", [None, '{"input": "Please: {turn}"}'], ids=["chat", "template"])
async def test_a_server_that_knows_only_the_bare_address_of_the_proxy_gets_everything_right(
    tmp_path: Path, serve_agent: Any, body: str | None
) -> None:
    log = tmp_path / "log.db"
    settings = Settings(log=log, provider="sim:oracle", scenarios=("bundled",))
    async with (
        running(settings, environ={}) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        aiohttp.ClientSession() as http,
    ):

        async def agent(request: web.Request) -> web.Response:
            asked = await request.json()
            messages = asked.get("messages") or [{"role": "user", "content": asked["input"]}]
            url = f"{proxy.base_url}/v1/chat/completions"
            async with http.post(url, json={"model": "m", "messages": messages}) as answer:
                return web.Response(body=await answer.read(), content_type="application/json")

        server = await serve_agent(agent)
        async with chosen(AgentOptions(server.url, body=body)) as factory:
            planned = plan((await control.run()).scenarios)
            report = await drive(
                control, planned, factory, concurrency=4, turn_timeout=60, progress=Silence()
            )
    assert [failure.reason for failure in report.failures] == []
    assert report.complete
    assert set(verdicts(log).values()) == {("correct", True)}
    assert json.dumps(server.asked[0][1]).count("session=") == 1
