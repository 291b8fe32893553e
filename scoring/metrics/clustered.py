"""Rates over draws that come in clusters: the Tasks of one Session share its conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from scoring.metrics.statistics import t_quantile, wilson_of_rate

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Clustered:
    """A rate, `successes` of `n` draws in `clusters` clusters.

    `se` is its cluster-robust standard error, `low` and `high` its 95 % interval, all as fractions.
    `design_effect` is how many of these draws are worth one independent draw. `value` is None where
    there is no draw; the others are None with fewer than two clusters, which cannot tell how much
    clusters differ.
    """

    value: float | None
    n: int
    successes: int
    se: float | None
    low: float | None
    high: float | None
    clusters: int
    design_effect: float | None


def clustered(pairs: Sequence[tuple[int, int]]) -> Clustered:
    """The rate over clusters of (successes, n); clusters without a draw are none.

    The standard error is that of a ratio of totals, linearised, with the factor G / (G - 1) for G
    clusters. The interval is Wilson's on the effective sample size n / design effect, with the t
    quantile of G - 1 degrees of freedom, so that it stays within 0 and 1; the design effect counts
    as at least 1. At 0 and at 1 no cluster differs from another, so nothing can be seen of the
    clustering: each cluster then counts as one draw.

    Sources: E. Miller, arXiv 2411.00640, section 2.2; E. L. Korn and B. I. Graubard, Survey
    Methodology 24 (1998) 193-201. Raises ValueError for counts that cannot be.
    """
    for successes, n in pairs:
        if not 0 <= successes <= n:
            raise ValueError(f"no proportion: {successes} of {n}")
    filled = [pair for pair in pairs if pair[1]]
    groups, n = len(filled), sum(n for _, n in filled)
    successes = sum(right for right, _ in filled)
    if groups < 2:
        return Clustered(successes / n if n else None, n, successes, None, None, None, groups, None)
    p = successes / n
    if successes in (0, n):
        se, effect = 0.0, n / groups
    else:
        # In whole numbers the residuals are exact: equal clusters have none at all.
        squares = sum((right * n - successes * of) ** 2 for right, of in filled)
        se = sqrt(groups / (groups - 1) * (squares / n**2)) / n
        effect = max(1.0, se * se * n / (p * (1 - p)))
    low, high = wilson_of_rate(p, n / effect, t_quantile((1 + _LEVEL) / 2, groups - 1))
    return Clustered(p, n, successes, se, low, high, groups, effect)
