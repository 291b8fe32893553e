"""Figures as CSV, a line for each. Pure: values in, text out."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Sequence

from scenarios.text import visible
from scoring.metrics.figures import Figure
from scoring.report import RunReport

COLUMNS = (
    "log",
    "run",
    "model",
    "scorer",
    "figure",
    "group",
    "value",
    "n",
    "successes",
    "low",
    "high",
    "note",
)

_FORMULA = frozenset("=+-@\t\r\n")
"""What a spreadsheet takes for the beginning of a formula, or skips to look for one."""

Cell = str | int | float | None


def csv_text(reports: Sequence[RunReport]) -> str:
    """Every figure of every Run, with a header; lines end in a line feed.

    `scorer` is empty for figures of no scorer, and what is not known is empty; `note` says if published
    figures measure something else. Values are fractions
    and quantities in full, not per cent. No text of others is a formula to a spreadsheet.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for report in reports:
        place = [_text(report.log), _text(report.run), _text(report.model or "")]
        for scorer, figure in _figures(report):
            writer.writerow([*place, _text(scorer), *_cells(figure), _text(report.modes.banner or "")])
    return out.getvalue()


def _figures(report: RunReport) -> Iterator[tuple[str, Figure]]:
    """Every figure with the name of its scorer, those of agents without a model included."""
    for scored in report.scored:
        yield from ((scored.scorer.name, figure) for figure in scored.figures)
        for agent in report.null_agents:
            for it in agent.figures:
                if it.scorer == scored.scorer.name:
                    yield scored.scorer.name, it.session_accuracy
                    yield scored.scorer.name, it.task_accuracy
    yield from (("", figure) for figure in report.figures)


def _cells(figure: Figure) -> list[Cell]:
    return [
        _text(figure.name),
        _text(figure.group or ""),
        figure.value,
        figure.n,
        figure.successes,
        figure.low,
        figure.high,
    ]


def _text(text: str) -> str:
    """`text` in one line, and as nothing but text; full-width signs begin a formula too."""
    first = unicodedata.normalize("NFKC", text[:1])[:1]
    return ("'" if first in _FORMULA else "") + visible(text)
