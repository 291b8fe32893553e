"""The command; `python -m tests.conformance --help` says how it is used."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from tests.conformance.bench import Mode, Target, new_key
from tests.conformance.report import FORMATS
from tests.conformance.run import Unusable, check_target, chosen, run_all


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url")
@click.option("--provider-port", type=click.IntRange(1, 65535), required=True, help="Where the provider is.")
@click.option(
    "--mode",
    type=click.Choice(["record", "session"]),
    default="record",
    show_default=True,
    help="session: the proxy is this project's and plays the bundled scenarios.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only these probes; * and ? fit anything.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="Of the results.",
)
@click.option("--log", type=click.Path(path_type=Path), help="This project's log, which is looked at too.")
@click.option("--key", help="What agents authorize themselves with. Default: a random one.")
def main(
    url: str,
    provider_port: int,
    mode: Mode,
    only: tuple[str, ...],
    form: str,
    log: Path | None,
    key: str | None,
) -> None:
    """Probe an OpenAI-compatible proxy at URL, its base URL, such as http://127.0.0.1:8787/v1.

    The proxy must have been told that its provider is http://127.0.0.1:PORT/v1: there the command
    answers itself, in the bytes that each probe is about. Ends with 0 if all probes pass, 1 if one
    fails, 2 if they cannot be run.
    """
    target = Target(url.rstrip("/"), key or new_key())
    try:
        check_target(target, log)
        probes = chosen(mode, only, log)
        results = asyncio.run(run_all(target, provider_port, mode, probes, log))
    except Unusable as exc:
        click.echo(f"Error: {exc}", err=True)
        sys.exit(2)
    click.echo(FORMATS[form](results))
    sys.exit(0 if all(it.passed for it in results) else 1)


if __name__ == "__main__":
    main(prog_name="python -m tests.conformance")
