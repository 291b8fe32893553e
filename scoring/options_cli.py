"""Options and arguments that more than one command of this package has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

SCORER_NAMES = ("wildtoolbench", "strict", "published")
DEFAULT_SCORERS = SCORER_NAMES[:2]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _or_newest(
    context: click.Context, parameter: click.Parameter, value: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The logs that are named, else the one in `runs` that was written last; standard error says which."""
    if value or context.resilient_parsing:
        return value
    newest = None if context.obj is None else context.obj.newest_log()
    if newest is None:
        raise click.UsageError("Missing argument 'LOG.db': none was named, and there is none in ./runs.")
    click.echo(f"{newest}: the newest log in ./runs", err=True)
    return (newest,)


logs_argument = click.argument(
    "logs", nargs=-1, metavar="[LOG.db...]", type=click.Path(path_type=Path), callback=_or_newest
)
"""One log or several; without any, the newest in `runs`, which the composition root looks up."""

prices_option = click.option(
    "--prices", type=click.Path(path_type=Path), metavar="FILE", help="Prices of models, for the cost."
)


def run_option(does: str) -> Callable[[_Command], _Command]:
    """`does` says what is done with the run, as a verb: `Score`."""
    return click.option(
        "--run",
        "run_ids",
        multiple=True,
        metavar="RUN",
        help=f"{does} this run: its name, the beginning of its id, or newest; needed if a log holds several.",
    )


def scorer_option(more: str) -> Callable[[_Command], _Command]:
    """`more` says what is special about the first scorer."""
    return click.option(
        "--scorer",
        "scorers",
        type=click.Choice(SCORER_NAMES),
        multiple=True,
        help=f"Once for each scorer; the first one {more}. Default: wildtoolbench and strict.",
    )
