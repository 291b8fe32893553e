"""The HTTP side: finds out whose a request is, and gives the answer the way it was asked for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy import sentinel
from proxy.control import Control
from proxy.journal import Journal, Origin
from proxy.log.errors import LogError
from proxy.recording import CHAT_PATH, Recorder, break_off
from proxy.sessions import AgentRequest, Player, ProviderFailed, Registry
from proxy.wire.chat import stream_events
from proxy.wire.endpoint import SESSION_KEY_PREFIX, response_headers
from proxy.wire.errors import INVALID_REQUEST, PROVIDER_ERROR, SERVER_ERROR, ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = dict[str, Any]

MAX_BODY = 1 << 30
"""Bytes of a request: agents re-send long histories, with pictures in them."""

_PATH = re.compile(r"(?:/s/(?P<session>[^/]+))?(?:/v1)?(?P<rest>/.*)")
_PASSED_ON = frozenset({"models", "embeddings"})
_UNPLAYED = frozenset({"/messages", "/completions", "/responses"})
"""Endpoints that exist and would spend tokens unevaluated."""
_WAYS = "put the session into the base URL (/s/SCENARIO_ID/v1) or use the API key sk-eval-SCENARIO_ID"


@dataclass(frozen=True, slots=True)
class Address:
    """What a request is about: the Session's name and how it was found, the path behind it."""

    session: str | None
    correlation: str | None
    path: str


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
        self._recorder = recorder
        self._journal = journal
        self._own_key = own_key
        self._keep_alive = keep_alive

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        address = find_address(request)
        if self._registry is None or address.path.split("/")[1] in _PASSED_ON:
            return await self._record(request, raw, address, "recorded")
        if address.path != CHAT_PATH or request.method != "POST":
            raise ApiError(
                404 if address.path not in _UNPLAYED else 400,
                f"{request.method} {address.path} is not played in a session: "
                "let the agent use /chat/completions (in most clients: the chat-completions model class)",
                code="endpoint_not_played",
            )
        return await self._play(request, raw, parse_body(raw), address)

    async def _record(
        self, request: web.Request, raw: bytes, address: Address, reason: str
    ) -> web.StreamResponse:
        body = _json_or_none(raw)
        origin = Origin(correlation=address.correlation, reason=reason)
        exchange_id = self._received(request, raw, body, origin)
        stream = isinstance(body, dict) and bool(body.get("stream"))
        path = address.path + (f"?{request.query_string}" if request.query_string else "")
        return await self._recorder.relay(
            request, raw, path, exchange_id, stream=stream, key=self._provider_key(request)
        )

    async def _play(
        self, request: web.Request, raw: bytes, body: Body, address: Address
    ) -> web.StreamResponse:
        assert self._registry is not None
        found = sentinel.find(body["messages"])
        session = address.session or (found.session if found else None)
        if session is None:
            raise ApiError(400, f"this request names no session: {_WAYS}", code="no_session")
        first = found is not None and (found.turn == 1 or (found.turn is None and _is_fresh(body)))
        player = self._registry.player(session, first_turn=first)
        if found is None:
            return await self._record(request, raw, address, "side call: no [[next-user-turn]] in it")
        _refuse_unplayable(body)
        turn = found.turn or player.turn
        origin = Origin(player.row.id, turn, correlation=address.correlation or "sentinel")
        exchange_id = self._received(request, raw, body, origin)
        asked = AgentRequest(exchange_id, body, found, dict(request.headers), self._provider_key(request))
        return await _Giving(self._journal, player, asked, request, self._keep_alive).run()

    def _received(self, request: web.Request, raw: bytes, body: Any, origin: Origin) -> str:
        return self._journal.received(
            request.method,
            request.path_qs,
            request.headers,
            raw,
            body,
            agent_key(request),
            origin,
        )

    def _provider_key(self, request: web.Request) -> str | None:
        key = agent_key(request)
        return self._own_key if key is None or key.startswith(SESSION_KEY_PREFIX) else key


class _Giving:
    """One request for a turn, until its answer is written out."""

    def __init__(
        self, journal: Journal, player: Player, asked: AgentRequest, request: web.Request, keep_alive: float
    ) -> None:
        self._journal = journal
        self._player = player
        self._asked = asked
        self._request = request
        self._keep_alive = keep_alive
        self._stream = bool(asked.body.get("stream"))
        self._response: web.StreamResponse | None = None

    async def run(self) -> web.StreamResponse:
        try:
            completion = await self._wait(asyncio.ensure_future(self._player.answer(self._asked)))
            await self._journal.log.commit(self._journal.given(self._asked.exchange_id, completion))
            response = await self._write(completion)
            self._journal.delivered(self._asked.exchange_id)
            self._player.delivered(self._asked.found)
            return response
        except ProviderFailed as exc:
            return await self._fail(failure_response(exc), "provider_error", exc.answer.error_type, str(exc))
        except ApiError as exc:
            return await self._fail(error_response(exc), "proxy_error", exc.code or exc.type, exc.message)
        except (ConnectionError, asyncio.CancelledError) as exc:
            self._journal.log.put(
                self._journal.failed(
                    self._asked.exchange_id,
                    "client_abort",
                    status=None,
                    error_type="client_disconnected",
                    error="the agent left before its answer was written",
                )
            )
            if isinstance(exc, asyncio.CancelledError):
                raise
            return self._response or web.Response()

    async def _wait(self, work: asyncio.Future[Body]) -> Body:
        """Waits for the turn; from the first `keep_alive` seconds on, sends signs of life."""
        try:
            while not (await asyncio.wait({work}, timeout=self._keep_alive))[0]:
                if self._response is None:
                    self._response = await self._prepare()
                await self._response.write(b": waiting for the provider\n" if self._stream else b" ")
            return work.result()
        finally:
            work.cancel()

    async def _prepare(self) -> web.StreamResponse:
        content_type = "text/event-stream; charset=utf-8" if self._stream else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        await response.prepare(self._request)
        return response

    async def _write(self, completion: Body) -> web.StreamResponse:
        if self._stream:
            options = self._asked.body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            body = b"".join(stream_events(completion, usage))
        else:
            body = json.dumps(completion).encode()
        if self._response is None and not self._stream:
            response = web.Response(body=body, content_type="application/json")
            await response.prepare(self._request)
            await response.write_eof()
            return response
        if self._response is None:
            self._response = await self._prepare()
        await self._response.write(body)
        await self._response.write_eof()
        return self._response

    async def _fail(
        self, response: web.Response, state: str, kind: str | None, error: str
    ) -> web.StreamResponse:
        status = response.status
        row = self._journal.failed(
            self._asked.exchange_id, state, status=status, error_type=kind or str(status), error=error
        )
        await self._journal.log.commit(row)
        if self._response is None:
            return response
        # The status has gone out as 200: only a broken connection still tells the truth.
        break_off(self._request)
        return self._response


def build_app(agents: Agents, control: Control | None) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_errors])
    app.router.add_get("/healthz", _healthz)
    if control is not None:
        app.router.add_routes(control.routes())
    app.router.add_route("*", "/{path:.*}", agents.handle)
    return app


async def _healthz(request: web.Request) -> web.Response:
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


def error_response(error: ApiError) -> web.Response:
    headers = {**error.headers, "x-should-retry": "false"}
    return web.json_response(error.body, status=error.status, headers=headers)


def failure_response(failed: ProviderFailed) -> web.Response:
    """The provider's own error as it came; what is no HTTP error becomes a 502."""
    answer = failed.answer
    if answer.status is not None and answer.status >= 400:
        kept = response_headers(answer.headers.items(), decoded=True)
        headers = {name: value for name, value in kept if name.lower() != "x-should-retry"}
        return web.Response(
            body=answer.raw, status=answer.status, headers={**headers, "x-should-retry": "false"}
        )
    return error_response(ApiError(502, str(failed), PROVIDER_ERROR, answer.error_type))


def find_address(request: web.Request) -> Address:
    """The Session by URL path, else by API key; and the endpoint's path."""
    match = _PATH.fullmatch(request.path)
    path = match["rest"] if match else request.path
    if match and match["session"]:
        return Address(match["session"], "path", path)
    key = agent_key(request)
    if key and key.startswith(SESSION_KEY_PREFIX):
        return Address(key.removeprefix(SESSION_KEY_PREFIX), "api_key", path)
    return Address(None, None, path)


def agent_key(request: web.Request) -> str | None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def parse_body(raw: bytes) -> Body:
    """A chat completion request. Content is parsed by `json`, which keeps big integers whole."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ApiError(400, f"the body is not JSON: {exc}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise ApiError(400, "messages must be a list that is not empty", param="messages")
    return body


def _json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None


def _refuse_unplayable(body: Body) -> None:
    if body.get("n") not in (None, 1):
        raise ApiError(400, "n must be 1 in a session: one reply is what is judged", param="n")


def _is_fresh(body: Body) -> bool:
    return not any(isinstance(m, dict) and m.get("role") == "assistant" for m in body["messages"])
