"""What the command `simulate` does once its options are read."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence

import click

from proxy.errors_cli import InputError
from proxy.simulate.policies import PolicyError, parse_policy
from proxy.simulate.server import base_url, serve_until_stopped
from scenarios.load import ScenarioError, load
from scenarios.text import counted


def run(files: Sequence[str], policy: str, host: str, port: int, language: str, latency: float) -> None:
    """Serves until interrupted; raises InputError for what the user gave."""
    try:
        parsed = parse_policy(policy)
        loaded = load(files, language)
    except (PolicyError, ScenarioError) as error:
        raise InputError(str(error)) from None
    scenarios = [scenario for file in loaded for scenario in file.scenarios]

    def announce(url: str) -> None:
        count = counted(len(scenarios), "scenario")
        click.echo(f"simulated provider, policy {parsed.spec}, {count}: {url}")

    try:
        asyncio.run(
            serve_until_stopped(scenarios, parsed, host=host, port=port, latency=latency, announce=announce)
        )
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise InputError(_cannot_listen(error, host, port)) from None


def _cannot_listen(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; stop what listens there or choose another with --port"
    reason = error.strerror or str(error)
    return f"cannot listen on {base_url(host, port)}: {reason}; choose another --host or --port"
