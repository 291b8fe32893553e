"""Figures from windows: medians and spreads, ratios within the run, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from contenders import EVALUATION, LITELLM, RECORD, REFERENCE
from windows import ALONE, CROWD, STREAM, STREAMS, Kind, Window

ENOUGH = 2
"""So many quiet windows make the others superfluous."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured quantity: its name and unit, the windows that it is read from, and how."""

    name: str
    unit: str
    kind: Kind
    read: Callable[[Window], float]
    digits: int = 0


ADDED = Figure("added p50", "us", ALONE, lambda it: it.seen.answer[0] - it.base[0])
ADDED_95 = Figure("added p95", "us", ALONE, lambda it: it.seen.answer[1] - it.base[1])
ADDED_99 = Figure("added p99", "us", ALONE, lambda it: it.seen.answer[2] - it.base[2])
RATE = Figure("at 64", "req/s", CROWD, lambda it: it.seen.answered / it.seen.seconds)
CPU = Figure("CPU", "ms/req", CROWD, lambda it: it.cpu / it.seen.answered * 1e3, 2)
RSS = Figure("RSS", "MB", CROWD, lambda it: it.rss)
FIRST = Figure("first chunk", "ms", STREAM, lambda it: it.seen.first[0] / 1e3, 2)
TRANSIT = Figure("transit p50", "us", STREAM, lambda it: it.seen.transit[0])
TRANSIT_99 = Figure("transit p99", "us", STREAM, lambda it: it.seen.transit[2])
FIRST_16 = Figure("first chunk, 16", "ms", STREAMS, lambda it: it.seen.first[0] / 1e3, 2)
TRANSIT_16 = Figure("transit p99, 16", "ms", STREAMS, lambda it: it.seen.transit[2] / 1e3, 2)
PLAIN_FIGURES = (ADDED, ADDED_95, ADDED_99, RATE, CPU, RSS)
STREAM_FIGURES = (FIRST, TRANSIT, TRANSIT_99, FIRST_16, TRANSIT_16)


@dataclass(frozen=True, slots=True)
class Value:
    """A figure of a contender over its windows: `quiet` of `windows` of them had no foreign load."""

    median: float
    low: float
    high: float
    quiet: int
    windows: int


@dataclass(frozen=True, slots=True)
class Target:
    """`subject`'s figure must be at most (at least, for rates) `factor` times that of `against`; `factor`
    itself where there is none."""

    subject: str
    figure: Figure
    factor: float
    against: str | None = None

    @property
    def at_least(self) -> bool:
        return self.figure is RATE


TARGETS = (
    Target(RECORD, ADDED, 1.5, REFERENCE),
    Target(EVALUATION, ADDED, 2.0, REFERENCE),
    *(Target(ours, ADDED, 1 / 20, LITELLM) for ours in (RECORD, EVALUATION)),
    *(Target(ours, ADDED_99, 10_000) for ours in (RECORD, EVALUATION)),
    *(Target(ours, RATE, 0.5, REFERENCE) for ours in (RECORD, EVALUATION)),
    *(Target(ours, RATE, 25, LITELLM) for ours in (RECORD, EVALUATION)),
    Target(RECORD, FIRST, 1.5, REFERENCE),
    Target(RECORD, TRANSIT, 1.2, REFERENCE),
)

Values = Mapping[tuple[str, Figure], Value]


def values_of(windows: Iterable[Window]) -> dict[tuple[str, Figure], Value]:
    """By contender and figure, from quiet windows where there are enough of them."""
    cells: dict[tuple[str, str], list[Window]] = {}
    for window in windows:
        cells.setdefault((window.contender, window.kind), []).append(window)
    return {
        (contender, figure): _value(figure, cell)
        for (contender, kind), cell in cells.items()
        for figure in (*PLAIN_FIGURES, *STREAM_FIGURES)
        if figure.kind.name == kind
    }


def _value(figure: Figure, windows: Sequence[Window]) -> Value:
    quiet = [window for window in windows if window.quiet]
    seen = [figure.read(window) for window in (quiet if len(quiet) >= ENOUGH else windows)]
    return Value(median(seen), min(seen), max(seen), len(quiet), len(windows))


def ratio(values: Values, subject: str, figure: Figure, against: str) -> float | None:
    """How many times the other's figure it is; None if one of them was not measured."""
    one, other = values.get((subject, figure)), values.get((against, figure))
    return one.median / other.median if one and other and other.median > 0 else None


def achieved(values: Values, target: Target) -> float | None:
    """The ratio, or the figure itself, that a target is about; None if it was not measured."""
    if target.against is not None:
        return ratio(values, target.subject, target.figure, target.against)
    value = values.get((target.subject, target.figure))
    return value.median if value else None


def is_met(target: Target, reached: float) -> bool:
    return reached >= target.factor if target.at_least else reached <= target.factor
