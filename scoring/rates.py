"""Figures from counts: rates, totals and means. Nothing is to be told where there is nothing to count."""

from __future__ import annotations

from scoring.figures import Figure
from scoring.statistics import wilson


def rate(name: str, group: str | None, successes: int, n: int, *, interval: bool = True) -> Figure:
    """`successes` of `n`, with the 95 % Wilson interval of independent draws if that is wanted."""
    low, high = (wilson(successes, n) if interval else None) or (None, None)
    return Figure(name, group, successes / n if n else None, n, successes, low, high)


def total(name: str, value: float, n: int) -> Figure:
    """A sum over `n` units."""
    return Figure(name, None, float(value) if n else None, n)


def mean(name: str, value: float, n: int) -> Figure:
    """A sum over `n` units, for each of them."""
    return Figure(name, None, value / n if n else None, n)
