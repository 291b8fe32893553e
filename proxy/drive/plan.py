"""Which Sessions a drive plays, in which order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenarios.nearest import did_you_mean

if TYPE_CHECKING:
    from proxy.drive.states import ScenarioInfo


class PlanError(ValueError):
    """What is to be played cannot be; one line."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A Session to be played; `tasks` is how many Tasks its Scenario has."""

    scenario: str
    epoch: int
    tasks: int


def plan(
    scenarios: Sequence[ScenarioInfo], only: Sequence[str] = (), limit: int | None = None, epochs: int = 1
) -> tuple[Planned, ...]:
    """The Sessions to play, in the order of `scenarios`: all of the first epoch, then the next.

    `only` chooses Scenarios by id (empty: all), `limit` takes the first so many of these.
    Raises PlanError for an unknown id or a number below 1.
    """
    if epochs < 1 or (limit is not None and limit < 1):
        raise PlanError("the numbers of epochs and of scenarios must be 1 or more")
    known = [scenario.id for scenario in scenarios]
    unknown = [wanted for wanted in dict.fromkeys(only) if wanted not in known]
    if unknown:
        raise PlanError("; ".join(_unknown(wanted, known) for wanted in unknown))
    chosen = [scenario for scenario in scenarios if not only or scenario.id in only][:limit]
    return tuple(
        Planned(scenario.id, epoch, scenario.tasks) for epoch in range(1, epochs + 1) for scenario in chosen
    )


def _unknown(wanted: str, known: Sequence[str]) -> str:
    if meant := did_you_mean(wanted, known):
        return f"no scenario {wanted!r}: {meant}"
    return f"no scenario {wanted!r} among the {len(known)} loaded: `scenarios list` prints their ids"
