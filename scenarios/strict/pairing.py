"""Which item of one array stands for which of another, where the order does not matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from scenarios.assign import best_assignment

MANY = 50
"""Items up to which all are paired at the best. Of more, those of one form pair off first: the best
pairing takes the third power of their number."""


def paired_items(
    actual: Sequence[str], expected: Sequence[str], likeness: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Pairs of positions, each used once, by position in `actual`; as many as the shorter array has.

    `actual` and `expected` are forms of the items: items of one form are equal. `likeness` tells how
    like two are. The pairing has the greatest total likeness; but if over `MANY` items are left
    when those of one form have paired off, the rest go by position.
    """
    rows, columns = list(range(len(actual))), list(range(len(expected)))
    found: list[tuple[int, int]] = []
    if max(len(rows), len(columns)) > MANY:
        found = _of_one_form(actual, expected)
        rows = sorted({*rows} - {row for row, _ in found})
        columns = sorted({*columns} - {column for _, column in found})
    if max(len(rows), len(columns)) > MANY:
        return sorted([*found, *zip(rows, columns, strict=False)])
    weights = [[likeness(row, column) for column in columns] for row in rows]
    best = zip(rows, best_assignment(weights), strict=True)
    return sorted([*found, *((row, columns[at]) for row, at in best if at is not None)])


def _of_one_form(actual: Sequence[str], expected: Sequence[str]) -> list[tuple[int, int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for column in reversed(range(len(expected))):
        places[expected[column]].append(column)
    return [(row, places[form].pop()) for row, form in enumerate(actual) if places[form]]
