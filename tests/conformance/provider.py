"""The provider's side of a probe: a server on loopback whose answers the probe writes itself.

A probe takes each request as a `Call` and answers it when it wants to, in the bytes it wants
to. Requests are told apart by the probe's marker, which the proxy passes on with the body:
what a proxy sends again for an earlier probe is refused.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tests.conformance.http import MAX_HEAD, Headers, chunked, head, read_body, read_head, value, within

MARKER = re.compile(rb"probe-[0-9a-f]{12}")
EVENTS = ("Content-Type", "text/event-stream")
JSON = ("Content-Type", "application/json")


class Call:
    """A request that reached the provider. `raw` is its body, decompressed."""

    def __init__(
        self,
        request: tuple[str, str],
        headers: Headers,
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        patience: float,
    ) -> None:
        self.method, self.target = request
        self.headers = headers
        self.raw = gzip.decompress(raw) if value(headers, "Content-Encoding") == "gzip" else raw
        self.over = asyncio.Event()
        self.closed = False
        """The connection ends with this call."""
        self._reader = reader
        self._writer = writer
        self._patience = patience

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def marker(self) -> bytes | None:
        found = MARKER.search(self.target.encode()) or MARKER.search(self.raw)
        return found.group() if found else None

    def header(self, name: str) -> str | None:
        return value(self.headers, name)

    async def begin(
        self, status: int = 200, headers: Iterable[tuple[str, str]] = (EVENTS,), length: int | None = None
    ) -> None:
        """Writes the head of an answer: of `length` bytes, or chunked."""
        framing = ("Transfer-Encoding", "chunked") if length is None else ("Content-Length", str(length))
        await self.write(head(f"HTTP/1.1 {status} Scripted", [*headers, framing]))

    async def send(self, *parts: bytes) -> None:
        """Writes parts of a chunked body, each in a chunk and a write of its own."""
        for part in parts:
            await self.write(chunked(part))

    async def end(self) -> None:
        await self.write(chunked(b""))
        self.over.set()

    async def write(self, data: bytes) -> None:
        # Whether the proxy still listens is for the probe to ask, with `gone`.
        with suppress(ConnectionError):
            self._writer.write(data)
            await within(self._patience, self._writer.drain(), "the proxy to read")

    async def stream(self, *parts: bytes, headers: Iterable[tuple[str, str]] = (EVENTS,)) -> None:
        """A whole stream."""
        await self.begin(headers=headers)
        await self.send(*parts)
        await self.end()

    async def answer(
        self, body: bytes | dict[str, Any], status: int = 200, headers: Iterable[tuple[str, str]] = (JSON,)
    ) -> None:
        """A whole answer with a length."""
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        await self.begin(status, headers, len(data))
        if self.method != "HEAD":
            await self.write(data)
        self.over.set()

    def cut(self) -> None:
        """Hangs up, wherever the answer is."""
        self.closed = True
        self._writer.close()
        self.over.set()

    async def gone(self, limit: float | None = None) -> None:
        """Returns when the proxy has hung up. Raises Failed if that takes more than `limit` seconds."""
        await within(limit or self._patience, self._hung_up(), "the proxy to leave the provider")
        self.cut()

    async def _hung_up(self) -> None:
        with suppress(ConnectionError):
            while await self._reader.read(MAX_HEAD):
                pass


class ScriptedProvider:
    """`patience` is in seconds: how long a proxy may take with anything."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.port = 0
        self.count = 0
        """Requests that came for the present probe."""
        self._marker = b""
        self._calls: asyncio.Queue[Call] = asyncio.Queue()
        self._open: set[Call] = set()
        self._writers: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        """Raises OSError if the port is taken."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=MAX_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.expect(b"")
        if self._server is not None:
            self._server.close()
            serving = {task for task in self._writers.values() if task is not None}
            for writer in self._writers:
                writer.close()
            if serving:
                await asyncio.wait(serving)
            await self._server.wait_closed()

    def expect(self, marker: bytes) -> None:
        """From now on only requests of this marker count; what is still open is cut off."""
        self._marker, self.count = marker, 0
        for call in self._open:
            call.cut()
        self._calls = asyncio.Queue()

    async def call(self, *, marked: bool = True) -> Call:
        """The next request of the probe. `marked=False`: it may have no marker, for want of a body."""
        while True:
            call = await within(self.patience, self._calls.get(), "a request at the provider")
            if call.marker is not None or not marked:
                return call
            await call.answer(b"{}", 404)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = asyncio.current_task()
        try:
            with suppress(ConnectionError):
                while await self._serve_one(reader, writer):
                    pass
        finally:
            del self._writers[writer]
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, headers = await read_head(reader)
        if (value(headers, "Expect") or "").lower() == "100-continue":
            writer.write(head("HTTP/1.1 100 Continue", []))
        body = bytearray()
        async for piece in read_body(reader, headers, to_the_end=False):
            body += piece
        method, target, _ = first.split(" ", 2)
        call = Call((method, target), headers, bytes(body), reader, writer, self.patience)
        if call.marker not in (None, self._marker):
            await call.answer(b"{}", 503)
            return False
        self.count += 1
        self._open.add(call)
        self._calls.put_nowait(call)
        await call.over.wait()
        self._open.discard(call)
        return not call.closed
