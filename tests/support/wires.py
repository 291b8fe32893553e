"""Bytes as they are on the wire: a provider that says anything, and an agent of a proxy in both modes.

async with saying(json_answer("Hi."), BROKEN) as wire:      # an answer a request, in this order
    async with fronted("play", tmp_path, wire.url) as front:
        await front.ask()                                   # (status, body), or a broken connection
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import aiohttp
from support import scenes
from support.playing import Body, Proxy, prompt

from proxy.server import running
from proxy.settings import Settings
from proxy.wire.sse import SSEDecoder

FULL = bool(os.environ.get("FAULTS_IN_FULL"))
"""Whether what takes much time or memory is done in full size."""

Mode = Literal["record", "play"]
MODES: tuple[Mode, ...] = ("record", "play")


class Hung:
    """In an answer: nothing more comes."""


HUNG = Hung()


@dataclass(frozen=True)
class Endless:
    """In an answer: these bytes for ever, until nobody reads them."""

    piece: bytes


Part = bytes | Hung | Endless


@dataclass
class Wire:
    """A provider; `served` counts what it was asked."""

    url: str = ""
    served: int = 0
    left: list[Sequence[Part]] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _request(reader):
                self.served += 1
                parts = self.left.pop(0) if self.left else (json_answer("Hi."),)
                await _write(writer, parts)
                if not parts or parts[-1] is CUT:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


CUT = b""
"""At the end of an answer: the connection is closed."""


async def _write(writer: asyncio.StreamWriter, parts: Sequence[Part]) -> None:
    for part in parts:
        if isinstance(part, Hung):
            await asyncio.Event().wait()
        elif isinstance(part, Endless):
            while not writer.is_closing():
                writer.write(part.piece)
                await writer.drain()
        else:
            writer.write(part)
            await writer.drain()


async def _request(reader: asyncio.StreamReader) -> bool:
    """Reads one, whole; False if none comes any more."""
    length = 0
    if not await reader.readline():
        return False
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        length = int(value) if name.lower() == "content-length" else length
    await reader.readexactly(length)
    return True


@asynccontextmanager
async def saying(*answers: Sequence[Part] | bytes) -> AsyncIterator[Wire]:
    """A provider that gives these answers and then sound ones."""
    wire = Wire(left=[(it,) if isinstance(it, bytes) else it for it in answers])
    talks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.create_task(wire.talk(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield wire
    finally:
        server.close()
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def completion(text: str) -> Body:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def json_answer(text: str) -> bytes:
    return answer(json.dumps(completion(text)).encode())


def answer(
    body: bytes,
    *,
    status: str = "200 OK",
    kind: str = "application/json",
    length: int | None = None,
    **more: str,
) -> bytes:
    """An HTTP answer; `length` is what it says of its length."""
    headers = {"Content-Type": kind, "Content-Length": str(len(body) if length is None else length), **more}
    return head(status, headers) + body


def head(status: str, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode()


def chunked(status: str = "200 OK", kind: str = "text/event-stream", **more: str) -> bytes:
    """The head of an answer that comes in pieces."""
    return head(status, {"Content-Type": kind, "Transfer-Encoding": "chunked", **more})


def piece(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def delta(text: str, finish: str | None = None) -> bytes:
    """An event of a stream that says so much."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


@dataclass(frozen=True)
class Told:
    """What an agent was told; `broken`: the connection ended before the answer did."""

    status: int | None
    raw: bytes
    broken: bool
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> Body:
        """The error, which must have OpenAI's shape and one line of message."""
        error: Body = json.loads(self.raw)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert "\n" not in error["message"]
        return error

    @property
    def text(self) -> str:
        return str(json.loads(self.raw)["choices"][0]["message"]["content"])


@dataclass
class Front:
    """A proxy in one of the modes, and an agent of its one conversation."""

    mode: Mode
    proxy: Proxy

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.mode == "record" else "/s/chat/v1/chat/completions"

    @property
    def url(self) -> str:
        return self.proxy.url + self.path

    async def ask(self, turn: int = 1, body: bytes | None = None, **fields: Any) -> Told:
        """Asks for a turn; in play, the same one again goes on with it."""
        raw = json.dumps(prompt(turn, **fields)).encode() if body is None else body
        status, got, told = None, b"", {}
        try:
            headers = {"Content-Type": "application/json"}
            async with self.proxy.http.post(self.url, data=io.BytesIO(raw), headers=headers) as response:
                status, told = response.status, response.headers.copy()
                async for data in response.content.iter_any():
                    got += data
        except (aiohttp.ClientError, ConnectionError):
            return Told(status, got, True, told)
        return Told(status, got, False, told)

    async def rows(self, count: int = 1) -> list[Body]:
        """What the log says of the requests to the provider, once so many are over."""
        return await self.proxy.finished(count, "agent" if self.mode == "record" else "provider")


@asynccontextmanager
async def fronted(
    mode: Mode, folder: Path, provider: str, *, now: Callable[[], float] = time.time, **settings: Any
) -> AsyncIterator[Front]:
    """A proxy whose clock is `now`; it asks a failing provider once."""
    files = () if mode == "record" else (scenes.write(folder, scenes.chat("chat", 3)),)
    log = folder / "log.db"
    told = Settings(
        **{"log": log, "provider": provider, "scenarios": files, "provider_retries": 0, **settings}
    )
    async with (
        running(told, now=now, environ={}) as server,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False) as http,
    ):
        yield Front(mode, Proxy(server.base_url, server.token, server.run_id, log, http))


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """The most bytes that Python had at once for what the block did."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    most = before
    try:
        yield lambda: most - before
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def told_text(stream: bytes) -> str:
    """What the events of a stream say."""
    data = [event.data for event in SSEDecoder().feed(stream)]
    chunks = [json.loads(it) for it in data if it != "[DONE]"]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
