"""Options and arguments that more than one command of this package has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

SCORER_NAMES = ("wildtoolbench", "strict", "published")
DEFAULT_SCORERS = SCORER_NAMES[:2]

_Command = TypeVar("_Command", bound=Callable[..., Any])

logs_argument = click.argument(
    "logs", nargs=-1, required=True, metavar="LOG.db...", type=click.Path(path_type=Path)
)
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
        help=f"{does} this run; needed if a log holds several.",
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
