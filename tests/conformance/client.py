"""The agent's side of a probe: requests as bytes, answers as they come."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.conformance.http import MAX_HEAD, Broken, Headers, head, read_body, read_head, value, within


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, read to its end. `raw` is decompressed if the proxy said that it is compressed."""

    status: int
    headers: Headers
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def said(self) -> Any:
        """The content of the first choice's message."""
        return self.json["choices"][0]["message"]["content"]

    def header(self, name: str) -> str | None:
        return value(self.headers, name)


class Line:
    """A connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: float) -> None:
        self.reader = reader
        self.writer = writer
        self.patience = patience

    @classmethod
    async def open(cls, host: str, port: int, patience: float) -> Line:
        reader, writer = await asyncio.open_connection(host, port, limit=MAX_HEAD)
        return cls(reader, writer, patience)

    async def ask(
        self, method: str, target: str, headers: Headers, body: bytes | None = None, *, framed: bool = False
    ) -> Asking:
        """Writes a request; what comes of it is read from what this returns.

        `framed`: `headers` and `body` say themselves how long the body is.
        """
        framing = [] if body is None or framed else [("Content-Length", str(len(body)))]
        # A proxy that refuses a large body hangs up while it is written; its answer counts.
        with suppress(ConnectionError):
            self.writer.write(head(f"{method} {target} HTTP/1.1", [*headers, *framing]) + (body or b""))
            await within(self.patience, self.writer.drain(), "the proxy to take the request")
        return Asking(self, method)

    def close(self) -> None:
        self.writer.close()


class Asking:
    """A request that was written, until its answer is read."""

    def __init__(self, line: Line, method: str) -> None:
        self.line = line
        self._method = method
        self._head: tuple[int, Headers] | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._body = bytearray()

    async def head(self) -> tuple[int, Headers]:
        """Status and headers. Raises Broken if the connection ends without."""
        if self._head is None:
            self._head = await within(self.line.patience, self._read_head(), "the proxy's answer")
        return self._head

    async def until(self, wanted: bytes) -> bytes:
        """All of the body so far, once `wanted` is in it. Raises Broken if the body ends without."""
        await self.head()
        await within(self.line.patience, self._read_until(wanted), f"{wanted[-60:]!r}")
        return bytes(self._body)

    async def answer(self) -> Answer:
        """The whole answer. Raises Broken if it breaks off."""
        status, headers = await self.head()
        await within(self.line.patience, self._read_until(None), "the end of the answer")
        coding = (value(headers, "Content-Encoding") or "").lower()
        body = bytes(self._body)
        return Answer(status, headers, gzip.decompress(body) if coding == "gzip" and body else body)

    async def broken(self) -> tuple[int | None, bytes] | None:
        """Status and body of an answer that breaks off; None if it comes to a clean end."""
        try:
            await self.answer()
        except ConnectionError:
            return (self._head[0] if self._head else None), bytes(self._body)
        return None

    def leave(self) -> None:
        """Hangs up at once."""
        self.line.close()

    async def _read_head(self) -> tuple[int, Headers]:
        while True:
            first, headers = await read_head(self.line.reader)
            status = int(first.split()[1])
            if status >= 200:
                return status, headers

    async def _read_until(self, wanted: bytes | None) -> None:
        if self._pieces is None:
            status, headers = await self.head()
            empty = self._method == "HEAD" or status in (204, 304)
            self._pieces = _nothing() if empty else read_body(self.line.reader, headers, to_the_end=True)
        while wanted is None or wanted not in self._body:
            piece = await anext(self._pieces, None)
            if piece is None:
                if wanted is not None:
                    raise Broken(f"the answer ended without {wanted[-60:]!r}")
                return
            self._body += piece


async def _nothing() -> AsyncIterator[bytes]:
    no_pieces: tuple[bytes, ...] = ()
    for piece in no_pieces:
        yield piece
