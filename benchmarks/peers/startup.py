"""How long commands take to show their help, and proxies to give their first answer. See ../README.md."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import click
from bench import Bench, Load, bench
from contenders import CONTENDERS, ROOT, Contender, Ours
from machine import PROXY_CORE, cpu_seconds, family, output_of, raise_priority
from readme import environment, write_section
from tables import table

from run_proxy import main as wildproxy

HELP_S, READY_S = 0.3, 1.0
"""The targets."""
Took = tuple[float, float]
"""Seconds by the clock, and of the processor."""
ONE = Load(1, 0.001, 1)
"""A request, and what is answered until a millisecond has passed."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Starts of each.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables into this page too.")
def main(rounds: int, markdown: Path | None) -> None:
    """Measure how long commands and proxies take to start."""
    raise_priority()
    text = f"{_helps(rounds)}\n{_proxies(rounds)}"
    click.echo(text)
    if markdown is not None:
        write_section(markdown, "startup", f"{environment(f'{rounds} starts of each')}\n\n{text}")


def _helps(rounds: int) -> str:
    program = [sys.executable, str(ROOT / "run_proxy.py")]
    rows = []
    for words in _commands(click.Context(wildproxy, info_name="wildproxy")):
        seen = [_help([*program, *words, "--help"]) for _ in range(rounds)]
        rows.append([" ".join(["wildproxy", *words]), *_cells(seen, HELP_S)])
    return table(["--help of", "seconds", "CPU s", f"target: under {HELP_S:g} s"], rows)


def _commands(context: click.Context) -> Iterator[list[str]]:
    """The words of each command, the group's own (none) first."""
    yield context.command_path.split()[1:]
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from _commands(click.Context(command, info_name=name, parent=context))


def _proxies(rounds: int) -> str:
    rows = []
    with bench() as it:
        for contender in CONTENDERS[1:]:
            if reason := contender.missing():
                click.echo(f"Left out: {contender.name}: {reason}", err=True)
                continue
            seen = [_until_answer(it, contender) for _ in range(rounds)]
            rows.append([contender.name, *_cells(seen, READY_S if isinstance(contender, Ours) else None)])
    return table(["first answer of", "seconds", "CPU s", f"target: under {READY_S:g} s"], rows)


def _until_answer(it: Bench, contender: Contender) -> Took:
    start = time.monotonic()
    with it.started(contender) as started:
        assert started.pid is not None
        it.send(started, ONE)
        return time.monotonic() - start, cpu_seconds(family(started.pid))


def _help(command: list[str]) -> Took:
    start, before = time.monotonic(), os.times()
    output_of(command, PROXY_CORE)
    after, end = os.times(), time.monotonic()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return end - start, used


def _cells(seen: list[Took], limit: float | None) -> list[str]:
    """Median and spread of the seconds, the median CPU time, and whether the limit is kept."""
    seconds = [took for took, _ in seen]
    spread = f"{median(seconds):.2f} [{min(seconds):.2f}-{max(seconds):.2f}]"
    verdict = "" if limit is None else "met" if median(seconds) < limit else "**missed**"
    return [spread, f"{median(used for _, used in seen):.2f}", verdict]


if __name__ == "__main__":
    main()
