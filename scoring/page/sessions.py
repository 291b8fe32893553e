"""The list of Sessions of a page: of each Task what a filter or a line of the list needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.reference import depth
from scenarios.types import Task
from scoring.metrics.accuracy import is_whole
from scoring.metrics.usage import StepUsage, Usage
from scoring.output.tables import from_one
from scoring.page.shown import ShownSession
from scoring.report import RunReport
from scoring.types import JSON, TaskTrajectory


def session_key(run: int, session: int) -> str:
    """The name of a Session in a page, by the positions of its Run and of itself in it."""
    return f"r{run}s{session}"


def index_rows(
    report: RunReport, run: int, sessions: Sequence[ShownSession], usage: Usage, tasks: Sequence[JSON]
) -> Iterator[JSON]:
    """A row for each Session; `tasks` are those of the document of `score`, Session by Session."""
    told = iter(tasks)
    for number, (trajectory, shown) in enumerate(zip(report.trajectories, sessions, strict=True)):
        place = trajectory.scenario.id, trajectory.epoch
        yield {
            "key": session_key(run, number),
            "run": f"r{run}",
            "session": trajectory.session,
            "scenario": trajectory.scenario.id,
            "epoch": trajectory.epoch,
            "correct": {
                it.scorer.name: it.sessions[number].correct if is_whole(it.sessions[number]) else None
                for it in report.scored
            },
            "raw": bool(shown.exchanges),
            "tasks": [
                {
                    **_task(position, task, next(told)),
                    **_effort(task, played, usage.steps.get((*place, position), ())),
                    "seconds": usage.seconds.get((*place, position)),
                }
                for position, (task, played) in enumerate(
                    zip(trajectory.scenario.tasks, trajectory.tasks, strict=True)
                )
            ],
        }


def _task(position: int, task: Task, told: JSON) -> JSON:
    scores = told["scores"]
    return {
        "number": position + 1,
        "label": task.label,
        "subtype": task.subtype,
        "user": task.text,
        "disagrees": len({score["label"] for score in scores.values()}) > 1,
        "scores": {name: _score(score) for name, score in scores.items()},
    }


def _score(score: Mapping[str, Any]) -> JSON:
    error, evidence = score["error_class"], score["evidence"]
    return {
        "label": score["label"],
        "verdict": score.get("verdict"),
        "error_class": None if error is None else error["name"],
        "rule": None if evidence is None else evidence["rule"],
        "reason": None if score["reason"] is None else from_one(score["reason"]),
    }


def _effort(task: Task, played: TaskTrajectory, steps: Sequence[StepUsage]) -> JSON:
    """What the Task took beside what it needs; tokens only where they are known of every Step."""
    known = len(steps) == len(played.replies)
    return {
        "steps": len(played.replies),
        "least": depth(task.nodes),
        "calls": sum(len(reply.calls) for reply in played.replies),
        "expected_calls": sum(node.is_call for node in task.nodes),
        "input_tokens": _sum([step.input_tokens for step in steps]) if known else None,
        "output_tokens": _sum([step.output_tokens for step in steps]) if known else None,
    }


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [it for it in amounts if it is not None]
    return sum(known) if known and len(known) == len(amounts) else None
