"""The command `simulate`: a scripted OpenAI-compatible provider on a port of its own."""

from __future__ import annotations

import math

import click

from proxy.command_line.values_cli import complete_scenarios
from scenarios.load import BUNDLED_WORD, LANGUAGES


def _latency(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value} is not a number of seconds from 0 on")
    return value


@click.command(
    epilog="""\b
    Examples:
      wildproxy simulate --policy noisy:0.3
      wildproxy simulate --scenarios ledger --policy serial --port 9000
    """
)
@click.option(
    "--scenarios",
    "files",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_scenarios,
    default=(BUNDLED_WORD,),
    show_default=True,
    help="Scenario file that is being played; may be given several times.",
)
@click.option(
    "--policy",
    metavar="POLICY",
    default="oracle",
    show_default=True,
    help="oracle, serial, noisy:P[:SEED], text-only, always-call or empty.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8788,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default="en",
    show_default=True,
    help="Which words of a file with both languages are being played.",
)
@click.option(
    "--latency",
    type=float,
    default=0.0,
    callback=_latency,
    metavar="SECONDS",
    help="Wait this long before each answer.",
)
def simulate(
    files: tuple[str, ...], policy: str, host: str, port: int, language: str, latency: float
) -> None:
    """Serve a scripted OpenAI-compatible provider that plays scenarios.

    It finds its place in a scenario from the conversation alone and answers by POLICY:
    `oracle` gives the annotated answer along the shortest path, `serial` one call at a
    time, `noisy:P` goes wrong in each decision with probability P (drawn by SEED), and
    `text-only`, `always-call` and `empty` always do the same. Point the proxy at the
    base URL that is printed (`serve --provider URL`), or let it start one itself with
    `--provider sim:POLICY`.
    """
    # Imported here because aiohttp would make every --help slow.
    from proxy.simulate.command import run

    run(files, policy, host, port, language, latency)
