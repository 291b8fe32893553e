"""A Run judged by a later version of its Scenarios than the one in its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from scenarios.types import Scenario
from scoring.types import Trajectory


class RevisionError(Exception):
    """A Scenario that cannot stand for the one that was played; one line."""


def revised(trajectories: Iterable[Trajectory], scenarios: Mapping[str, Scenario]) -> Iterator[Trajectory]:
    """The same Sessions, judged by `scenarios` (by id). Raises RevisionError.

    A Scenario may have other References, labels and annotations, but its Tasks must be as many and ask
    for the same: what was said in the log was said to the user of the old one.
    """
    for trajectory in trajectories:
        old, new = trajectory.scenario, scenarios.get(trajectory.scenario.id)
        if new is None:
            raise RevisionError(f"scenario {old.id} was played, and is not in the file")
        if [task.text for task in old.tasks] != [task.text for task in new.tasks]:
            raise RevisionError(f"scenario {old.id} asks for other things than in the log: play it again")
        yield replace(trajectory, scenario=new)
