"""Random References, and the released path listing written out plainly to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from hypothesis import strategies as st

from scenarios.types import ASK, CLOSE, Node

Path = list[tuple[int, ...]]


def node(name: str, dependencies: tuple[int, ...], number: int) -> Node:
    user_input = f"reply {number}" if name == ASK else None
    return Node(name, {"n": number}, f"observation {number}", dependencies, user_input)


@st.composite
def any_reference(draw: st.DrawFn, max_calls: int = 5) -> tuple[Node, ...]:
    """An acyclic Reference of few names; asks may stand beside calls; the last node closes."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c", ASK]), max_size=max_calls))
    nodes = []
    for i, name in enumerate(names):
        dependencies = draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set()
        nodes.append(node(name, tuple(sorted(dependencies)), i))
    everything = draw(st.booleans())
    last = (
        tuple(range(len(names)))
        if everything
        else tuple(sorted(draw(st.sets(st.sampled_from(range(len(names)))))))
        if names
        else ()
    )
    return (*nodes, node(CLOSE, last, len(names)))


@st.composite
def orderly_reference(draw: st.DrawFn, max_layer: int = 3) -> tuple[Node, ...]:
    """A Reference whose asks and closing node stand alone: all before them, all after them."""
    nodes: list[Node] = []
    barrier: tuple[int, ...] = ()
    for _ in range(draw(st.integers(1, 2))):
        first = len(nodes)
        for name in draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=max_layer)):
            own = range(first, len(nodes))
            inner = draw(st.sets(st.sampled_from(own), max_size=2)) if len(own) else set()
            nodes.append(node(name, tuple(sorted({*barrier, *inner})), len(nodes)))
        if draw(st.booleans()):
            nodes.append(node(ASK, tuple(range(len(nodes))), len(nodes)))
            barrier = (len(nodes) - 1,)
    return (*nodes, node(CLOSE, tuple(range(len(nodes))), len(nodes)))


def released_paths(nodes: tuple[Node, ...], steps: int | None = None) -> Iterator[Path]:
    """Every path, in the released order, by listing all subsets: exponential and plain.

    With `steps`, the beginnings of so many Steps alone, each once.
    """
    yield from _paths(nodes, frozenset(), [], len(nodes) if steps is None else steps)


def _paths(nodes: tuple[Node, ...], done: frozenset[int], path: Path, steps: int) -> Iterator[Path]:
    if len(done) == len(nodes) or len(path) >= steps:
        yield path[:steps]
        return
    ready = [i for i in range(len(nodes)) if i not in done and set(nodes[i].dependencies) <= done]
    runs = _runs(nodes, ready)
    sequences = set()
    for size in range(1, len(ready) + 1):
        for batch in combinations(ready, size):
            sequence = tuple(nodes[i].name for i in batch)
            if sequence in sequences:
                continue
            sequences.add(sequence)
            run = next((run for run in runs if len(run) > 1 and run[0] == batch[0]), None)
            if size == 1 and run is not None:
                yield from _paths(nodes, done | set(run), [*path, *((i,) for i in run)], steps)
            elif size == 1 or not _splits_a_run(batch, runs):
                yield from _paths(nodes, done | set(batch), [*path, batch], steps)


def _runs(nodes: tuple[Node, ...], ready: list[int]) -> list[tuple[int, ...]]:
    runs: list[tuple[int, ...]] = []
    for i in ready:
        if runs and nodes[runs[-1][-1]].name == nodes[i].name:
            runs[-1] = (*runs[-1], i)
        else:
            runs.append((i,))
    return runs


def _splits_a_run(batch: tuple[int, ...], runs: list[tuple[int, ...]]) -> bool:
    prefixes = [batch[:end] for end in range(1, len(batch) + 1)]
    long_runs = [run for run in runs if len(run) > 1]
    if any(prefix in long_runs for prefix in prefixes):
        return False
    return any(set(prefix) < set(run) for prefix in prefixes for run in long_runs)
