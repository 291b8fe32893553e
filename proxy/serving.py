"""What the command `serve` does once its options are read."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from dataclasses import replace

import click

from proxy.command_line.ending import closing_words, program, run
from proxy.connections import allow_files
from proxy.runs import shown_provider
from proxy.server import running, settle
from proxy.settings import Settings
from proxy.ui.address import page_address
from proxy.ui.kept_token import token_for
from proxy.ui.lent import Lent


def run_serve(settings: Settings, lent: Lent | None = None, token_env: str | None = None) -> None:
    """Serves until SIGINT or SIGTERM; then finishes what runs and closes the log.

    `token_env` is where the user has the token of the agents, which is not shown.
    """
    run(_serve(settings, lent, token_env))


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
            asks = "" if sys.stdout.isatty() else " (asks for the token)"
            click.echo(f"Live page: {page_address(proxy, sys.stdout)}{asks}")
        await stop.wait()
        click.echo("Stopping: finishing what is under way.")
    click.echo(closing_words(settings.log, played=bool(settings.scenarios)))


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
    return (
        "Control API and live page: they need a token, which is told to a terminal alone: "
        "start again with EVAL_TOKEN set to one of your choice"
    )
