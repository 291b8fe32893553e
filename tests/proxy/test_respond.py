"""Waiting for an answer on behalf of an agent that may leave."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from aiohttp.test_utils import make_mocked_request

from proxy.respond import Connection
from proxy.wire.errors import ApiError


async def test_what_becomes_of_a_turn_that_nobody_waits_for_any_more_is_no_error_on_the_terminal() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    connection = Connection(make_mocked_request("POST", "/"), stream=False, keep_alive=60.0)
    begun = asyncio.Event()

    async def given_up() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ApiError(409, "the turn was given up") from None

    agent = asyncio.create_task(connection.wait(asyncio.ensure_future(given_up())))
    await begun.wait()
    agent.cancel()
    await asyncio.wait({agent})
    assert agent.cancelled()
    await asyncio.sleep(0)
    # It holds what it waited for; asyncio complains when that is gone.
    del agent
    gc.collect()
    assert complaints == []
