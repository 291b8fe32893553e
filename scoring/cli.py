"""The commands `score` and `judge`: what the scorers say, on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from scoring.errors_cli import InputError, NothingScorable

if TYPE_CHECKING:
    from scoring.log import Log, RunInfo
    from scoring.report import RunReport

SCORER_NAMES = ("wildtoolbench",)


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG.db...", type=click.Path(path_type=Path))
@click.option(
    "--run", "run_ids", multiple=True, metavar="RUN", help="Score this run; needed if a log holds several."
)
@click.option("--scorer", type=click.Choice(SCORER_NAMES), default=SCORER_NAMES[0], show_default=True)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json: metrics under the released names, estimates, and a verdict with its evidence per task.",
)
def score(logs: tuple[Path, ...], run_ids: tuple[str, ...], scorer: str, output_format: str) -> None:
    """Score the sessions in one or more logs. Offline; the same log gives the same bytes.

    Runs with live history, or whose tasks go on after a wrong step, are not comparable with
    published figures, say so in every format, and tell what was completed after errors, and
    what the agent lost of its history.

    Exit code 3 if a run has no scored task.
    """
    from scoring.log import LogError

    try:
        reports = score_logs(logs, run_ids, scorer)
    except LogError as error:
        raise InputError(str(error)) from error
    _print_reports(reports, output_format)
    empty = [report for report in reports if report.scored_tasks == 0]
    if empty or not reports:
        raise NothingScorable(_nothing_scorable(logs, empty))


@click.command()
@click.argument("cases", metavar="CASES.jsonl", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    help="Write the verdicts here instead of to standard output.",
)
def judge(cases: Path, output: Path) -> None:
    """Score recorded replies without a proxy: a verdict for each line of CASES.jsonl ('-': standard input).

    A line holds one task: `tools`, `answer_list` (the reference), `replies` (assistant
    messages in order) and `case` (its name). Blank lines are skipped. A line that cannot be judged gives a
    line with `error`, and exit code 2 at the end.
    """
    _refuse_overwriting(cases, output)
    try:
        with click.open_file(str(cases), "rb") as source, click.open_file(str(output), "wb") as target:
            judged, broken = _judge_stream(source, target)
    except OSError as error:
        if error.filename is None:
            raise
        raise InputError(f"{error.filename}: {error.strerror}") from error
    source_name = "standard input" if str(cases) == "-" else cases
    if broken:
        raise InputError(f"{source_name}: {broken} of {judged} lines could not be judged; see their 'error'")
    if not judged:
        raise NothingScorable(f"{source_name}: no cases")


def score_logs(paths: tuple[Path, ...], run_ids: tuple[str, ...], scorer: str) -> list[RunReport]:
    """Scores the runs chosen in these logs. Raises LogError, InputError."""
    from scoring.choosing_cli import choose_runs

    return [_score(log, run, scorer) for log, run in choose_runs(paths, run_ids)]


def _score(log: Log, run: RunInfo, scorer: str) -> RunReport:
    from scoring.log_findings import trajectories_and_findings
    from scoring.report import SCORERS, score_run

    trajectories, findings = trajectories_and_findings(log, run.id)
    return score_run(
        trajectories,
        SCORERS[scorer],
        log=log.path.name,
        run=run.id,
        model=run.model,
        config=run.config,
        findings=findings,
    )


def _print_reports(reports: list[RunReport], output_format: str) -> None:
    from scoring.report import documents, json_bytes
    from scoring.tables import run_table

    if output_format == "json":
        click.echo(json_bytes(documents(reports), indent=2), nl=False)
    else:
        click.echo("\n".join(run_table(report) for report in reports), nl=False)


def _nothing_scorable(logs: tuple[Path, ...], empty: list[RunReport]) -> str:
    from scenarios.text import visible
    from scoring.metrics import unscored
    from scoring.tables import unscored_line

    if not empty:
        return f"{', '.join(map(str, logs))}: no run, so nothing to score"
    return "; ".join(
        f"{report.log}, run {visible(report.run)}: no scored task. {unscored_line(unscored(report.sessions))}"
        for report in empty
    )


def _judge_stream(source: IO[bytes], target: IO[bytes]) -> tuple[int, int]:
    """Judges line by line, each verdict flushed at once; returns (lines, broken lines)."""
    from scoring.judge import judge_lines
    from scoring.report import json_bytes

    total = broken = 0
    for entry in judge_lines(source):
        target.write(json_bytes(entry))
        target.flush()
        total += 1
        broken += "error" in entry
    return total, broken


def _refuse_overwriting(source: Path, target: Path) -> None:
    if str(source) != "-" and source.exists() and target.exists() and source.samefile(target):
        raise InputError(f"{target}: the output would overwrite the cases; name another file with -o")
