"""The page's document: all that is told of the Runs before a Session is opened. Pure.

Figures are those of the documents of `score` and `compare`; nothing is computed here. It depends on the
logs alone: the same logs give the same document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.strict.rules import RULES as ARGUMENT_RULES
from scoring.compare import definitions as compare_definitions
from scoring.metrics.calls import NEVER_PARALLEL, never_parallel
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Definitions
from scoring.metrics.writes import has_writes, writes_made
from scoring.output.document import document as score_document
from scoring.output.faulty_writes import beyond_figures, call_and_why, kinds, place_of_write, write_lists
from scoring.output.tables import from_one
from scoring.page.comparisons import comparisons
from scoring.page.layout import layout
from scoring.page.sessions import index_rows, session_key
from scoring.page.shown import ShownRun
from scoring.report import RunReport
from scoring.types import JSON
from scoring.verdicts import evidence, published, released_evidence
from scoring.verdicts.error_classes import CLASSES

FORMAT = 1
"""Of the document: changes where a key changes its meaning."""

CEILING = "reference"
"""The agent without a model that bounds from above; the others bound from below."""


@dataclass(frozen=True, slots=True)
class PageRun:
    """A Run as it was scored, as it is shown, and its document as `score` writes it."""

    report: RunReport
    shown: ShownRun
    told: JSON


def page_run(report: RunReport, shown: ShownRun) -> PageRun:
    return PageRun(report, shown, score_document(report))


def page_document(runs: Sequence[PageRun], version: str) -> JSON:
    """Everything but the Sessions' details. `version` is that of the program; one Run is the least."""
    titles = _titles([run.report for run in runs])
    reports = [run.report for run in runs]
    return {
        "format": FORMAT,
        "title": titles[0] if len(runs) == 1 else f"{len(runs)} runs",
        "version": version,
        "raw": any(session.exchanges for run in runs for session in run.shown.sessions),
        "scorers": list(dict.fromkeys(it.scorer.name for report in reports for it in report.scored)),
        "runs": [_run(run, number, titles[number]) for number, run in enumerate(runs)],
        "definitions": _definitions(DEFINITIONS),
        "compare_definitions": _definitions(compare_definitions.DEFINITIONS),
        "layout": layout(reports),
        "error_classes": {name: {"title": title, "text": text} for name, (title, text) in CLASSES.items()},
        "rules": {
            **evidence.RULES,
            **ARGUMENT_RULES,
            **released_evidence.RULES,
            **published.RULES,
        },
        "compare": list(comparisons(reports)),
        "sessions": [
            row
            for number, run in enumerate(runs)
            for row in index_rows(run.report, number, run.shown.sessions, run.shown.usage, run.told["tasks"])
        ],
    }


def _run(run: PageRun, number: int, title: str) -> JSON:
    report, shown = run.report, run.shown
    told = {key: value for key, value in run.told.items() if key != "tasks"}
    modes = report.modes
    places = {(it.scenario.id, it.epoch): place for place, it in enumerate(report.sessions)}
    return {
        **told,
        "key": f"r{number}",
        "title": title,
        "name": shown.name,
        "created_at": shown.created_at,
        "versions": shown.versions,
        "modes": {
            "history": modes.history,
            "history_from": modes.history_from,
            "tools": modes.tools,
            "on_mismatch": modes.on_mismatch,
            "usual": modes.usual,
        },
        "banner": modes.banner,
        "warnings": [NEVER_PARALLEL] if never_parallel(report.trajectories) else [],
        "counts": _counts(report),
        "faulty_writes": _faulty_writes(report, number),
        "scorers": {
            it.scorer.name: {"note": it.scorer.note, **told["scorers"][it.scorer.name]}
            for it in report.scored
        },
        "null_agents": [
            {**agent, "bound": "ceiling" if agent["name"] == CEILING else "floor"}
            for agent in told["null_agents"]
        ],
        "disagreements": [
            {
                **it,
                "reasons": {name: said and from_one(said) for name, said in it["reasons"].items()},
                "key": session_key(number, places[it["scenario"], it["epoch"]]),
            }
            for it in told["disagreements"]
        ],
    }


def _counts(report: RunReport) -> JSON:
    return {
        "scenarios": len({session.scenario.id for session in report.sessions}),
        "sessions": len(report.sessions),
        "epochs": max((session.epoch for session in report.sessions), default=0),
        "tasks": sum(len(session.scenario.tasks) for session in report.sessions),
    }


def _faulty_writes(report: RunReport, number: int) -> JSON | None:
    """How many writes the agent made, and lists of those at fault; None if no tool is known to write."""
    if not any(has_writes(it.scenario) for it in report.trajectories):
        return None
    places = {(it.session, it.epoch): place for place, it in enumerate(report.trajectories)}
    return {
        "made": sum(len(writes_made(it)) for it in report.trajectories),
        "lists": [
            {
                "title": title,
                "aside": beyond_figures(entries, report.unscored_sessions),
                "entries": [
                    {
                        "key": session_key(number, places[it[0].session, it[0].epoch]),
                        "task": it[0].task + 1,
                        "place": place_of_write(it),
                        "kinds": kinds(it),
                        "told": call_and_why(it),
                    }
                    for it in entries
                ],
            }
            for title, entries in write_lists(report.writes)
        ],
    }


def _titles(reports: Sequence[RunReport]) -> list[str]:
    """The log's name, and the Run's too where a log is there twice."""
    logs = Counter(report.log for report in reports)
    named = [it.log if logs[it.log] == 1 else f"{it.log}, {it.run}" for it in reports]
    seen: Counter[str] = Counter()
    titles = []
    for title in named:
        seen[title] += 1
        titles.append(title if seen[title] == 1 else f"{title} ({seen[title]})")
    return titles


def _definitions(definitions: Definitions) -> Mapping[str, JSON]:
    return {
        name: {
            "title": it.title,
            "unit": it.unit,
            "text": it.text,
            "source": it.source,
            "better": it.better,
        }
        for name, it in definitions.items()
    }
