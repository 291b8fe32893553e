"""A Reference as an agent would play it, and the wrong plays that no scorer may call correct."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scenarios.reference import minimal_path
from scenarios.types import Node, Reply, Tool, ToolCall

UNKNOWN_TOOL = "no_such_tool"
TEXT_INSTEAD = "Done."


@dataclass(frozen=True, slots=True)
class Mutation:
    """A wrong way to play a Task: what was done to the Reference, and at which node (None: the Task)."""

    what: str
    node: int | None
    replies: tuple[Reply, ...]


def required_keys(tool: Tool) -> tuple[str, ...]:
    """The keys that every call of `tool` must have; none where the schema does not say so properly."""
    required = tool.parameters.get("required")
    return tuple(key for key in required if isinstance(key, str)) if isinstance(required, list) else ()


def steps(nodes: Sequence[Node]) -> tuple[tuple[int, ...], ...]:
    """The first minimal path; a batch that holds text actions beside calls is split, calls first."""
    split: list[tuple[int, ...]] = []
    for batch in minimal_path(nodes):
        calls = tuple(i for i in batch if nodes[i].is_call)
        split += [calls] if calls else []
        split += [(i,) for i in sorted(batch, key=lambda i: nodes[i].is_close) if not nodes[i].is_call]
    return tuple(split)


def reference_replies(nodes: Sequence[Node]) -> tuple[Reply, ...]:
    """The replies of an agent that does exactly what the Reference says, in the fewest steps."""
    return tuple(_reply(nodes, step) for step in steps(nodes))


def mutations(tools: Sequence[Tool], nodes: Sequence[Node]) -> Iterator[Mutation]:
    """Every mutation that makes sense for this Task; a Task without calls has none but an added call."""
    path = steps(nodes)
    played = reference_replies(nodes)
    yield from _added_calls(tools, nodes, path, played)
    required = {tool.name: required_keys(tool) for tool in tools}
    for at, step in enumerate(path):
        if not nodes[step[0]].is_call:
            continue
        before, calls, after = played[:at], played[at].calls, played[at + 1 :]
        spoken = Reply(TEXT_INSTEAD)
        yield Mutation("text instead of the call", step[0], (*before, spoken, *after))
        for place, node in enumerate(step):
            rest = (*calls[:place], *calls[place + 1 :])
            shorter = (Reply(None, rest),) if rest else ()
            yield Mutation("the call dropped", node, (*before, *shorter, *after))
            stranger = replace(calls[place], name=_unknown(tools))
            yield Mutation(
                "an unknown tool called instead", node, (*before, _with(calls, place, stranger), *after)
            )
            for key in required.get(nodes[node].name, ()):
                if key in nodes[node].arguments:
                    without = {k: v for k, v in nodes[node].arguments.items() if k != key}
                    poorer = replace(calls[place], arguments=_dump(without))
                    what = f"the required key {key} missing"
                    yield Mutation(what, node, (*before, _with(calls, place, poorer), *after))


def _added_calls(
    tools: Sequence[Tool],
    nodes: Sequence[Node],
    path: Sequence[tuple[int, ...]],
    played: tuple[Reply, ...],
) -> Iterator[Mutation]:
    """A needless call before everything, before the end, and beside each batch of calls."""
    made = [
        pair
        for step, reply in zip(path, played, strict=True)
        if reply.calls
        for pair in zip(step, reply.calls, strict=True)
    ]
    node: int | None = None
    if made:
        node, call = made[-1]
    elif tools:
        call = ToolCall("call_0", tools[0].name, "{}")
    else:
        return
    extra = replace(call, id="call_extra")
    alone = Reply(None, (extra,))
    yield Mutation("a call added before the first step", node, (alone, *played))
    yield Mutation("a call added before the closing text", node, (*played[:-1], alone, played[-1]))
    for at, reply in enumerate(played):
        if reply.calls:
            again = replace(reply.calls[-1], id="call_extra")
            more = Reply(None, (*reply.calls, again))
            yield Mutation("the call made twice", path[at][-1], (*played[:at], more, *played[at + 1 :]))


def _reply(nodes: Sequence[Node], step: tuple[int, ...]) -> Reply:
    first = nodes[step[0]]
    if not first.is_call:
        return Reply(first.observation)
    calls = (ToolCall(f"call_{i}", nodes[i].name, _dump(nodes[i].arguments)) for i in step)
    return Reply(None, tuple(calls))


def _with(calls: tuple[ToolCall, ...], place: int, call: ToolCall) -> Reply:
    return Reply(None, (*calls[:place], call, *calls[place + 1 :]))


def _unknown(tools: Sequence[Tool]) -> str:
    name = UNKNOWN_TOOL
    while name in (tool.name for tool in tools):
        name += "_"
    return name


def _dump(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False)
