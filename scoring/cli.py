"""The commands `score` and `judge`: what the scorers say, on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from scoring.log import RunInfo
    from scoring.report import RunReport

SCORER_NAMES = ("wildtoolbench",)


class InputError(click.ClickException):
    """Broken input or usage."""

    exit_code = 2


class NothingScorable(click.ClickException):
    """The input is sound, but there is nothing in it to score."""

    exit_code = 3


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
    from scoring.log import open_log
    from scoring.report import SCORERS, score_run

    logs = [(path, open_log(path)) for path in paths]
    runs = {path: log.runs() for path, log in logs}
    _refuse_unknown(run_ids, runs)
    return [
        score_run(
            log.trajectories(run.id),
            SCORERS[scorer],
            log=path.name,
            run=run.id,
            model=run.model,
            config=run.config,
        )
        for path, log in logs
        for run in _choose(path, runs[path], run_ids)
    ]


def _refuse_unknown(run_ids: tuple[str, ...], runs: dict[Path, list[RunInfo]]) -> None:
    known = {run.id for infos in runs.values() for run in infos}
    unknown = [run_id for run_id in run_ids if run_id not in known]
    if unknown:
        lists = "\n".join(_run_list(path, infos) for path, infos in runs.items())
        raise InputError(f"unknown run {', '.join(map(repr, unknown))}; choose one of these:\n{lists}")


def _choose(path: Path, runs: list[RunInfo], run_ids: tuple[str, ...]) -> list[RunInfo]:
    """The runs asked for, else the only one: a log with several is ambiguous."""
    chosen = [run for run in runs if run.id in run_ids]
    if chosen or len(runs) <= 1:
        return chosen or runs
    raise InputError(f"{path} holds {len(runs)} runs; choose with --run:\n{_run_list(path, runs)}")


def _run_list(path: Path, runs: list[RunInfo]) -> str:
    from scoring.tables import moment, visible

    if not runs:
        return f"  {path}: no run"
    return "\n".join(
        f"  {visible(run.id)}  {moment(run.created_at)}  model {visible(run.model or '-')}  "
        f"{run.sessions} session{'' if run.sessions == 1 else 's'}"
        for run in runs
    )


def _print_reports(reports: list[RunReport], output_format: str) -> None:
    from scoring.report import documents, json_bytes
    from scoring.tables import run_table

    if output_format == "json":
        click.echo(json_bytes(documents(reports), indent=2), nl=False)
    else:
        click.echo("\n".join(run_table(report) for report in reports), nl=False)


def _nothing_scorable(logs: tuple[Path, ...], empty: list[RunReport]) -> str:
    from scoring.metrics import unscored
    from scoring.tables import unscored_line, visible

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
