"""What `score` sets a run beside: published figures where they measure the same, or a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoring.errors_cli import InputError

if TYPE_CHECKING:
    from scoring.report import RunReport


@dataclass(frozen=True, slots=True)
class Beside:
    """What was asked for: published figures; a baseline's log, and which of its runs."""

    leaderboard: bool
    baseline: Path | None
    baseline_run: str | None

    @property
    def wanted(self) -> bool:
        return self.leaderboard or self.baseline is not None

    def print(self, reports: Sequence[RunReport]) -> None:
        """Raises InputError for a baseline that cannot be read."""
        for report in reports:
            if self.leaderboard:
                click.echo("\n" + _published(report, self.baseline), nl=False)
            if self.baseline is not None:
                click.echo("\n" + _compared(report, self.baseline, self.baseline_run), nl=False)


def _published(report: RunReport, baseline: Path | None) -> str:
    from scenarios.text import visible
    from scoring.leaderboard.board import load, run_figures, why_not
    from scoring.leaderboard.text import how_to_baseline, leaderboard_table
    from scoring.verdicts.published import NAME

    by_name = {it.scorer.name: it for it in report.scored}
    scored = by_name.get(NAME, report.scored[0])
    reason = why_not(report.config, by_name, scored.sessions)
    if reason is None:
        return leaderboard_table(load(), run_figures(report.model or report.run, scored.figures))
    lines = [f"{visible(reason[0].upper() + reason[1:])}."]
    if baseline is None:
        lines += ["", how_to_baseline(report.config, model=report.model, log=report.log).rstrip()]
    return "\n".join(lines) + "\n"


def _compared(report: RunReport, baseline: Path, baseline_run: str | None) -> str:
    """The run as candidate, under its first scorer that is not experimental."""
    from scoring.compare.cli import side
    from scoring.compare.comparison import Settings, compare
    from scoring.compare.pairs import Side
    from scoring.compare.text import table
    from scoring.logs.opening import LogError
    from scoring.terminal_cli import text_columns
    from scoring.verdicts.scorers import EXPERIMENTAL

    scored = next((it for it in report.scored if it.scorer.name not in EXPERIMENTAL), None)
    if scored is None:
        raise InputError("--baseline: nothing is compared by an experimental scorer: name another --scorer")
    try:
        a = side(baseline, baseline_run, "--baseline-run", scored.scorer)
    except LogError as error:
        raise InputError(str(error)) from error
    b = Side(report.log, report.run, report.model, report.config, scored.sessions)
    return table(compare(a, b, Settings()), scored.scorer.name, scored.scorer.version, text_columns())
