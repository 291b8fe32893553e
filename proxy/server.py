"""Puts the parts together and runs them: log, provider, sessions, HTTP server."""

from __future__ import annotations

import gc
import logging
import os
import random
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from proxy.admission import Admission, known_names, why_no_token
from proxy.app import Agents
from proxy.connections import Connections
from proxy.control import Control
from proxy.in_use import InUse, claimed
from proxy.journal import Journal
from proxy.log.restore import read_session
from proxy.log.rows import StartRow
from proxy.log.writer import LogWriter
from proxy.provider import Provider
from proxy.record import ReplayError
from proxy.recording import Recorder
from proxy.registry import Registry
from proxy.responses import ResponsesApi
from proxy.routes import build_app
from proxy.runs import SIMULATED, ChosenRun, RunError, choose_run, scenario_rows
from proxy.settings import Settings
from proxy.simulate.policies import parse_policy
from proxy.simulate.server import running as simulating
from proxy.turns import Providing
from proxy.ui.access import is_loopback
from proxy.ui.board import Live
from proxy.ui.lent import Lent
from proxy.ui.routes import LivePage
from scenarios.load import load
from scenarios.types import Scenario

MAX_HEADER = 65536
"""Bytes of a line, or a header field, of a request."""
DRAIN_S = 30.0
"""How long requests under way may take to end when the proxy is stopped."""
GARBAGE = 50_000
"""Objects made before they are looked through for cycles. A request makes hundreds, and no cycles; with
Python's 700 they are looked through several times a request, which is a sixth of its CPU under load.
"""
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""Holds the provider's key for agents whose own key only names a Session."""


@dataclass(frozen=True, slots=True)
class Running:
    """A proxy that takes requests. `token` opens its control API."""

    base_url: str
    token: str
    run_id: str


class StartError(Exception):
    """The proxy cannot start; one line that says why and how to mend it."""


def settle() -> None:
    """For a process that only serves, once it does: what it has made so far stays, and is no garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    now: Callable[[], float] = time.time,
    environ: Mapping[str, str] = os.environ,
    lent: Lent | None = None,
) -> AsyncIterator[Running]:
    """Runs a proxy until the block is left; then drains the log and closes it.

    With what is `lent` it has a live page.
    Raises StartError, ScenarioError, PolicyError or LogError for what a user can mend.
    """
    files = load(settings.scenarios, settings.language) if settings.scenarios else ()
    scenarios = [scenario for file in files for scenario in file.scenarios]
    async with AsyncExitStack() as stack:
        base_url = await _provider_url(stack, settings, scenarios)
        key = _provider_key(settings, environ)
        try:
            provider = await stack.enter_async_context(_provider(settings, base_url, key, now))
        except ValueError as exc:
            raise StartError(str(exc)) from exc
        bound = stack.enter_context(_bound(settings))
        admission = _admission(settings, bound)
        if settings.runs == "resume" and not settings.log.exists():
            raise StartError(f"{settings.log}: no such log, so no run to resume")
        log = stack.enter_context(LogWriter.open(settings.log, now=now))
        started_at = now()
        try:
            run = choose_run(settings, files, started_at, secrets.token_hex(2))
            stack.enter_context(claimed(settings.log, run.row.id))
        except (RunError, InUse) as exc:
            raise StartError(str(exc)) from exc
        # Whoever has the Run next finds in the log what was done here.
        stack.push_async_callback(log.commit)
        own_key = environ.get(DEFAULT_KEY_ENV) or None
        for secret in filter(None, (key, own_key, admission.token, *provider.endpoint.secrets)):
            log.hide(secret, always=True)
        if run.stored is None:
            log.put(run.row)
        log.put(StartRow(started_at), *scenario_rows(files))
        journal = Journal(log, run.row.id, now, _new_ids(now))
        registry = _registry(settings, run, scenarios, provider, journal) if scenarios else None
        if registry is not None:
            stack.push_async_callback(registry.close)
        token = _token(settings)
        log.hide(token, always=True)
        about = {"run": run.row.id, "config": run.row.config}
        agents = Agents(
            registry,
            Recorder(provider, journal),
            journal,
            ResponsesApi(provider, journal, settings.log),
            keep_alive=settings.keep_alive,
            own_key=own_key,
        )
        prefix = admission.prefix
        control = None if registry is None else Control(registry, token, about, settings.log, prefix)
        connections = Connections(settings.limits)
        page = LivePage(lent, settings.log, Live(run.row.id, now(), now), token)
        app = build_app(agents, control, journal, page, admission, connections)
        url = await _listen(stack, app, bound, connections)
        await log.commit()
        yield Running(url, token, run.row.id)


def _provider(settings: Settings, base_url: str, key: str | None, now: Callable[[], float]) -> Provider:
    return Provider(
        base_url,
        key,
        api=settings.provider_api,
        read_timeout=settings.limits.silence_s,
        answer_limit=settings.limits.answer,
        wall=now,
    )


def _new_ids(now: Callable[[], float]) -> Callable[[], str]:
    """Ids that begin with the time, so that the index of those that come together is in one place of the log.

    Nobody must be kept from guessing them: to ask the system for each costs three times as much.
    """
    draw = random.Random(secrets.randbits(128))
    return lambda: f"{int(now() * 1000):011x}{draw.getrandbits(44):011x}"


def _token(settings: Settings) -> str:
    """The control token; without blanks around it, which no header carries. Raises StartError."""
    token = (settings.token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise StartError(
            "EVAL_TOKEN has characters in it that no HTTP header carries: use letters, digits and ASCII signs"
        )
    return token or secrets.token_urlsafe(24)


def _admission(settings: Settings, bound: socket.socket) -> Admission:
    """Whom the proxy lets in, listening there. Raises StartError for tokens that keep nobody out."""
    is_local, token = is_loopback(bound.getsockname()[0]), settings.agent_token
    if token is None and not is_local:
        raise StartError(
            f"--host {settings.host} lets other machines in: give --token-env NAME, the name of an "
            "environment variable with a token that agents must show, or listen on 127.0.0.1"
        )
    reason = None if token is None else why_no_token(token)
    if reason:
        raise StartError(f"the token of --token-env {reason}: take what `openssl rand -hex 16` prints")
    if token is not None and token == settings.token:
        raise StartError(
            "the token of --token-env is the one in EVAL_TOKEN, with which an agent could look its task up: "
            "choose another"
        )
    if not is_local and settings.token and (reason := why_no_token(settings.token.strip())):
        raise StartError(
            f"--host {settings.host} lets other machines in, and EVAL_TOKEN {reason}: take what "
            "`openssl rand -hex 16` prints, or leave it out"
        )
    return Admission(known_names(settings.host, settings.allowed_hosts), is_local, token)


def _registry(
    settings: Settings, run: ChosenRun, scenarios: list[Scenario], provider: Provider, journal: Journal
) -> Registry:
    providing = Providing(
        provider,
        journal,
        simulated=settings.provider.startswith(SIMULATED),
        model=settings.model,
        retries=settings.provider_retries,
        abandon_after=settings.abandon_after,
    )
    stored = partial(read_session, settings.log)
    registry = Registry(run.row.id, scenarios, journal, providing, settings.play, stored)
    if run.stored is not None:
        try:
            registry.restore(run.stored)
        except ReplayError as exc:
            raise StartError(f"{settings.log}: {exc}") from exc
    return registry


async def _provider_url(stack: AsyncExitStack, settings: Settings, scenarios: list[Scenario]) -> str:
    if not settings.provider.startswith(SIMULATED):
        return settings.provider
    policy = parse_policy(settings.provider.removeprefix(SIMULATED))
    return await stack.enter_async_context(simulating(scenarios, policy))


def _provider_key(settings: Settings, environ: Mapping[str, str]) -> str | None:
    if settings.provider.startswith(SIMULATED) or settings.provider_key_env is None:
        return None
    key = environ.get(settings.provider_key_env, "")
    if not key:
        raise StartError(
            f"the environment variable {settings.provider_key_env} is not set: "
            "put the provider's key into it, or leave --provider-key-env out to pass the agent's key on"
        )
    return key


def _bound(settings: Settings) -> socket.socket:
    """A socket at the wanted address: had before the log is touched, which a busy port is no reason for."""
    if not settings.host:
        raise StartError("--host is empty, which would mean every address of this machine: name one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # A port whose last connections are still ending counts as free.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        raise StartError(
            f"cannot listen on {settings.host} port {settings.port}: {reason}; "
            "choose another --host or --port (0 takes a free one)"
        ) from exc
    return bound


async def _listen(
    stack: AsyncExitStack, app: web.Application, bound: socket.socket, connections: Connections
) -> str:
    # What aiohttp says of a request that it cannot read quotes the request, keys and all.
    silent = logging.getLogger("proxy.silent")
    silent.propagate = False
    silent.addHandler(logging.NullHandler())
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        logger=silent,
        shutdown_timeout=DRAIN_S,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    assert runner.server is not None
    stack.callback((await connections.listen(runner.server, bound)).close)
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
