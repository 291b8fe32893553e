"""What may come next in a Task, in any order and grouping that its Reference allows. Pure.

Sets of nodes are bit masks (bit i = node i), as in `scenarios.reference`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scenarios.reference import Batch, bits, mask_of
from scenarios.types import Node

_SORTED = json.JSONEncoder(sort_keys=True)
"""To make one costs more than what it writes of a node."""


@dataclass(frozen=True, slots=True)
class Order:
    """A Reference prepared for asking what is due.

    `needs[i]` is the mask of what node i waits for: its dependencies, and for a closing node all
    else that does not come after it. `followers[i]` is the mask of the nodes that depend on node i.
    `twins[i]` is the lowest node that is interchangeable with node i: a call of the same tool with
    equal arguments, alternatives, dependencies and dependents.
    """

    nodes: tuple[Node, ...]
    needs: tuple[int, ...]
    followers: tuple[int, ...]
    twins: Batch

    def calls(self, done: int) -> Batch:
        """The calls that are ready, in annotation order."""
        return tuple(
            i
            for i, node in enumerate(self.nodes)
            if node.is_call and not done >> i & 1 and not self.needs[i] & ~done
        )

    def waiting(self, done: int) -> Batch:
        """The calls that are neither done nor ready, in annotation order: what is done waits for nothing."""
        return tuple(i for i, node in enumerate(self.nodes) if node.is_call and self.needs[i] & ~done)

    def ask(self, done: int) -> int | None:
        """The first ask that is due: ready, not done, and not skipped."""
        skipped = self._skipped(done)
        return next(
            (
                i
                for i, node in enumerate(self.nodes)
                if node.is_ask and not (done | skipped) >> i & 1 and not self.needs[i] & ~done
            ),
            None,
        )

    def close(self, done: int) -> int | None:
        """The first closing node, if all is done that does not come after it."""
        reached = done | self._skipped(done)
        return next(
            (i for i, node in enumerate(self.nodes) if node.is_close and not self.needs[i] & ~reached), None
        )

    def _skipped(self, done: int) -> int:
        """Asks whose dependents, the closing text aside, are all done: nobody needs the answer any more
        (as in `scenarios.live`).
        """
        closing = mask_of([i for i, node in enumerate(self.nodes) if node.is_close])
        waiting = {i: self.followers[i] & ~closing for i, node in enumerate(self.nodes) if node.is_ask}
        return mask_of([i for i, nodes in waiting.items() if nodes and not nodes & ~done])


def order_of(nodes: Sequence[Node]) -> Order:
    """Prepares an acyclic Reference with dependencies in range (the loader guarantees both)."""
    followers = [0] * len(nodes)
    for i, node in enumerate(nodes):
        for dependency in node.dependencies:
            followers[dependency] |= 1 << i
    closing = mask_of([i for i, node in enumerate(nodes) if node.is_close])
    needs = [mask_of(node.dependencies) for node in nodes]
    for i in bits(closing):
        rest = ((1 << len(nodes)) - 1) & ~closing
        needs[i] |= rest & ~_after(followers, i)
    return Order(tuple(nodes), tuple(needs), tuple(followers), tuple(_twins(nodes, followers)))


def _after(followers: Sequence[int], start: int) -> int:
    """Everything that comes after a node, itself not counted."""
    found, new = 0, followers[start]
    while new:
        found |= new
        reached = 0
        for i in bits(new):
            reached |= followers[i]
        new = reached & ~found
    return found


def _twins(nodes: Sequence[Node], followers: Sequence[int]) -> Iterator[int]:
    first: dict[tuple[object, ...], int] = {}
    for i, node in enumerate(nodes):
        written = _SORTED.encode([node.arguments, node.alternatives])
        yield first.setdefault((node.name, written, mask_of(node.dependencies), followers[i]), i)
