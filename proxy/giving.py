"""Giving an agent its turn's answer: signs of life while it waits, the log before the last byte."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from proxy.claims import AgentRequest
from proxy.journal import Journal
from proxy.log.errors import LogError
from proxy.outcomes import Outcome, as_final_answer
from proxy.respond import break_off, error_response
from proxy.sessions import Player
from proxy.turns import ProviderFailed
from proxy.wire.chat import dump_json, read_message, stream_events
from proxy.wire.endpoint import response_headers
from proxy.wire.errors import PROVIDER_ERROR, ApiError

Body = dict[str, Any]


class Giving:
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
        self._recorded = False

    async def run(self) -> web.StreamResponse:
        exchange_id, turn = self._asked.exchange_id, self._asked.claim.turn
        try:
            outcome = await self._wait(asyncio.ensure_future(self._player.answer(self._asked)))
            completion = outcome.response
            if outcome.final:
                completion = as_final_answer(completion, self._asked.body, f"call_{exchange_id}")
            self._player.gave(read_message(completion))
            self._recorded = True
            await self._journal.log.commit(self._journal.given(exchange_id, completion))
            response = await self._write(completion)
            self._journal.delivered(exchange_id)
            if outcome.final:
                self._player.deliveries.answer(turn)
            return response
        except ProviderFailed as exc:
            if self._response is not None:
                self._player.deliveries.keep_failure(turn, exc)
            failure = failure_response(exc)
            response = await self._fail(failure, "provider_error", exc.answer.error_type, str(exc))
            self._player.deliveries.fail(turn)
            return response
        except ApiError as exc:
            return await self._fail(error_response(exc), "proxy_error", exc.code or exc.type, exc.message)
        except LogError:
            if self._response is None:
                raise
            break_off(self._request)
            return self._response
        except (ConnectionError, asyncio.CancelledError) as exc:
            if not self._recorded:
                self._journal.log.put(self._gone())
            if isinstance(exc, asyncio.CancelledError):
                raise
            return self._response or web.Response()

    async def _wait(self, work: asyncio.Future[Outcome]) -> Outcome:
        """Waits for the turn; from the first `keep_alive` seconds on, sends signs of life.

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

    async def _prepare(self) -> web.StreamResponse:
        content_type = "text/event-stream; charset=utf-8" if self._stream else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        await response.prepare(self._request)
        return response

    async def _write(self, completion: Body) -> web.StreamResponse:
        if not self._stream:
            body = dump_json(completion)
        else:
            options = self._asked.body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            body = b"".join(stream_events(completion, usage))
        if self._response is not None or self._stream:
            response = self._response = self._response or await self._prepare()
            await response.write(body)
        else:
            response = web.Response(body=body, content_type="application/json")
            await response.prepare(self._request)
        await response.write_eof()
        return response

    async def _fail(
        self, response: web.Response, state: str, kind: str | None, error: str
    ) -> web.StreamResponse:
        status = response.status
        row = self._journal.failed(
            self._asked.exchange_id, state, status=status, error_type=kind or str(status), error=error
        )
        self._recorded = True
        await self._journal.log.commit(row)
        if self._response is None:
            return response
        # The status has gone out as 200: only a broken connection still tells the truth.
        break_off(self._request)
        return self._response

    def _gone(self) -> Any:
        return self._journal.failed(
            self._asked.exchange_id,
            "client_abort",
            status=None,
            error_type="client_disconnected",
            error="the agent left before its answer was written",
        )


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
