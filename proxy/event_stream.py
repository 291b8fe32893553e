"""What happens in a Run, as server-sent events, read from the log while somebody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from proxy.log.errors import LogError
from proxy.tail.events import Event, event_name, public
from proxy.tail.follow import Follower, Wanted, overview

POLL_S = 0.25
"""How often the log is looked at; a look at a log that has not changed costs next to nothing."""
SIGN_OF_LIFE_S = 15.0


async def send_events(
    request: web.Request, log: Path, run: str, session: str | None, stopping: asyncio.Event
) -> web.StreamResponse:
    """Sends the Run's events, from its beginning on, until the listener leaves or `stopping` is set.

    Each has a name (`user_turn`, `tool_called`, ...) and a JSON object as data.
    """
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    async for data in _events(log, Wanted(run=run, session=session), stopping):
        await response.write(data)
    return response


def event_data(event: Event) -> bytes:
    """One event on the wire: what the agent's side may know of it."""
    return f"event: {event_name(type(event))}\ndata: {json.dumps(public(event))}\n\n".encode("ascii")


async def _events(log: Path, wanted: Wanted, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    # SQLite's connections stay in the thread that made them.
    with ThreadPoolExecutor(1, "event-stream") as thread:
        follower = await loop.run_in_executor(thread, lambda: Follower(log, overview(log, wanted).scope))
        quiet = 0.0
        try:
            while not stopping.is_set():
                new = await loop.run_in_executor(thread, lambda: list(follower.new()))
                if new:
                    yield b"".join(event_data(event) for event in new)
                quiet = 0.0 if new else quiet + POLL_S
                if quiet >= SIGN_OF_LIFE_S:
                    yield b": waiting\n\n"
                    quiet = 0.0
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await stopping.wait()
        except LogError:
            return
        finally:
            thread.submit(follower.close)
