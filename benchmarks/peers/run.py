"""Our proxy beside others, in shuffled rounds on one machine: latency, throughput, streams (../README.md)."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from bench import Bench, bench
from contenders import CONTENDERS, Contender
from installed import install
from machine import BenchmarkError, raise_priority
from readme import environment, write_section
from results import values_of
from tables import report
from windows import Window, measure


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Windows of each kind.")
@click.option("--seconds", default=2.0, show_default=True, help="How long a window is.")
@click.option("--only", metavar="NAMES", help="These contenders, with commas between them.")
@click.option("--install", "installs", is_flag=True, help="Install the others into a cache first.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write all windows here.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables into this page too.")
def main(
    rounds: int,
    seconds: float,
    only: str | None,
    installs: bool,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Measure proxies side by side and check the targets."""
    if installs:
        install()
    chosen = _chosen(only)
    if not raise_priority():
        click.echo("Not root, so without a raised priority: other work disturbs more.", err=True)
    with bench() as it:
        windows = _rounds(it, chosen, rounds, seconds)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(window) for window in windows]), encoding="utf-8")
    text = report(values_of(windows), [contender.name for contender in chosen])
    click.echo(text)
    if markdown is not None:
        about = f"{rounds} rounds, windows of {seconds:g} s, {_quiet(windows)}"
        write_section(markdown, "peers", f"{environment(about)}\n\n{text}")


def _quiet(windows: Sequence[Window]) -> str:
    return f"{sum(window.quiet for window in windows)} of {len(windows)} windows quiet"


def _chosen(only: str | None) -> list[Contender]:
    """Those asked for that are here; says which are not, and why."""
    names = {contender.name for contender in CONTENDERS}
    wanted = names if only is None else {name.strip() for name in only.split(",")}
    if unknown := wanted - names:
        raise click.UsageError(
            f"no such contender: {', '.join(sorted(unknown))}; there are {', '.join(names)}"
        )
    asked = [contender for contender in CONTENDERS if contender.name in wanted]
    for contender in asked:
        if reason := contender.missing():
            click.echo(f"Left out: {contender.name}: {reason}", err=True)
    return [contender for contender in asked if not contender.missing()]


def _rounds(it: Bench, chosen: Sequence[Contender], rounds: int, seconds: float) -> list[Window]:
    """The windows of all rounds. Which contender fails in a round is said."""
    windows: list[Window] = []
    for number in range(1, rounds + 1):
        for contender in random.sample(chosen, len(chosen)):
            try:
                measured = measure(it, contender, seconds)
            except BenchmarkError as exc:
                click.echo(f"Left out of round {number}: {contender.name}: {exc}", err=True)
                continue
            windows += measured
            click.echo(f"round {number}  {_in_short(measured)}", err=True)
    return windows


def _in_short(measured: Sequence[Window]) -> str:
    alone, crowd = measured[0], measured[1]
    latency, rate = alone.seen.answer[0], crowd.seen.answered / crowd.seen.seconds
    foreign = max(window.foreign for window in measured)
    return f"{alone.contender:<12} {latency:>8,.0f} us {rate:>8,.0f} req/s, others used {foreign:.2f} cores"


if __name__ == "__main__":
    main()
