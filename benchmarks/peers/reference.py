"""The reference point: the least that a logging proxy in this language does, without any evaluation.

aiohttp on uvloop; requests and answers are parsed and written by orjson; streams pass chunk by chunk, with
each event parsed on the side. With a LOG, every call is a row of a SQLite table (the bodies as they are),
written in batches by a thread every 50 ms. Nothing waits for the disk.

    python reference.py PORT PROVIDER_URL [LOG]
"""

from __future__ import annotations

import importlib
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import orjson
from aiohttp import web

BATCH_S = 0.05
TABLE = """
create table if not exists calls (
  id integer primary key, started real, ended real, path text, status integer, model text,
  input_tokens integer, output_tokens integer, request text, response text
)
"""
INSERT = "insert into calls values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Row = tuple[Any, ...]
Note = Callable[[Row], None]


class Log:
    """A queue, and the thread that empties it."""

    def __init__(self, path: str) -> None:
        self._rows: queue.SimpleQueue[Row] = queue.SimpleQueue()
        threading.Thread(target=self._write, args=(path,), daemon=True).start()

    def put(self, row: Row) -> None:
        self._rows.put(row)

    def _write(self, path: str) -> None:
        database = sqlite3.connect(path)
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.execute(TABLE)
        while True:
            rows = [self._rows.get()]
            time.sleep(BATCH_S)
            while not self._rows.empty():
                rows.append(self._rows.get())
            with database:
                database.executemany(INSERT, rows)


class Proxy:
    def __init__(self, provider: str, note: Note | None) -> None:
        self._provider = provider
        self._note = note
        self._session: aiohttp.ClientSession

    async def lifetime(self, app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as self._session:
            yield

    async def handle(self, request: web.Request) -> web.StreamResponse:
        started = time.time()
        raw = await request.read()
        body = orjson.loads(raw) if raw else None
        headers = {"content-type": "application/json"}
        if "authorization" in request.headers:
            headers["authorization"] = request.headers["authorization"]
        sent = orjson.dumps(body) if raw else None
        async with self._session.request(
            request.method, self._provider + request.path_qs, data=sent, headers=headers
        ) as answer:
            if answer.content_type == "text/event-stream":
                return await self._stream(request, raw, answer, started)
            told = await answer.read()
            reply = orjson.loads(told)
            self._log(request, raw, answer.status, reply, told, started)
            return web.Response(
                body=orjson.dumps(reply), status=answer.status, content_type="application/json"
            )

    async def _stream(
        self, request: web.Request, raw: bytes, answer: aiohttp.ClientResponse, started: float
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        told, rest, last = bytearray(), b"", {}
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
            told += chunk
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                data = event.removeprefix(b"data: ")
                if data != b"[DONE]":
                    last = orjson.loads(data)
        self._log(request, raw, answer.status, last, bytes(told), started)
        await response.write_eof()
        return response

    def _log(
        self, request: web.Request, raw: bytes, status: int, reply: Any, told: bytes, started: float
    ) -> None:
        if self._note is not None:
            usage = reply.get("usage") or {}
            tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
            model = reply.get("model")
            row = (started, time.time(), request.path, status, model, *tokens, raw.decode(), told.decode())
            self._note(row)


def main() -> None:
    port, provider, *logs = sys.argv[1:]
    loop = importlib.import_module("uvloop").new_event_loop()
    proxy = Proxy(provider, Log(logs[0]).put if logs else None)
    app = web.Application(client_max_size=1 << 30)
    app.cleanup_ctx.append(proxy.lifetime)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=lambda _: None, loop=loop)


if __name__ == "__main__":
    main()
