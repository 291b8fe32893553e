"""A small proxy to drive against: the control API and chat completions over real HTTP."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from proxy.drive.client import ControlClient
from proxy.drive.played import Failure, Played

TOKEN = "the-control-token"


@dataclass
class ChatRequest:
    """A chat completion as it arrived. `turn` is the Session's open turn."""

    session: str
    turn: int
    body: dict[str, Any]
    headers: Mapping[str, str]


Chat = Callable[[ChatRequest], Awaitable[web.StreamResponse]]


@dataclass
class StandIn:
    """Plays `scenarios` (id -> number of Tasks), one turn each Task; all names are right.

    `chat` answers the agents. `control` may answer in place of the control API: it is
    asked first, with the request's method and path, and gives None to let it pass. `says`
    is what the user says in a turn; None: turns come without it, as in earlier versions.
    """

    scenarios: dict[str, int]
    chat: Chat
    control: Callable[[str, str], web.Response | None] = lambda method, path: None
    says: Callable[[int], str] | None = lambda turn: f"words of turn {turn}"
    url: str = ""
    turns: dict[str, int] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    begun_anew: list[str] = field(default_factory=list)
    plans: list[Any] = field(default_factory=list)
    asked: list[ChatRequest] = field(default_factory=list)

    def tasks(self, session: str) -> int:
        return self.scenarios[session.rpartition(".e")[0]]

    def over(self, session: str) -> bool:
        return self.turns[session] > self.tasks(session)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/eval/run", self._run)
        app.router.add_post("/eval/plan", self._plan)
        app.router.add_post("/eval/sessions", self._create)
        app.router.add_get("/eval/sessions/{session}", self._state)
        app.router.add_post("/eval/sessions/{session}/turns", self._open_turn)
        app.router.add_post("/s/{session}/v1/chat/completions", self._chat)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not request.path.startswith("/eval/"):
            return await handler(request)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return error(401, "wrong token")
        return self.control(request.method, request.path) or await handler(request)

    async def _run(self, request: web.Request) -> web.Response:
        infos = [{"id": id, "hash": f"hash of {id}", "tasks": n} for id, n in self.scenarios.items()]
        return web.json_response({"run": "r1", "scenarios": infos, "config": {"history": "gold"}})

    async def _plan(self, request: web.Request) -> web.Response:
        self.plans.append(await request.json())
        return web.json_response({})

    async def _create(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        session = f"{wanted['scenario']}.e{wanted['epoch']}"
        self.created.append(session)
        self.turns.setdefault(session, 0)
        if wanted["again"] and self.turns[session] and not self.over(session):
            self.begun_anew.append(session)
            self.turns[session] = 0
        turn = min(self.turns[session], self.tasks(session))
        body = {"session": session, "url": f"/s/{session}/v1", "over": self.over(session), "turn": turn}
        return web.json_response(body, status=201)

    async def _open_turn(self, request: web.Request) -> web.Response:
        session = request.match_info["session"]
        self.turns[session] += 1
        if self.over(session):
            return web.json_response({"turn": None, "prompt": None, "over": True})
        turn = self.turns[session]
        said = {} if self.says is None else {"text": self.says(turn)}
        told = {"turn": turn, "prompt": f"[[next-user-turn {turn}]]", "over": False}
        return web.json_response({**told, **said})

    async def _state(self, request: web.Request) -> web.Response:
        session = request.match_info["session"]
        played, asked = self.turns[session], [it for it in self.asked if it.session == session]
        answered = {request.turn for request in asked}
        ends = ["closed" if n in answered else "agent_stopped" for n in range(1, played + 1)]
        ends += [None] * self.tasks(session)
        tasks = [
            {"task": n + 1, "end": end, "names_right": None if end is None else end == "closed"}
            for n, end in enumerate(ends[: self.tasks(session)])
        ]
        return web.json_response(
            {
                "session": session,
                "scenario": session.rpartition(".e")[0],
                "epoch": int(session.rpartition(".e")[2]),
                "turn": min(played, self.tasks(session)) or None,
                "over": self.over(session),
                "asked": max(answered, default=0),
                "answered": max(answered, default=0),
                "failed_turn": 0,
                "tasks": tasks,
                "input_tokens": 100 * len(asked),
                "output_tokens": 10 * len(asked),
                "provider_errors": 0,
            }
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        session = request.match_info["session"]
        chat = ChatRequest(session, self.turns[session], await request.json(), request.headers.copy())
        self.asked.append(chat)
        return await self.chat(chat)


def error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "x", "code": None}}, status=status)


def completion(content: str | None, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


async def answer_plainly(request: ChatRequest) -> web.StreamResponse:
    return web.json_response(completion(f"answer {request.turn}"))


@dataclass
class Diary:
    """A Watcher that writes everything down."""

    begun: list[tuple[str, int]] = field(default_factory=list)
    moves: list[tuple[str, int | None]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    finished_ones: list[Played] = field(default_factory=list)

    def began(self, session: str, tasks: int) -> None:
        self.begun.append((session, tasks))

    def moved(self, state: Any) -> None:
        self.moves.append((state.session, state.turn))

    def failed(self, failure: Failure) -> None:
        self.failures.append(failure)

    def finished(self, played: Played) -> None:
        self.finished_ones.append(played)


class Terminal(io.StringIO):
    """Text output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[StandIn]]]:
    """`await serve({"a": 2}, chat=...)` starts a stand-in on a free port."""
    runners: list[web.AppRunner] = []

    async def start(scenarios: dict[str, int], chat: Chat = answer_plainly, **options: Any) -> StandIn:
        stand_in = StandIn(scenarios, chat, **options)
        runner = web.AppRunner(stand_in.app(), handler_cancellation=True, access_log=None, shutdown_timeout=1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        stand_in.url = f"http://{host}:{port}"
        return stand_in

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[ControlClient]]]:
    """`await connect(stand_in)` gives a control client, closed at the end of the test."""
    clients: list[ControlClient] = []

    async def open_client(stand_in: StandIn, token: str = TOKEN, **options: Any) -> ControlClient:
        clients.append(await ControlClient(stand_in.url, token, **options).__aenter__())
        return clients[-1]

    yield open_client
    for client in clients:
        await client.__aexit__(None, None, None)


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def bodies() -> Any:
    """`bodies.completion(...)` and `bodies.error(...)`: what a stand-in's chat answers."""

    class Bodies:
        completion = staticmethod(completion)
        error = staticmethod(error)

    return Bodies
