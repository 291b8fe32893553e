"""The Reference of a Task as a graph: what is ready, how deep it is, its shortest path.

Sets of nodes are bit masks (bit i = node i), so that a step costs a few integer
operations however many orders the graph allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scenarios.types import PSEUDO_ACTIONS, Node

Batch = tuple[int, ...]
"""Node positions of one Step, in annotation order."""

Possible = Callable[[int, int, int], bool]
"""(done, available, slots) -> may a batch be completed so that what is looked for holds?

`done` holds what is done and what the batch holds so far, `available` what may still
be added to it, `slots` how many more nodes it takes. Must never be False wrongly.
"""


def bits(mask: int) -> Iterator[int]:
    """The positions set in `mask`, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(positions: Sequence[int] | Batch) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


@dataclass(frozen=True, slots=True)
class Graph:
    """A Reference prepared for matching.

    `needs[i]` is the mask of node i's dependencies; `chains[i]` the length in nodes of
    the longest chain that starts at node i.
    """

    names: tuple[str, ...]
    needs: tuple[int, ...]
    chains: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def depth(self) -> int:
        """The longest chain in nodes: the least number of Steps (facts: `min_length`)."""
        return max(self.chains, default=0)

    @property
    def everything(self) -> int:
        return (1 << self.size) - 1

    def is_pseudo(self, position: int) -> bool:
        return self.names[position] in PSEUDO_ACTIONS

    def ready(self, done: int) -> Batch:
        """Nodes not done whose dependencies are all done, in annotation order."""
        return tuple(i for i, needs in enumerate(self.needs) if not done >> i & 1 and not needs & ~done)

    def critical(self, done: int) -> int:
        """The undone nodes that start a longest remaining chain: a shortest path does them now."""
        left = [(chain, i) for i, chain in enumerate(self.chains) if not done >> i & 1]
        longest = max(left, default=(0, 0))[0]
        return mask_of([i for chain, i in left if chain == longest])


def graph_of(nodes: Sequence[Node]) -> Graph:
    """Prepares an acyclic Reference with dependencies in range (the loader guarantees both)."""
    needs = tuple(mask_of(node.dependencies) for node in nodes)
    followers: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for dependency in set(node.dependencies):
            followers[dependency].append(i)
    chains = [0] * len(nodes)
    for i in reversed(_topological_order(needs)):
        chains[i] = 1 + max((chains[follower] for follower in followers[i]), default=0)
    return Graph(tuple(node.name for node in nodes), needs, tuple(chains))


def _topological_order(needs: Sequence[int]) -> list[int]:
    order: list[int] = []
    done = 0
    while len(order) < len(needs):
        layer = [i for i, need in enumerate(needs) if not done >> i & 1 and not need & ~done]
        if not layer:
            raise ValueError("the dependencies form a cycle or point outside the Reference")
        order.extend(layer)
        done |= mask_of(layer)
    return order


def run_length(names: Sequence[str], ready: Batch, start: int) -> int:
    """How many neighbours in `ready`, from index `start` on, carry one name."""
    end = start + 1
    while end < len(ready) and names[ready[end]] == names[ready[start]]:
        end += 1
    return end - start


def batches(graph: Graph, done: int, possible: Possible) -> Iterator[Batch]:
    """The batches the released harness allows next, in its order, pruned by `possible`.

    By size, then lexicographically; of batches with one sequence of names only the first
    counts; a batch of two or more that starts inside a run of equal names must start with
    that whole run (design: the matcher; facts: section 5, rows 4 to 6).
    """
    ready = graph.ready(done)
    for size in range(1, len(ready) + 1):
        yield from _batches_of_size(graph, done, ready, size, possible)


def _batches_of_size(graph: Graph, done: int, ready: Batch, size: int, possible: Possible) -> Iterator[Batch]:
    if not possible(done, mask_of(ready), size):
        return
    names = graph.names
    seen: set[str] = set()
    for start in range(len(ready) - size + 1):
        if names[ready[start]] in seen:
            continue
        seen.add(names[ready[start]])
        length = 1 if size == 1 else run_length(names, ready, start)
        if length <= size:
            head = ready[start : start + length]
            yield from _extend(graph, done | mask_of(head), ready, start + length, head, size, possible)


def _extend(
    graph: Graph, done: int, ready: Batch, start: int, head: Batch, size: int, possible: Possible
) -> Iterator[Batch]:
    slots = size - len(head)
    if not possible(done, mask_of(ready[start:]) if slots else 0, slots):
        return
    if not slots:
        yield head
        return
    seen: set[str] = set()
    for at in range(start, len(ready) - slots + 1):
        name = graph.names[ready[at]]
        if name not in seen:
            seen.add(name)
            node = ready[at]
            yield from _extend(graph, done | 1 << node, ready, at + 1, (*head, node), size, possible)


def first_minimal_batch(graph: Graph, done: int) -> Batch:
    """The first batch after which the longest remaining chain is one node shorter."""
    critical = graph.critical(done)
    ready = graph.ready(done)

    def covers(so_far: int, available: int, slots: int) -> bool:
        missing = critical & ~so_far
        return not missing & ~available and missing.bit_count() <= slots

    for batch in batches(graph, done, covers):
        # A lone first node of a run would bring the rest of the run with it, one per step.
        if len(batch) > 1 or run_length(graph.names, ready, ready.index(batch[0])) == 1:
            return batch
    return ()


def depth(nodes: Sequence[Node]) -> int:
    """The least number of Steps in which a Task can be done."""
    return graph_of(nodes).depth


def ready(nodes: Sequence[Node], done: frozenset[int]) -> Batch:
    """Positions of the nodes that can be done next, in annotation order."""
    return graph_of(nodes).ready(mask_of(tuple(done)))


def next_minimal_batch(nodes: Sequence[Node], done: frozenset[int] = frozenset()) -> Batch:
    """The next Step of the first minimal path from `done`; empty when all is done."""
    return first_minimal_batch(graph_of(nodes), mask_of(tuple(done)))


def minimal_path(nodes: Sequence[Node], done: frozenset[int] = frozenset()) -> tuple[Batch, ...]:
    """The first minimal path: the one the released harness rebuilds histories along."""
    graph = graph_of(nodes)
    mask = mask_of(tuple(done))
    path: list[Batch] = []
    while batch := first_minimal_batch(graph, mask):
        path.append(batch)
        mask |= mask_of(batch)
    return tuple(path)
