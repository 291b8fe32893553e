"""The live page as a browser asks for it: its data, and its stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from support.playing import Answer, Body, Proxy, soon

from proxy.wire.sse import SSEDecoder
from run_proxy import Composition

LENT = Composition().live_page()


def bearer(proxy: Proxy) -> dict[str, str]:
    return {"Authorization": f"Bearer {proxy.token}"}


async def data(proxy: Proxy, path: str, **query: Any) -> Any:
    """What the owner's page is told."""
    answer = await asked(proxy, path, **query)
    assert answer.status == 200, answer.raw
    return answer.json


async def asked(proxy: Proxy, path: str, **query: Any) -> Answer:
    parts = "&".join(f"{name}={value}" for name, value in query.items()).replace("/", "%2F")
    return await proxy.send("GET", f"/ui/api/{path}?{parts}", headers=bearer(proxy))


class Board:
    """What a page knows: the rows of all events so far, by id, and the last figures."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.raw = b""
        self.names: list[str] = []
        self.first: Body = {}
        self.sessions: dict[str, Body] = {}
        self.exchanges: dict[str, Body] = {}
        self.errors: dict[str, Body] = {}
        self.figures: Body = {}
        self._response = response
        self._decoder = SSEDecoder()

    async def once(self, known: Any) -> Body:
        """Reads on until `known(self)` holds; then the figures."""
        while not (self.figures and known(self)):
            chunk = await soon(self._response.content.readany())
            assert chunk, "the stream ended"
            self.raw += chunk
            for event in self._decoder.feed(chunk):
                self._take(event.event, json.loads(event.data))
        return self.figures

    def _take(self, name: str, told: Body) -> None:
        self.names.append(name)
        self.first = told if name == "all" else self.first
        for kind in ("sessions", "exchanges", "errors"):
            getattr(self, kind).update({row["id"]: row for row in told[kind]})
        self.figures = told["figures"]

    def session(self, name: str) -> Body:
        """The last attempt with this name."""
        return max((it for it in self.sessions.values() if it["name"] == name), key=lambda it: it["attempt"])


@asynccontextmanager
async def watching(proxy: Proxy, **query: Any) -> AsyncIterator[Board]:
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers=bearer(proxy)) as http,
        http.get(f"{proxy.url}/ui/api/events", params=query) as response,
    ):
        assert response.status == 200
        yield Board(response)
