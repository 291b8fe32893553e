"""What is said of Runs without a scored Task, instead of their figures. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from scenarios.text import visible
from scoring.metrics.accuracy import unscored
from scoring.output.tables import unscored_line
from scoring.report import RunReport


def nothing_scored(reports: Iterable[RunReport], paths: Sequence[str]) -> str | None:
    """Why there are no figures, Run by Run; None if each Run has some. `paths` are those of the logs."""
    empty = [report for report in reports if report.scored_tasks == 0]
    return "; ".join(_why(report, paths) for report in empty) or None


def _why(report: RunReport, paths: Sequence[str]) -> str:
    run = f"{report.log}, run {visible(report.run)}"
    if report.sessions:
        return f"{run}: no scored task. {unscored_line(unscored(report.sessions))}"
    recorded = report.config.get("mode") == "record"
    why = "was only recorded, without scenarios" if recorded else "has no sessions"
    path = next((it for it in paths if it.replace("\\", "/").rpartition("/")[2] == report.log), report.log)
    return (
        f"{run}: nothing to score, as it {why}; look at it with: wildproxy tail {shlex.quote(visible(path))}"
    )
