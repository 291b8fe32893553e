"""Agents that are programs of their own, played through a real proxy."""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.driving import Silence

from proxy.drive.agent import AgentSession, Delivery
from proxy.drive.choose import AgentOptions, chosen
from proxy.drive.client import ControlClient
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.server import running
from proxy.settings import Settings

AGENTS = Path(__file__).with_name("agents")
BOUND_S = 60.0
"""No turn here takes this long, unless something is stuck."""


def command(name: str, *arguments: str) -> str:
    """The command that runs one of the agents of `support/agents`."""
    return shlex.join([sys.executable, str(AGENTS / f"{name}.py"), *arguments])


async def played(
    log: Path,
    agent: str,
    *,
    files: Sequence[str | Path] = ("bundled",),
    only: Sequence[str] = (),
    provider: str = "sim:oracle",
    turn_timeout: float = BOUND_S,
    concurrency: int = 4,
    **options: Any,
) -> DriveReport:
    """Plays Sessions against `--agent AGENT` into a new log; `options` are `AgentOptions`."""
    settings = Settings(log=log, provider=provider, scenarios=tuple(files), provider_retries=0)
    async with (
        running(settings, environ={}) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        chosen(AgentOptions(agent, **options)) as factory,
    ):
        return await drive(
            control,
            plan((await control.run()).scenarios, only),
            factory,
            concurrency=concurrency,
            turn_timeout=turn_timeout,
            progress=Silence(),
        )


def seat(
    *deliveries: Delivery, name: str = "a.e1", base_url: str = "http://127.0.0.1:9/s/a.e1/v1"
) -> AgentSession:
    """A Session whose first turns are delivered as told, all later ones as the last of these.

    A turn that is never answered is waited for as long as may be.
    """

    async def delivery(turn: int, timeout: float | None) -> Delivery:
        told = deliveries[min(turn, len(deliveries)) - 1]
        if timeout is None and told in ("waiting", "unasked"):
            await asyncio.Event().wait()
        return told

    mcp_url = base_url.removesuffix("/v1") + "/mcp"
    return AgentSession(name, base_url, f"sk-eval-{name}", delivery, mcp_url)


def has_ended(pid: int) -> bool:
    """Has the process ended, or does it within seconds? Whether somebody has reaped it is another matter."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)
