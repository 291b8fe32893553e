"""The HTTP side: finds out whose a request is, and hands it to who answers it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import replace
from typing import Any

from aiohttp import web

from proxy import sentinel
from proxy.claims import AgentRequest, Claim
from proxy.dialects import ChatDialect
from proxy.giving import Giving
from proxy.journal import Journal, Origin
from proxy.log.errors import LogError
from proxy.mcp import refused
from proxy.mcp_session import MCP_PATH, give_tools, mcp_origin, tools_of
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
from proxy.respond import Connection
from proxy.responses import ResponsesApi, wants_stream
from proxy.sentinel import Found
from proxy.sessions import Player
from proxy.threads import thread_of
from proxy.wire.chat import dump_json
from proxy.wire.endpoint import SESSION_KEY_PREFIX
from proxy.wire.errors import PROXY_FAULT, SERVER_ERROR, ApiError
from proxy.wire.responses import RESPONSES_PATH

Body = dict[str, Any]

_log = logging.getLogger(__name__)
_FAULT = "a fault of the proxy ({}): its terminal has the details"
NO_CONTROL = "this proxy only records, so there is nothing to control: start serve with --scenarios"

_PASSED_ON = re.compile(r"GET /models(/[^/]+)?|POST /embeddings")
_DOTS = re.compile(r"(?:^|/|\\|%2f|%5c)(?:\.|%2e){1,2}(?:/|\\|;|%2f|%5c|%3b|$)", re.IGNORECASE)
"""A path that means another one, or does to some servers: what it leads to was not looked at."""
_UNPLAYED = frozenset({"/messages", "/completions"})
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
        responses: ResponsesApi,
        *,
        keep_alive: float,
        own_key: str | None = None,
    ) -> None:
        self._registry = registry
        self._queue = None if registry is None else Queue(registry)
        self._recorder = recorder
        self._journal = journal
        self._responses = responses
        self._own_key = own_key
        self._keep_alive = keep_alive

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The boundary: whatever goes wrong with a request ends here, written down."""
        visit = Visit(request, find_address(request))
        if self._journal.log.failed is not None:
            # Nothing passes unrecorded; and this tries whether the log can be written again.
            await self._journal.log.commit()
        try:
            return await self._answer(visit)
        except LogError:
            if visit.exchange_id is not None:
                self._journal.log.put(self._journal.unrecorded(visit.exchange_id))
            raise
        except (ConnectionError, asyncio.CancelledError) as exc:
            if visit.exchange_id is not None and self._journal.is_open(visit.exchange_id):
                self._journal.log.put(self._journal.left(visit.exchange_id))
            if isinstance(exc, asyncio.CancelledError):
                raise
            return web.Response()  # to nobody

    async def _answer(self, visit: Visit) -> web.StreamResponse:
        """Raises LogError, and ConnectionError if the agent has left."""
        try:
            return await self._route(visit)
        except ApiError as exc:
            await self._refuse(visit, exc)
            raise
        except (web.HTTPException, LogError, ConnectionError):
            raise
        except Exception as exc:
            _log.exception("a request could not be served: this is a fault of the proxy")
            fault = ApiError(500, _FAULT.format(type(exc).__name__), SERVER_ERROR, PROXY_FAULT)
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
        if address.path == MCP_PATH:
            return await self._give_tools(visit)
        if request.method == "POST" and address.path == CHAT_PATH:
            return await self._play(visit, parse_body(raw))
        if request.method == "POST" and address.path == RESPONSES_PATH:
            visit.translated = await self._responses.translated(raw)
            return await self._play(visit, visit.translated.chat)
        if self._responses.is_stored(request.method, address.path):
            return await self._give_stored(visit)
        raise ApiError(
            400 if address.path in _UNPLAYED else 404,
            f"{request.method} {address.path} is not played in a session: "
            "let the agent use /chat/completions or /responses (in most clients: another model class)",
            code="endpoint_not_played",
        )

    async def _play(self, visit: Visit, body: Body) -> web.StreamResponse:
        assert self._registry is not None
        request = visit.request
        found = sentinel.find(body["messages"])
        player, correlation = self._player(visit, body, found)
        found = found or player.spoken(body)
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
            sha256=visit.sha256,
        )
        dialect = ChatDialect(body) if visit.translated is None else visit.translated.dialect
        return await Giving(self._journal, player, asked, dialect, self._connection(visit, body)).run()

    async def _give_tools(self, visit: Visit) -> web.StreamResponse:
        """The MCP endpoint of a Session; its errors have the shape of JSON-RPC."""
        assert self._registry is not None
        try:
            tools = tools_of(self._registry, visit)
        except ApiError as exc:
            await self._refuse(visit, exc)
            return refused(exc)
        exchange_id = self._received(visit, json_or_none(visit.raw), mcp_origin(visit))
        return await give_tools(visit.request, tools, self._journal, exchange_id)

    async def _refuse(self, visit: Visit, error: ApiError) -> None:
        """Writes down a request that was not let in or could not be served, unless it has ended already."""
        if visit.exchange_id is not None and not self._journal.is_open(visit.exchange_id):
            return
        player = visit.player
        if player is None and self._registry is not None:
            player = self._registry.refused(visit.address)
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
        asks = visit.request.method == "POST" and visit.address.path != MCP_PATH
        if player is not None and player.turn and asks:
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
        if name is None and visit.translated and (player := self._answered(visit.translated.session_id)):
            return player, "response_id"
        if name is None:
            return self._queue.player(body, found, visit.sha256), QUEUED
        begins = thread_of(body) if found is not None and is_fresh(body, found) else None
        player = self._registry.player(name, begins=begins)
        player.check(visit.address.attempt)
        return player, correlation

    async def _side_call(
        self, visit: Visit, body: Body, player: Player, claim: Claim, correlation: str | None
    ) -> web.StreamResponse:
        """Passes a call on the side through, with the user's words where the sentinel stands."""
        player.accept(claim)
        translated = visit.translated
        sent = player.fill_side_call(dump_json(body) if translated else visit.raw, claim)
        turn = min(claim.turn, player.turn) or None
        origin = Origin(player.row.id, turn, correlation=correlation, reason=claim.side)
        if translated is None:
            return await self._pass_on(visit, sent, body, CHAT_PATH, origin)
        return await self._responses.aside(
            self._connection(visit, body),
            visit.request,
            json.loads(sent),
            translated,
            exchange_id=self._received(visit, body, origin),
            session_id=player.row.id,
            key=self._provider_key(visit.request),
        )

    async def _give_stored(self, visit: Visit) -> web.StreamResponse:
        """A response once more that the agent was given."""
        request = visit.request
        origin = Origin(correlation=visit.address.correlation, reason="about a response that was given")
        exchange_id = self._received(visit, None, origin)
        body = await self._responses.stored(request, visit.address.path)
        await self._journal.log.commit(self._journal.given(exchange_id, {}))
        connection = Connection(request, stream=wants_stream(request), keep_alive=self._keep_alive)
        response = await connection.write(body)
        self._journal.delivered(exchange_id)
        return response

    def _answered(self, session_id: str | None) -> Player | None:
        """The Session that a response was given in, if it is still played."""
        assert self._registry is not None
        return next((it for it in self._registry.players.values() if it.row.id == session_id), None)

    def _connection(self, visit: Visit, body: Body) -> Connection:
        return Connection(visit.request, stream=bool(body.get("stream")), keep_alive=self._keep_alive)

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
        request, translated = visit.request, visit.translated
        visit.exchange_id = self._journal.received(
            request.method,
            request.path_qs,
            request.headers,
            visit.raw,
            translated.logged if translated else body,
            agent_key(request),
            origin,
            translated.changes if translated else (),
            secrets_of(request, body),
        )
        return visit.exchange_id

    def _provider_key(self, request: web.Request) -> str | None:
        """The key for the provider; None where the agent has its own way to authorize itself."""
        key = agent_key(request)
        if key is not None and not key.startswith(SESSION_KEY_PREFIX):
            return key
        return self._own_key if key or "Authorization" not in request.headers else None
