"""The commands `log vacuum` and `log merge`. What they need is imported when they run."""

from __future__ import annotations

import time
from pathlib import Path

import click

from proxy.log.errors_cli import input_errors

_path = click.Path(path_type=Path)


@click.command(
    epilog="""\b
    Examples:
      wildproxy log vacuum run.db
    """
)
@click.argument("path", metavar="LOG.db", type=_path)
def vacuum(path: Path) -> None:
    """Make a log as small as what it holds.

    What nothing refers to is taken out, and free room given back to the disk. No proxy may have it open.
    For the time that it takes, the disk needs room for the log once more.
    """
    from proxy.log.describe import size_text
    from proxy.log.vacuum import vacuum_log
    from scenarios.text import visible

    with input_errors():
        done = vacuum_log(path)
    counts = [f"{count:,} of {table}" for table, count in done.removed.items() if count]
    gone = f"; rows that nothing referred to: {', '.join(counts)}" if counts else ""
    click.echo(visible(f"{path}: {size_text(done.before)} before, {size_text(done.after)} after{gone}"))


@click.command(
    epilog="""\b
    Examples:
      wildproxy log merge monday.db tuesday.db -o week.db
    """
)
@click.argument("paths", metavar="A.db B.db...", nargs=-1, required=True, type=_path)
@click.option(
    "-o", "--output", required=True, type=_path, metavar="OUT.db", help="The log to make; none may be there."
)
def merge(paths: tuple[Path, ...], output: Path) -> None:
    """Put the runs of several logs into a new one. The logs stay as they are.

    A run that two of them have, since one is a copy, is taken once. Saved scores stay where they are:
    score the new log.
    """
    from proxy.log.merge import merge_logs
    from scenarios.text import visible

    with input_errors():
        done = merge_logs(paths, output, time.time)
    doubled = f"; {done.doubled:,} were in more than one of them" if done.doubled else ""
    click.echo(visible(f"{output}: {done.runs:,} runs, {done.exchanges:,} exchanges{doubled}"))
