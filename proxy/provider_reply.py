"""A provider's answer, and reading it to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from proxy.limits import shown
from proxy.provider_errors import READ_ERRORS, AnswerTooLong
from proxy.wire.answer import CONNECTION_LOST, AnswerReader, Failure, Reading
from proxy.wire.endpoint import joined, response_headers
from proxy.wire.responses_read import ResponsesReader

_DECODED = frozenset({"gzip", "deflate", "br", "zstd"})
"""Content codings that aiohttp takes off by itself."""
DONE_GRACE = 0.5
"""Seconds that a connection may stay open after `[DONE]` and still be used again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's answer, whatever came of it; see `proxy.wire.answer` for the states.

    `status` is None if none came. `headers` have lower-case names, without hop-by-hop
    ones. `raw` is the body as received (decompressed). `response` is the whole
    completion, None unless `finish_state` is `complete`. `error` is one line without
    secrets. Times are Unix seconds; `time_to_first_chunk` is in seconds from the start,
    for streams only.
    """

    finish_state: str
    started_at: float
    finished_at: float
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""
    response: dict[str, Any] | None = None
    error_type: str | None = None
    error: str | None = None
    time_to_first_chunk: float | None = None


class Reply:
    """An answer while it is read; whatever has come by the time it breaks is kept."""

    def __init__(
        self, stream: bool, responses: ResponsesReader | None, limit: int, monotonic: Callable[[], float]
    ) -> None:
        self._limit = limit
        self._stream = stream
        self._responses = responses
        self._monotonic = monotonic
        self._began = monotonic()
        self._first: float | None = None
        self._status: int | None = None
        self._headers: Mapping[str, str] = {}
        self._reader: AnswerReader | None = None

    async def read(self, response: aiohttp.ClientResponse) -> None:
        self._status = response.status
        self._headers = joined(headers_of(response))
        content_type = self._headers.get("content-type", "")
        self._reader = reader = AnswerReader(
            response.status, content_type, stream=self._stream, responses=self._responses
        )
        async for chunk in response.content.iter_any():
            reader.feed(chunk)
            if len(reader.raw) > self._limit:
                raise AnswerTooLong(shown(self._limit))
            if reader.started and self._first is None:
                self._first = self._monotonic() - self._began
            if reader.done:
                # What is asked for is here: a connection that ends badly, or never,
                # takes nothing away from it.
                with suppress(*READ_ERRORS):
                    async with asyncio.timeout(DONE_GRACE):
                        reader.raw += await response.content.read()
                return

    def answer(
        self, started_at: float, finished_at: float, cut: Failure | None, scrub: Callable[[str], str]
    ) -> Answer:
        if self._reader is not None:
            result = self._reader.finish(cut)
        else:
            cut = cut or Failure("provider_abort", CONNECTION_LOST, "no answer")
            result = Reading(cut.finish_state, None, cut.error_type, cut.text)
        return Answer(
            finish_state=result.finish_state,
            started_at=started_at,
            finished_at=finished_at,
            status=self._status,
            headers=self._headers,
            raw=b"" if self._reader is None else bytes(self._reader.raw),
            response=result.response,
            error_type=result.error_type,
            error=None if result.error is None else scrub(result.error),
            time_to_first_chunk=self._first,
        )


def headers_of(response: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """An answer's headers as they go to the agent."""
    coding = response.headers.get("Content-Encoding", "").lower()
    return response_headers(response.headers.items(), coding in _DECODED)
