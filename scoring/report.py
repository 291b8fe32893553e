"""A scored Run, and the JSON document that tells it.

The document depends on the log alone: no clock, no path of the machine, one order of
keys, Sessions in the order of the log. The same log gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scenarios.reference import depth
from scenarios.types import Task
from scoring import metrics, wildtoolbench
from scoring.live import LiveFigures, live_figures, with_verdicts
from scoring.modes import Modes, modes_of
from scoring.types import JSON, Finding, SessionScore, StepScore, TaskScore, Trajectory


@dataclass(frozen=True, slots=True)
class Scorer:
    """A named scorer. `version` changes whenever a verdict can."""

    name: str
    version: str
    score: Callable[[Trajectory], SessionScore]


SCORERS: Mapping[str, Scorer] = {
    wildtoolbench.NAME: Scorer(wildtoolbench.NAME, wildtoolbench.VERSION, wildtoolbench.score_session),
}


@dataclass(frozen=True, slots=True)
class RunReport:
    """One Run of one log, scored. `log` is the file's name without its folder.

    `findings` say what the agent lost or changed of its history, each once.
    """

    log: str
    run: str
    model: str | None
    config: Mapping[str, Any]
    scorer: Scorer
    sessions: tuple[SessionScore, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def modes(self) -> Modes:
        return modes_of(self.config)

    @property
    def live(self) -> LiveFigures | None:
        """None for a Run whose figures are of the same kind as published ones."""
        if self.modes.why_not_comparable is None:
            return None
        return live_figures(self.sessions, self.findings if self.modes.echoes_agent else None)

    @property
    def scored_tasks(self) -> int:
        left_out = metrics.unscored(self.sessions)
        return left_out.all_tasks - left_out.tasks


def score_run(
    trajectories: Iterable[Trajectory],
    scorer: Scorer,
    *,
    log: str,
    run: str,
    model: str | None,
    config: Mapping[str, Any],
    findings: Iterable[Finding] = (),
) -> RunReport:
    """Scores every Session, in the order given; `findings` are told as they are."""
    modes = modes_of(config)

    def scored(trajectory: Trajectory) -> SessionScore:
        score = scorer.score(trajectory)
        if modes.why_not_comparable is None:
            return score
        return with_verdicts(trajectory, score, goes_on=modes.goes_on)

    return RunReport(log, run, model, config, scorer, tuple(map(scored, trajectories)), tuple(findings))


def document(report: RunReport) -> JSON:
    """The JSON document of one Run; `metrics` is the released metric file, null where n is 0.

    A Run whose figures must not be set beside published ones says so, and has the figures `live`.
    """
    counts, live = metrics.count(report.sessions), report.live
    return {
        "log": report.log,
        "run": report.run,
        "config": report.config,
        **_comparability(report.modes),
        "scorer": {"name": report.scorer.name, "version": report.scorer.version},
        "metrics": metrics.figures(counts),
        "estimates": {
            section: {row: asdict(estimate) for row, estimate in rows.items()}
            for section, rows in metrics.estimates(counts).items()
        },
        **_live(live),
        "unscored": _unscored(report.sessions),
        "tasks": [
            entry | (_task_verdict(score) if live else {})
            for session in report.sessions
            for entry, score in _task_entries(session)
        ],
    }


def documents(reports: Sequence[RunReport]) -> JSON:
    """One Run's document as it is; none or several under the key `runs`."""
    if len(reports) == 1:
        return document(reports[0])
    return {"runs": [document(report) for report in reports]}


def verdict(score: TaskScore) -> JSON:
    """What is said of a Task wherever a verdict is written as JSON."""
    return {
        "label": score.label,
        "action_name_label": score.action_name_label,
        "action_arguments_label": score.action_arguments_label,
        "is_optimal": score.is_optimal,
        "requests": score.requests,
        "min_steps": score.min_steps,
        "reason": score.reason,
        "steps": [_step(step) for step in score.steps],
    }


_UNSAFE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def json_bytes(value: object, *, indent: int | None = None) -> bytes:
    """`value` as one JSON text in UTF-8, ended by a newline.

    Characters that a terminal would obey and lone surrogates are escaped; they can
    only stand inside strings. Raises ValueError for a number that JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    safe = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return (safe + "\n").encode("utf-8", "backslashreplace")


def _comparability(modes: Modes) -> JSON:
    reason = modes.why_not_comparable
    return {"comparable_with_published": False, "why_not_comparable": reason} if reason else {}


def _live(figures: LiveFigures | None) -> JSON:
    return {} if figures is None else {"live": asdict(figures)}


def _task_verdict(score: TaskScore) -> JSON:
    """What is said of a Task beside its label where mistakes do not end it, or its history is live."""
    return {
        "verdict": score.verdict,
        "redundant_calls": score.live and score.live.redundant,
        "unmatched_calls": score.live and score.live.unmatched,
        "steps_taken": score.live and score.live.steps,
    }


def _task_entries(session: SessionScore) -> Iterable[tuple[JSON, TaskScore]]:
    for position, task in enumerate(session.scenario.tasks):
        score = session.tasks[position] if position < len(session.tasks) else _not_reached(task)
        entry = {
            "session": session.session,
            "epoch": session.epoch,
            "scenario": session.scenario.id,
            "task": position + 1,
            "task_type": task.label,
            "subtype": task.subtype,
            **verdict(score),
        }
        yield entry, score


def _not_reached(task: Task) -> TaskScore:
    return TaskScore(
        label=None,
        action_name_label=None,
        action_arguments_label=None,
        is_optimal=False,
        requests=0,
        steps_kept=0,
        min_steps=depth(task.nodes),
        reason=metrics.NOT_REACHED,
    )


def _step(step: StepScore) -> JSON:
    return {
        "step": step.step,
        "action": step.action,
        "verdict": step.verdict,
        "nodes": list(step.nodes),
        "reason": step.reason,
        "checks": None if step.checks is None else list(step.checks),
    }


def _unscored(sessions: Sequence[SessionScore]) -> JSON:
    left_out = metrics.unscored(sessions)
    return {
        "tasks": left_out.tasks,
        "all_tasks": left_out.all_tasks,
        "sessions": left_out.sessions,
        "all_sessions": left_out.all_sessions,
        "reasons": dict(left_out.reasons),
    }
