"""What chance makes of paired differences: an exact permutation test and a bootstrap. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
CELLS = 1 << 20
"""The longest distribution of sums that is worked out to the unit."""

_BLOCK = 1 << 20
"""Draws that are held in memory at once."""


def sign_flip(differences: Sequence[int]) -> float:
    """The exact two-sided p of the sign-flip permutation test on the sum of `differences`.

    If A and B were the same, each difference would as soon have the other sign. The p is the share
    of all 2^n choices of signs whose sum is at least as far from 0 as the one found; it is counted
    by adding one difference after another to the distribution of sums, never sampled, so it cannot
    be below 2 / 2^n for n differences other than 0.
    Source: R. A. Fisher, The Design of Experiments (1935), section 21; distribution by the shift
    algorithm of B. Streitberg and J. Röhmel, Statistical Software Newsletter 12 (1986) 10-17.

    Where the sizes add up to more than `CELLS`, they are rounded to a grid that has about as many
    cells, and what rounding could have moved counts as reached: the p is then never below the exact one.
    """
    sizes = [abs(difference) for difference in differences if difference]
    observed, total, slack = abs(sum(differences)), sum(sizes), 0
    if total > CELLS:
        sizes = [max(1, (2 * size * CELLS + total) // (2 * total)) for size in sizes]
        observed, total, slack = observed * CELLS // total, sum(sizes), len(sizes) + 1
    # The sum of signed sizes is twice the sum of those with a plus, less the total.
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for size in sizes:
        chances[size:] += chances[:-size].copy()
        chances /= 2
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= observed - slack].sum()))


def bootstrap(
    clusters: Sequence[tuple[float, int]], *, alpha: float, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The percentile interval at 1 - `alpha` of a ratio of totals, resampled by cluster.

    `clusters` are (total of the differences, number of pairs > 0), at least one. The same seed gives
    the same interval. Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993),
    section 13.3; whole clusters as in A. C. Davison and D. V. Hinkley, Bootstrap Methods and their
    Application (1997), section 3.8.
    """
    generator = np.random.default_rng(seed)
    totals, pairs = (np.array(column, dtype=float) for column in zip(*clusters, strict=True))
    groups, found = len(clusters), np.empty(resamples)
    step = max(1, _BLOCK // groups)
    for start in range(0, resamples, step):
        drawn = generator.integers(0, groups, size=(min(step, resamples - start), groups))
        found[start : start + step] = totals[drawn].sum(axis=1) / pairs[drawn].sum(axis=1)
    low, high = np.quantile(found, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)
