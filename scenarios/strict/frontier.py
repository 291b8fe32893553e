"""What a Reference allows, in any order and grouping that its graph does, arguments decided at once. Pure.

A Task stands at a set of done nodes. A reply is accepted if its calls can be assigned one to one to
nodes that were ready before it, each right by name and arguments. Where calls fit several nodes, every
set of done nodes that an assignment can reach stays possible, so that nothing depends on the order of
the calls in a reply, and no call is held to a node that a later call needs. Paths are never listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scenarios.matcher import Kind
from scenarios.reference import Batch, bits, mask_of
from scenarios.strict.arguments import prepare
from scenarios.strict.frontier_order import Order, order_of
from scenarios.strict.frontier_places import Placed, Rulebook, Table, compare_all, place
from scenarios.text import says_something
from scenarios.types import NO_NOTES, Node, Reply, Tool, ToolCall, ToolNotes

MOST_MASKS = 1000
"""So many sets of done nodes are kept, those with the earliest nodes first. More arise only where ten or
more calls of one reply each fit ten or more nodes that are not interchangeable; then a later reply can
be refused that fits a set that was dropped."""

_EXPLAINED = 64
"""Among so many sets of done nodes the one is sought that a refused reply fits best."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Where a Task stands: the possible sets of done nodes (all of one size), and the calls made so far."""

    order: Order
    masks: tuple[int, ...] = (0,)
    calls: tuple[ToolCall, ...] = ()

    @property
    def done_count(self) -> int:
        """How many nodes are done."""
        return self.masks[0].bit_count()


@dataclass(frozen=True, slots=True)
class Taken:
    """An accepted Step. `nodes` are one choice of nodes, in the order of the calls."""

    kind: Kind
    nodes: tuple[int, ...]
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Refused:
    """A reply that is no Step at `frontier`.

    `did` is `call`, `text` or `none`. `done` is the set of done nodes that it fits best, `placed` for
    each call the ready node that it is nearest to.
    """

    did: Literal["call", "text", "none"]
    frontier: Frontier
    done: int
    placed: tuple[Placed, ...] = ()


def rulebook(tools: Sequence[Tool], notes: Mapping[str, ToolNotes]) -> Rulebook:
    """The argument rules of a Scenario's tools; the first of a name counts."""
    return {tool.name: prepare(tool, notes.get(tool.name, NO_NOTES)) for tool in reversed(tools)}


def begin(nodes: Sequence[Node]) -> Frontier:
    return Frontier(order_of(nodes))


def take(frontier: Frontier, rulebook: Rulebook, reply: Reply) -> Taken | Refused:
    """What a reply is taken for. Text beside calls is ignored, and text that shows nothing is none."""
    if reply.calls:
        return _take_calls(frontier, rulebook, reply.calls)
    if not says_something(reply.content):
        return Refused("none", frontier, frontier.masks[0])
    return _take_text(frontier)


def _take_text(frontier: Frontier) -> Taken | Refused:
    order = frontier.order
    kind: Kind
    for kind, due in (("ask", order.ask), ("close", order.close)):
        found = [(mask, node) for mask in frontier.masks if (node := due(mask)) is not None]
        if found:
            masks = {mask | 1 << node for mask, node in found}
            after = Frontier(order, _sorted(order, masks), frontier.calls)
            return Taken(kind, (found[0][1],), after)
    return Refused("text", frontier, frontier.masks[0])


def _take_calls(frontier: Frontier, rulebook: Rulebook, calls: tuple[ToolCall, ...]) -> Taken | Refused:
    order = frontier.order
    ready = {mask: order.calls(mask) for mask in frontier.masks}
    table = compare_all(order, rulebook, calls, sorted({i for nodes in ready.values() for i in nodes}))
    reached = _reach(order, ready, table)
    if reached:
        start = next(mask for mask in frontier.masks if mask in reached)
        nodes = tuple(it.node for it in place(calls, table, ready[start]) if it.node is not None)
        masks = _sorted(order, {mask for found in reached.values() for mask in found})
        return Taken("call", nodes, Frontier(order, masks, (*frontier.calls, *calls)))
    placings = [(mask, place(calls, table, ready[mask])) for mask in frontier.masks[:_EXPLAINED]]
    done, placed = max(placings, key=lambda it: _fit(it[1]))
    return Refused("call", frontier, done, placed)


def _fit(placed: Sequence[Placed]) -> tuple[int, int, float]:
    """How many calls are right and how many have a node at all, then how like they are."""
    likeness = sum(sorted(it.comparison.likeness for it in placed if it.comparison is not None))
    return sum(it.right for it in placed), sum(it.node is not None for it in placed), round(likeness, 9)


def _reach(order: Order, ready: Mapping[int, Batch], table: Table) -> dict[int, set[int]]:
    """From each possible set of done nodes, the sets that a perfect assignment of the calls leads to.

    Call by call, those that fit few nodes first. Where there are too many sets on the way, only such
    are kept as the calls that are left can still be assigned from.
    """
    rights = sorted(
        (mask_of([i for i, compared in row.items() if compared.right]) for row in table),
        key=lambda right: (right.bit_count(), right),
    )
    open_nodes = {start: mask_of(nodes) for start, nodes in ready.items()}
    states = {(start, start) for start in ready}
    for number, right in enumerate(rights):
        states = {
            (start, done | 1 << node)
            for start, done in states
            for node in _choices(order, right & open_nodes[start] & ~done)
        }
        if len(states) > MOST_MASKS:
            states = set(_possible(order, states, rights[number + 1 :], open_nodes))
    reached: dict[int, set[int]] = {}
    for start, done in states:
        reached.setdefault(start, set()).add(done)
    return reached


def _choices(order: Order, free: int) -> Iterator[int]:
    """The free nodes, of interchangeable ones the lowest."""
    twins: set[int] = set()
    for node in bits(free):
        if order.twins[node] not in twins:
            twins.add(order.twins[node])
            yield node


def _possible(
    order: Order, states: set[tuple[int, int]], rights: Sequence[int], open_nodes: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    kept = 0
    for start, done in sorted(states, key=lambda it: (_rank(order, it[1]), _rank(order, it[0]))):
        if _can_place([right & open_nodes[start] & ~done for right in rights]):
            yield start, done
            kept += 1
            if kept == MOST_MASKS:
                return


def _can_place(rights: Sequence[int]) -> bool:
    """Can every call have a node of its own? By augmenting paths."""
    owner: dict[int, int] = {}

    def placed(call: int, seen: set[int]) -> bool:
        for node in bits(rights[call]):
            if node not in seen:
                seen.add(node)
                if node not in owner or placed(owner[node], seen):
                    owner[node] = call
                    return True
        return False

    return all(placed(call, set()) for call in range(len(rights)))


def _sorted(order: Order, masks: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(masks, key=lambda mask: _rank(order, mask)))


def _rank(order: Order, mask: int) -> int:
    """Sorts sets of one size by their nodes: {0, 3} before {1, 2}."""
    return -int(format(mask, f"0{len(order.nodes)}b")[::-1], 2)
