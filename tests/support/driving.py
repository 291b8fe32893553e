"""Playing whole Sessions with the driver, and what the scorer says of the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.server import running
from proxy.settings import Settings
from scoring.cli import Asked, score_logs
from scoring.report import RunReport

Body = dict[str, Any]
Verdicts = dict[tuple[str, int, int], tuple[str | None, bool]]
"""(scenario, epoch, Task from 1) -> (label, is optimal)."""


class Silence:
    """A Watcher that tells nobody."""

    def began(self, session: str, tasks: int) -> None: ...

    def moved(self, state: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...

    def finished(self, played: Any) -> None: ...


async def driven(
    log: Path,
    provider: str,
    files: Sequence[str | Path],
    *,
    concurrency: int = 4,
    epochs: int = 1,
    stream: bool = False,
    **settings: Any,
) -> DriveReport:
    """Plays every Session of `files` with the builtin agent into a new log."""
    told = Settings(**{"log": log, "provider": provider, "scenarios": tuple(files), **settings})
    async with (
        running(told, environ={}) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        builtin("some-model", stream=stream) as factory,
    ):
        planned = plan((await control.run()).scenarios, epochs=epochs)
        return await drive(
            control, planned, factory, concurrency=concurrency, turn_timeout=120, progress=Silence()
        )


def scored(log: Path) -> RunReport:
    """The one Run of a log as the command `score` scores it."""
    [report] = score_logs((log,), (), Asked())
    return report


def verdicts(log: Path) -> Verdicts:
    """As the released rules have them."""
    return {
        (session.scenario.id, session.epoch, number): (task.label, task.is_optimal)
        for session in scored(log).sessions
        for number, task in enumerate(session.tasks, start=1)
    }


@asynccontextmanager
async def provider_saying(say: Callable[[Body, Mapping[str, str]], Body]) -> AsyncIterator[str]:
    """A provider whose assistant messages come from a function of the request; gives its base URL."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        message = {"role": "assistant", **say(body, request.headers)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return web.json_response(whole)

    app = web.Application(client_max_size=2**28)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
