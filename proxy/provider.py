"""The client of the LLM provider: one HTTP session, whole answers or verbatim pass-through.

A provider that misbehaves is a value here, not an exception: `complete` always gives an
`Answer`. Only `forward` raises `ProviderFailure`, because its caller is in the middle of
writing to somebody else and must be able to tell whose connection broke.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from proxy.provider_errors import READ_ERRORS, explain
from proxy.wire.answer import CONNECTION_LOST, AnswerReader, Failure, Reading
from proxy.wire.chat import dump_json
from proxy.wire.endpoint import (
    SESSION_HEADER,
    SESSION_KEY_PREFIX,
    Endpoint,
    display_url,
    joined,
    request_headers,
    response_headers,
)

_DECODED = frozenset({"gzip", "deflate", "br", "zstd"})
"""Content codings that aiohttp takes off by itself."""
_AUTO_HEADERS = ("User-Agent", "Accept", "Content-Type")
_JSON_BODY = frozenset({"content-type", "content-encoding"})
_DONE_GRACE = 0.5
"""Seconds that a connection may stay open after `[DONE]` and still be used again."""
_KEEPALIVE = 4.0
"""Seconds an idle connection is kept: less than the 5 after which common servers hang up."""
_MAX_HEADER = 65536
_SECRET_LENGTH = 8
"""Shorter "keys" (local providers take any) are no secrets, and would blot out words."""


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


class ProviderFailure(Exception):
    """The provider could not be reached, or its answer broke off, while forwarding."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Forwarded:
    """An answer being passed on. `headers` may go to the agent as they are."""

    def __init__(self, response: aiohttp.ClientResponse, explain: Callable[[BaseException], Failure]) -> None:
        self.status = response.status
        self.headers = CIMultiDict(_response_headers(response))
        self._response = response
        self._explain = explain

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises ProviderFailure where it breaks off."""
        try:
            async for chunk in self._response.content.iter_any():
                # An error of the reader of this iterator never enters here: the
                # `yield` would have to be resumed by `athrow`, which `async for` does not do.
                yield chunk
        except READ_ERRORS as exc:
            raise ProviderFailure(self._explain(exc)) from exc


class Provider:
    """An OpenAI-compatible provider at `base_url`; an async context manager.

    `key` is the provider's own key and takes the place of whatever agents send.
    `connect_timeout` and `read_timeout` (seconds of silence) bound the parts of a
    request; nothing bounds the whole. Raises ValueError for a URL or key of no use.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        connect_timeout: float = 30.0,
        read_timeout: float = 600.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = Endpoint.parse(base_url)
        self.display_url = display_url(self.endpoint.base)
        try:
            URL(self.endpoint.base)
        except ValueError:
            raise ValueError(f"the provider URL {self.display_url!r} is not valid") from None
        self._authorization = _authorization(key) or self.endpoint.authorization
        self._secrets = (*self.endpoint.secrets, *(self._authorization or "").split()[1:])
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_timeout, sock_read=read_timeout
        )
        self._wall = wall
        self._monotonic = monotonic
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Provider:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            skip_auto_headers=_AUTO_HEADERS,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        session: str | None = None,
        query: str = "",
    ) -> Answer:
        """POST a chat completion and read the answer to its end, stream or not.

        `key` is the agent's own, used if the provider has none. `headers` are the
        agent's; what must not leave is taken out. `session` goes into `x-eval-session`.
        `query` is the agent's, without the question mark, as it was sent.
        """
        authorization = self._authorization or _agent_authorization(key)
        sent = request_headers((headers or {}).items(), authorization, _JSON_BODY)
        sent.append(("Content-Type", "application/json"))
        if session is not None:
            sent.append((SESSION_HEADER, session))
        path = f"/chat/completions?{query}" if query else "/chat/completions"
        reply = _Reply(bool(body.get("stream")), self._monotonic)
        started_at = self._wall()
        cut: Failure | None = None
        try:
            response = await self._request("POST", path, sent, dump_json(body))
            try:
                await reply.read(response)
            finally:
                # Closes a connection that has not come to its end, at once: when the task
                # is cancelled, too. One that has is back in the pool already.
                response.close()
        except READ_ERRORS as exc:
            cut = self._explain(exc)
        return reply.answer(started_at, self._wall(), cut, lambda text: self.scrub(text, key))

    @asynccontextmanager
    async def forward(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b""
    ) -> AsyncIterator[Forwarded]:
        """Pass a request on as it is; `path` (with query) is below the base URL.

        `headers` are pairs, so that repeated ones survive. Leaving the block early closes
        the provider's connection. Raises ProviderFailure if no answer comes.
        """
        sent = request_headers(headers, self._authorization)
        try:
            response = await self._request(method, path, sent, body)
        except READ_ERRORS as exc:
            raise ProviderFailure(self._explain(exc)) from exc
        try:
            yield Forwarded(response, self._explain)
        finally:
            response.close()

    async def _request(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the provider is used outside of its `async with` block")
        # BytesIO, because aiohttp warns of plain bytes beyond 1 MiB.
        return await self._session.request(
            method,
            self.endpoint.url(path),
            headers=CIMultiDict(headers),
            data=io.BytesIO(body) if body else None,
            allow_redirects=False,
        )

    def _explain(self, exc: BaseException) -> Failure:
        failure = explain(exc, self.display_url)
        return replace(failure, text=self.scrub(failure.text))

    def scrub(self, text: str, key: str | None = None) -> str:
        """`text` without this provider's secrets and without `key`."""
        for secret in (*self._secrets, key or ""):
            if len(secret) >= _SECRET_LENGTH:
                text = text.replace(secret, "[key]")
        return text


class _Reply:
    """An answer while it is read; whatever has come by the time it breaks is kept."""

    def __init__(self, stream: bool, monotonic: Callable[[], float]) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._began = monotonic()
        self._first: float | None = None
        self._status: int | None = None
        self._headers: Mapping[str, str] = {}
        self._reader: AnswerReader | None = None

    async def read(self, response: aiohttp.ClientResponse) -> None:
        self._status = response.status
        self._headers = joined(_response_headers(response))
        content_type = self._headers.get("content-type", "")
        self._reader = reader = AnswerReader(response.status, content_type, stream=self._stream)
        async for chunk in response.content.iter_any():
            reader.feed(chunk)
            if reader.started and self._first is None:
                self._first = self._monotonic() - self._began
            if reader.done:
                # What is asked for is here: a connection that ends badly, or never,
                # takes nothing away from it.
                with suppress(*READ_ERRORS):
                    async with asyncio.timeout(_DONE_GRACE):
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


def _authorization(key: str | None) -> str | None:
    key = (key or "").strip()
    if any(not "!" <= character <= "~" for character in key):
        raise ValueError(
            "the provider key has blanks or characters outside ASCII in it: check where it is set"
        )
    return f"Bearer {key}" if key else None


def _agent_authorization(key: str | None) -> str | None:
    return f"Bearer {key}" if key and not key.startswith(SESSION_KEY_PREFIX) else None


def _response_headers(response: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    coding = response.headers.get("Content-Encoding", "").lower()
    return response_headers(response.headers.items(), coding in _DECODED)
