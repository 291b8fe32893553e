"""What the commands `serve`, `drive` and `demo` do once their options are read."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from proxy.cli import InputError
from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient, ControlError
from proxy.drive.demo import Score
from proxy.drive.demo import demo as play_demo
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.drive.progress import Progress
from proxy.log.errors import LogError
from proxy.runs import SIMULATED, shown_provider
from proxy.server import StartError, running
from proxy.settings import Settings
from proxy.simulate.policies import PolicyError
from proxy.wire.endpoint import display_url
from scenarios.load import ScenarioError

DEFAULT_MODEL = "gpt-4o-mini"
CONNECT_TIMEOUT_S = 10.0

T = TypeVar("T")


class Infrastructure(click.ClickException):
    """Something other than the agent failed."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """What `drive` is told beside the proxy's settings. `turn_timeout` is in seconds."""

    only: tuple[str, ...]
    limit: int | None
    concurrency: int
    turn_timeout: float
    stream: bool


def run_serve(settings: Settings) -> None:
    """Serves until SIGINT or SIGTERM; then finishes what runs and closes the log."""
    _run(_serve(settings))


def run_drive(settings: Settings, options: DriveOptions) -> None:
    """Plays the planned Sessions. Exit code 3 if any could not be played to its end."""
    report = _run(_drive(settings, options))
    click.echo(f"\nLog: {settings.log}\nScore it: wildproxy score {settings.log}")
    if report.interrupted:
        raise SystemExit(130)
    if not report.complete:
        raise Infrastructure("not every turn was answered: the lines above say which, and why")


def run_demo(folder: Path, score: Score) -> None:
    result = _run(play_demo(folder, click.echo, score=score))
    if result.report.interrupted:
        raise SystemExit(130)
    if result.score is None:
        raise Infrastructure("the demo could not be played")


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the command; whatever a user can mend becomes one line."""
    try:
        return asyncio.run(work)
    except (StartError, ScenarioError, PolicyError, LogError, ValueError) as error:
        raise InputError(str(error)) from error
    except ControlError as error:
        raise Infrastructure(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise InputError(f"{error.filename}: {error.strerror}") from error


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(settings) as proxy:
        played = "recording only" if not settings.scenarios else f"base URL {proxy.base_url}/s/SCENARIO_ID/v1"
        click.echo(f"Listening on {proxy.base_url}, {played}")
        click.echo(
            f"Provider: {shown_provider(settings.provider)}   Log: {settings.log}   Run: {proxy.run_id}"
        )
        if settings.scenarios and sys.stdout.isatty():
            click.echo(f"Control token: {proxy.token}")
        await stop.wait()
        click.echo("Stopping: finishing what is under way.")


async def _drive(settings: Settings, options: DriveOptions) -> DriveReport:
    if not settings.provider.startswith(SIMULATED):
        await _require_reachable(settings.provider)
    async with (
        running(settings) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        builtin(settings.model or DEFAULT_MODEL, stream=options.stream) as factory,
    ):
        planned = plan((await control.run()).scenarios, options.only, options.limit)
        tasks = sum(item.tasks for item in planned)
        with Progress(len(planned), tasks, sys.stderr, time.monotonic) as progress:
            report = await drive(
                control,
                planned,
                factory,
                concurrency=options.concurrency,
                turn_timeout=options.turn_timeout,
                progress=progress,
            )
        for line in progress.summary(report):
            click.echo(line)
    return report


async def _require_reachable(provider: str) -> None:
    """Fails at once, and once, where otherwise every turn of every Session would."""
    parts = urlsplit(provider)
    if not parts.hostname:
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except OSError as error:
        reason = error.strerror or str(error) or "no answer in time"
        raise Infrastructure(
            f"the provider {display_url(provider)} cannot be reached ({reason}): "
            "check --provider, and that it is running"
        ) from error
    writer.close()
