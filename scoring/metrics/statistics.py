"""Interval estimates of rates and of paired differences, exact tests, and what a test can find."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, inf, sqrt
from statistics import NormalDist

Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

POWER = 0.8
"""The probability with which a detectable difference is to be found."""

_HALVINGS = 100
"""Bisections until an interval in [-1, 1] is narrower than doubles can tell."""


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
    return wilson_of_rate(successes / n, n, z) if n else None


def wilson_of_rate(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """As `wilson`, of a rate `p` that is worth `n` > 0 independent draws, however many were made."""
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # The bound at an extreme is exact in algebra, but not in floating point.
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return low, high


def normal_quantile(probability: float) -> float:
    """The quantile of the standard normal distribution; `probability` in (0, 1)."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution with `degrees` >= 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def mcnemar(lost: int, gained: int) -> float:
    """The exact two-sided p of McNemar's test: are as many pairs lost as gained?

    Twice the binomial tail of the rarer kind of discordant pair at probability 1/2, at most 1; 1 if
    there is none. Source: Q. McNemar, Psychometrika 12 (1947) 153-157, in its exact form.
    """
    n = lost + gained
    tail = sum(comb(n, k) for k in range(min(lost, gained) + 1))
    return min(1.0, 2 * tail / (1 << n))


def least_changes(alpha: float) -> int:
    """How many pairs must change, all the same way, before an exact two-sided p is below `alpha`."""
    n = 1
    while mcnemar(0, n) >= alpha:
        n += 1
    return n


def paired_difference(lost: int, gained: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The score interval of a difference of two rates over the same `n` > 0 pairs.

    The difference is (gained - lost) / n, positive where the second of each pair is better. The
    bounds are where the score statistic comes to z and to -z; without a discordant pair they are
    z^2 / (n + z^2) on either side, so that few equal pairs do not look like certainty.
    Source: T. Tango, Statistics in Medicine 17 (1998) 891-908.
    """

    def score(delta: float) -> float:
        a, b = 2 * n, (2 * n - gained + lost) * delta - gained - lost
        root = sqrt(max(0.0, b * b + 4 * a * lost * delta * (1 - delta)))
        nuisance = (root - b) / (2 * a)
        distance = gained - lost - n * delta
        variance = n * (2 * nuisance + delta * (1 - delta))
        if variance > 0:
            return distance / sqrt(variance)
        return inf if distance > 0 else -inf

    estimate = (gained - lost) / n
    return _crossing(score, z, -1.0, estimate), _crossing(score, -z, estimate, 1.0)


def unseen_share(n: int, z: float = Z95) -> float:
    """The upper Wilson bound of a share of which `n` independent draws showed nothing."""
    return z * z / (n + z * z)


def detectable_difference(n: int, discordance: float, alpha: float) -> float | None:
    """The least difference of paired rates that McNemar's test finds with a probability of 80 %.

    `n` pairs, of which the share `discordance` changes; two-sided at `alpha`. Solves
    n d^2 = (z(1 - alpha/2) sqrt(discordance) + z(0.8) sqrt(discordance - d^2))^2 for d.
    Source: R. J. Connor, Biometrics 43 (1987) 207-211.

    A difference cannot exceed the discordance: where that is too small to find anything, more pairs
    have to change. The answer is then the d at which, if all changes go the same way, enough of them
    for the exact test come with a probability of 80 %: a quantile of the beta distribution (C. J.
    Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413). None if n is too small for any verdict.
    """
    needed = least_changes(alpha)
    if n < needed:
        return None
    z, power = normal_quantile(1 - alpha / 2), normal_quantile(POWER)
    root = n * z * z - (n + power * power) * (z * z - power * power)
    found = sqrt(discordance) * (sqrt(n) * z + sqrt(max(0.0, root))) / (n + power * power)
    return found if 0 < found <= discordance else _beta_quantile(POWER, needed, n - needed + 1)


def detectable_mean(n: int, se: float, alpha: float) -> float | None:
    """The least difference of means over `n` clusters that a test finds with a probability of 80 %.

    (t(1 - alpha/2) + t(0.8)) standard errors, with n - 1 degrees of freedom; None if that is more
    than a difference of rates can be, or if no outcome of so few clusters is below `alpha`.
    Source: H. S. Bloom, Evaluation Review 19 (1995) 547-556; with clustered standard errors
    E. Miller, arXiv 2411.00640, section 5.
    """
    if n < max(2, least_changes(alpha)):
        return None
    found = (t_quantile(1 - alpha / 2, n - 1) + t_quantile(POWER, n - 1)) * se
    return found if found <= 1 else None


def _crossing(falling: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Where a falling function comes down to `level` between `low` and `high`."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if falling(middle) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_quantile(probability: float, a: int, b: int) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))
