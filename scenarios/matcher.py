"""What a Reference allows, step by step, exactly as the released harness plays it.

The released harness lists every path through the Reference and strikes out those that
a reply does not fit: eight independent calls make 545,835 paths (facts: section 5,
row 7). The same verdicts follow from a small automaton (design: the matcher). A *spot*
is a set of done nodes and a queue of forced ones; a state is an ordered set of spots.
It has one spot, but for what follows an accepted ask: the released harness does not
prune there (row 12), so the state holds every spot that any path could have reached,
written down as the moves that lead there and listed only as far as a reply needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from scenarios.reference import Batch, Graph, Possible, batches, graph_of, mask_of, run_length
from scenarios.types import ASK, Node

Kind = Literal["call", "ask", "close"]

_LISTED = 64
"""Up to so many spots a state is kept as a list; beyond, as the moves that lead to them."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place on a path: what is done, and which nodes must follow one by one."""

    done: int
    forced: Batch = ()


@dataclass(frozen=True, slots=True)
class Listed:
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """Every spot of `before`, moved by every batch it allows."""

    before: Spots


@dataclass(frozen=True, slots=True)
class Kept:
    """The spots of `before` that allow `batch`, moved by it."""

    before: Spots
    batch: Batch


Spots = Listed | Moved | Kept


@dataclass(frozen=True, slots=True)
class State:
    """Where a Task stands after some accepted Steps."""

    graph: Graph
    spots: Spots


@dataclass(frozen=True, slots=True)
class Match:
    """An accepted Step: the Reference nodes it stands for, and the state after it."""

    kind: Kind
    nodes: Batch
    state: State


def start(nodes: Sequence[Node]) -> State:
    return State(graph_of(nodes), Listed((Spot(0),)))


def match_calls(state: State, names: Sequence[str]) -> Match | None:
    """The batch that a message with tool calls of these names is taken for, or None."""
    wanted = Counter(names)
    for spot in _walk(state.graph, state.spots, _may_call(state.graph, wanted)):
        batch = _first_batch(state.graph, spot, wanted)
        if batch is not None:
            return Match("call", batch, _advance(state, Kept(state.spots, batch)))
    return None


def match_text(state: State) -> Match | None:
    """The ask or closing node that a (non-empty) text is taken for, or None.

    The text itself is never read: the released harness does not (facts: section 4).
    """
    graph = state.graph
    for spot in _walk(graph, state.spots, _may_speak(graph)):
        for position in spot.forced[:1] or graph.ready(spot.done):
            if graph.is_pseudo(position):
                if graph.names[position] == ASK:
                    return Match("ask", (position,), _advance(state, Moved(state.spots)))
                return Match("close", (position,), State(graph, Listed(())))
    return None


def allowed(state: State, limit: int = 8) -> list[tuple[str, ...]]:
    """Up to `limit` batches, as names in annotation order, that would be accepted now."""
    found: dict[tuple[str, ...], None] = {}
    for spot in islice(_walk(state.graph, state.spots, _anything), _LISTED):
        for batch in islice(_moves(state.graph, spot, _anything), limit):
            found.setdefault(tuple(state.graph.names[i] for i in batch))
            if len(found) == limit:
                return list(found)
    return list(found)


def _advance(state: State, spots: Spots) -> State:
    listed = tuple(islice(_walk(state.graph, spots, _anything), _LISTED + 1))
    if len(listed) <= _LISTED:
        spots = Listed(listed)
    return State(state.graph, spots)


def _walk(graph: Graph, spots: Spots, possible: Possible) -> Iterator[Spot]:
    """The spots in order, each once, without those from which `possible` is out of reach."""
    match spots:
        case Listed(listed):
            yield from listed
        case Kept(before, batch):
            seen: set[Spot] = set()
            for spot in _walk(graph, before, _may_take(graph, batch, possible)):
                if _allows(graph, spot, batch):
                    yield from _new(seen, _after(graph, spot, batch))
        case Moved(before):
            seen = set()
            for spot in _walk(graph, before, _later(graph, possible)):
                for move in _moves(graph, spot, possible):
                    yield from _new(seen, _after(graph, spot, move))


def _new(seen: set[Spot], spot: Spot) -> Iterator[Spot]:
    if spot not in seen:
        seen.add(spot)
        yield spot


def _moves(graph: Graph, spot: Spot, possible: Possible) -> Iterator[Batch]:
    if spot.forced:
        yield spot.forced[:1]
    else:
        yield from batches(graph, spot.done, possible)


def _after(graph: Graph, spot: Spot, batch: Batch) -> Spot:
    done = spot.done | mask_of(batch)
    if spot.forced:
        return Spot(done, spot.forced[1:])
    if len(batch) > 1:
        return Spot(done)
    ready = graph.ready(spot.done)
    at = ready.index(batch[0])
    return Spot(done, ready[at + 1 : at + run_length(graph.names, ready, at)])


def _allows(graph: Graph, spot: Spot, batch: Batch) -> bool:
    """Is `batch` among the moves of `spot`? It is if it is the first of its names' sequence."""
    if spot.forced:
        return spot.forced[:1] == batch
    ready = graph.ready(spot.done)
    at = 0
    for count, node in enumerate(batch):
        earliest = next(
            (k for k in range(at, len(ready)) if graph.names[ready[k]] == graph.names[node]), None
        )
        if earliest is None or ready[earliest] != node:
            return False
        if count == 0 and len(batch) > 1:
            run = ready[earliest : earliest + run_length(graph.names, ready, earliest)]
            if batch[: len(run)] != run:
                return False
        at = earliest + 1
    return True


def _first_batch(graph: Graph, spot: Spot, wanted: Counter[str]) -> Batch | None:
    """The first move whose names, in any order, are `wanted`.

    Among the nodes after the first, taking each node that is still wanted as soon as it
    comes is lexicographically first and keeps to the first batch of its sequence, so only
    the choice of the first node is tried out.
    """
    if spot.forced:
        return spot.forced[:1] if wanted == Counter([graph.names[spot.forced[0]]]) else None
    ready = graph.ready(spot.done)
    tried: set[str] = set()
    for first, node in enumerate(ready):
        name = graph.names[node]
        if name in tried or not wanted[name]:
            continue
        tried.add(name)
        batch = _complete(graph, ready, first, wanted)
        if batch is not None:
            return batch
    return None


def _complete(graph: Graph, ready: Batch, first: int, wanted: Counter[str]) -> Batch | None:
    size = wanted.total()
    length = 1 if size == 1 else run_length(graph.names, ready, first)
    left = wanted.copy()
    left[graph.names[ready[first]]] -= length
    if left[graph.names[ready[first]]] < 0:
        return None
    batch = list(ready[first : first + length])
    for node in ready[first + length :]:
        if left[graph.names[node]] > 0:
            left[graph.names[node]] -= 1
            batch.append(node)
    return tuple(batch) if len(batch) == size else None


def _anything(done: int, available: int, slots: int) -> bool:
    return True


def _later(graph: Graph, possible: Possible) -> Possible:
    """`possible`, when a whole batch comes in between: anything may be done by then."""
    return lambda done, available, slots: possible(done, graph.everything & ~done, graph.size)


def _may_take(graph: Graph, batch: Batch, then: Possible) -> Possible:
    """May `batch` come next, and after it what `then` asks for?"""
    wanted = mask_of(batch)
    needs = 0
    for node in batch:
        needs |= graph.needs[node]

    def possible(done: int, available: int, slots: int) -> bool:
        missing = needs & ~done
        if done & wanted or missing & ~available or missing.bit_count() > slots:
            return False
        return then(done | wanted, available & ~wanted, slots)

    return possible


def _may_call(graph: Graph, wanted: Counter[str]) -> Possible:
    def possible(done: int, available: int, slots: int) -> bool:
        reach = done | available
        open_now = Counter(
            name for i, name in enumerate(graph.names) if not done >> i & 1 and not graph.needs[i] & ~reach
        )
        return wanted <= open_now

    return possible


def _may_speak(graph: Graph) -> Possible:
    pseudo = [i for i in range(graph.size) if graph.is_pseudo(i)]

    def possible(done: int, available: int, slots: int) -> bool:
        for i in pseudo:
            missing = graph.needs[i] & ~done
            if not done >> i & 1 and not missing & ~available and missing.bit_count() <= slots:
                return True
        return False

    return possible
