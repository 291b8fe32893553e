"""Is run B better than run A? Both over the same Scenarios, pair by pair. Pure.

What counts is the difference within pairs, whose variance is smaller than that of either rate. A
verdict needs both an exact p below alpha and an interval of the difference without 0; it never
rests on whether the intervals of the two rates overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm, sqrt
from typing import Any, Literal

from scoring.compare.pairs import LeftOut, Pair, Paired, Side, pair
from scoring.compare.resampling import RESAMPLES, bootstrap, sign_flip
from scoring.metrics.clustered import Clustered
from scoring.metrics.figures import Figure
from scoring.metrics.passes import flip_rate, mean_rate
from scoring.metrics.statistics import (
    detectable_difference,
    detectable_mean,
    least_changes,
    mcnemar,
    normal_quantile,
    paired_difference,
    unseen_share,
    wilson,
)
from scoring.modes import Modes

Metric = Literal["task", "session"]
Name = Literal["better", "worse", "INCONCLUSIVE"]

MCNEMAR, SIGN_FLIP = "exact McNemar", "exact sign-flip permutation"
TANGO, BOOTSTRAP = "Tango score", "cluster bootstrap, percentile"
UNSEEN = "Wilson bound on what so few scenarios do not show"


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate over the pairs and their epochs, with its 95 % interval.

    `n` counts the pairs, whatever their epochs; `successes` is None with several.
    """

    value: float | None
    n: int
    successes: int | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """B less A as a fraction, with its interval at 1 - alpha, and how that was found.

    `largest_loss` is the largest that the data do not rule out: B is not worse by more than that.
    """

    value: float
    low: float
    high: float
    interval: str
    largest_loss: float


@dataclass(frozen=True, slots=True)
class Level:
    """One metric compared over `n` pairs in `scenarios` scenarios.

    `lost` and `gained` count the pairs in which B was right less and more often than A. `detectable`
    is the least difference that is found with 80 % power, None if there is none; `least_changes` how
    many scenarios must change, all the same way, before p can be below alpha. `difference` and `p`
    are None where n is 0.
    """

    n: int
    scenarios: int
    left_out: LeftOut
    a: Rate
    b: Rate
    difference: Difference | None
    lost: int
    gained: int
    p: float | None
    test: str
    detectable: float | None
    least_changes: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked: `alpha`, from 1e-6 to 0.5, and `margin` are fractions."""

    metric: Metric = "task"
    alpha: float = 0.05
    margin: float = 0.0
    seed: int = 0
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is told of two Runs. `noise` is None on a side without repeats."""

    settings: Settings
    a: Side
    b: Side
    paired: Paired
    levels: Mapping[Metric, Level]
    noise_a: Figure | None
    noise_b: Figure | None
    differing: tuple[tuple[str, Any, Any], ...]
    why_not_comparable: str | None

    @property
    def level(self) -> Level:
        """The metric that the verdict is about."""
        return self.levels[self.settings.metric]

    @property
    def verdict(self) -> Name:
        difference, p = self.level.difference, self.level.p
        if difference is None or p is None or p >= self.settings.alpha:
            return "INCONCLUSIVE"
        if difference.low > 0:
            return "better"
        return "worse" if difference.high < 0 else "INCONCLUSIVE"

    @property
    def within_margin(self) -> bool:
        """Is B, for all that the data do not rule out, not worse than A by more than the margin?"""
        difference = self.level.difference
        return difference is not None and difference.largest_loss < self.settings.margin

    @property
    def flips(self) -> list[Pair]:
        """The Tasks that changed, in order."""
        return [it for pairs in self.paired.tasks for it in pairs if it.change]


def compare(a: Side, b: Side, settings: Settings) -> Comparison:
    """Compares B, the candidate, with A, the baseline."""
    paired = pair(a.sessions, b.sessions)
    tasks, sessions = paired.tasks, tuple((it,) for it in paired.sessions)
    return Comparison(
        settings=settings,
        a=a,
        b=b,
        paired=paired,
        levels={
            "task": _level(tasks, paired.tasks_left_out, settings, pairs_are_scenarios=False),
            "session": _level(sessions, paired.sessions_left_out, settings, pairs_are_scenarios=True),
        },
        noise_a=_noise(a),
        noise_b=_noise(b),
        differing=_differing(a.config, b.config),
        why_not_comparable=_why_not_comparable(a, b),
    )


def _level(
    clusters: Sequence[Sequence[Pair]], left_out: LeftOut, settings: Settings, *, pairs_are_scenarios: bool
) -> Level:
    """McNemar's test where each scenario is one pair of single outcomes; else whole scenarios are flipped."""
    filled = [pairs for pairs in clusters if pairs]
    pairs = [it for of_scenario in filled for it in of_scenario]
    single = all(it.a.scored == 1 for it in pairs)
    lost, gained = sum(it.change < 0 for it in pairs), sum(it.change > 0 for it in pairs)
    independent = pairs_are_scenarios and single
    difference: Difference | None = None
    p = detectable = None
    if pairs and independent:
        p, difference = mcnemar(lost, gained), _of_pairs(lost, gained, len(pairs), settings)
        detectable = detectable_difference(len(pairs), (lost + gained) / len(pairs), settings.alpha)
    elif pairs:
        p, difference, detectable = _of_clusters(filled, settings)
    return Level(
        n=len(pairs),
        scenarios=len(filled),
        left_out=left_out,
        a=_rate([[(it.a.right, it.a.scored) for it in of] for of in filled], single, independent),
        b=_rate([[(it.b.right, it.b.scored) for it in of] for of in filled], single, independent),
        difference=difference,
        lost=lost,
        gained=gained,
        p=p,
        test=MCNEMAR if independent else SIGN_FLIP,
        detectable=detectable,
        least_changes=least_changes(settings.alpha),
    )


def _of_pairs(lost: int, gained: int, n: int, settings: Settings) -> Difference:
    low, high = paired_difference(lost, gained, n, normal_quantile(1 - settings.alpha / 2))
    return Difference((gained - lost) / n, low, high, TANGO, max(0.0, -low))


def _of_clusters(
    clusters: Sequence[Sequence[Pair]], settings: Settings
) -> tuple[float, Difference, float | None]:
    """p, difference, detectable difference; each scenario is resampled and flipped as a whole.

    The mean outcomes of a pair are fractions of its epochs, which are brought to one denominator:
    the test is then on whole numbers. Why the signs may be flipped is said in `scoring.compare.pairs`.
    """
    whole = lcm(*(it.a.scored for pairs in clusters for it in pairs))
    totals = [sum(it.change * (whole // it.a.scored) for it in pairs) for pairs in clusters]
    sizes = [len(pairs) for pairs in clusters]
    value = sum(totals) / (whole * sum(sizes))
    found = bootstrap(
        list(zip(totals, (whole * size for size in sizes), strict=True)),
        alpha=settings.alpha,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    return (
        sign_flip(totals),
        _of_means(value, found, len(clusters), settings),
        _detectable(totals, sizes, whole, settings.alpha),
    )


def _of_means(value: float, found: tuple[float, float], n: int, settings: Settings) -> Difference:
    """Resampling shows only what was seen, but as large a share of scenarios as `unseen` may be otherwise.

    The loss that is not ruled out is never less than if B lost everything in that share. Where no
    resample differs from another, the share makes the interval: nothing changes there, or everything
    changes the way it did; either way where nothing changed at all. Over fewer scenarios than a verdict
    takes, where no test can tell a difference from 0, everything may be lost or gained in the share, and
    the interval holds 0.
    """
    unseen = unseen_share(n, normal_quantile(1 - settings.alpha / 2))
    worst, best = value - unseen * (1 + value), value + unseen * (1 - value)
    (low, high), interval = found, BOOTSTRAP
    if high - low < 1e-12:
        still = value * (1 - unseen)
        low, high, interval = still if value > 0 else worst, still if value < 0 else best, UNSEEN
    if n < least_changes(settings.alpha):
        low, high, interval = min(low, worst, 0.0), max(high, best, 0.0), UNSEEN
    return Difference(value, low, high, interval, max(0.0, -min(low, worst)))


def _detectable(totals: Sequence[int], sizes: Sequence[int], whole: int, alpha: float) -> float | None:
    """From the clustered standard error; as for single pairs where no scenario differs from another."""
    groups, n, total = len(totals), sum(sizes), sum(totals)
    squares = sum((it * n - total * size) ** 2 for it, size in zip(totals, sizes, strict=True))
    if squares == 0:  # as with a single scenario
        return detectable_difference(groups, 0.0, alpha)
    se = sqrt(groups / (groups - 1) * (squares / (n * whole) ** 2)) / n
    return detectable_mean(groups, se, alpha)


def _rate(counts: Sequence[Sequence[tuple[int, int]]], single: bool, independent: bool) -> Rate:
    it: Clustered = mean_rate(dict(enumerate(counts)))
    successes = it.successes if single else None
    bounds = wilson(it.successes, it.n) if independent else (it.low, it.high)
    low, high = bounds or (None, None)
    return Rate(it.value, sum(map(len, counts)), successes, low, high)


def _noise(side: Side) -> Figure | None:
    figure = flip_rate(side.sessions)
    return figure if figure.n else None


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    keys = sorted(a.keys() | b.keys())
    return tuple((key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key))


def _why_not_comparable(a: Side, b: Side) -> str | None:
    """What a rate means differs with the history, and with whether a wrong step ends its task."""
    if (a.modes.history, a.modes.goes_on) == (b.modes.history, b.modes.goes_on):
        return None
    return f"A has {_played(a.modes)}, B has {_played(b.modes)}"


def _played(modes: Modes) -> str:
    history = f"{modes.history} history"
    return (
        f"{history} and goes on after a wrong step"
        if modes.goes_on
        else f"{history} and stops at a wrong step"
    )
