"""The commands `log info`, `log runs`, `log migrate`, `log show`; `room_cli` has the others.

What they need is imported when they run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxy.errors_cli import InputError
from proxy.log.errors_cli import input_errors
from proxy.log.room_cli import merge, vacuum

if TYPE_CHECKING:
    from proxy.log.inspect import RunSummary


log_argument = click.argument("path", metavar="LOG.db", type=click.Path(path_type=Path))
run_argument = click.argument("run", metavar="RUN")
format_option = click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@click.group(
    epilog="""\b
    Examples:
      wildproxy log info run.db
      wildproxy log runs list run.db
    """
)
def log() -> None:
    """Look into a log, name and delete its runs, bring it up to date."""


@log.command(
    short_help="What a log holds, and what is unfinished.",
    epilog="""\b
    Examples:
      wildproxy log info run.db
      wildproxy log info run.db --format json
    """,
)
@log_argument
@format_option
def info(path: Path, output_format: str) -> None:
    """What a log holds: runs, sessions, exchanges, tokens, how they ended, what is unfinished."""
    from proxy.log.describe import info_text, json_text
    from proxy.log.inspect import log_info

    with input_errors():
        found = log_info(path)
    click.echo(json_text(found) if output_format == "json" else info_text(found, time.time()))


log.add_command(vacuum)
log.add_command(merge)


@log.group(
    epilog="""\b
    Examples:
      wildproxy log runs list run.db
    """
)
def runs() -> None:
    """List, rename and delete the runs of a log.

    RUN is a run's id, its name, or the beginning of its id.
    """


@runs.command(
    "list",
    epilog="""\b
    Examples:
      wildproxy log runs list run.db
    """,
)
@log_argument
@format_option
def list_runs(path: Path, output_format: str) -> None:
    """List the runs of a log, the oldest first."""
    from proxy.log.describe import json_text, runs_document, runs_text
    from proxy.log.inspect import run_summaries

    with input_errors():
        found = run_summaries(path)
    if output_format == "json":
        click.echo(json_text(runs_document(found)))
    else:
        click.echo(runs_text(found) if found else "no runs")


@runs.command(
    epilog="""\b
    Examples:
      wildproxy log runs rename run.db 20261130-1432 baseline
    """
)
@log_argument
@run_argument
@click.argument("name", metavar="NAME")
def rename(path: Path, run: str, name: str) -> None:
    """Give a run a name, which then does for its id. The id stays."""
    from proxy.log.runs import rename_run
    from scenarios.text import visible

    with input_errors():
        run_id = rename_run(path, run, name, time.time)
    click.echo(visible(f"run {run_id} is now called {name.strip()}"))


@runs.command(
    epilog="""\b
    Examples:
      wildproxy log runs delete run.db baseline
      wildproxy log runs delete run.db 20261130-1432 --yes --vacuum
    """
)
@log_argument
@run_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--vacuum", is_flag=True, help="Make the file smaller afterwards; takes a while.")
@click.option("--force", is_flag=True, help="Even if the run seems to be still played: that ends its proxy.")
def delete(path: Path, run: str, yes: bool, vacuum: bool, force: bool) -> None:
    """Take a run out of a log, with all that belongs to no other run."""
    from proxy.log.inspect import run_summary
    from proxy.log.runs import check_unused, delete_run
    from scenarios.text import visible

    with input_errors():
        chosen = run_summary(path, run)
        if not force:
            check_unused(path, chosen, time.time())
        if not yes and not _is_sure(path, chosen):
            click.echo("nothing was deleted")
            return
        removed = delete_run(path, chosen.id, time.time, vacuum=vacuum, force=force)
    parts = ", ".join(_counted(removed[f"{noun}s"], noun) for noun in ("session", "exchange", "message"))
    rest = "" if vacuum else "; the file keeps its size until --vacuum"
    click.echo(visible(f"run {chosen.id} is deleted: {parts}{rest}"))


@log.command(
    epilog="""\b
    Examples:
      wildproxy log migrate run.db
    """
)
@log_argument
def migrate(path: Path) -> None:
    """Bring a log of an older version up to date. A log that is up to date is left as it is."""
    from contextlib import closing

    from proxy.log.database import open_for_writing
    from proxy.log.inspect import NEWEST_VERSION, schema_version

    with input_errors():
        before = schema_version(path)
        if before == NEWEST_VERSION:
            click.echo(f"{path}: is up to date (schema {before})")
            return
        with closing(open_for_writing(path, now=time.time, must_exist=True)):
            pass
    click.echo(f"{path}: migrated from schema {before} to {NEWEST_VERSION}")


@log.command(
    short_help="Print one exchange whole.",
    epilog="""\b
    Examples:
      wildproxy log show run.db 3f2a --full
      wildproxy log show run.db 3f2a --raw > answer.txt
    """,
)
@log_argument
@click.argument("exchange", metavar="EXCHANGE")
@click.option("--full", is_flag=True, help="Print the tools as they were sent, not by name alone.")
@click.option(
    "--raw",
    is_flag=True,
    help="Print the answer's bytes as received and nothing else; with --format json, add them as text.",
)
@format_option
def show(path: Path, exchange: str, full: bool, raw: bool, output_format: str) -> None:
    """Print one exchange whole: the request with all its messages, the answer, what became of it.

    EXCHANGE is its id, or a beginning of the id that no other has. Ids are told by SQL, as in
    sqlite-utils LOG.db "select id, side, turn, status from exchanges"; of exchanges that are
    not finished, by `log info` too.
    """
    from proxy.log.describe import exchange_text, json_text
    from proxy.log.inspect import exchange_document

    exchange = exchange.strip()
    with input_errors():
        document, answer = exchange_document(path, exchange)
    if output_format == "json":
        shown = None if answer is None else answer.decode("utf-8", "backslashreplace")
        click.echo(json_text({**document, "raw": shown} if raw else document))
    elif raw:
        _print_raw(path, exchange, answer)
    else:
        click.echo(exchange_text(document, full=full))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _is_sure(path: Path, run: RunSummary) -> bool:
    from scenarios.text import visible

    name = "" if run.name is None else f" ({run.name})"
    try:
        return click.confirm(
            f"Delete run {visible(run.id)}{visible(name)} with {_counted(run.sessions, 'session')} and "
            f"{_counted(run.exchanges, 'exchange')} from {path}?"
        )
    except click.Abort:
        raise InputError(
            "nothing was deleted: nobody answered; give --yes to delete without asking"
        ) from None


def _print_raw(path: Path, exchange: str, answer: bytes | None) -> None:
    """Verbatim to a file or program; on a terminal so that it obeys nothing."""
    from scenarios.text import visible

    if answer is None:
        raise InputError(f"{path}: exchange {exchange} has no answer")
    if sys.stdout.isatty():
        click.echo(visible(answer.decode("utf-8", "backslashreplace"), keep="\n"))
    else:
        click.echo(answer, nl=False)
