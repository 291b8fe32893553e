"""Which ready node each call of a reply is for: one to one, by likeness of arguments. Pure.

Nothing here depends on the order in which the calls come: they are taken in the order of their
names and arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.assign import assign_shorter
from scenarios.live import CallKey, call_key
from scenarios.reference import Batch
from scenarios.strict.arguments import Comparison, Rules, judge_call
from scenarios.strict.frontier_order import Order
from scenarios.types import ToolCall

Rulebook = Mapping[str, Rules]
"""The argument rules of each tool, by its name."""

Table = tuple[dict[int, Comparison], ...]
"""For each call, how it compares with each node that it may be for."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The node that a call is taken for, and how its arguments compare; None where there is none."""

    node: int | None = None
    comparison: Comparison | None = None

    @property
    def right(self) -> bool:
        return self.comparison is not None and self.comparison.right


def written(call: ToolCall) -> CallKey:
    """A call's name and arguments in one way of writing; what cannot be written so stays as it is."""
    try:
        return call_key(call)
    except RecursionError:
        return call.name, call.arguments if isinstance(call.arguments, str) else ""


def compare_all(
    order: Order, rulebook: Rulebook, calls: Sequence[ToolCall], candidates: Sequence[int]
) -> Table:
    """Compares each call with the candidates of its name: equal texts and interchangeable nodes once."""
    known: dict[tuple[str, str, int], Comparison] = {}
    table: list[dict[int, Comparison]] = []
    for number, call in enumerate(calls):
        text = call.arguments if isinstance(call.arguments, str) else f"\0{number}"
        row: dict[int, Comparison] = {}
        for i in candidates:
            if order.nodes[i].name == call.name and call.name in rulebook:
                key = call.name, text, order.twins[i]
                if key not in known:
                    known[key] = judge_call(rulebook[call.name], call.arguments, order.nodes[i])
                row[i] = known[key]
        table.append(row)
    return tuple(table)


def place(calls: Sequence[ToolCall], table: Table, ready: Batch) -> tuple[Placed, ...]:
    """The assignment with the most right calls, then the greatest likeness; ties by position of the node."""
    obvious = _obvious(table, ready)
    if obvious is not None:
        return obvious
    placed = [Placed()] * len(calls)
    names: dict[str, list[int]] = {}
    for number, call in enumerate(calls):
        names.setdefault(call.name, []).append(number)
    for own in names.values():
        nodes = [i for i in ready if i in table[own[0]]]
        if not nodes:
            continue
        rows = sorted(own, key=lambda number: written(calls[number])) if len(own) > 1 else own
        weights = [[_weight(table[row][i], len(nodes)) for i in nodes] for row in rows]
        for row, column in zip(rows, assign_shorter(weights), strict=True):
            if column is not None:
                placed[row] = Placed(nodes[column], table[row][nodes[column]])
        _settle_repeats(calls, placed, rows)
    return tuple(placed)


def _settle_repeats(calls: Sequence[ToolCall], placed: list[Placed], rows: Sequence[int]) -> None:
    """Of calls that say the same, the first in the reply are the right ones."""
    same: dict[CallKey, list[int]] = {}
    for row in rows:
        same.setdefault(written(calls[row]), []).append(row)
    for own in same.values():
        best_first = sorted((placed[row] for row in own), key=_settling)
        for row, it in zip(sorted(own), best_first, strict=True):
            placed[row] = it


def _settling(placed: Placed) -> tuple[bool, bool, int]:
    return not placed.right, placed.node is None, -1 if placed.node is None else placed.node


def _obvious(table: Table, ready: Batch) -> tuple[Placed, ...] | None:
    """The assignment where each call is right for one node and no two for the same: no search is needed."""
    fitting = [[i for i in ready if i in row and row[i].right] for row in table]
    if any(len(nodes) != 1 for nodes in fitting) or len({nodes[0] for nodes in fitting}) < len(fitting):
        return None
    return tuple(Placed(nodes[0], row[nodes[0]]) for nodes, row in zip(fitting, table, strict=True))


def _weight(comparison: Comparison, size: int) -> float:
    """A right call weighs more than all likeness that it can cost the others."""
    return comparison.likeness + (1.0 + size if comparison.right else 0.0)
