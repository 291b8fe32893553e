"""Could a reply be a legal Step if names alone counted, in any order and grouping? Pure.

For playing: a Task must not be ended at a Step that `strict` allows, and while it is played the
arguments have no say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from scenarios.assign import assign_calls
from scenarios.matcher import Kind
from scenarios.reference import bits, mask_of
from scenarios.strict.frontier_order import Order, order_of
from scenarios.types import Node, Reply, ToolCall

_MOST_TRIED = 64
"""So many sets of nodes are tried that could have been done instead of those that were served."""


def takes_by_name(
    nodes: Sequence[Node],
    done: frozenset[int],
    reply: Reply,
    is_right: Callable[[ToolCall, Node], bool] | None = None,
) -> tuple[Kind, tuple[int, ...]] | None:
    """What the reply is taken for where `done` nodes are done, and its nodes; None if it is no Step.

    Calls are assigned one to one to ready nodes of their names, as `scenarios.assign` does; their
    nodes come in the order of the calls. Text without calls is the first ask that is ready and of
    which something that depends on it is not done; else it closes the Task, if nothing else is left.
    A call that was served for one of two nodes that it fits may have been for the other: what waits for
    that one is taken as well. No node comes that is in `done`.
    """
    if not reply.calls and not reply.content:
        return None
    order, mask = order_of(nodes), mask_of(tuple(done))
    for possible in _possible(order, mask):
        taken = _take(order, possible, reply, is_right)
        if taken is not None:
            kind, found = taken
            return kind, _not_done(order, mask, possible, found)
    return None


def _take(
    order: Order, done: int, reply: Reply, is_right: Callable[[ToolCall, Node], bool] | None
) -> tuple[Kind, tuple[int, ...]] | None:
    if not reply.calls:
        ask, close = order.ask(done), order.close(done)
        if ask is not None:
            return "ask", (ask,)
        return None if close is None else ("close", (close,))
    ready = order.calls(done)
    if not Counter(call.name for call in reply.calls) <= Counter(order.nodes[i].name for i in ready):
        return None
    assigned = assign_calls(order.nodes, ready, reply.calls, is_right)
    return "call", tuple(i for i in assigned if i is not None)


def _possible(order: Order, done: int) -> list[int]:
    """`done` and what could be done in its place, by exchanging nodes that a call fits alike.

    Those where all is done that a done node waits for; `done` alone, if there is none.
    """
    found = [done]
    for mask in found:
        for other in _exchanged(order, mask):
            if len(found) < _MOST_TRIED and other not in found:
                found.append(other)
    return [mask for mask in found if all(not order.needs[i] & ~mask for i in bits(mask))] or [done]


def _exchanged(order: Order, done: int) -> Iterator[int]:
    """`done` with a call that is ready in the place of one that it fits as well."""
    ready = order.calls(done)
    for old in bits(done):
        for new in ready:
            if order.twins[new] != order.twins[old] and _share_a_call(order, new, old):
                yield done & ~(1 << old) | 1 << new


def _share_a_call(order: Order, left: int, right: int) -> bool:
    """Is there a call that either node would take?"""
    one, other = order.nodes[left], order.nodes[right]
    theirs = (other.arguments, *other.alternatives)
    return one.name == other.name and any(it in theirs for it in (one.arguments, *one.alternatives))


def _not_done(order: Order, done: int, possible: int, found: tuple[int, ...]) -> tuple[int, ...]:
    """`found`, with such nodes in the place of those that are in `done`."""
    spare = list(bits(possible & ~done))
    fresh: list[int] = []
    for node in found:
        if done >> node & 1:
            instead = next((i for i in spare if _share_a_call(order, i, node)), spare[0])
            spare.remove(instead)
            node = instead
        fresh.append(node)
    return tuple(fresh)
