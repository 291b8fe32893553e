"""Which call answers which node: an exact one-to-one assignment by name and arguments.

Used while playing, so that every call is told what *it* asked for, however the calls
were ordered, and by the strict scorer. The released harness pairs by position instead
(facts: section 5, rows 1 to 3).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from scenarios.types import Node, ToolCall


def assign_calls(
    nodes: Sequence[Node],
    candidates: Sequence[int],
    calls: Sequence[ToolCall],
    is_right: Callable[[ToolCall, Node], bool] | None = None,
) -> list[int | None]:
    """For each call the candidate node it answers, or None; no node is used twice.

    Calls go to nodes of their own name. Where a name has several, as many as possible get one that they
    are right for by `is_right`, if that is given; then the assignment with the greatest total agreement
    with the arguments, or with alternatives, is taken, ties broken by position.
    """
    answered: list[int | None] = [None] * len(calls)
    for name in dict.fromkeys(call.name for call in calls):
        own = [i for i, call in enumerate(calls) if call.name == name]
        open_nodes = [position for position in candidates if nodes[position].name == name]
        if not open_nodes:
            continue
        if len(own) == len(open_nodes) == 1:
            answered[own[0]] = open_nodes[0]
            continue
        weights = [
            [_weight(calls[i], nodes[position], len(own), is_right) for position in open_nodes] for i in own
        ]
        for i, column in zip(own, best_assignment(weights), strict=True):
            answered[i] = None if column is None else open_nodes[column]
    return answered


def _weight(
    call: ToolCall, node: Node, calls: int, is_right: Callable[[ToolCall, Node], bool] | None
) -> float:
    given = parse_arguments(call.arguments)
    likeness = max(agreement(given, expected) for expected in (node.arguments, *node.alternatives))
    # One more right call weighs more than all that agreement can make of the others.
    return likeness + (1.0 + calls if is_right is not None and is_right(call, node) else 0.0)


def parse_arguments(arguments: Any) -> Any:
    """The arguments as a JSON value; text that is empty is `{}`, text that is not JSON is None."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def agreement(given: Any, expected: dict[str, Any]) -> float:
    """How well a call's arguments agree with a node's: 0 (not at all) to 1 (equal)."""
    if not isinstance(given, dict):
        return 0.0
    keys = given.keys() | expected.keys()
    if not keys:
        return 1.0
    return sum(same(given.get(key, _ABSENT), expected.get(key, _ABSENT)) for key in sorted(keys)) / len(keys)


_ABSENT = object()


def same(left: Any, right: Any) -> bool:
    """Equal as JSON values: numbers by value, a bool never a number, text but for case and spaces."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return "".join(left.split()).casefold() == "".join(right.split()).casefold()
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def best_assignment(weights: Sequence[Sequence[float]]) -> list[int | None]:
    """For each row the column of a maximum-weight assignment; rows beyond the columns get None.

    The Hungarian method by shortest augmenting paths, O(rows * rows * columns). As many
    rows as possible are assigned; of equal totals the one that gives earlier rows earlier
    columns is taken.
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    width = max(rows, columns)
    # Far below any real difference of weights, so it only ever decides between equals.
    tie = 1e-6 / (1 + width) ** 3

    def cost(row: int, column: int) -> float:
        late = tie * min(column, columns) * (rows - row)
        return late - weights[row][column] if column < columns else late

    matched = _hungarian(rows, width, cost)
    return [column if column < columns else None for column in matched]


def assign_shorter(weights: Sequence[Sequence[float]]) -> list[int | None]:
    """`best_assignment`, from the side with fewer members: its time grows with the square of the rows."""
    columns = list(zip(*weights, strict=True))
    if len(weights) <= len(columns):
        return best_assignment(weights)
    places: list[int | None] = [None] * len(weights)
    for column, row in enumerate(best_assignment(columns)):
        if row is not None:
            places[row] = column
    return places


def _hungarian(rows: int, columns: int, cost: Callable[[int, int], float]) -> list[int]:
    """Column of each row in a minimum-cost assignment; needs rows <= columns."""
    row_price = [0.0] * (rows + 1)
    column_price = [0.0] * (columns + 1)
    owner = [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0] = row
        column = 0
        slack = [math.inf] * (columns + 1)
        came_from = [0] * (columns + 1)
        used = [False] * (columns + 1)
        while owner[column]:
            used[column] = True
            here, delta, following = owner[column], math.inf, 0
            for other in range(1, columns + 1):
                if used[other]:
                    continue
                reduced = cost(here - 1, other - 1) - row_price[here] - column_price[other]
                if reduced < slack[other]:
                    slack[other], came_from[other] = reduced, column
                if slack[other] < delta:
                    delta, following = slack[other], other
            for other in range(columns + 1):
                if used[other]:
                    row_price[owner[other]] += delta
                    column_price[other] -= delta
                else:
                    slack[other] -= delta
            column = following
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    result = [0] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            result[owner[column] - 1] = column - 1
    return result
