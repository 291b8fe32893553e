"""What the commands `serve`, `drive` and `demo` do once their options are read."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import click

from proxy.connections import allow_files
from proxy.drive.choose import AgentError, AgentOptions, chosen
from proxy.drive.client import ControlClient, ControlError
from proxy.drive.demo import Report, Score
from proxy.drive.demo import demo as play_demo
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import PlanError, plan
from proxy.drive.process import kill_all
from proxy.drive.progress import showing
from proxy.drive.states import Inject, ScenarioInfo
from proxy.drive.stopping import exit_code, until_stopped
from proxy.errors_cli import InputError
from proxy.log.errors import LogError
from proxy.runs import SIMULATED, shown_provider
from proxy.server import StartError, running, settle
from proxy.settings import Settings
from proxy.simulate.policies import PolicyError
from proxy.ui.address import page_address
from proxy.ui.kept_token import token_for
from proxy.ui.lent import Lent
from proxy.wire.endpoint import display_url
from scenarios.load import ScenarioError, load

DEFAULT_MODEL = "gpt-4o-mini"
CONNECT_TIMEOUT_S = 10.0
PATIENCE_S = 30.0
"""How long a proxy that runs already may be away, to be started anew."""

T = TypeVar("T")


class Infrastructure(click.ClickException):
    """Something other than the agent failed."""

    exit_code = 3


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
    """What `drive` is told beside the proxy's settings. `turn_timeout` is in seconds."""

    agent: AgentChoice
    only: tuple[str, ...]
    limit: int | None
    epochs: int
    concurrency: int
    turn_timeout: float
    inject: Inject = "sentinel"


@dataclass(frozen=True, slots=True)
class RemoteProxy:
    """A proxy that runs already. `resume`: Sessions ended by infrastructure are played again too."""

    url: str
    token: str
    resume: bool = False


def run_serve(settings: Settings, lent: Lent | None = None, token_env: str | None = None) -> None:
    """Serves until SIGINT or SIGTERM; then finishes what runs and closes the log.

    `token_env` is where the user has the token of the agents, which is not shown.
    """
    _run(_serve(settings, lent, token_env))


def run_drive(
    proxy: Settings | RemoteProxy, options: DriveOptions, model: str | None, lent: Lent | None = None
) -> None:
    """Plays the planned Sessions. Exit code 3 if any could not be played to its end."""
    report, stopped = _run(until_stopped(_drive(proxy, options, model, lent), kill_all))
    if report is not None and report.hopeless:
        click.echo("Nothing was played: once that is mended, --resume plays it.")
    elif isinstance(proxy, Settings):
        click.echo(f"\n{_closing_words(proxy.log)}")
    if stopped is not None:
        raise SystemExit(exit_code(stopped))
    if report is not None and report.hopeless:
        raise Infrastructure(f"{report.halted}")
    if report is None or not report.complete:
        raise Infrastructure("not every turn was answered: the lines above say which, and why")


def run_demo(folder: Path, score: Score, report: Report) -> None:
    played = play_demo(folder, click.echo, score=score, page=report, program=program())
    result, stopped = _run(until_stopped(played, kill_all))
    if stopped is not None:
        raise SystemExit(exit_code(stopped))
    if result is None or result.score is None:
        raise Infrastructure("the demo could not be played")


def program() -> str:
    """How this program was called, for commands that can be copied."""
    script = Path(sys.argv[0])
    return f"{shlex.quote(sys.orig_argv[0])} {script}" if script.suffix == ".py" else script.name


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the command; whatever a user can mend becomes one line."""
    try:
        return asyncio.run(work)
    except (StartError, ScenarioError, PolicyError, LogError, AgentError, PlanError) as error:
        raise InputError(str(error)) from error
    except ControlError as error:
        raise Infrastructure(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            # Whoever read the output has enough of it: click's business.
            raise
        if error.filename is not None:
            raise InputError(f"{error.filename}: {error.strerror}") from error
        raise Infrastructure(f"{error.strerror or error} (--debug tells where)") from error


async def _serve(settings: Settings, lent: Lent | None, token_env: str | None) -> None:
    allow_files()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if settings.token is None and sys.stdout.isatty():
        # Whoever is told it by this terminal goes on with it when the proxy is started again.
        settings = replace(settings, token=token_for(settings.log, os.environ))
    async with running(settings, lent=lent) as proxy:
        settle()
        click.echo(f"Listening on {proxy.base_url}{'' if settings.scenarios else ', recording only'}")
        click.echo(
            f"Provider: {shown_provider(settings.provider)}   Log: {settings.log}   Run: {proxy.run_id}"
        )
        if settings.scenarios:
            click.echo(_agent_hint(settings, f"{proxy.base_url}{f'/t/${token_env}' if token_env else ''}"))
            click.echo(_control_hint(settings, proxy.token))
        if lent is not None:
            click.echo(f"Live page: {page_address(proxy, sys.stdout)}")
        await stop.wait()
        click.echo("Stopping: finishing what is under way.")
    click.echo(_closing_words(settings.log, played=bool(settings.scenarios)))


def _closing_words(log: Path, *, played: bool = True) -> str:
    """Where the log is, and what to do with it."""
    commands = {"Score it": "score", "Look at it": "report"} if played else {"Look at it": "tail"}
    lines = [f"{what}: {program()} {command} {shlex.quote(str(log))}" for what, command in commands.items()]
    return "\n".join([f"Log: {log}", *lines])


def _agent_hint(settings: Settings, base_url: str) -> str:
    """What an agent is to be given, and which scenarios there are."""
    files = shlex.join(str(file) for file in settings.scenarios)
    return (
        f"Agents: base URL {base_url}/s/SCENARIO_ID/v1, prompts [[next-user-turn 1]], "
        "[[next-user-turn 2]], ...\n"
        f"Scenario ids: {program()} scenarios list {files}"
    )


def _control_hint(settings: Settings, token: str) -> str:
    """How to be let into the control API. Only a terminal gets the token: output elsewhere may be kept."""
    if sys.stdout.isatty():
        return f"Control token: {token}"
    if settings.token:
        return "Control API and live page: their token is the one in EVAL_TOKEN"
    return "Control API and live page: set EVAL_TOKEN to choose their token"


async def _drive(
    proxy: Settings | RemoteProxy, options: DriveOptions, model: str | None, lent: Lent | None
) -> DriveReport:
    hidden: tuple[str, ...] = ()
    if isinstance(proxy, Settings):
        hidden = (proxy.provider_key_env,) if proxy.provider_key_env else ()
        _check_plan(proxy, options)
        if not proxy.provider.startswith(SIMULATED):
            await _require_reachable(proxy.provider)
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
    async with _control(proxy, lent) as control, agents as factory:
        run = await control.run()
        planned = plan(run.scenarios, options.only, options.limit, options.epochs)
        await control.plan((item.scenario, item.epoch) for item in planned)
        async with showing(control, planned, sys.stderr, time.monotonic) as progress:
            report = await drive(
                control,
                planned,
                factory,
                concurrency=options.concurrency,
                turn_timeout=options.turn_timeout,
                progress=progress,
                inject=options.inject,
            )
        for line in () if report.hopeless else progress.summary(report):
            click.echo(line)
    return report


def _check_plan(proxy: Settings, options: DriveOptions) -> None:
    """Raises PlanError before a run is begun that would have nothing in it."""
    scenarios = [
        ScenarioInfo(scenario.id, scenario.hash, len(scenario.tasks))
        for file in load(proxy.scenarios, proxy.language)
        for scenario in file.scenarios
    ]
    plan(scenarios, options.only, options.limit, options.epochs)


@asynccontextmanager
async def _control(proxy: Settings | RemoteProxy, lent: Lent | None) -> AsyncIterator[ControlClient]:
    """The control API of a proxy of our own, or of one that runs already and may be restarted."""
    if isinstance(proxy, RemoteProxy):
        async with ControlClient(proxy.url, proxy.token, again=proxy.resume, patience=PATIENCE_S) as control:
            yield control
        return
    async with (
        running(proxy, lent=lent) as started,
        ControlClient(started.base_url, started.token, again=proxy.runs == "resume") as control,
    ):
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
