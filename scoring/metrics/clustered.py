"""Rates over draws that come in clusters: the Tasks of one Session share its conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from scoring.metrics.statistics import t_quantile, unseen_share, wilson_of_rate

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Clustered:
    """A rate, `successes` of `n` draws in `clusters` clusters.

    `se` is its cluster-robust standard error, `low` and `high` its 95 % interval, all as fractions.
    `design_effect` is how many draws are worth one independent draw. `value` is None where
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


def clustered(pairs: Sequence[tuple[int, int]], draws: int | None = None) -> Clustered:
    """The rate over clusters of (successes, n); clusters without a draw are none.

    `draws` is how many draws were made in fact, where the counts are in a finer unit: means of
    fractions, for instance, brought to one denominator. None if each unit of `n` is a draw.

    The standard error is that of a ratio of totals, linearised, with the factor G / (G - 1) for G
    clusters. The interval is Wilson's on the effective sample size draws / design effect, with the t
    quantile of G - 1 degrees of freedom, so that it stays within 0 and 1; the design effect counts
    as at least 1. At 0 and at 1 no cluster differs from another, so nothing can be seen of the
    clustering: each cluster then counts as one draw.

    Nor can much be seen of it with very few successes, or very few failures. Whatever the clustering,
    a rate that no success at all does not rule out is not ruled out by some either, so the upper
    bound is never below that at 0, nor the lower above that at 1: without that, 1 success of 400 would
    seem to say more against a high rate than 0 of 400.

    Sources: E. Miller, arXiv 2411.00640, section 2.2; E. L. Korn and B. I. Graubard, Survey
    Methodology 24 (1998) 193-201; that a bound must not fall as successes are added: R. J. Buehler,
    J. Am. Stat. Assoc. 52 (1957) 482-493. Raises ValueError for counts that cannot be.
    """
    for successes, n in pairs:
        if not 0 <= successes <= n:
            raise ValueError(f"no proportion: {successes} of {n}")
    filled = [pair for pair in pairs if pair[1]]
    groups, n = len(filled), sum(n for _, n in filled)
    successes = sum(right for right, _ in filled)
    draws = n if draws is None else draws
    if not groups <= draws <= n:
        raise ValueError(f"{groups} clusters cannot have {draws} draws, counted as {n}")
    if groups < 2:
        return Clustered(successes / n if n else None, n, successes, None, None, None, groups, None)
    p = successes / n
    if successes in (0, n):
        se, effect = 0.0, draws / groups
    else:
        # In whole numbers the residuals are exact: equal clusters have none at all.
        squares = sum((right * n - successes * of) ** 2 for right, of in filled)
        se = sqrt(groups / (groups - 1) * (squares / n**2)) / n
        effect = max(1.0, se * se * draws / (p * (1 - p)))
    t = t_quantile((1 + _LEVEL) / 2, groups - 1)
    low, high = wilson_of_rate(p, draws / effect, t)
    unseen = unseen_share(groups, t)
    return Clustered(p, n, successes, se, min(low, 1 - unseen), max(high, unseen), groups, effect)
