"""The command `score`: what the scorers say of a log, on the terminal or for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoring.completing_cli import complete_scenarios
from scoring.errors_cli import InputError, NothingScorable, ThresholdMissed
from scoring.options_cli import DEFAULT_SCORERS, logs_argument, prices_option, run_option, scorer_option

if TYPE_CHECKING:
    from scenarios.types import Scenario
    from scoring.gates import Outcome
    from scoring.logs.played import Played
    from scoring.logs.reader import Log, RunInfo
    from scoring.metrics.prices import Prices
    from scoring.report import RunReport

FORMATS = ("table", "json", "csv", "markdown", "junit")


@dataclass(frozen=True, slots=True)
class Asked:
    """What `score` was asked for beyond which runs: see its options. No scorer means the default ones."""

    scorers: tuple[str, ...] = ()
    scenarios: str | None = None
    language: str = "en"
    prices: Path | None = None


@click.command(
    epilog="""\b
    Examples:
      wildproxy score                # the newest log in ./runs
      wildproxy score run.db -v      # with the evidence for every wrong task
      wildproxy score run.db --fail-under strict:session_accuracy=0.10
    """
)
@logs_argument
@run_option("Score")
@scorer_option("is gated on")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="json has everything; csv one line a figure; markdown for a pull request; junit for a CI server.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Table: more figures, and the evidence for every wrong task."
)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="FIGURE=VALUE",
    help="Exit code 1 if the figure is lower: session_accuracy=0.10, strict:accuracy_by_label[Chat]=0.9.",
)
@click.option(
    "--fail-over", multiple=True, metavar="FIGURE=VALUE", help="Exit code 1 if the figure is higher."
)
@prices_option
@click.option(
    "--scenarios",
    metavar="FILE",
    shell_complete=complete_scenarios,
    help="Judge by these scenarios, a later version of those in the log.",
)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", help="Columns of --scenarios.")
@click.option("--save", is_flag=True, help="Write the verdicts to LOG.scores.db, and print what moved since.")
@click.option(
    "--leaderboard",
    is_flag=True,
    help="Published figures beside the run where they measure the same, else how to get a baseline.",
)
@click.option(
    "--baseline", type=click.Path(path_type=Path), metavar="LOG.db", help="Compare with the run in this log."
)
@click.option("--baseline-run", metavar="RUN", help="Which run of the baseline; needed if it holds several.")
def score(
    logs: tuple[Path, ...],
    run_ids: tuple[str, ...],
    output_format: str,
    verbose: bool,
    fail_under: tuple[str, ...],
    fail_over: tuple[str, ...],
    save: bool,
    **asked: Any,
) -> None:
    """Score the sessions in one or more logs. Offline; the same log gives the same bytes.

    Two scorers stand side by side: `wildtoolbench`, the released rules to the bit, and `strict`,
    what they should have been. The tasks on which they disagree are listed with the reason.
    `published` is an experimental reconstruction of the rules behind the published table.

    Runs with live history, or whose tasks go on after a wrong step, are not comparable with
    published figures, say so in every format, and tell what was completed after errors, and
    what the agent lost of its history.

    Exit code 1 if a figure misses its threshold, 3 if a run has no scored task or a gated
    figure nothing to tell.
    """
    from scoring.gates_cli import check_gates, read_gates
    from scoring.output.beside_cli import Beside
    from scoring.output.output_cli import print_reports, save_reports

    beside = Beside(asked.pop("leaderboard"), asked.pop("baseline"), asked.pop("baseline_run"))
    if beside.wanted and output_format != "table":
        raise click.UsageError("--leaderboard and --baseline go with --format table")
    if beside.baseline_run is not None and beside.baseline is None:
        raise click.UsageError("--baseline-run is of --baseline LOG.db")
    gates = read_gates(fail_under, fail_over)
    reports = score_logs(logs, run_ids, Asked(**asked))
    outcomes = check_gates(gates, reports)
    print_reports(reports, output_format, verbose=verbose, outcomes=outcomes)
    if save:
        save_reports(logs, reports, output_format)
    beside.print(reports)
    _end(logs, reports, outcomes)


def score_logs(paths: tuple[Path, ...], run_ids: tuple[str, ...], asked: Asked) -> list[RunReport]:
    """Scores the runs chosen in these logs. Raises InputError."""
    from scoring.choosing_cli import choose_runs
    from scoring.logs.opening import LogError
    from scoring.logs.played import read_played

    try:
        chosen = choose_runs(paths, run_ids)
        means = Means.read(asked)
        return [score_played(log, run, read_played(log, run.id), means) for log, run in chosen]
    except LogError as error:
        raise InputError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Means:
    """What runs are scored by: the scorers' names, prices, and scenarios in place of those in the log."""

    scorers: tuple[str, ...]
    prices: Prices | None
    scenarios: dict[str, Scenario] | None

    @classmethod
    def read(cls, asked: Asked) -> Means:
        """What was asked for, read from its files. Raises InputError."""
        return cls(
            tuple(dict.fromkeys(asked.scorers)) or DEFAULT_SCORERS,
            None if asked.prices is None else _prices(asked.prices),
            None if asked.scenarios is None else _scenarios(asked.scenarios, asked.language),
        )


def score_played(log: Log, run: RunInfo, played: Played, means: Means) -> RunReport:
    """Scores one run as it was played. Raises InputError."""
    from scoring.report import score_run
    from scoring.revised import RevisionError, changes, revised
    from scoring.verdicts.scorers import SCORERS

    scenarios = means.scenarios
    trajectories, judged_by = list(played.trajectories), None
    if scenarios is not None:
        try:
            trajectories = list(revised(trajectories, scenarios))
        except RevisionError as error:
            raise InputError(f"{log.path}: {error}") from error
        judged_by = changes(played.trajectories, scenarios)
    return score_run(
        trajectories,
        [SCORERS[name] for name in means.scorers],
        log=log.path.name,
        run=run.id,
        model=run.model,
        config=run.config,
        usage=played.usage,
        prices=means.prices,
        findings=played.findings,
        judged_by=judged_by,
    )


def _prices(path: Path) -> Prices:
    from scoring.metrics.prices import PriceError, parse_prices

    try:
        return parse_prices(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except PriceError as error:
        raise InputError(str(error)) from error


def _scenarios(name: str, language: str) -> dict[str, Scenario]:
    from scoring.scenarios_cli import sound_file

    return {scenario.id: scenario for scenario in sound_file(name, language).scenarios}


def _end(logs: tuple[Path, ...], reports: list[RunReport], outcomes: list[Outcome]) -> None:
    """Exits with what the thresholds and the scored Tasks come to."""
    from scoring.gates import outcome_lines
    from scoring.output.nothing import nothing_scored

    lines = list(zip(outcomes, outcome_lines(outcomes), strict=True))
    if missed := [line for outcome, line in lines if outcome.passed is False]:
        raise ThresholdMissed("; ".join(missed))
    if not reports:
        raise NothingScorable(f"{', '.join(map(str, logs))}: no run, so nothing to score")
    if nothing := nothing_scored(reports, [str(path) for path in logs]):
        raise NothingScorable(nothing)
    if unknown := [line for outcome, line in lines if outcome.passed is None]:
        raise NothingScorable("; ".join(unknown))
