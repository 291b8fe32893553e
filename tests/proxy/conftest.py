"""The one fake: a scripted provider, a real HTTP server on a free loopback port.

    provider.reply("Hello.")                           # JSON or SSE, as the request asks
    provider.reply(calls=[("add", {"a": 1})])          # tool calls; arguments may be text
    provider.fail(429, headers={"Retry-After": "1"})   # an OpenAI-shaped error
    provider.json({...})                               # any JSON, any status
    provider.body(b"<html>", "text/html")              # any bytes
    provider.stream([chunk, chunk, provider.CUT])      # dicts, bytes, Events to wait for, a cut
    provider.drop()                                    # no answer, the connection closes
    provider.drop(after=b'{"id":')                     # ... in the middle of the body
    event = provider.hang()                            # no answer before event.set()
    provider.script(lambda request: ...)               # decides each further reply itself

Replies are given in the order they were queued; a `script` answers when the queue is empty,
and without one a request beyond the queue gets 500. `provider.requests` holds what came;
`await provider.arrived(n)` waits for the n-th request and gives it, and
`await provider.disconnected.wait()` waits until a client has left before its answer ended.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict


@dataclass(frozen=True)
class Request:
    """A request as it arrived; `body` is its JSON, None if it is not JSON."""

    method: str
    path: str
    query: str
    headers: CIMultiDict[str]
    raw: bytes
    body: Any


class Cut:
    """In a reply's parts: close the connection here."""


CUT = Cut()
Part = bytes | asyncio.Event | Cut


@dataclass(frozen=True)
class Reply:
    """A scripted answer: bytes to write (each in a write of its own), Events to wait for, cuts."""

    parts: list[Part]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: asyncio.Event | Cut | None = None


Script = Callable[[Request], "Reply | Awaitable[Reply | None] | None"]


class ScriptedProvider:
    CUT = CUT
    DONE = b"data: [DONE]\n\n"

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.disconnected = asyncio.Event()
        self.url = ""
        self._queue: deque[Reply | Callable[[Request], Reply]] = deque()
        self._script: Script | None = None
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    # Scripting

    def reply(self, text: str | None = None, **options: Any) -> None:
        """An assistant message; options: calls, reasoning, finish_reason, usage, model, id, piece."""
        self._queue.append(lambda request: self.message(request, text, **options))

    def message(
        self,
        request: Request,
        text: str | None = None,
        *,
        calls: list[tuple[Any, ...]] = (),
        reasoning: str | None = None,
        finish_reason: str | None = None,
        usage: tuple[int, int] = (10, 5),
        model: str | None = None,
        id: str | None = None,
        piece: int = 7,
    ) -> Reply:
        """The same as a value, for scripts; `calls` are (name, arguments[, id])."""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [_call(i, len(self.requests), *call) for i, call in enumerate(calls)]
        asked = request.body if isinstance(request.body, dict) else {}
        whole = {
            "id": id or f"chatcmpl-{len(self.requests)}",
            "created": 1700000000,
            "model": model or asked.get("model", "scripted"),
        }
        reason = finish_reason or ("tool_calls" if calls else "stop")
        usage_ = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": usage[0] + usage[1],
        }
        if not asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return self.as_json({**whole, "object": "chat.completion", "choices": [choice], "usage": usage_})
        chunk = {**whole, "object": "chat.completion.chunk"}
        choices = [{"index": 0, "delta": d, "finish_reason": None} for d in _deltas(message, piece)]
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
        events: list[Any] = [{**chunk, "choices": [choice]} for choice in choices]
        if (asked.get("stream_options") or {}).get("include_usage"):
            events.append({**chunk, "choices": [], "usage": usage_})
        return self.as_stream([*events, self.DONE])

    def fail(
        self, status: int, message: str = "scripted failure", headers: dict[str, str] | None = None
    ) -> None:
        error = {"message": message, "type": "scripted", "param": None, "code": None}
        self.json({"error": error}, status, headers)

    def json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._queue.append(self.as_json(value, status, headers))

    def body(
        self,
        body: bytes,
        content_type: str = "application/json",
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        self._queue.append(Reply([body], status, {"Content-Type": content_type, **(headers or {})}))

    def stream(self, parts: list[Any], headers: dict[str, str] | None = None, status: int = 200) -> None:
        self._queue.append(self.as_stream(parts, headers, status))

    def drop(self, after: bytes | None = None) -> None:
        if after is None:
            self._queue.append(Reply([], before=CUT))
        else:
            self._queue.append(Reply([after, CUT], headers={"Content-Type": "application/json"}))

    def hang(self, text: str = "late") -> asyncio.Event:
        """Answers `text`, but not before the event that is returned is set."""
        event = asyncio.Event()

        def late(request: Request) -> Reply:
            reply = self.message(request, text)
            return Reply(reply.parts, reply.status, reply.headers, before=event)

        self._queue.append(late)
        return event

    def queued(self, reply: Callable[[Request], Reply]) -> None:
        """One reply that is made when its request has come."""
        self._queue.append(reply)

    def script(self, script: Script) -> None:
        self._script = script

    def as_json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
        body = json.dumps(value, ensure_ascii=False).encode()
        return Reply([body], status, {"Content-Type": "application/json", **(headers or {})})

    def as_stream(self, parts: list[Any], headers: dict[str, str] | None = None, status: int = 200) -> Reply:
        wire = [
            b"data: " + json.dumps(part, ensure_ascii=False).encode() + b"\n\n"
            if isinstance(part, dict)
            else part
            for part in parts
        ]
        return Reply(wire, status, {"Content-Type": "text/event-stream", **(headers or {})})

    # Watching

    async def arrived(self, count: int = 1) -> Request:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    # Serving

    async def start(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        seen = Request(
            request.method, request.path, request.query_string, CIMultiDict(request.headers), raw, body
        )
        async with self._changed:
            self.requests.append(seen)
            self._changed.notify_all()
        try:
            return await self._answer(request, await self._next(seen))
        except (asyncio.CancelledError, ConnectionError):
            self.disconnected.set()
            raise

    async def _next(self, seen: Request) -> Reply:
        reply: Any = None
        if self._queue:
            reply = self._queue.popleft()
            if callable(reply):
                reply = reply(seen)
        elif self._script is not None:
            reply = self._script(seen)
            if inspect.isawaitable(reply):
                reply = await reply
        return reply or self.as_json({"error": {"message": "no scripted reply is left"}}, 500)

    async def _answer(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if isinstance(reply.before, asyncio.Event):
            await reply.before.wait()
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        if isinstance(reply.before, Cut):
            return _close(request, response)
        if CUT in reply.parts and response.content_type == "application/json":
            # Promise more than will come, so that the cut shows without chunked framing too.
            response.content_length = sum(len(part) for part in reply.parts if isinstance(part, bytes)) + 100
        await response.prepare(request)
        for part in reply.parts:
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, Cut):
                return _close(request, response)
            elif part:
                await response.write(part)
        await response.write_eof()
        return response


def _close(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return response


def _call(position: int, request: int, name: str, arguments: Any, id: str | None = None) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": text}
    return {"id": id or f"call_{request}_{position}", "type": "function", "function": function}


def _deltas(message: dict[str, Any], piece: int) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for key in ("reasoning_content", "content"):
        text = message.get(key)
        if text is not None:
            deltas += [{key: text[at : at + piece]} for at in range(0, max(len(text), 1), piece)]
    for index, call in enumerate(message.get("tool_calls", ())):
        text = call["function"]["arguments"]
        head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": text[at : at + piece]}}]}
            for at in range(0, len(text), piece)
        ]
    return deltas


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    """A scripted provider that listens at `provider.url` (ends in /v1)."""
    scripted = ScriptedProvider()
    await scripted.start()
    yield scripted
    await scripted.stop()
