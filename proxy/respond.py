"""Answers of our own, keeping an agent waiting for one, and breaking one off."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from aiohttp import web

from proxy.provider import Answer
from proxy.wire.endpoint import response_headers
from proxy.wire.errors import PROVIDER_ERROR, ApiError

T = TypeVar("T")


class Connection:
    """An agent that waits: signs of life while it does, then its answer in one piece."""

    def __init__(self, request: web.Request, *, stream: bool, keep_alive: float) -> None:
        self._request = request
        self._stream = stream
        self._keep_alive = keep_alive
        self._response: web.StreamResponse | None = None

    @property
    def begun(self) -> web.StreamResponse | None:
        """The answer whose status has gone out as 200 already; None before that."""
        return self._response

    async def wait(self, work: asyncio.Future[T]) -> T:
        """Waits for the answer; from the first `keep_alive` seconds on, sends signs of life.

        Until then nothing is written, so that most failures still get their status.
        """
        try:
            while not (await asyncio.wait({work}, timeout=self._keep_alive))[0]:
                if self._response is None:
                    self._response = await self._prepare()
                await self._response.write(b": waiting for the provider\n" if self._stream else b" ")
            return work.result()
        finally:
            work.cancel()
            work.add_done_callback(_look_at)

    async def write(self, body: bytes) -> web.StreamResponse:
        if self._response is not None or self._stream:
            response = self._response = self._response or await self._prepare()
            await response.write(body)
        else:
            response = web.Response(body=body, content_type="application/json")
            await response.prepare(self._request)
        await response.write_eof()
        return response

    def fail(self, failure: web.Response) -> web.StreamResponse:
        """The failure itself; where it is too late for that, the connection is cut."""
        if self._response is None:
            return failure
        # The status has gone out as 200: only a broken connection still tells the truth.
        break_off(self._request)
        return self._response

    async def _prepare(self) -> web.StreamResponse:
        content_type = "text/event-stream; charset=utf-8" if self._stream else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        await response.prepare(self._request)
        return response


def _look_at(work: asyncio.Future[T]) -> None:
    """Where nobody waits any more an error is nobody's, and asyncio must not complain that it is lost."""
    if not work.cancelled():
        work.exception()


def error_response(error: ApiError, *, again: bool = False) -> web.Response:
    """`again`: the same request may be served a little later."""
    headers = {**error.headers, "x-should-retry": "true" if again else "false"}
    return web.json_response(error.body, status=error.status, headers=headers)


def failure_response(answer: Answer, text: str, *, again: bool = False) -> web.Response:
    """The provider's own error as it came; what is no HTTP error becomes a 502.

    `again`: whether the agent may send its request again is left to the provider to say.
    """
    if answer.status is not None and answer.status >= 400:
        kept = dict(response_headers(answer.headers.items(), decoded=True))
        if not again:
            kept = {name: value for name, value in kept.items() if name.lower() != "x-should-retry"}
            kept["x-should-retry"] = "false"
        return web.Response(body=answer.raw, status=answer.status, headers=kept)
    return error_response(ApiError(502, text, PROVIDER_ERROR, answer.error_type))


def break_off(request: web.Request) -> None:
    """Cuts the connection, so that what was sent cannot be taken for a whole answer."""
    if request.transport is not None:
        request.transport.abort()
