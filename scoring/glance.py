"""Verdicts on a Session at a glance, also while it is played: one word a Task, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.load import parse_record
from scenarios.replies import read_reply
from scoring.modes import modes_of
from scoring.report import judged
from scoring.types import (
    AFTER_ERRORS,
    AGENT_STOPPED,
    CORRECT,
    NOT_REACHED,
    STOPPED,
    TaskScore,
    TaskTrajectory,
    Trajectory,
)
from scoring.verdicts.live import COMPLETED
from scoring.verdicts.scorers import SCORERS

PlayedTasks = Sequence[tuple[Sequence[Any], str | None]]
"""For each Task its assistant messages, and how it ended (None: not yet)."""

_SCORED = frozenset({"closed", STOPPED, AGENT_STOPPED})
"""Endings that are the agent's doing."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The verdict of `strict` on a Task, and in `released` that of the released rules.

    `right` is None where the Task is not scored. `after_errors`: it was brought to its end after a
    wrong Step. `why` is a line on what diverged first, and `step` the Step (from 1) that did; or why
    it is not scored.
    """

    right: bool | None
    after_errors: bool
    released: bool | None
    why: str | None
    step: int | None = None


def glance(
    record: Mapping[str, Any],
    config: Mapping[str, Any],
    tasks: PlayedTasks,
) -> tuple[Glance, ...]:
    """Judges a Session as far as it was played.

    `record` is the Scenario's, `config` the Run's; Tasks that nobody came to yet may be left out.
    Raises ScenarioError for a record that is broken.
    """
    trajectory, modes = played_so_far(record, tasks), modes_of(config)
    strict, released = (judged(SCORERS[name], trajectory, modes) for name in ("strict", "wildtoolbench"))
    return tuple(_glance(*both) for both in zip(strict.tasks, released.tasks, strict=True))


def played_so_far(record: Mapping[str, Any], tasks: PlayedTasks) -> Trajectory:
    """The Trajectory of a Session that may still be played. Raises ScenarioError."""
    scenario = parse_record(dict(record))
    missing: tuple[Sequence[Any], str | None] = ((), None)
    played = [*tasks, *[missing] * (len(scenario.tasks) - len(tasks))]
    endings = [ending for _, ending in played]
    found = (_task(messages, number, endings) for number, (messages, _) in enumerate(played))
    return Trajectory(scenario.id, 1, scenario, tuple(found))


def _task(messages: Sequence[Any], number: int, endings: Sequence[str | None]) -> TaskTrajectory:
    ending = endings[number]
    replies = tuple(read_reply(message) for message in messages)
    if ending in _SCORED or (ending == NOT_REACHED and AGENT_STOPPED in endings[:number]):
        return TaskTrajectory(replies, ending)
    return TaskTrajectory(
        replies, ending, finished=False, unfinished_reason=ending or "not played to its end"
    )


def _glance(strict: TaskScore, released: TaskScore) -> Glance:
    evidence = strict.evidence
    why, step = (strict.reason, None) if evidence is None else (evidence.message, evidence.step + 1)
    return Glance(_right(strict), strict.verdict == AFTER_ERRORS, _right(released), why, step)


def _right(score: TaskScore) -> bool | None:
    if score.label is None:
        return None
    return score.label == CORRECT if score.verdict is None else score.verdict in COMPLETED
