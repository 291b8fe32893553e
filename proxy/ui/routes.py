"""`/ui`: the live page, its assets, and what it asks of the log.

Nothing here runs, waits or reads unless somebody asks. What is read is read in threads of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from proxy.log.errors import LogError
from proxy.ui.access import authorize
from proxy.ui.board import Live, snapshot
from proxy.ui.detail import session_detail
from proxy.ui.lent import Lent
from proxy.ui.raw import raw_exchanges
from proxy.ui.reading import reader
from proxy.ui.recorded import error_rows, exchange, exchange_rows
from proxy.ui.rows import newest_sessions, session_rows
from proxy.ui.stream import send_board
from proxy.ui.verdicts import Verdicts
from proxy.wire.errors import SERVER_ERROR, ApiError

JSON = dict[str, Any]
T = TypeVar("T")
_Query = Callable[[sqlite3.Connection], T]

MAX_PAGES = 16
"""Pages that are told of what happens at a time."""
READERS = 2
SCRIPTS = ("connection.js", "figures.js", "lists.js", "detail.js", "recorded.js", "drawing.js", "start.js")
"""The page's own scripts, in order: declarations, and last what begins."""
_MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that the page loads. It is public, and the same for everybody."""

    content_type: str
    body: bytes

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:32]


class LivePage:
    """Handlers of `/ui` and below; without what was `lent` there is no page."""

    def __init__(self, lent: Lent | None, log: Path, live: Live, token: str) -> None:
        self._lent = lent
        self._log = log
        self._live = live
        self._token = token
        self._verdicts = None if lent is None else Verdicts(lent)
        self._stopping = asyncio.Event()
        self._pages = 0

    def routes(self) -> list[web.RouteDef]:
        """All of `/ui`: what is not there must never be taken for an agent's request."""
        there = [
            web.get("/ui", self.page),
            web.get("/ui/", self.page),
            web.get("/ui/assets/{name}", self.asset),
            web.get("/ui/api/events", self.events),
            web.get("/ui/api/sessions", self.sessions),
            web.get("/ui/api/session", self.session),
            web.get("/ui/api/exchanges", self.exchanges),
            web.get("/ui/api/exchange", self.exchange),
            web.get("/ui/api/errors", self.errors),
            web.get("/ui/api/raw", self.raw),
            web.get("/ui/api/words", self.words),
        ]
        return [
            *(there if self._lent is not None else ()),
            web.route("*", "/ui{rest:(/(?s:.*))?}", self.nothing),
        ]

    async def stop(self, app: web.Application) -> None:
        """Ends the event streams, which would go on for ever, and the threads that read."""
        self._stopping.set()
        if "_readers" in self.__dict__:
            self._readers.shutdown(wait=False)

    async def nothing(self, request: web.Request) -> web.Response:
        raise ApiError(404, f"there is no {request.method} {request.path} here", code="not_found")

    async def page(self, request: web.Request) -> web.Response:
        return _asset_response(request, self._assets["ui.html"])

    async def asset(self, request: web.Request) -> web.Response:
        found = self._assets.get(request.match_info["name"])
        return await self.nothing(request) if found is None else _asset_response(request, found)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The Run `run`, by default the one that is played: all of it, then what changes, as it happens."""
        authorize(request, self._token)
        run = await self._run(request)
        if self._pages >= MAX_PAGES:
            raise ApiError(503, f"{MAX_PAGES} pages are open already: close some", SERVER_ERROR, "too_many")
        assert self._verdicts is not None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        self._pages += 1
        try:
            await response.prepare(request)
            await send_board(response, self._log, run, self._live, self._verdicts, self._stopping)
        finally:
            self._pages -= 1
        return response

    async def sessions(self, request: web.Request) -> web.Response:
        """A page of a Run's Sessions: those before the `seq` that is given as `before`."""
        before = _number(request, "before", _MAX_NUMBER)
        run = await self._run(request)

        def read(connection: sqlite3.Connection) -> JSON:
            assert self._verdicts is not None
            ids = newest_sessions(connection, run, before)
            for session in ids:
                self._verdicts.judge(connection, session)
            rows = session_rows(connection, ids, live_run=self._live.run, since=self._live.since)
            return {"sessions": [self._verdicts.put_into(row) for row in rows]}

        return await self._answer(request, read)

    async def session(self, request: web.Request) -> web.Response:
        """One Session; with `after` only its Tasks in which something has changed since."""
        wanted, after = request.query.get("id", ""), _number(request, "after", 0)

        def read(connection: sqlite3.Connection) -> JSON | None:
            assert self._verdicts is not None
            return session_detail(connection, wanted, self._live, self._verdicts, after)

        return await self._answer(request, read)

    async def exchanges(self, request: web.Request) -> web.Response:
        return await self._page_of(request, "exchanges", exchange_rows)

    async def errors(self, request: web.Request) -> web.Response:
        return await self._page_of(request, "errors", error_rows)

    async def exchange(self, request: web.Request) -> web.Response:
        wanted = request.query.get("id", "")
        return await self._answer(request, lambda connection: exchange(connection, wanted))

    async def raw(self, request: web.Request) -> web.Response:
        """The exchanges `id` (several times) as they were on the wire."""
        wanted = request.query.getall("id", [])
        return await self._answer(request, lambda connection: raw_exchanges(connection, wanted))

    async def words(self, request: web.Request) -> web.Response:
        """What the names of error classes and rules mean."""
        assert self._lent is not None
        words = self._lent.words
        return await self._answer(request, lambda connection: {} if words is None else words())

    async def _page_of(
        self, request: web.Request, name: str, rows: Callable[..., list[JSON]]
    ) -> web.Response:
        before, run = _number(request, "before", _MAX_NUMBER), await self._run(request)
        return await self._answer(request, lambda connection: {name: rows(connection, run, None, before)})

    async def _run(self, request: web.Request) -> str:
        """The Run that is asked for, which must be in the log."""
        authorize(request, self._token)
        run = request.query.get("run", self._live.run)
        if run != self._live.run:
            sql = "SELECT 1 FROM runs WHERE id = ?"
            if await self._read(lambda connection: connection.execute(sql, (run,)).fetchone()) is None:
                raise ApiError(404, f"no run of this log is called {run!r}", param="run")
        return run

    async def _answer(self, request: web.Request, query: _Query[JSON | None]) -> web.Response:
        authorize(request, self._token)
        found = await self._read(lambda connection: _text(query(connection)))
        if found is None:
            raise ApiError(404, "this log has no such thing", code="not_found")
        return web.Response(body=found, content_type="application/json")

    async def _read(self, query: _Query[T]) -> T:
        """What `query` finds in one state of the log, in a thread. Raises LogError."""

        def read() -> T:
            try:
                with reader(self._log) as connection, snapshot(connection):
                    return query(connection)
            except (json.JSONDecodeError, RecursionError) as error:
                raise LogError(f"{self._log}: what should be JSON in it is not ({error})") from error

        return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    @cached_property
    def _readers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(READERS, "live-page-reader")

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        assert self._lent is not None
        own = files("proxy.ui") / "assets"
        html, css = ((own / name).read_text("utf-8") for name in ("ui.html", "ui.css"))
        scripts = "\n".join((own / name).read_text("utf-8") for name in SCRIPTS)
        # Scopes of their own: nothing here can take the place of a part that was lent.
        whole = f'(() => {{\n"use strict";\n{self._lent.script}\n(() => {{\n{scripts}\n}})();\n}})();\n'
        return {
            "ui.html": Asset("text/html", html.encode()),
            "ui.css": Asset("text/css", f"{self._lent.css}\n{css}".encode()),
            "ui.js": Asset("text/javascript", whole.encode()),
        }


def _text(found: JSON | None) -> bytes | None:
    return None if found is None else json.dumps(found).encode("ascii")


def _asset_response(request: web.Request, asset: Asset) -> web.Response:
    headers = {"Cache-Control": "no-cache", "ETag": f'"{asset.etag}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers)


def _number(request: web.Request, name: str, default: int) -> int:
    given = request.query.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise ApiError(400, f"{name} must be a whole number, not {given!r}", param=name)
    return int(given)
