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
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from proxy.limits import LIMITS, shown
from proxy.log.redaction import MASK
from proxy.provider_errors import READ_ERRORS, AnswerTooLong, explain
from proxy.provider_reply import DONE_GRACE, Answer, Reply, headers_of
from proxy.wire.answer import Failure
from proxy.wire.chat import dump_json
from proxy.wire.endpoint import (
    SESSION_HEADER,
    Endpoint,
    agent_authorization,
    display_url,
    own_authorization,
    request_headers,
)
from proxy.wire.responses import RESPONSES_PATH
from proxy.wire.responses_ask import speaks_legacy, to_responses
from proxy.wire.responses_read import ResponsesReader

__all__ = ["Answer", "Api", "Forwarded", "Provider", "ProviderFailure"]

Api = Literal["chat", "responses"]
CHAT_PATH = "/chat/completions"

_AUTO_HEADERS = ("User-Agent", "Accept", "Content-Type")
_JSON_BODY = frozenset({"content-type", "content-encoding"})
_KEEPALIVE = 4.0
"""Seconds an idle connection is kept: less than the 5 after which common servers hang up."""
_MAX_HEADER = 65536
_LARGE = 1 << 20
_SECRET_LENGTH = 8
"""Shorter "keys" (local providers take any) are no secrets, and would blot out words."""


class ProviderFailure(Exception):
    """The provider could not be reached, or its answer broke off, while forwarding."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Forwarded:
    """An answer being passed on. `headers` may go to the agent as they are."""

    def __init__(
        self, response: aiohttp.ClientResponse, explain: Callable[[BaseException], Failure], limit: int
    ) -> None:
        self._limit = limit
        self.status = response.status
        self.headers = CIMultiDict(headers_of(response))
        self._response = response
        self._explain = explain

    async def chunks(self, over: Callable[[], bool] = lambda: False) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises ProviderFailure where it breaks off.

        Once `over` says that all of it is here, a connection that ends badly, or not soon, is
        an end like any other.
        """
        size = 0
        try:
            while True:
                if over():
                    async with asyncio.timeout(DONE_GRACE):
                        chunk = await self._response.content.readany()
                else:
                    chunk = await self._response.content.readany()
                if not chunk:
                    return
                size += len(chunk)
                if size > self._limit:
                    raise AnswerTooLong(shown(self._limit))
                # An error of the reader of this iterator never enters here: the
                # `yield` would have to be resumed by `athrow`, which `async for` does not do.
                yield chunk
        except READ_ERRORS as exc:
            if not over():
                raise ProviderFailure(self._explain(exc)) from exc


class Provider:
    """An OpenAI-compatible provider at `base_url`; an async context manager.

    `key` is the provider's own key and takes the place of whatever agents send. `api` is what
    it is asked over; callers of `complete` speak chat completions with either.
    `connect_timeout` and `read_timeout` (seconds of silence) bound the parts of a
    request; nothing bounds the whole. Of an answer `answer_limit` bytes are read at most.
    Raises ValueError for a URL or key of no use.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        api: Api = "chat",
        connect_timeout: float = 30.0,
        read_timeout: float = LIMITS.silence_s,
        answer_limit: int = LIMITS.answer,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = Endpoint.parse(base_url)
        self.api = api
        self.display_url = display_url(self.endpoint.base)
        try:
            URL(self.endpoint.base)
        except ValueError:
            raise ValueError(f"the provider URL {self.display_url!r} is not valid") from None
        self._authorization = own_authorization(key) or self.endpoint.authorization
        self._secrets = (*self.endpoint.secrets, *(self._authorization or "").split()[1:])
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_timeout, sock_read=read_timeout
        )
        self._answer_limit = answer_limit
        self._wall = wall
        self._monotonic = monotonic
        self._session: aiohttp.ClientSession | None = None

    @property
    def path(self) -> str:
        """Where `complete` asks, below the base URL."""
        return RESPONSES_PATH if self.api == "responses" else CHAT_PATH

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
        raw: bytes | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        session: str | None = None,
        query: str = "",
    ) -> Answer:
        """POST a chat completion and read the answer to its end, stream or not.

        `raw` is the body as JSON, where that is made already. `key` is the agent's own, used if
        the provider has none. `headers` are the agent's; what must not leave is taken out.
        `session` goes into `x-eval-session`. `query` is the agent's, without the question mark, as
        it was sent.
        """
        authorization = self._authorization or agent_authorization(key)
        sent = request_headers((headers or {}).items(), authorization, _JSON_BODY)
        sent.append(("Content-Type", "application/json"))
        if session is not None:
            sent.append((SESSION_HEADER, session))
        path = f"{self.path}?{query}" if query else self.path
        responses = ResponsesReader(legacy=speaks_legacy(body)) if self.api == "responses" else None
        if raw is None or responses is not None:
            raw = dump_json(body if responses is None else to_responses(body))
        reply = Reply(bool(body.get("stream")), responses, self._answer_limit, self._monotonic)
        started_at = self._wall()
        cut: Failure | None = None
        try:
            response = await self._request("POST", path, sent, raw)
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
            yield Forwarded(response, self._explain, self._answer_limit)
        finally:
            response.close()

    async def _request(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the provider is used outside of its `async with` block")
        # aiohttp warns of plain bytes beyond 1 MiB; a file is slower to send.
        data = io.BytesIO(body) if len(body) > _LARGE else body or None
        return await self._session.request(
            method,
            self.endpoint.url(path),
            headers=CIMultiDict(headers),
            data=data,
            allow_redirects=False,
        )

    def _explain(self, exc: BaseException) -> Failure:
        failure = explain(exc, self.display_url)
        return replace(failure, text=self.scrub(failure.text))

    def scrub(self, text: str, key: str | None = None) -> str:
        """`text` without this provider's secrets and without `key`."""
        for secret in (*self._secrets, key or ""):
            if len(secret) >= _SECRET_LENGTH:
                text = text.replace(secret, MASK)
        return text
