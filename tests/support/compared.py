"""Runs of which only the outcomes matter, and their comparison."""

from __future__ import annotations

from typing import Any

from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.compare.comparison import (
    Comparison,
    Settings,
    compare,
)
from scoring.compare.pairs import Side
from scoring.types import SessionScore, TaskScore

TASK = Task("hello", "Chat", None, (Node(CLOSE, {}, "bye"),))
LABELS = {"R": "correct", "W": "error", "-": None}


def side(
    outcomes: dict[str, list[str]],
    *,
    reason: str = "no call",
    digest: str = "hash",
    model: str = "m-1",
    **config: Any,
) -> Side:
    """A Run: scenario -> a word for each epoch, a letter for each Task: right, wrong, `-` not scored."""
    scores = {
        letter: TaskScore(label, label, label, False, 1, 1, 1, None if letter == "R" else reason)
        for letter, label in LABELS.items()
    }
    sessions: list[SessionScore] = []
    for name, epochs in outcomes.items():
        for epoch, tasks in enumerate(epochs, start=1):
            scenario = Scenario(name, "2024-01-01", (), (TASK,) * len(tasks), digest, {})
            verdicts = tuple(scores[it] for it in tasks)
            sessions.append(SessionScore(f"{name}.e{epoch}", epoch, scenario, verdicts))
    return Side("run.db", "r1", model, config, tuple(sessions))


def runs(*outcomes: str) -> dict[str, list[str]]:
    """One epoch of s0, s1, ..."""
    return {f"s{number}": [tasks] for number, tasks in enumerate(outcomes)}


def compared(a: dict[str, list[str]], b: dict[str, list[str]], **asked: Any) -> Comparison:
    return compare(side(a), side(b), Settings(**asked))
