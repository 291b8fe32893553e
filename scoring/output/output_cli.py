"""What the command `score` prints, and what it saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoring.errors_cli import InputError

if TYPE_CHECKING:
    from scoring.gates import Outcome
    from scoring.report import RunReport

TABLE = "table"


def print_reports(
    reports: Sequence[RunReport], output_format: str, *, verbose: bool, outcomes: Sequence[Outcome]
) -> None:
    """Writes the scores to standard output, and nothing else there."""
    if output_format == TABLE:
        click.echo(_table(reports, verbose, outcomes), nl=False)
    else:
        click.echo(_for_programs(reports, output_format, outcomes), nl=False)


def save_reports(
    logs: Sequence[Path], reports: Sequence[RunReport], output_format: str | None = None
) -> None:
    """Writes each run's verdicts beside its log, and tells what moved. Raises InputError.

    That goes to standard output beside a table alone: other formats are read by programs.
    """
    from scenarios.text import visible
    from scoring.logs.opening import LogError
    from scoring.logs.saved import SavedError, save
    from scoring.output.moved import moved_lines

    try:
        for path, report in _with_paths(logs, reports):
            saved = save(path, report)
            for line in (f"{saved.path}, run {visible(saved.run)}:", *moved_lines(saved)):
                click.echo(line, err=output_format != TABLE)
    except (LogError, SavedError) as error:
        raise InputError(str(error)) from error


def _table(reports: Sequence[RunReport], verbose: bool, outcomes: Sequence[Outcome]) -> str:
    from scoring.gates import outcome_lines
    from scoring.output.run_table import run_table
    from scoring.terminal_cli import text_columns

    played = [report for report in reports if report.sessions]
    blocks = [run_table(report, verbose=verbose, columns=text_columns()) for report in played]
    if outcomes:
        words = {True: "passed", False: "failed", None: "nothing to tell"}
        lines = zip(outcomes, outcome_lines(outcomes), strict=True)
        blocks.append("".join(f"{words[it.passed]}: {line}\n" for it, line in lines))
    return "\n".join(blocks)


def _for_programs(reports: Sequence[RunReport], output_format: str, outcomes: Sequence[Outcome]) -> bytes:
    """The bytes as they are: UTF-8 and line feeds, whatever the terminal has."""
    if output_format == "json":
        return _json(reports, outcomes)
    if output_format == "csv":
        from scoring.output.csv_format import csv_text

        return csv_text(reports).encode()
    if output_format == "markdown":
        from scoring.output.markdown import markdown_text

        return markdown_text(reports, outcomes).encode()
    from scoring.output.junit import junit_text

    return junit_text(reports, outcomes).encode()


def _json(reports: Sequence[RunReport], outcomes: Sequence[Outcome]) -> bytes:
    from scoring.output.document import documents
    from scoring.output.json_text import json_bytes

    gates = {"gates": [_outcome(it) for it in outcomes]} if outcomes else {}
    return json_bytes(documents(reports) | gates, indent=2)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    gate, figure = outcome.gate, outcome.figure
    return {
        "log": outcome.log,
        "run": outcome.run,
        "figure": gate.key,
        "fail": gate.kind,
        "threshold": gate.threshold,
        "value": figure.value,
        "n": figure.n,
        "successes": figure.successes,
        "passed": outcome.passed,
        "unscored_tasks": outcome.unscored,
        "in_unscored_sessions": outcome.beyond,
    }


def _with_paths(logs: Sequence[Path], reports: Sequence[RunReport]) -> Iterator[tuple[Path, RunReport]]:
    """Each report with the log that it is of: two logs can have one name. Raises LogError."""
    from scoring.logs.reader import open_log

    runs = [(path, run.id) for path in dict.fromkeys(logs) for run in open_log(path).runs()]
    for report in reports:
        found = next(it for it in runs if (it[0].name, it[1]) == (report.log, report.run))
        runs.remove(found)
        yield found[0], report
