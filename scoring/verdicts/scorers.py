"""The scorers by name. Each is a pure function from a Trajectory to Scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scenarios.live import Rule
from scoring.types import SessionScore, Trajectory
from scoring.verdicts import published, strict, wildtoolbench


@dataclass(frozen=True, slots=True)
class Scorer:
    """A named scorer. `version` changes whenever a verdict can.

    `rule` is the one by which it compares arguments where a wrong Step does not end its Task. `note`
    is what must be said wherever its figures are shown.
    """

    name: str
    version: str
    score: Callable[[Trajectory], SessionScore]
    rule: Rule = "released"
    note: str | None = None


SCORERS: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer(wildtoolbench.NAME, wildtoolbench.VERSION, wildtoolbench.score_session),
        Scorer(strict.NAME, strict.VERSION, strict.score_session, "strict"),
        Scorer(published.NAME, published.VERSION, published.score_session, note=published.NOTE),
    )
}

DEFAULT = (wildtoolbench.NAME, strict.NAME)
"""Those that are shown side by side; the first one is gated on where nothing else is said."""

EXPERIMENTAL = frozenset({published.NAME})
"""Never shown unless asked for, and never in a gate."""
