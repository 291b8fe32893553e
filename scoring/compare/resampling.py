"""What chance makes of paired differences: an exact permutation test and a bootstrap. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, fsum

import numpy as np

RESAMPLES = 10_000
"""How many resamples a bootstrap draws."""

CELLS = 1 << 20
"""The longest distribution of sums that is worked out to the unit."""

_BLOCK = 1 << 20
"""Draws that are held in memory at once."""


def sign_flip(differences: Sequence[int]) -> float:
    """The exact two-sided p of the sign-flip permutation test on the sum of `differences`.

    If A and B were the same, each difference would as soon have the other sign: this must hold of
    what is given here, as it does of means over as many epochs of either (see `scoring.compare.pairs`),
    but not of a mean of ten less a single outcome, which is skewed. The p is the share
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
    return min(1.0, fsum(chances[sums >= observed - slack]))


def bootstrap(
    clusters: Sequence[tuple[int, int]], *, alpha: float, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The percentile interval at 1 - `alpha` of a ratio of totals, resampled by cluster.

    `clusters` are (numerator, denominator > 0) of a total, at least one: the differences of a Scenario
    and how many there are, both in the same unit. Source: B. Efron and R. J. Tibshirani, An
    Introduction to the Bootstrap (1993), section 13.3; whole clusters as in A. C. Davison and D. V.
    Hinkley, Bootstrap Methods and their Application (1997), section 3.8.

    The same seed gives the same interval to the last digit, on every machine and with every version of
    numpy: sums are of whole numbers, and the draws are made of the integers of PCG64, the one stream
    that numpy promises never to change (NEP 19; those of its distributions may).
    """
    raw, groups = np.random.PCG64(seed), len(clusters)
    # Whole numbers beyond what a double holds exactly are left to Python.
    exact = groups * max(abs(it) for cluster in clusters for it in cluster) < 1 << 53
    totals, counts = (
        np.array(column, dtype=np.int64 if exact else object) for column in zip(*clusters, strict=True)
    )
    found: list[float] = []
    step = max(1, _BLOCK // groups)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        # The upper 32 bits, as a share of the groups: none is likelier than another by more than 2^-32.
        shares = raw.random_raw(size * groups) >> np.uint64(32)
        drawn = (shares * np.uint64(groups) >> np.uint64(32)).astype(np.intp).reshape(size, groups)
        found += (totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1)).tolist()
    found.sort()
    return _quantile(found, alpha / 2), _quantile(found, 1 - alpha / 2)


def _quantile(ascending: Sequence[float], probability: float) -> float:
    """Linear between the two values beside it: definition 7 of R. J. Hyndman and Y. Fan (1996)."""
    place = probability * (len(ascending) - 1)
    below = floor(place)
    low, high = ascending[below], ascending[min(below + 1, len(ascending) - 1)]
    return low + (place - below) * (high - low)
