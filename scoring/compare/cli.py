"""The command `compare`: is one run better than another, and how sure is that?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoring.errors_cli import InputError, NothingScorable
from scoring.options_cli import DEFAULT_SCORERS

if TYPE_CHECKING:
    from scoring.compare.comparison import Comparison
    from scoring.compare.pairs import Side
    from scoring.logs.reader import Log, RunInfo
    from scoring.verdicts.scorers import Scorer

WORSE, INCONCLUSIVE = 1, 4
"""Exit codes with --gate."""

LEAST_ALPHA, MOST_ALPHA = 1e-6, 0.5


def _is_number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number.")
    return value


@click.command(
    epilog="""\b
    Examples:
      wildproxy compare before.db after.db
      wildproxy compare before.db after.db --gate --margin 0.02
      wildproxy compare run.db --run-a baseline --run-b candidate
    """
)
@click.argument("logs", nargs=-1, required=True, metavar="A.db [B.db]", type=click.Path(path_type=Path))
@click.option("--run-a", metavar="RUN", help="The baseline's run; needed if its log holds several.")
@click.option("--run-b", metavar="RUN", help="The candidate's run; needed if its log holds several.")
@click.option("--scorer", type=click.Choice(DEFAULT_SCORERS), default=DEFAULT_SCORERS[0], show_default=True)
@click.option(
    "--metric",
    type=click.Choice(["task", "session"]),
    default="task",
    show_default=True,
    help="What the verdict is about: right tasks, or sessions with all tasks right.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(LEAST_ALPHA, MOST_ALPHA),
    callback=_is_number,
    default=0.05,
    show_default=True,
    help="How often a verdict may be given where there is no difference, as a fraction.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    callback=_is_number,
    default=0.0,
    show_default=True,
    help="The loss that is put up with, as a fraction: 0.02 is two points.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the bootstrap's resamples."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "markdown"]),
    default="table",
    show_default=True,
)
@click.option("--gate", is_flag=True, help="End with exit code 1 if B is worse, 4 if nobody can tell.")
@click.pass_context
def compare(
    context: click.Context,
    /,
    logs: tuple[Path, ...],
    run_a: str | None,
    run_b: str | None,
    scorer: str,
    output_format: str,
    gate: bool,
    **asked: Any,
) -> None:
    """Compare run B, the candidate, with run A, the baseline, over the same scenarios.

    With one log, name two of its runs by --run-a and --run-b. The verdict is better, worse or
    INCONCLUSIVE; it needs both an exact test (p below alpha) and an interval of the paired difference
    without 0. Scenarios are the units: the tasks of one session are not independent. Of a scenario that
    one run scored in more epochs, only as many count as the other has. The same logs and the same seed
    give the same bytes; another version of scipy may move the last digits of an interval in the JSON.

    With --gate the exit code is 0 if B is better, or not worse by more than a margin above 0; else 1
    if it is worse and 4 if that is inconclusive. Runs that differ in their history, or in whether a
    wrong step ends its task, are compared, but not gated. Exit code 3 if nothing is scored on both sides.
    """
    from scoring.compare.comparison import Settings
    from scoring.compare.comparison import compare as compare_sides
    from scoring.logs.opening import LogError
    from scoring.verdicts.scorers import SCORERS

    if len(logs) > 2:
        raise click.UsageError(f"compare takes one log or two, not {len(logs)}")
    try:
        a = side(logs[0], run_a, "--run-a", SCORERS[scorer])
        b = side(logs[-1], run_b, "--run-b", SCORERS[scorer])
    except LogError as error:
        raise InputError(str(error)) from error
    comparison = compare_sides(a, b, Settings(**asked))
    _print(comparison, SCORERS[scorer], output_format)
    if comparison.level.n == 0:
        raise NothingScorable(_nothing_paired(comparison))
    if gate:
        context.exit(_gate(comparison))


def side(path: Path, run: str | None, option: str, scorer: Scorer) -> Side:
    """The Run that is meant, scored. Raises LogError, InputError, NothingScorable."""
    from scoring.compare.pairs import Side

    log, info = _choose(path, run, option)
    sessions = tuple(map(scorer.score, log.trajectories(info.id)))
    return Side(log.path.name, info.id, info.model, info.config, sessions)


def _choose(path: Path, run: str | None, option: str) -> tuple[Log, RunInfo]:
    from scenarios.text import visible
    from scoring.choosing_cli import choose_runs
    from scoring.logs.reader import open_log

    if run is None:
        log = open_log(path)
        chosen = [(log, it) for it in log.runs()]
    else:
        chosen = choose_runs([path], [run])
    if not chosen:
        raise NothingScorable(f"{path}: no run, so nothing to compare")
    if len(chosen) > 1:
        ids = ", ".join(visible(it.id) for _, it in chosen)
        what = "runs" if run is None else f"runs named {run!r}"
        raise InputError(f"{path} holds {len(chosen)} {what}; choose with {option}: {ids}")
    return chosen[0]


def _print(comparison: Comparison, scorer: Scorer, output_format: str) -> None:
    from scoring.compare.document import document
    from scoring.compare.markdown import markdown
    from scoring.compare.text import table
    from scoring.output.json_text import json_bytes
    from scoring.terminal_cli import text_columns

    if output_format == "json":
        click.echo(json_bytes(document(comparison, scorer.name, scorer.version), indent=2), nl=False)
    else:
        told = (
            markdown(comparison, scorer.name, scorer.version)
            if output_format == "markdown"
            else table(comparison, scorer.name, scorer.version, text_columns())
        )
        click.echo(told, nl=False)


def _gate(comparison: Comparison) -> int:
    from scenarios.text import visible

    if comparison.why_not_comparable:
        raise InputError(
            f"--gate: the runs are not comparable ({visible(comparison.why_not_comparable)}); "
            "play both in the same mode"
        )
    if comparison.verdict == "better" or comparison.within_margin:
        return 0
    return WORSE if comparison.verdict == "worse" else INCONCLUSIVE


def _nothing_paired(comparison: Comparison) -> str:
    from scenarios.text import visible

    a, b, paired = comparison.a, comparison.b, comparison.paired
    runs = f"{a.log}, run {visible(a.run)}, and {b.log}, run {visible(b.run)}"
    if paired.scenarios:
        return f"{runs}: no {comparison.settings.metric} is scored on both sides"
    if paired.changed:
        return f"{runs}: the scenarios have the same ids, but other content"
    return f"{runs}: no scenario is in both"
