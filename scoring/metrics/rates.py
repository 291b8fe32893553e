"""Figures from counts: rates, totals and means. Nothing is to be told where there is nothing to count."""

from __future__ import annotations

from collections.abc import Iterable

from scoring.metrics.clustered import clustered
from scoring.metrics.figures import Figure
from scoring.metrics.statistics import wilson

Outcome = tuple[str, bool]
"""The Scenario that a draw belongs to, by its id, and whether it was a success."""


def share(name: str, group: str | None, successes: int, n: int) -> Figure:
    """`successes` of `n`, without an interval: what is counted are no draws of their own."""
    return Figure(name, group, successes / n if n else None, n, successes)


def rate_of_tasks(name: str, group: str | None, outcomes: Iterable[Outcome]) -> Figure:
    """A share of Tasks. Those of one Scenario are a cluster (see `scoring.metrics.clustered`)."""
    counts: dict[str, list[int]] = {}
    for scenario, success in outcomes:
        count = counts.setdefault(scenario, [0, 0])
        count[0] += success
        count[1] += 1
    found = clustered([(successes, n) for successes, n in counts.values()])
    return Figure(name, group, found.value, found.n, found.successes, found.low, found.high)


def rate_of_sessions(name: str, group: str | None, outcomes: Iterable[Outcome]) -> Figure:
    """A share of Sessions: independent draws as long as no Scenario was played twice, then as of Tasks."""
    drawn = list(outcomes)
    if len({scenario for scenario, _ in drawn}) < len(drawn):
        return rate_of_tasks(name, group, drawn)
    successes, n = sum(success for _, success in drawn), len(drawn)
    low, high = wilson(successes, n) or (None, None)
    return Figure(name, group, successes / n if n else None, n, successes, low, high)


def total(name: str, value: float, n: int) -> Figure:
    """A sum over `n` units."""
    return Figure(name, None, float(value) if n else None, n)


def mean(name: str, value: float, n: int) -> Figure:
    """A sum over `n` units, for each of them."""
    return Figure(name, None, value / n if n else None, n)
