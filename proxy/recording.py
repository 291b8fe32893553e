"""Passing requests through as they are, chunk by chunk, and writing down what passed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiohttp import web

from proxy.journal import Journal
from proxy.log.errors import LogError
from proxy.log.redaction import allowed_headers
from proxy.log.rows import ExchangeFinish
from proxy.provider import Forwarded, Provider, ProviderFailure
from proxy.respond import break_off, error_response
from proxy.wire.answer import AnswerReader, Failure
from proxy.wire.chat import read_message, summary
from proxy.wire.errors import PROVIDER_ERROR, ApiError
from proxy.wire.responses import RESPONSES_PATH
from proxy.wire.responses_read import ResponsesReader

CHAT_PATH = "/chat/completions"
_DECODED = frozenset({"gzip", "deflate", "br", "zstd"})
"""Content codings that aiohttp has taken off a request's body by itself."""
_GONE = Failure("client_abort", "client_disconnected", "the agent left before the answer was over")


class Recorder:
    """Forwards agent requests verbatim. Each is an exchange of its own, whatever becomes of it."""

    def __init__(self, provider: Provider, journal: Journal) -> None:
        self._provider = provider
        self._journal = journal

    async def relay(
        self, request: web.Request, raw: bytes, path: str, exchange_id: str, *, stream: bool, key: str | None
    ) -> web.StreamResponse:
        """Answers `request` with what the provider says, or a 502 if it says nothing.

        `key` is what the provider gets in place of the agent's authorization, if it has no key
        of its own; None leaves the agent's as it is.
        """
        began = self._journal.now()
        asked = f"{request.method} {path.partition('?')[0]}"
        chat = asked == f"POST {CHAT_PATH}"
        passing: _Passing | None = None
        try:
            async with self._provider.forward(request.method, path, _headers(request, key), raw) as forwarded:
                content_type = forwarded.headers.get("Content-Type", "")
                responses = ResponsesReader(background=True) if asked == f"POST {RESPONSES_PATH}" else None
                reader = AnswerReader(
                    forwarded.status, content_type, stream=stream, chat=chat, responses=responses
                )
                passing = _Passing(self._journal, exchange_id, forwarded, reader, began)
                return await passing.run(request)
        except ProviderFailure as exc:
            await self._journal.log.commit(self._failed(exchange_id, exc.failure, 502))
            return error_response(ApiError(502, exc.failure.text, PROVIDER_ERROR, exc.failure.error_type))
        except asyncio.CancelledError:
            if passing is None:
                self._journal.log.put(self._failed(exchange_id, _GONE, None))
            raise

    def _failed(self, exchange_id: str, failure: Failure, status: int | None) -> ExchangeFinish:
        return self._journal.failed(
            exchange_id,
            failure.finish_state,
            status=status,
            error_type=failure.error_type,
            error=failure.text,
        )


def _headers(request: web.Request, key: str | None) -> list[tuple[str, str]]:
    gone = set() if key is None else {"authorization"}
    if request.headers.get("Content-Encoding", "").lower() in _DECODED:
        gone.add("content-encoding")
    kept = [(name, value) for name, value in request.headers.items() if name.lower() not in gone]
    return kept if key is None else [*kept, ("Authorization", f"Bearer {key}")]


async def _begun(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The answer, its head sent: not before there is something to say, lest an error be said."""
    if not response.prepared:
        await response.prepare(request)
    return response


class _Passing:
    """One answer on its way from the provider to the agent."""

    def __init__(
        self, journal: Journal, exchange_id: str, forwarded: Forwarded, reader: AnswerReader, began: float
    ) -> None:
        self._journal = journal
        self._id = exchange_id
        self._forwarded = forwarded
        self._reader = reader
        self._began = began
        self._first: float | None = None
        self._recorded = False

    async def run(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self._forwarded.status, headers=self._forwarded.headers)
        cut: Failure | None = None
        try:
            cut, held = await self._copy(request, response)
            self._recorded = True
            await self._journal.log.commit(self._finish(cut))
            if cut is not None:
                # The agent must see a broken answer as broken, and all that came of it.
                await _begun(request, response)
                if request.transport is not None:
                    request.transport.close()
                return response
            if held and not response.prepared:
                # All of it is there: its length can be told, and its head goes out with it in one write.
                response, held = (
                    web.Response(body=held, status=response.status, headers=response.headers),
                    b"",
                )
            await (await _begun(request, response)).write_eof(held)
            self._journal.delivered(self._id)
        except LogError:
            if not response.prepared:
                raise
            self._journal.log.put(self._journal.unrecorded(self._id))
            break_off(request)
        except (ConnectionError, asyncio.CancelledError) as exc:
            if not self._recorded:
                self._journal.log.put(self._finish(None, gone=True))
            if isinstance(exc, asyncio.CancelledError):
                raise
        return response

    async def _copy(self, request: web.Request, response: web.StreamResponse) -> tuple[Failure | None, bytes]:
        """Copies all but what ends the answer: that must wait until the row is written."""
        held = b""
        try:
            async for chunk in self._forwarded.chunks(lambda: self._reader.done):
                if self._first is None:
                    # The clock may be set back meanwhile.
                    self._first = max(0.0, self._journal.now() - self._began)
                if not held and self._reader.goes_on_after(chunk):
                    # The agent need not wait for it to be read, which takes longer than passing it on.
                    try:
                        await (await _begun(request, response)).write(chunk)
                    finally:
                        self._reader.feed(chunk)
                    continue
                self._reader.feed(chunk)
                if held:
                    await (await _begun(request, response)).write(held)
                    held = b""
                if self._reader.done or not self._reader.is_stream:
                    held = chunk
                else:
                    await (await _begun(request, response)).write(chunk)
        except ProviderFailure as exc:
            return exc.failure, b""
        return None, held

    def _finish(self, cut: Failure | None, *, gone: bool = False) -> ExchangeFinish:
        self._journal.ending(self._id)
        reading = self._reader.finish(cut)
        if cut is not None and reading.finish_state == "complete":
            # All was said, but the agent gets a connection that breaks.
            reading = replace(
                reading, finish_state=cut.finish_state, error_type=cut.error_type, error=cut.text
            )
        seen = summary(reading.response)
        return ExchangeFinish(
            id=self._id,
            finished_at=self._journal.now(),
            finish_state=_GONE.finish_state if gone else reading.finish_state,
            status=self._forwarded.status,
            time_to_first_chunk=self._first,
            response_id=seen.response_id,
            response_model=seen.response_model,
            finish_reasons=seen.finish_reasons,
            input_tokens=seen.input_tokens,
            output_tokens=seen.output_tokens,
            message=read_message(reading.response),
            headers=allowed_headers(self._forwarded.headers),
            raw=bytes(self._reader.raw),
            error_type=_GONE.error_type if gone else reading.error_type,
            error=_GONE.text if gone else reading.error,
        )
