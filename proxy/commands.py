"""What the commands `drive` and `demo` do once their options are read."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import click

from proxy.command_line.ending import Infrastructure, closing_words, program, run, what_next
from proxy.drive.choose import AgentError, AgentOptions, chosen
from proxy.drive.client import ControlClient, ControlError
from proxy.drive.demo import Report, Score
from proxy.drive.demo import demo as play_demo
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import PlanError, plan
from proxy.drive.process import kill_all
from proxy.drive.progress import showing
from proxy.drive.refusal import refusals_in, unknown
from proxy.drive.states import Inject, ScenarioInfo
from proxy.drive.stopping import exit_code, until_stopped
from proxy.errors_cli import InputError
from proxy.log.database import reading
from proxy.log.errors import LogError
from proxy.log.runs import check_name, rename_run
from proxy.runs import SIMULATED
from proxy.server import running
from proxy.settings import Settings
from proxy.ui.address import page_address
from proxy.ui.lent import Lent
from proxy.wire.endpoint import display_url
from scenarios.load import load

DEFAULT_MODEL = "gpt-4o-mini"
CONNECT_TIMEOUT_S = 10.0
PATIENCE_S = 30.0
"""How long a proxy that runs already may be away, to be started anew."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """What `--agent` and the options beside it say."""

    agent: str
    per: Literal["session", "turn"] | None
    body: str | None
    stream: bool

    @property
    def label(self) -> str:
        """The agent as the configuration of a Run names it."""
        return self.agent if self.per is None else f"{self.agent} (per {self.per})"


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """What `drive` is told beside the proxy's settings. `turn_timeout` is in seconds, `name` the Run's.

    `tells_log`: nobody named the log, so it is said as soon as there is one.
    """

    agent: AgentChoice
    only: tuple[str, ...]
    limit: int | None
    epochs: int
    concurrency: int
    turn_timeout: float
    inject: Inject = "sentinel"
    name: str | None = None
    tells_log: bool = False


@dataclass(frozen=True, slots=True)
class RemoteProxy:
    """A proxy that runs already. `resume`: Sessions ended by infrastructure are played again too."""

    url: str
    token: str
    resume: bool = False


def run_drive(
    proxy: Settings | RemoteProxy, options: DriveOptions, model: str | None, lent: Lent | None = None
) -> None:
    """Plays the planned Sessions. Exit code 3 if any could not be played to its end."""
    result, stopped = _run(until_stopped(_drive(proxy, options, model, lent), kill_all))
    report, run_id = result or (None, None)
    if report is not None and report.hopeless:
        click.echo("Nothing was played: once that is mended, --resume plays it.")
    elif isinstance(proxy, Settings):
        click.echo(f"\n{closing_words(proxy.log, run_id=run_id if _holds_several(proxy.log) else None)}")
    elif run_id is not None:
        click.echo(f"\nLog: that of the proxy at {proxy.url}, which its serve names; run {run_id}")
        click.echo("\n".join(what_next("LOG.db", run_id=run_id)))
    if stopped is not None:
        raise SystemExit(exit_code(stopped))
    if report is not None and report.hopeless:
        raise Infrastructure(f"{report.halted}")
    if report is None or not report.complete:
        raise Infrastructure("not every turn was answered: the lines above say which, and why")


def _holds_several(log: Path) -> bool:
    """Has the log several Runs, so that one must be chosen to be scored?"""
    with suppress(LogError), reading(log) as connection:
        return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0]) > 1
    return False


def run_demo(folder: Path, score: Score, report: Report) -> None:
    played = play_demo(folder, click.echo, score=score, page=report, program=program())
    result, stopped = _run(until_stopped(played, kill_all))
    if stopped is not None:
        raise SystemExit(exit_code(stopped))
    if result is None or result.score is None:
        raise Infrastructure("the demo could not be played")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return run(work)
    except (AgentError, PlanError) as error:
        raise InputError(str(error)) from error
    except ControlError as error:
        raise Infrastructure(str(error)) from error


async def _drive(
    proxy: Settings | RemoteProxy, options: DriveOptions, model: str | None, lent: Lent | None
) -> tuple[DriveReport, str]:
    """What became of the plan, and the id of the Run."""
    hidden: tuple[str, ...] = ()
    if isinstance(proxy, Settings):
        hidden = (proxy.provider_key_env,) if proxy.provider_key_env else ()
        await _check(proxy, options)
    choice = options.agent
    agents = chosen(
        AgentOptions(
            choice.agent,
            choice.per,
            choice.body,
            model or DEFAULT_MODEL,
            choice.stream,
            hidden,
            inject=options.inject,
        )
    )
    async with _control(proxy, lent, options) as control, agents as factory:
        run = await control.run()
        planned = plan(run.scenarios, options.only, options.limit, options.epochs)
        await control.plan((item.scenario, item.epoch) for item in planned)
        goes_on = run.goes_on
        async with showing(control, planned, sys.stderr, time.monotonic, goes_on=goes_on) as progress:
            report = await drive(
                control,
                planned,
                factory,
                concurrency=options.concurrency,
                turn_timeout=options.turn_timeout,
                progress=progress,
                inject=options.inject,
                refusal=refusals_in(proxy.log, run.id) if isinstance(proxy, Settings) else unknown,
            )
        for line in () if report.hopeless else progress.summary(report):
            click.echo(line)
    return report, run.id


async def _check(proxy: Settings, options: DriveOptions) -> None:
    """Raises PlanError, LogError or Infrastructure before anything is begun that could not be played."""
    _check_plan(proxy, options)
    if options.name is not None and proxy.runs != "resume":
        check_name(proxy.log, options.name)
    if not proxy.provider.startswith(SIMULATED):
        await _require_reachable(proxy.provider)


def _check_plan(proxy: Settings, options: DriveOptions) -> None:
    """Raises PlanError before a run is begun that would have nothing in it."""
    scenarios = [
        ScenarioInfo(scenario.id, scenario.hash, len(scenario.tasks))
        for file in load(proxy.scenarios, proxy.language)
        for scenario in file.scenarios
    ]
    plan(scenarios, options.only, options.limit, options.epochs)


@asynccontextmanager
async def _control(
    proxy: Settings | RemoteProxy, lent: Lent | None, options: DriveOptions
) -> AsyncIterator[ControlClient]:
    """The control API of a proxy of our own, or of one that runs already and may be restarted."""
    if isinstance(proxy, RemoteProxy):
        async with ControlClient(proxy.url, proxy.token, again=proxy.resume, patience=PATIENCE_S) as control:
            yield control
        return
    async with (
        running(proxy, lent=lent) as started,
        ControlClient(started.base_url, started.token, again=proxy.runs == "resume") as control,
    ):
        if options.tells_log:
            click.echo(f"Log: {proxy.log}")
        if options.name is not None:
            rename_run(proxy.log, started.run_id, options.name, time.time)
        if lent is not None and sys.stderr.isatty():
            click.echo(f"Live page: {page_address(started, sys.stderr)}", err=True)
        yield control


async def _require_reachable(provider: str) -> None:
    """Fails at once, and once, where otherwise every turn of every Session would."""
    try:
        parts = urlsplit(provider)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host = None
    if not host:
        # The proxy says what is wrong with the address.
        return
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error) or "no answer in time"
        raise Infrastructure(
            f"the provider {display_url(provider)} cannot be reached ({reason}): "
            "check --provider, and that it is running"
        ) from error
    writer.close()
