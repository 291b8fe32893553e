"""The Tasks of one Session as the live page opens them: verdicts, References, readings of each call. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.load import parse_record
from scenarios.replies import read_reply
from scenarios.strict.rules import RULES as ARGUMENT_RULES
from scoring.metrics.usage import Usage
from scoring.modes import modes_of
from scoring.output.document import document
from scoring.page.details import session_detail
from scoring.page.shown import ShownSession, ShownTask
from scoring.report import RunReport, Scored, explained
from scoring.types import (
    AGENT_STOPPED,
    JSON,
    NOT_REACHED,
    STOPPED,
    SessionScore,
    TaskTrajectory,
    Trajectory,
)
from scoring.verdicts import evidence, released_evidence
from scoring.verdicts.error_classes import CLASSES, classify
from scoring.verdicts.live import with_verdicts
from scoring.verdicts.scorers import DEFAULT, SCORERS, Scorer

_SCORED = frozenset({"closed", STOPPED, AGENT_STOPPED})
"""Endings that are the agent's doing."""


def words() -> JSON:
    """What the names in these documents mean: error classes, and rules of evidence."""
    return {
        "classes": {name: title for name, (title, _) in CLASSES.items()},
        "rules": {**evidence.RULES, **ARGUMENT_RULES, **released_evidence.RULES},
    }


def read_tasks(
    record: Mapping[str, Any],
    config: Mapping[str, Any],
    tasks: Sequence[tuple[Sequence[Any], str | None]],
) -> list[JSON]:
    """The Tasks of a Session, as in `details.session_detail`; what only the log knows is left empty.

    For each Task its assistant messages and how it ended (None: not yet). Raises ScenarioError for a
    record that is broken.
    """
    scenario = parse_record(dict(record))
    endings = [ending for _, ending in tasks]
    played = tuple(_task(messages, endings, number) for number, (messages, _) in enumerate(tasks))
    trajectory = Trajectory(scenario.id, 1, scenario, played)
    scored = tuple(_scored(SCORERS[name], trajectory, config) for name in DEFAULT)
    report = RunReport("", "", None, config, (trajectory,), scored)
    shown = ShownSession(1, None, (ShownTask(),) * len(played))
    verdicts = document(report)["tasks"]
    told: list[JSON] = session_detail(report, 0, scenario.id, shown, Usage(1, {}, {}), verdicts)["tasks"]
    return told


def _task(messages: Sequence[Any], endings: Sequence[str | None], number: int) -> TaskTrajectory:
    replies, ending = tuple(read_reply(message) for message in messages), endings[number]
    if ending in _SCORED or (ending == NOT_REACHED and AGENT_STOPPED in endings[:number]):
        return TaskTrajectory(replies, ending)
    return TaskTrajectory(
        replies, ending, finished=False, unfinished_reason=ending or "not played to its end"
    )


def _scored(scorer: Scorer, trajectory: Trajectory, config: Mapping[str, Any]) -> Scored:
    session, modes = explained(scorer, trajectory), modes_of(config)
    if modes.why_not_comparable is not None:
        session = with_verdicts(trajectory, session, goes_on=modes.goes_on, rule=scorer.rule)
    return Scored(scorer, (session,), (_classes(trajectory, session),), ())


def _classes(trajectory: Trajectory, session: SessionScore) -> tuple[Any, ...]:
    return tuple(
        classify(trajectory.scenario.tools, task, played, score)
        for task, played, score in zip(
            trajectory.scenario.tasks, trajectory.tasks, session.tasks, strict=True
        )
    )
