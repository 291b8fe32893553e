"""A Run's rows and figures as server-sent events, for as long as a page listens and no longer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from proxy.log.errors import LogError
from proxy.ui.board import Board, Live
from proxy.ui.reading import reader
from proxy.ui.verdicts import Verdicts

JSON = dict[str, Any]

POLL_S = 0.25
"""How often a page's connection is asked if anybody has written: that costs next to nothing."""
REST = 3
"""How many times as long as a look took nothing is looked at: a page takes a quarter of a thread at most."""
SIGN_OF_LIFE_S = 10.0


@dataclass(slots=True)
class _Watch:
    """Looks at the log for one page, all in one thread: SQLite's connections stay in theirs."""

    log: Path
    run: str
    live: Live
    verdicts: Verdicts
    _stack: ExitStack = field(default_factory=ExitStack)
    _connection: sqlite3.Connection | None = None
    _board: Board | None = None
    _seen: object = None

    def look(self) -> tuple[str, JSON] | None:
        """Everything at first, then what is new; None if nothing is. Raises LogError."""
        try:
            if self._board is None or self._connection is None:
                self._connection = self._stack.enter_context(reader(self.log))
                self._seen = self._version()
                self._board = Board(self._connection, self.run, self.live, self.verdicts)
                return "all", self._board.all()
            seen = self._version()
            if seen == self._seen and not self._board.behind:
                return None
            self._seen = seen
            return self._board.new()
        except (sqlite3.Error, json.JSONDecodeError, RecursionError) as error:
            raise LogError(f"{self.log}: cannot be read as a log ({error})") from error

    def close(self) -> None:
        self._stack.close()

    def _version(self) -> object:
        assert self._connection is not None
        return self._connection.execute("PRAGMA data_version").fetchone()[0]


async def send_board(
    response: web.StreamResponse, log: Path, run: str, live: Live, verdicts: Verdicts, stopping: asyncio.Event
) -> None:
    """Writes events until the page leaves or `stopping` is set.

    `all` comes first, then `changed` as often as something has; `failed` says why nothing more comes.
    """
    async with aclosing(_events(_Watch(log, run, live, verdicts), stopping)) as events:
        async for data in events:
            await response.write(data)


def event_data(name: str, data: JSON) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")


async def _events(watch: _Watch, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    quiet = 0.0
    thread = ThreadPoolExecutor(1, "live-page")
    try:
        while not stopping.is_set():
            began = loop.time()
            told = await loop.run_in_executor(thread, watch.look)
            rest = max(POLL_S, REST * (loop.time() - began))
            if told is not None:
                yield event_data(*told)
            quiet = 0.0 if told is not None else quiet + rest
            if quiet >= SIGN_OF_LIFE_S:
                yield b": waiting\n\n"
                quiet = 0.0
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await stopping.wait()
    except LogError as error:
        yield event_data("failed", {"message": str(error)})
    finally:
        thread.submit(watch.close)
        # A look that is under way must not hold up the loop.
        thread.shutdown(wait=False)
