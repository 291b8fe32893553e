"""Which figures stand in which chart of a page, in which order: their keys alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scenarios.labels import FIRST_TURN
from scenarios.types import LABELS, SUBTYPES
from scoring.metrics import cells
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.report import RunReport
from scoring.types import JSON
from scoring.verdicts.error_classes import CLASSES

OF_SCORER, OF_RUN = "scorer", "run"

HEADLINE = (
    "session_accuracy",
    "task_accuracy",
    "optimal_path_rate[Total]",
    "progress_nodes[Total]",
    "progress_released[Total]",
)
PASSES = ("pass_hat_k", "pass_at_k", "task_pass_hat_k", "task_pass_at_k")
CORRECT_TASKS = tuple(name for name, it in DEFINITIONS.items() if it.by_verdict)
VERDICTS = ("verdict_share", "completed_sessions", "live_redundant_calls", "live_unmatched_calls")
INFRASTRUCTURE = ("unscored_tasks", "provider_retries", "provider_failures")

_COLUMNS = (FIRST_TURN, *SUBTYPES, cells.NO_SUBTYPE)


def layout(reports: Sequence[RunReport]) -> JSON:
    """Per chart, the keys of the figures that have something to tell in any of the Runs.

    An entry says whether each scorer has the figure, or the Run as a whole. What is told over repeats
    is left out where no Run has any.
    """
    found = _Figures(reports)
    repeated = any(session.epoch > 1 for report in reports for session in report.sessions)
    return {
        "headline": found.keys(HEADLINE),
        "positions": found.named("accuracy_by_position"),
        "labels": found.named("accuracy_by_label"),
        "subtypes": found.named("accuracy_by_subtype"),
        "optimal": found.named("optimal_path_rate"),
        "progress": found.named("progress_nodes", "progress_released"),
        "transitions": {
            "kind": found.named("accuracy_by_kind_changes"),
            "half": found.named("accuracy_by_half_changes"),
        },
        "passes": {name: found.named(name) if repeated else [] for name in PASSES},
        "flips": found.named("flip_rate") if repeated else [],
        "heat": found.crossed(cells.BY_SUBTYPE, _COLUMNS),
        "errors": [it for it in found.named("error_share") if found.occurs(it["key"])],
        "errors_by_label": found.crossed(cells.ERRORS, tuple(CLASSES)),
        "verdicts": [*found.named(*VERDICTS), *found.named("live_steps_over_optimal")],
        "correct": found.named(*CORRECT_TASKS),
        "behaviour": found.of_runs(but=INFRASTRUCTURE),
        "infrastructure": found.keys(INFRASTRUCTURE),
    }


class _Figures:
    """The figures of all Runs that have something to tell, by key, in the order of the reports."""

    def __init__(self, reports: Sequence[RunReport]) -> None:
        of_scorers = [it for report in reports for scored in report.scored for it in scored.figures]
        of_runs = [it for report in reports for it in report.figures]
        self._of_scorers = _by_key(of_scorers)
        self._of_runs = _by_key(of_runs)

    def keys(self, wanted: Sequence[str]) -> list[JSON]:
        """Those of these keys that there are, in this order."""
        return [entry for key in wanted for entry in self._all() if entry["key"] == key]

    def named(self, *names: str) -> list[JSON]:
        """All groups of the figures with these names, name by name."""
        return [entry for name in names for entry in self._all() if entry["name"] == name]

    def of_runs(self, *, but: Sequence[str]) -> list[JSON]:
        return [_entry(it, OF_RUN) for it in self._of_runs.values() if it.name not in but]

    def occurs(self, key: str) -> bool:
        return bool(self._of_scorers[key].successes)

    def crossed(self, name: str, columns: Sequence[str]) -> JSON:
        """A figure over two properties as rows and columns: the known ones in their order, then others."""
        found = [it for it in self._of_scorers.values() if it.name == name and it.group is not None]
        pairs = {it.key: (it.group or "").rpartition(cells.SEPARATOR) for it in found}
        return {
            "rows": _ordered((row for row, _, _ in pairs.values()), LABELS),
            "columns": _ordered((column for _, _, column in pairs.values()), columns),
            "cells": [{"key": key, "row": row, "column": column} for key, (row, _, column) in pairs.items()],
        }

    def _all(self) -> list[JSON]:
        of_scorers = [_entry(it, OF_SCORER) for it in self._of_scorers.values()]
        return of_scorers + [_entry(it, OF_RUN) for it in self._of_runs.values()]


def _by_key(figures: Iterable[Figure]) -> Mapping[str, Figure]:
    """Of figures with one key the one with the most successes: a class counts that occurs anywhere."""
    found: dict[str, Figure] = {}
    for it in figures:
        if it.n and (it.key not in found or (it.successes or 0) > (found[it.key].successes or 0)):
            found[it.key] = it
    return found


def _entry(figure: Figure, of: str) -> JSON:
    return {"key": figure.key, "name": figure.name, "group": figure.group, "of": of}


def _ordered(names: Iterable[str], known: Sequence[str]) -> list[str]:
    there = dict.fromkeys(names)
    return [*(name for name in known if name in there), *(name for name in there if name not in known)]
