"""A Run judged by a later version of its Scenarios than the one in its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from scenarios.text import visible
from scenarios.types import Scenario
from scoring.types import Trajectory


class RevisionError(Exception):
    """A Scenario that cannot stand for the one that was played; one line."""


def changes(trajectories: Iterable[Trajectory], scenarios: Mapping[str, Scenario]) -> str:
    """How many of the Scenarios that were played are others now, in words."""
    played = {it.scenario.id: it.scenario.hash for it in trajectories}
    changed = sum(scenarios[name].hash != digest for name, digest in played.items())
    return f"later scenarios: {changed} of {len(played)} changed since the log"


def revised(trajectories: Iterable[Trajectory], scenarios: Mapping[str, Scenario]) -> Iterator[Trajectory]:
    """The same Sessions, judged by `scenarios` (by id). Raises RevisionError.

    A Scenario may have other References, labels and annotations, but its Tasks must be as many and ask
    for the same: what was said in the log was said to the user of the old one.
    """
    for trajectory in trajectories:
        old, new = trajectory.scenario, scenarios.get(trajectory.scenario.id)
        if new is None:
            raise RevisionError(f"scenario {visible(old.id)} is in the log and not in the file: add it")
        if [task.text for task in old.tasks] != [task.text for task in new.tasks]:
            raise RevisionError(f"scenario {visible(old.id)} asks for other things now: play it again")
        yield replace(trajectory, scenario=new)
