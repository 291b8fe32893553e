"""The simulated provider, taking its time, with a mark of its own on each answer, which it notes before.

The mark is the header `x-request-id`, which the proxy logs: so an answer can be found in the log, once.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from pathlib import Path
from typing import Any

from aiohttp import web

from proxy.simulate.place import build_index
from proxy.simulate.policies import parse_policy
from proxy.simulate.server import Provider, build_app
from scenarios.load import BUNDLED, read_file

SLOW_S = 0.05
"""An answer takes between nothing and this long."""


async def main(port: int, policy: str, path: Path) -> None:
    app = build_app(Provider(parse_policy(policy), build_index(read_file(BUNDLED).scenarios)))
    notes = path.open("a", encoding="utf-8")

    @web.middleware
    async def slowly(request: web.Request, handler: Any) -> Any:
        await asyncio.sleep(random.random() * SLOW_S)
        return await handler(request)

    async def mark(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["x-request-id"] = name = secrets.token_hex(8)
        notes.write(name + "\n")
        notes.flush()

    app.middlewares.append(slowly)
    app.on_response_prepare.append(mark)
    runner = web.AppRunner(app, access_log=None)
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        notes.close()
