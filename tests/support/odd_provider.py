"""A provider that speaks both APIs and says one text, unless it is told which bytes to answer with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.wire.chat import completion, dump_json, stream_events
from proxy.wire.responses import with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_stream import response_events

WHOLE = completion(id="chatcmpl-1", created=1, model="m", content="Hello.", usage=(8, 9))


@dataclass(frozen=True)
class Given:
    """An answer as bytes, and how it is sent."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class OddProvider:
    """Its base URL, and what it answers with; None is the text."""

    url: str = ""
    given: Given | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        given = self.given or _sound(request.path, raw)
        headers = {**given.headers, "Content-Type": given.content_type}
        response = web.StreamResponse(status=given.status, headers=headers)
        await response.prepare(request)
        await response.write(given.body)
        await response.write_eof()
        return response


def _sound(path: str, raw: bytes) -> Given:
    stream = _wants_stream(raw)
    content_type = "text/event-stream" if stream else "application/json"
    if path.endswith("/responses"):
        response = to_response(with_call_ids(WHOLE, "resp_1"), {})
        body = b"".join(response_events(response)) if stream else dump_json(response)
    else:
        body = b"".join(stream_events(WHOLE, True)) if stream else dump_json(WHOLE)
    return Given(body, 200, content_type)


def _wants_stream(raw: bytes) -> bool:
    try:
        asked: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and bool(asked.get("stream"))


@asynccontextmanager
async def odd_provider() -> AsyncIterator[OddProvider]:
    provider = OddProvider()
    app = web.Application(client_max_size=2**28)
    app.router.add_route("*", "/{path:.*}", provider.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield provider
    finally:
        await runner.cleanup()
