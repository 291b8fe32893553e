"""The control API, for drivers: open Sessions and turns, see where they stand.

It needs the token made at start and never gives a Reference away. `process` in an answer is
another one after the proxy was started anew.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from proxy import sentinel
from proxy.address import path_of
from proxy.control_api import control_api
from proxy.control_schemas import MAX_EPOCH, MAX_WAIT_S
from proxy.event_stream import send_events
from proxy.registry import Registry
from proxy.requests import read_body
from proxy.sessions import Player
from proxy.ui.access import has_token
from proxy.wire.body import read_object
from proxy.wire.errors import AUTHENTICATION, ApiError
from scenarios.problems import kind_of
from scenarios.text import clip

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]+)?([eE]-?[0-9]{1,2})?")


class Control:
    """Handlers of `/eval/...`. `prefix` stands before the paths that agents are given."""

    def __init__(
        self, registry: Registry, token: str, run: dict[str, Any], log: Path, prefix: str = ""
    ) -> None:
        self._registry = registry
        self._prefix = prefix
        self._log = log
        self._process = secrets.token_hex(4)
        self._stopping = asyncio.Event()
        self._token = token
        self._run = run

    def routes(self) -> list[web.RouteDef]:
        """Those of `control_api`, and for all else below `/eval` an error that says so."""
        served = self._served()
        methods = defaultdict[str, list[str]](list)
        for route in served:
            methods[route.path].append(route.method)
        refusing = [web.route("*", path, self._refusing(allowed)) for path, allowed in methods.items()]
        return [*served, *refusing, web.route("*", "/eval/{path:(?s:.*)}", self.unknown)]

    def _served(self) -> list[web.RouteDef]:
        return [
            web.get("/eval/openapi.json", self.openapi),
            web.get("/eval/run", self.run),
            web.post("/eval/plan", self.plan),
            web.post("/eval/sessions", self.create),
            web.get("/eval/sessions", self.sessions),
            web.get("/eval/events", self.events),
            web.get("/eval/sessions/{session}", self.state),
            web.post("/eval/sessions/{session}/turns", self.open_turn),
        ]

    async def stop(self, app: web.Application) -> None:
        """Ends the event streams, which would go on for ever: the proxy is being stopped."""
        self._stopping.set()

    def _refusing(self, allowed: list[str]) -> Handler:
        async def refuse(request: web.Request) -> web.StreamResponse:
            self._authorize(request)
            names = ", ".join(allowed)
            raise ApiError(405, f"this path answers {names} alone", headers={"Allow": names})

        return refuse

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        self._authorize(request)
        raise ApiError(404, f"no {request.path!r} in the control API: GET /eval/openapi.json lists it")

    async def openapi(self, request: web.Request) -> web.Response:
        """What the control API is like: for everybody, as it says nothing of this proxy."""
        return web.json_response(control_api())

    async def run(self, request: web.Request) -> web.Response:
        self._authorize(request)
        scenarios = [
            {"id": scenario.id, "hash": scenario.hash, "tasks": len(scenario.tasks)}
            for scenario in self._registry.scenarios.values()
        ]
        return web.json_response({**self._run, "scenarios": scenarios})

    async def plan(self, request: web.Request) -> web.Response:
        """Writes down what a driver is going to play, so that a part cannot pass for the whole."""
        self._authorize(request)
        sessions = (await _json_object(request)).get("sessions")
        planned = [self._planned(item) for item in sessions] if isinstance(sessions, list) else None
        if planned is None:
            raise ApiError(400, "sessions must be a list of {scenario, epoch}", param="sessions")
        await self._registry.plan(planned)
        return web.json_response({"planned": len(planned)})

    def _planned(self, item: Any) -> tuple[str, int]:
        fields = item if isinstance(item, dict) else {}
        scenario, epoch = fields.get("scenario"), fields.get("epoch")
        if not isinstance(scenario, str) or scenario not in self._registry.scenarios:
            raise ApiError(404, f"no scenario is called {_shown(scenario)}", param="scenario")
        number = _whole(epoch)
        if number is None or not 1 <= number <= MAX_EPOCH:
            raise ApiError(
                400, f"epoch must be a whole number from 1 to {MAX_EPOCH}, not {_shown(epoch)}", param="epoch"
            )
        return scenario, number

    async def create(self, request: web.Request) -> web.Response:
        self._authorize(request)
        wanted = await _json_object(request)
        scenario, epoch = self._planned({"epoch": 1, **wanted})
        again = _flag(wanted, "again")
        player = self._registry.open(scenario, epoch)
        if again and _can_be_played_again(player):
            player = self._registry.next_attempt(player)
        player.record()
        await player.committed()
        name = player.row.name
        path = self._prefix + path_of(name, player.addressed)
        return web.json_response(
            {
                "session": name,
                "url": f"{path}/v1",
                "mcp_url": f"{path}/mcp" if player.session.config.tools == "mcp" else None,
                "over": player.session.over,
                "turn": player.turn,
                "process": self._process,
            },
            status=201,
        )

    async def sessions(self, request: web.Request) -> web.Response:
        """Where the Sessions stand that are being played."""
        self._authorize(request)
        playing = [it for it in self._registry.players.values() if it.turn and not it.session.over]
        return web.json_response({"sessions": [describe(player) for player in playing]})

    async def open_turn(self, request: web.Request) -> web.Response:
        """Opens the next turn, or gives the one after turn `after` if it is open already.

        `text` in the answer is what the user says in it, for agents that shall see it themselves.
        `wait`: the agent is thought to have its answer; should the turn still be played, after
        another attempt took over, it is not given up.
        """
        self._authorize(request)
        player = self._player(request)
        wanted = await _json_object(request)
        number = await player.open_turn(after=_turn(wanted, "after"), wait=_flag(wanted, "wait"))
        turn = None if number is None else player.session.turn
        await player.committed()
        return web.json_response(
            {
                "turn": number,
                "prompt": None if number is None else sentinel.prompt(number),
                "text": None if turn is None else turn.words,
                "over": number is None,
            }
        )

    async def events(self, request: web.Request) -> web.StreamResponse:
        self._authorize(request)
        session = request.query.get("session")
        if session is not None and self._registry.known(session) is None:
            raise ApiError(404, f"no session is called {_shown(session)}", param="session")
        return await send_events(request, self._log, self._run["run"], session, self._stopping)

    async def state(self, request: web.Request) -> web.Response:
        self._authorize(request)
        player = self._player(request)
        wait = min(_number(request, "wait"), MAX_WAIT_S)
        if "answered" in request.query:
            turn = int(_number(request, "answered", whole=True))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._settled(request, turn)
            player = self._player(request)
        return web.json_response({**describe(player), "process": self._process})

    async def _settled(self, request: web.Request, turn: int) -> Player:
        """Waits for a turn that the driver has opened, if need be before another attempt took over."""
        while True:
            player = self._player(request)
            if player.row.attempt > 1 and turn > max(player.turn, 1):
                await player.deliveries.settled(turn - 1, MAX_WAIT_S)
                if player.turn < turn and player.deliveries.has_answer(turn - 1):
                    await player.open_turn(after=turn - 1)
            await player.deliveries.settled(turn, MAX_WAIT_S)
            if self._player(request) is player:
                return player

    def _player(self, request: web.Request) -> Player:
        name = request.match_info["session"]
        player = self._registry.players.get(name)
        if player is None:
            raise ApiError(404, f"no session is called {_shown(name)}; open it with POST /eval/sessions")
        return player

    def _authorize(self, request: web.Request) -> None:
        if not has_token(request, self._token):
            raise ApiError(
                401,
                "the control API needs the proxy's token: set EVAL_TOKEN when the proxy is started "
                "(on a terminal it prints the one that it made up)",
                AUTHENTICATION,
                "no_token",
            )


def describe(player: Player) -> dict[str, Any]:
    """Where a Session stands.

    `asked` is the last turn that the agent asked for, `answered` the last one whose answer
    reached it, `failed_turn` the last one that the provider failed (`failed_status`: its HTTP status,
    0 if there was none), `refused_turn` the last one in which a request was not let in. `names_right`
    is the verdict while playing: names, not arguments; with `continue` no call was refused either.
    `steps` are those of the Task that is open. `waits_for` says whose turn it is (`tally.WaitsFor`),
    and `waited` for how many seconds it has been.
    """
    session = player.session
    left = [None] * (len(session.scenario.tasks) - len(session.ends))
    ends, right = [*session.ends, *left], [*session.names_right, *left]
    return {
        "session": player.row.name,
        "scenario": player.row.scenario_id,
        "epoch": player.row.epoch,
        "turn": player.turn,
        "over": session.over,
        "asked": session.begun,
        "answered": player.deliveries.answered,
        "failed_turn": player.deliveries.failed,
        "failed_status": player.deliveries.failed_status,
        "refused_turn": player.deliveries.refused,
        "tasks": [{"task": i + 1, "end": end, "names_right": right[i]} for i, end in enumerate(ends)],
        "input_tokens": player.tally.input_tokens,
        "output_tokens": player.tally.output_tokens,
        "provider_errors": player.tally.provider_errors,
        "provider_retries": player.tally.retries,
        "steps": session.steps if session.task_is_open else 0,
        "waits_for": player.tally.waits_for,
        "waited": player.waited,
    }


def _number(request: web.Request, name: str, *, whole: bool = False) -> float:
    """A parameter that is a number and not negative; 0 without it. Raises ApiError."""
    text = request.query.get(name, "0")
    found = _NUMBER.fullmatch(text)
    if found is None or (whole and not text.isdigit()):
        kind = "a whole number" if whole else "a number"
        raise ApiError(400, f"{name} must be {kind} that is not negative, not {_shown(text)}", param=name)
    return float(text)


def _shown(value: Any) -> str:
    """A value for a message; of one that may be large only what kind it is."""
    return clip(repr(value), 80) if isinstance(value, str | int | float) else kind_of(value)


def _flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ApiError(400, f"{name} must be true or false, not {_shown(value)}", param=name)
    return value


def _turn(body: dict[str, Any], name: str) -> int | None:
    value = body.get(name)
    number = _whole(value)
    if value is not None and (number is None or number < 0):
        raise ApiError(400, f"{name} must be the number of a turn, not {_shown(value)}", param=name)
    return number


def _whole(value: Any) -> int | None:
    """A whole number, as JSON Schema has it: `1.0` is one, `true` is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value == value // 1 else None


def _can_be_played_again(player: Player) -> bool:
    """Was a Session begun and not ended by its agent?"""
    return player.turn > 0 and (not player.session.over or "infrastructure" in player.session.ends)


async def _json_object(request: web.Request) -> dict[str, Any]:
    return read_object(await read_body(request) or b"{}")
