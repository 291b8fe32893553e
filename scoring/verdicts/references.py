"""The scorers as judges of References: what they say of one is read by its author. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from scenarios.types import Scenario
from scenarios.validate import Judge
from scoring.output.tables import from_one
from scoring.types import TaskScore
from scoring.verdicts import strict, wildtoolbench


def judges(scenario: Scenario) -> dict[str, Judge]:
    """By name those under which the References must be right; Steps in their reasons count from 1."""
    return {
        wildtoolbench.NAME: _told(wildtoolbench.score_task),
        strict.NAME: _told(partial(strict.score_task, notes=scenario.notes)),
    }


def _told(judge: Callable[..., TaskScore]) -> Judge:
    def judged(*of: Any) -> TaskScore:
        score = judge(*of)
        return score if score.reason is None else replace(score, reason=from_one(score.reason))

    return judged
