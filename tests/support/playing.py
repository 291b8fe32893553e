"""A real proxy on a loopback port, and what a test asks of it and of its log."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from support import scenes
from support.described import check_answer
from yarl import URL

from proxy.log.restore import read_history
from proxy.server import running
from proxy.settings import Settings
from proxy.ui.lent import Lent

Body = dict[str, Any]
T = TypeVar("T")

ONE_TRY = {"provider_retries": 0} if "provider_retries" in Settings.__slots__ else {}
"""A failing provider is asked once, unless a test says otherwise."""

TLS = ssl.create_default_context()
"""A client of the SDK reads all certificates of the machine anew, which takes longer than most tests."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def text(self) -> str:
        """What the assistant said."""
        message = self.json["choices"][0]["message"]
        assert set(message) == {"role", "content"}, message
        return str(message["content"])

    @property
    def error(self) -> Body:
        """The error, which must have OpenAI's shape and one line of message."""
        error: Body = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert "\n" not in error["message"]
        return error


@dataclass
class Proxy:
    """A running proxy. `http` is a client without retries or time limit."""

    url: str
    token: str
    run_id: str
    log: Path
    http: aiohttp.ClientSession
    sdk_clients: list[AsyncOpenAI] = field(default_factory=list)

    def base(self, session: str) -> str:
        return f"{self.url}/s/{session}/v1"

    def sdk(self, session: str | None = None, *, retries: int = 0, **options: Any) -> AsyncOpenAI:
        """A client as an agent has it: a base URL and a key, nothing else."""
        base_url = f"{self.url}/v1" if session is None else self.base(session)
        given = {"base_url": base_url, "api_key": "sk-test-agent-key-1", "max_retries": retries, **options}
        self.sdk_clients.append(AsyncOpenAI(http_client=DefaultAsyncHttpxClient(verify=TLS), **given))
        return self.sdk_clients[-1]

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        """Asks for exactly this path: it is not normalised on the way."""
        async with self.http.request(method, URL(self.url + path, encoded=True), **options) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def chat(self, session: str, turn: int | None, **fields: Any) -> Answer:
        """A plain agent's request: the turn's prompt alone, unless `fields` say otherwise."""
        return await self.send("POST", f"/s/{session}/v1/chat/completions", json=prompt(turn, **fields))

    async def control(self, method: str, path: str, **options: Any) -> Answer:
        """What the control API answers, which must be as it is described."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = await self.send(method, f"/eval{path}", headers=headers, **options)
        content_type = answer.headers["Content-Type"].partition(";")[0]
        check_answer(method, f"/eval{path}", answer.status, content_type, answer.json)
        return answer

    def rows(self, sql: str, *values: object) -> list[Body]:
        return rows(self.log, sql, *values)

    def exchanges(self, side: str = "agent") -> list[Body]:
        return self.rows("SELECT * FROM exchanges WHERE side = ? ORDER BY arrival", side)

    async def arrived(self, count: int) -> list[Body]:
        """The agent exchanges, once there are `count`."""
        await until(lambda: len(self.exchanges()) >= count)
        return self.exchanges()

    async def finished(self, count: int, side: str = "agent") -> list[Body]:
        """The exchanges of one side, once `count` of them are no longer pending."""
        await until(lambda: sum(it["finish_state"] != "pending" for it in self.exchanges(side)) >= count)
        return self.exchanges(side)


async def until(condition: Callable[[], bool], limit: float = 30.0) -> None:
    """Lets everything else run until another thread or process has done its part."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0)


async def soon(result: Awaitable[T], limit: float = 30.0) -> T:
    """What must come, but is not waited for for ever."""
    async with asyncio.timeout(limit):
        return await result


def prompt(turn: int | None, **fields: Any) -> Body:
    words = "[[next-user-turn]]" if turn is None else f"[[next-user-turn {turn}]]"
    return {"model": "some-model", "messages": [{"role": "user", "content": words}], **fields}


def rows(log: Path, sql: str, *values: object) -> list[Body]:
    """Ask the log from another connection, which cannot write."""
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


def history(log: Path, tip: str) -> list[Any]:
    """The messages of a logged request."""
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as connection:
        return read_history(connection, tip)


@contextmanager
def locked(log: Path) -> Iterator[None]:
    """Nobody else can write to the log while the block runs (for less than SQLite's patience)."""
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@asynccontextmanager
async def playing(
    folder: Path,
    provider: str,
    *records: scenes.Record,
    environ: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncIterator[Proxy]:
    """A proxy that plays `records` (SHOP if there are none) in front of `provider`."""
    files = (scenes.write(folder, *(records or (scenes.SHOP,))),)
    async with serving(folder, provider, environ=environ, scenarios=files, **settings) as proxy:
        yield proxy


@asynccontextmanager
async def recording(
    folder: Path, provider: str, *, environ: Mapping[str, str] | None = None, **settings: Any
) -> AsyncIterator[Proxy]:
    """A proxy without scenarios."""
    async with serving(folder, provider, environ=environ, **settings) as proxy:
        yield proxy


@asynccontextmanager
async def serving(
    folder: Path,
    provider: str,
    *,
    environ: Mapping[str, str] | None,
    lent: Lent | None = None,
    **settings: Any,
) -> AsyncIterator[Proxy]:
    """With what is `lent` the proxy has a live page."""
    log = folder / "log.db"
    told = Settings(**{"log": log, "provider": provider, **ONE_TRY, **settings})
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        running(told, environ=environ or {}, lent=lent) as server,
        aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as http,
    ):
        proxy = Proxy(server.base_url, server.token, server.run_id, told.log, http)
        try:
            yield proxy
        finally:
            for client in proxy.sdk_clients:
                await client.close()
