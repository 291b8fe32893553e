"""Which item of one array stands for which of another, where the order does not matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from scenarios.assign import best_assignment

MANY = 50
"""Items up to which all are paired at the best. Of more, those of one form pair off first: the best
pairing takes the third power of their number."""
MANY_WITHIN = 25_000
"""The same for the pairs of what is in them, which are all compared for each pair of items: arrays in arrays,
none of which need an order, take the product of what each would take alone."""


def paired_items(
    actual: Sequence[str],
    expected: Sequence[str],
    likeness: Callable[[int, int], float],
    within: int = 0,
) -> list[tuple[int, int]]:
    """Pairs of positions, each used once, by position in `actual`; as many as the shorter array has.

    `actual` and `expected` are forms of the items: items of one form are equal. `likeness` tells how
    like two are, and compares `within` pairs of what is in them. The pairing has the greatest total
    likeness; but if too many items are left when those of one form have paired off, the rest go by position.
    """
    rows, columns = list(range(len(actual))), list(range(len(expected)))
    found: list[tuple[int, int]] = []
    if _are_many(rows, columns, within):
        found = _of_one_form(actual, expected)
        rows = sorted({*rows} - {row for row, _ in found})
        columns = sorted({*columns} - {column for _, column in found})
    if _are_many(rows, columns, within):
        return sorted([*found, *zip(rows, columns, strict=False)])
    weights = [[likeness(row, column) for column in columns] for row in rows]
    best = zip(rows, best_assignment(weights), strict=True)
    return sorted([*found, *((row, columns[at]) for row, at in best if at is not None)])


def _are_many(rows: Sequence[int], columns: Sequence[int], within: int) -> bool:
    return max(len(rows), len(columns)) > MANY or len(rows) * len(columns) * within > MANY_WITHIN


def _of_one_form(actual: Sequence[str], expected: Sequence[str]) -> list[tuple[int, int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for column in reversed(range(len(expected))):
        places[expected[column]].append(column)
    return [(row, places[form].pop()) for row, form in enumerate(actual) if places[form]]
