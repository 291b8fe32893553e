"""A figure, and what it means: the one shape in which every metric is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["rate", "count", "tokens", "seconds", "ratio", "money"]
"""`rate` is a fraction of 0 to 1, shown as per cent."""

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a figure means.

    `title` is its row in a table; `text` one or two sentences that say what is counted over what;
    `source` the paper's section or what else the definition comes from; `better` None where neither is.
    `by_verdict` says that it looks at correct Tasks, so that each scorer has its own.
    """

    title: str
    unit: Unit
    text: str
    source: str
    better: Better | None = "higher"
    by_verdict: bool = False


Definitions = Mapping[str, Definition]
"""By the figure's name, in the order of the documentation."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: a rate with its counts and 95 % interval, or a quantity.

    `group` is a row of a figure that has several (a task label, a position), else None. `n` is what it
    is over; `value` is None where `n` is 0, as there is nothing to be told. `successes` is None for
    what is no proportion, `low` and `high` where there is no interval.
    """

    name: str
    group: str | None
    value: float | None
    n: int
    successes: int | None = None
    low: float | None = None
    high: float | None = None

    @property
    def key(self) -> str:
        """`task_accuracy`, or `task_accuracy[Chat]` in a group."""
        return self.name if self.group is None else f"{self.name}[{self.group}]"
