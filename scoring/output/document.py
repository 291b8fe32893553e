"""The JSON document of a scored Run.

It depends on the log alone: no clock, no path of the machine, one order of keys, Sessions in the
order of the log. The same log gives the same bytes. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from scenarios.strict.faults import Fault
from scenarios.text import clip
from scoring.metrics import accuracy
from scoring.metrics.figures import Figure
from scoring.metrics.writes import WriteFinding
from scoring.modes import Modes
from scoring.report import RunReport, Scored, TaskRow, task_rows
from scoring.types import JSON, Evidence, Nearest, SessionScore, StepScore, TaskScore
from scoring.verdicts.wildtoolbench import NAME as RELEASED

UNSAYABLE = 200
"""Characters that are told of a value which JSON has no words for."""


def document(report: RunReport) -> JSON:
    """The JSON document of one Run.

    A Run whose figures must not be set beside published ones says so. A figure is an object under
    its key, with a null value and n = 0 where there is nothing to tell.
    """
    rows = list(task_rows(report))
    return {
        "log": report.log,
        "run": report.run,
        "model": report.model,
        "config": report.config,
        **_comparability(report.modes),
        "scorers": {it.scorer.name: _scorer(it) for it in report.scored},
        "figures": figures_document(report.figures),
        "currency": report.currency,
        "notes": list(report.notes),
        "judged_by": report.judged_by,
        "null_agents": [asdict(agent) for agent in report.null_agents],
        "findings": [asdict(finding) for finding in report.findings],
        "writes": [_write(finding) for finding in report.writes],
        "disagreements": [_disagreement(row) for row in rows if row.disagrees],
        "tasks": [_task(row, live=report.modes.banner is not None) for row in rows],
    }


def documents(reports: Sequence[RunReport]) -> JSON:
    """One Run's document as it is; none or several under the key `runs`."""
    if len(reports) == 1:
        return document(reports[0])
    return {"runs": [document(report) for report in reports]}


def figures_document(figures: Iterable[Figure]) -> JSON:
    """Figures by key."""
    return {
        figure.key: {
            "value": figure.value,
            "n": figure.n,
            "successes": figure.successes,
            "low": figure.low,
            "high": figure.high,
        }
        for figure in figures
    }


def verdict(score: TaskScore) -> JSON:
    """What a scorer says of a Task wherever that is written as JSON."""
    return {
        "label": score.label,
        "action_name_label": score.action_name_label,
        "action_arguments_label": score.action_arguments_label,
        "is_optimal": score.is_optimal,
        "requests": score.requests,
        "min_steps": score.min_steps,
        "matched_nodes": score.matched,
        "reason": score.reason,
        "evidence": None if score.evidence is None else evidence_document(score.evidence),
        "steps": [_step(step) for step in score.steps],
    }


def evidence_document(evidence: Evidence) -> JSON:
    """Evidence as JSON: steps and calls count from 0, paths begin with `$`."""
    return {
        "step": evidence.step,
        "rule": evidence.rule,
        "message": evidence.message,
        "allowed": [list(names) for names in evidence.allowed],
        "nearest": None if evidence.nearest is None else _nearest(evidence.nearest),
        "call": evidence.call,
        "tool": evidence.tool,
        "faults": [fault_document(fault) for fault in evidence.faults],
    }


def fault_document(fault: Fault) -> JSON:
    """A fault as JSON; a value that JSON cannot say is told as text."""
    return {field.name: _plain(getattr(fault, field.name)) for field in fields(fault)}


def _nearest(nearest: Nearest) -> JSON:
    return {field.name: _plain(getattr(nearest, field.name)) for field in fields(nearest)}


def _plain(value: Any) -> Any:
    """The value as it is, or as text where JSON cannot say it: NaN, too deep."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return clip(str(value), UNSAYABLE)
    except RecursionError:
        return "nested too deeply to be told"
    return value


def unscored_document(sessions: Sequence[SessionScore]) -> JSON:
    """What the figures leave out."""
    left_out = accuracy.unscored(sessions)
    return {
        "tasks": left_out.tasks,
        "all_tasks": left_out.all_tasks,
        "sessions": left_out.sessions,
        "all_sessions": left_out.all_sessions,
        "reasons": dict(left_out.reasons),
    }


def _scorer(scored: Scored) -> JSON:
    released: Mapping[str, Any] = {}
    if scored.scorer.name == RELEASED:
        released = {"metrics": accuracy.released_metrics(scored.sessions)}
    return {
        "version": scored.scorer.version,
        **released,
        "figures": figures_document(scored.figures),
        "unscored": unscored_document(scored.sessions),
    }


def _comparability(modes: Modes) -> JSON:
    reason = modes.why_not_comparable
    return {"comparable_with_published": False, "why_not_comparable": reason} if reason else {}


def _write(finding: WriteFinding) -> JSON:
    shown = ("session", "epoch", "task", "step", "call", "tool", "kind", "detail")
    return {**{name: getattr(finding, name) for name in shown}, "task": finding.task + 1}


def _task(row: TaskRow, *, live: bool) -> JSON:
    return {
        **_place(row),
        "task_type": row.task.label,
        "subtype": row.task.subtype,
        "scores": {name: _score(row, name, live) for name in row.scores},
    }


def _place(row: TaskRow) -> JSON:
    return {
        "session": row.session.session,
        "epoch": row.session.epoch,
        "scenario": row.session.scenario.id,
        "task": row.position + 1,
    }


def _score(row: TaskRow, name: str, live: bool) -> JSON:
    score, error_class = row.scores[name], row.classes[name]
    told = {}
    if live:
        told = {
            "verdict": score.verdict,
            "redundant_calls": score.live and score.live.redundant,
            "unmatched_calls": score.live and score.live.unmatched,
            "steps_taken": score.live and score.live.steps,
        }
    return {
        **verdict(score),
        **told,
        "error_class": None if error_class is None else asdict(error_class),
    }


def _disagreement(row: TaskRow) -> JSON:
    return {
        **_place(row),
        "labels": {name: score.label for name, score in row.scores.items()},
        "reasons": {name: score.reason for name, score in row.scores.items()},
    }


def _step(step: StepScore) -> JSON:
    return {
        "step": step.step,
        "action": step.action,
        "verdict": step.verdict,
        "nodes": list(step.nodes),
        "reason": step.reason,
        "checks": None if step.checks is None else list(step.checks),
    }
