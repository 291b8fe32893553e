"""The HTTP side: finds out whose a request is, and hands it to who answers it."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from aiohttp import web

from proxy import sentinel
from proxy.claims import AgentRequest, Claim
from proxy.control import Control
from proxy.giving import Giving
from proxy.journal import Journal, Origin
from proxy.log.errors import LogError
from proxy.queue import Queue, is_fresh
from proxy.recording import CHAT_PATH, Recorder
from proxy.registry import QUEUED, Registry
from proxy.requests import (
    Visit,
    agent_key,
    find_address,
    json_or_none,
    parse_body,
    read_body,
    secrets_of,
)
from proxy.respond import error_response
from proxy.sentinel import Found
from proxy.sessions import Player
from proxy.threads import thread_of
from proxy.wire.endpoint import SESSION_KEY_PREFIX
from proxy.wire.errors import INVALID_REQUEST, SERVER_ERROR, ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = dict[str, Any]

_log = logging.getLogger(__name__)
_FAULT = "a fault of the proxy ({}): its terminal has the details"
NO_CONTROL = "this proxy only records, so there is nothing to control: start serve with --scenarios"

JOURNAL = web.AppKey("journal", Journal)
MAX_BODY = 1 << 30
"""Bytes of a request: agents re-send long histories, with pictures in them."""

_PASSED_ON = re.compile(r"GET /models(/[^/]+)?|POST /embeddings")
_DOTS = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
"""A path that means another one: what it leads to was not looked at."""
_UNPLAYED = frozenset({"/messages", "/completions", "/responses"})
"""Endpoints that exist and would spend tokens unevaluated."""


class Agents:
    """Handlers of what agents send. `registry` is None when the proxy only records.

    `own_key` is for agents that have no key of the provider's: those without any, and those
    whose key names a Session.
    """

    def __init__(
        self,
        registry: Registry | None,
        recorder: Recorder,
        journal: Journal,
        *,
        keep_alive: float,
        own_key: str | None = None,
    ) -> None:
        self._registry = registry
        self._queue = None if registry is None else Queue(registry)
        self._recorder = recorder
        self._journal = journal
        self._own_key = own_key
        self._keep_alive = keep_alive

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The boundary: whatever goes wrong with a request ends here, written down."""
        visit = Visit(request, find_address(request))
        try:
            return await self._route(visit)
        except ApiError as exc:
            await self._refuse(visit, exc)
            raise
        except (LogError, web.HTTPException):
            raise
        except Exception as exc:
            _log.exception("a request could not be served: this is a fault of the proxy")
            fault = ApiError(500, _FAULT.format(type(exc).__name__), SERVER_ERROR, "proxy_fault")
            await self._refuse(visit, fault)
            raise fault from exc

    async def _route(self, visit: Visit) -> web.StreamResponse:
        request, address = visit.request, visit.address
        raw = visit.raw = await read_body(request)
        if address.path.startswith("/eval/"):
            raise ApiError(404, NO_CONTROL, code="no_control_api")
        if _DOTS.search(address.path):
            raise ApiError(400, "the path has . or .. in it: give the endpoint's own path", code="bad_path")
        if self._registry is None or _PASSED_ON.fullmatch(f"{request.method} {address.path}"):
            origin = Origin(correlation=address.correlation, reason="recorded")
            return await self._pass_on(visit, raw, json_or_none(raw), address.path, origin)
        if address.path != CHAT_PATH or request.method != "POST":
            raise ApiError(
                400 if address.path in _UNPLAYED else 404,
                f"{request.method} {address.path} is not played in a session: "
                "let the agent use /chat/completions (in most clients: the chat-completions model class)",
                code="endpoint_not_played",
            )
        return await self._play(visit, parse_body(raw))

    async def _play(self, visit: Visit, body: Body) -> web.StreamResponse:
        assert self._registry is not None
        request = visit.request
        found = sentinel.find(body["messages"])
        player, correlation = self._player(visit, body, found)
        if player.takes_over(body, found):
            player = self._registry.next_attempt(player, visit.sha256)
        visit.player = player
        claim = player.claim(body, found)
        if claim.side is not None and player.session.over:
            # After the last Task the provider is not called any more, for nothing.
            claim = replace(claim, turn=player.turn + 1, side=None)
        if claim.side is not None:
            return await self._side_call(visit, body, player, claim, correlation)
        if body.get("n") not in (None, 1):
            raise ApiError(400, "n must be 1 in a session: one reply is what is judged", param="n")
        player.accept(claim)
        origin = Origin(player.row.id, claim.turn, correlation=correlation)
        asked = AgentRequest(
            exchange_id=self._received(visit, body, origin),
            claim=claim,
            body=body,
            headers=dict(request.headers),
            key=self._provider_key(request),
            query=request.rel_url.raw_query_string,
        )
        return await Giving(self._journal, player, asked, request, self._keep_alive).run()

    async def _refuse(self, visit: Visit, error: ApiError) -> None:
        """Writes down a request that was not let in, or could not be served."""
        player = visit.player
        if player is None and self._registry is not None:
            player = self._registry.known(visit.address.session)
        if visit.exchange_id is None:
            origin = Origin(correlation=visit.address.correlation, reason="refused")
            if player is not None and player.turn:
                player.record()
                origin = replace(origin, session_id=player.row.id, turn=player.turn)
            visit.exchange_id = self._received(visit, json_or_none(visit.raw), origin)
        row = self._journal.failed(
            visit.exchange_id,
            "proxy_error",
            status=error.status,
            error_type=error.code or error.type,
            error=error.message,
        )
        await self._journal.log.commit(row)
        if player is not None and player.turn:
            player.deliveries.refuse(player.turn)

    def _player(self, visit: Visit, body: Body, found: Found | None) -> tuple[Player, str | None]:
        """The Session of a request, and how it was found."""
        assert self._registry is not None
        assert self._queue is not None
        name, correlation = visit.address.session, visit.address.correlation
        if name is None and found is not None:
            name, correlation = found.session, "sentinel"
        if name is None and (player := self._registry.given_call(body["messages"])):
            return player, "tool_call_id"
        if name is None:
            return self._queue.player(body, found, visit.sha256), QUEUED
        begins = thread_of(body) if found is not None and is_fresh(body, found) else None
        return self._registry.player(name, begins=begins), correlation

    async def _side_call(
        self, visit: Visit, body: Body, player: Player, claim: Claim, correlation: str | None
    ) -> web.StreamResponse:
        """Passes a call on the side through, with the user's words where the sentinel stands."""
        player.accept(claim)
        sent = player.fill_side_call(visit.raw, claim)
        turn = min(claim.turn, player.turn) or None
        origin = Origin(player.row.id, turn, correlation=correlation, reason=claim.side)
        return await self._pass_on(visit, sent, body, CHAT_PATH, origin)

    async def _pass_on(
        self, visit: Visit, sent: bytes, body: Any, path: str, origin: Origin
    ) -> web.StreamResponse:
        request = visit.request
        exchange_id = self._received(visit, body, origin)
        stream = isinstance(body, dict) and bool(body.get("stream"))
        key = self._provider_key(request)
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        return await self._recorder.relay(request, sent, path + query, exchange_id, stream=stream, key=key)

    def _received(self, visit: Visit, body: Any, origin: Origin) -> str:
        request = visit.request
        for secret in secrets_of(request):
            self._journal.log.hide(secret)
        visit.exchange_id = self._journal.received(
            request.method, request.path_qs, request.headers, visit.raw, body, agent_key(request), origin
        )
        return visit.exchange_id

    def _provider_key(self, request: web.Request) -> str | None:
        """The key for the provider; None where the agent has its own way to authorize itself."""
        key = agent_key(request)
        if key is not None and not key.startswith(SESSION_KEY_PREFIX):
            return key
        return self._own_key if key or "Authorization" not in request.headers else None


def build_app(agents: Agents, control: Control | None, journal: Journal) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_errors])
    app[JOURNAL] = journal
    app.router.add_get("/healthz", _healthz)
    if control is not None:
        app.router.add_routes(control.routes())
        app.on_shutdown.append(control.stop)
    app.router.add_route("*", "/{path:(?s:.*)}", agents.handle)
    return app


async def _healthz(request: web.Request) -> web.Response:
    failure = request.app[JOURNAL].log.failed
    if failure is not None:
        raise ApiError(503, f"the log has failed: {failure}", SERVER_ERROR, "log_failed")
    return web.json_response({"status": "ok"})


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error of our own is JSON in OpenAI's shape."""
    try:
        return await handler(request)
    except ApiError as exc:
        return error_response(exc)
    except LogError as exc:
        return error_response(ApiError(500, f"the log cannot be written: {exc}", SERVER_ERROR, "log_failed"))
    except web.HTTPException as exc:
        if exc.status < 400:
            raise
        return error_response(ApiError(exc.status, exc.reason, INVALID_REQUEST))
