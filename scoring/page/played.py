"""The Tasks of one Session as the live page opens them: verdicts, References, readings of each call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.strict.rules import RULES as ARGUMENT_RULES
from scoring.glance import PlayedTasks, played_so_far
from scoring.metrics.usage import Usage
from scoring.modes import Modes, modes_of
from scoring.output.document import document
from scoring.page.details import session_detail
from scoring.page.shown import ShownSession, ShownTask
from scoring.report import RunReport, Scored, judged
from scoring.types import JSON, SessionScore, Trajectory
from scoring.verdicts import evidence, released_evidence
from scoring.verdicts.error_classes import CLASSES, classify
from scoring.verdicts.scorers import DEFAULT, SCORERS, Scorer


def words() -> JSON:
    """What the names in these documents mean: error classes, and rules of evidence."""
    return {
        "classes": {name: title for name, (title, _) in CLASSES.items()},
        "rules": {**evidence.RULES, **ARGUMENT_RULES, **released_evidence.RULES},
    }


def read_tasks(record: Mapping[str, Any], config: Mapping[str, Any], tasks: PlayedTasks) -> list[JSON]:
    """The Tasks of a Session, as in `details.session_detail`; what only the log knows is left empty.

    Raises ScenarioError for a record that is broken.
    """
    trajectory, modes = played_so_far(record, tasks), modes_of(config)
    scored = tuple(_scored(SCORERS[name], trajectory, modes) for name in DEFAULT)
    report = RunReport("", "", None, config, (trajectory,), scored)
    shown = ShownSession(1, None, (ShownTask(),) * len(trajectory.tasks))
    verdicts = document(report)["tasks"]
    key = trajectory.scenario.id
    told: list[JSON] = session_detail(report, 0, key, shown, Usage(1, {}, {}), verdicts)["tasks"]
    return told


def _scored(scorer: Scorer, trajectory: Trajectory, modes: Modes) -> Scored:
    session = judged(scorer, trajectory, modes)
    return Scored(scorer, (session,), (_classes(trajectory, session),), ())


def _classes(trajectory: Trajectory, session: SessionScore) -> tuple[Any, ...]:
    return tuple(
        classify(trajectory.scenario.tools, task, played, score)
        for task, played, score in zip(
            trajectory.scenario.tasks, trajectory.tasks, session.tasks, strict=True
        )
    )
