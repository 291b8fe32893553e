"""How much memory `serve` takes while its log grows to 100,000 exchanges. See ../README.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from bench import Bench, Load, Started, bench
from contenders import EVALUATION, RECORD, Contender, Ours
from machine import family, raise_priority, rss_megabytes
from readme import environment, write_section
from tables import table

LIMIT_MB = 120
"""The target."""
NEVER = ("jieba", "openai", "scipy")
"""Costly libraries that scoring and drivers need, and `serve` does not."""
CONNECTIONS = 16
SLICE_S = 5.0
"""Sessions that are under way when a slice ends are never played on, and stay in memory as open ones do."""
TIMED_IMPORT = re.compile(r"^import time: .*\| +(\w+)$", re.MULTILINE)
"""A package that Python says it has imported, started with -X importtime."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--exchanges", default=100_000, show_default=True, help="How many requests are answered.")
@click.option("--every", default=10_000, show_default=True, help="After how many the memory is read.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table into this page too.")
def main(exchanges: int, every: int, markdown: Path | None) -> None:
    """Measure how much memory serve takes, recording and evaluating."""
    raise_priority()
    contenders = (Ours(RECORD), Ours(EVALUATION, "relay"))
    with bench() as it:
        seen = {contender.name: _grown(it, contender, exchanges, every) for contender in contenders}
    counts = sorted(set.intersection(*(set(rows) for rows, _ in seen.values())))
    header = ["exchanges", *(f"{name}, MB" for name in seen)]
    rows = [[f"{count:,}", *(f"{rows[count]:.0f}" for rows, _ in seen.values())] for count in counts]
    verdicts = [_verdict(name, rows, loaded) for name, (rows, loaded) in seen.items()]
    text = table(header, rows) + "\n" + "".join(f"- {verdict}\n" for verdict in verdicts)
    click.echo(text)
    if markdown is not None:
        about = f"{CONNECTIONS} connections, 12 KB a request"
        write_section(markdown, "memory", f"{environment(about)}\n\n{text}")


def _grown(it: Bench, contender: Contender, exchanges: int, every: int) -> tuple[dict[int, float], set[str]]:
    """MB by exchanges so far, and the packages that it has loaded."""
    with it.started(contender, lambda command: [sys.executable, "-X", "importtime", *command[1:]]) as started:
        rows = {0: _memory(started)}
        for count in _counts(it, started, exchanges):
            while count >= len(rows) * every:
                rows[len(rows) * every] = _memory(started)
                click.echo(f"{contender.name}: {count} exchanges, {_memory(started):.0f} MB", err=True)
        return rows, set(TIMED_IMPORT.findall(started.output.read_text(encoding="utf-8")))


def _counts(it: Bench, started: Started, exchanges: int) -> Iterator[int]:
    """How many exchanges there were, every slice until there are enough."""
    steps = len(started.contender.bodies(it.traffic))
    count, first = 0, 1
    while count < exchanges:
        answered = it.send(started, Load(CONNECTIONS, SLICE_S, first)).answered
        count += answered
        first += answered // steps + CONNECTIONS  # At most so many sessions were begun.
        yield count


def _memory(started: Started) -> float:
    assert started.pid is not None
    return rss_megabytes(family(started.pid))


def _verdict(name: str, rows: dict[int, float], loaded: set[str]) -> str:
    most, unwanted = max(rows.values()), sorted(loaded & set(NEVER))
    kept = "met" if most < LIMIT_MB else "**missed**"
    imported = f"**missed**: {', '.join(unwanted)} loaded" if unwanted else "met"
    return (
        f"{name}: at most {most:.0f} MB (target: under {LIMIT_MB} MB): {kept}; "
        f"none of {', '.join(NEVER)} loaded: {imported}."
    )


if __name__ == "__main__":
    main()
