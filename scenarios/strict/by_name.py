"""Could a reply be a legal Step if names alone counted, in any order and grouping? Pure.

For playing: a Task must not be ended at a Step that `strict` allows, and while it is played the
arguments have no say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scenarios.assign import assign_calls
from scenarios.matcher import Kind
from scenarios.reference import mask_of
from scenarios.strict.frontier_order import order_of
from scenarios.types import Node, Reply


def takes_by_name(
    nodes: Sequence[Node], done: frozenset[int], reply: Reply
) -> tuple[Kind, tuple[int, ...]] | None:
    """What the reply is taken for where `done` nodes are done, and its nodes; None if it is no Step.

    Calls are assigned one to one to ready nodes of their names, by best agreement of arguments; their
    nodes come in the order of the calls. Text without calls is the first ask that is ready and of
    which something that depends on it is not done; else it closes the Task, if nothing else is left.
    """
    order, mask = order_of(nodes), mask_of(tuple(done))
    if not reply.calls:
        if not reply.content:
            return None
        ask, close = order.ask(mask), order.close(mask)
        if ask is not None:
            return "ask", (ask,)
        return None if close is None else ("close", (close,))
    ready = order.calls(mask)
    if not Counter(call.name for call in reply.calls) <= Counter(nodes[i].name for i in ready):
        return None
    return "call", tuple(i for i in assign_calls(nodes, ready, reply.calls) if i is not None)
