"""The command `tail`. What it needs is imported when it runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from proxy.command_line.runs_folder import newest_log
from proxy.errors_cli import InputError

if TYPE_CHECKING:
    from proxy.tail.summary import Judge


class Composition(Protocol):
    """What the composition root lends to a command that joins proxy and scoring."""

    @property
    def judge(self) -> Judge:
        """Says what is right of a Session's Tasks."""


def _or_newest(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """The log that is named, else the one in `runs` that was written last; standard error says which."""
    if value is not None or context.resilient_parsing:
        return value
    newest = newest_log()
    if newest is None:
        raise click.UsageError("Missing argument 'LOG.db': none was named, and there is none in ./runs.")
    click.echo(f"{newest}: the newest log in ./runs", err=True)
    return newest


@click.command(
    epilog="""\b
    Examples:
      wildproxy tail -f                              # the newest log, live
      wildproxy tail run.db --session home_6 --wide  # whole, with arguments
      wildproxy tail run.db | awk '$4 == "task" && $5 == "wrong"'
    """
)
@click.argument(
    "path", metavar="[LOG.db]", required=False, type=click.Path(path_type=Path), callback=_or_newest
)
@click.option(
    "--session", metavar="S", help="Only this session (ledger_1.e1), or all of a scenario (ledger_1)."
)
@click.option(
    "--run",
    metavar="R",
    help="A run's id, its name or the beginning of its id; or 'all'. Default: the newest.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option("-w", "--wide", is_flag=True, help="Every event, whole: with arguments and observations.")
@click.option("-n", "--lines", "last", type=click.IntRange(min=0), help="Of what is there, the last so many.")
@click.option("--since", metavar="TIME", help="Begin there: 30s, 10m, 2h ago, or an ISO time.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "plain", "json"]),
    help="text: columns that fit a terminal; plain: fields with blanks between, for awk and grep; json: an "
    "object a line, with everything.  [default: text on a terminal, else plain]",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto: on a terminal, unless NO_COLOR is set.",
)
@click.pass_obj
def tail(
    composition: Composition | None,
    /,
    path: Path,
    session: str | None,
    run: str | None,
    since: str | None,
    **options: Any,
) -> None:
    """Show what happens in the sessions of a log, also while they are played.

    A line for each user turn, each step with its tokens and seconds, each failure and finding,
    and a summary of every task and session that is over: the verdict, the steps taken and the least
    that would do, what went wrong first. With --follow a log that is not there yet is waited for.
    """
    from proxy.log.errors import LogError
    from proxy.tail.follow import Wanted
    from proxy.tail.view import Options, PipeClosed, forget_stdout, leave_line_clean, show
    from proxy.terminal.text import parse_since
    from scenarios.text import visible

    try:
        wanted = Wanted(run, session, None if since is None else parse_since(since, time.time()))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error
    try:
        show(path, wanted, Options(**options), None if composition is None else composition.judge)
    except LogError as error:
        raise InputError(visible(str(error))) from error
    except (PipeClosed, BrokenPipeError):
        forget_stdout()
    except KeyboardInterrupt:
        leave_line_clean(sys.stdout)
        raise SystemExit(0 if options["follow"] else 130) from None
