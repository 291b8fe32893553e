"""Interval estimates."""

from __future__ import annotations

from math import sqrt

Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


def wilson(successes: int, n: int, z: float = Z95) -> tuple[float, float] | None:
    """The Wilson score interval of a proportion, without continuity correction.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212; method 3 of
    R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872.

    Returns (low, high) as fractions in [0, 1], or None when n is 0: no data is
    neither 0 nor 1. The draws are taken as independent. Raises ValueError for
    counts that cannot be.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"no proportion: {successes} of {n}")
    if n == 0:
        return None
    p = successes / n
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # The bound at an extreme is exact in algebra, but not in floating point.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high
