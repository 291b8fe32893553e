"""What a Step comes to where a wrong one does not end its Task (`--on-mismatch continue`). Pure.

Order and grouping do not matter here: a call that matches a node not yet done, by name and
arguments, is served. Play and score ask here, so that what a call was told and what a Task
came to cannot differ without a reason: play serves a call that any rule takes for right, a scorer
goes through the Session once more by its own rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from scenarios.arguments import CORRECT, check_arguments
from scenarios.assign import agreement, assign_shorter, parse_arguments
from scenarios.history import as_sent, observation_text
from scenarios.strict.arguments import Rules, judge_call, prepare
from scenarios.text import says_something
from scenarios.types import NO_NOTES, Node, Reply, Tool, ToolCall, ToolNotes

Kind = Literal["calls", "ask", "close", "nothing"]
Rule = Literal["released", "strict", "either"]
"""By whose rules a call matches a node, and a text that shows nothing is one."""
CallKey = tuple[str, str]
"""A call's name and its arguments, written in one way: equal for exact repeats."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call gets: the Observation of `node`, again if `redundant`.

    `text` is None where there is none for these arguments, or no such tool. `node` is also None
    for the repeat of a call of an earlier Task.
    """

    text: str | None = None
    node: int | None = None
    redundant: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a Task stands, and what the Session's calls were told so far.

    `done` are positions of nodes; `told`, what each call of the Session was served, lasts from Task
    to Task. `schemas` are the parameters of the tools, as sent, `rules` what `strict` goes by.
    """

    nodes: tuple[Node, ...]
    schemas: Mapping[str, object]
    done: frozenset[int] = frozenset()
    told: Mapping[CallKey, str] = field(default_factory=dict)
    rules: Mapping[str, Rules] = field(default_factory=dict, compare=False)
    rule: Rule = "either"

    @property
    def complete(self) -> bool:
        """Is nothing left to do but to close the Task?"""
        return all(
            i in self.done or node.is_close or (node.is_ask and _skipped(self, i))
            for i, node in enumerate(self.nodes)
        )


@dataclass(frozen=True, slots=True)
class LiveStep:
    """What a reply was taken for. `answers` has one entry for each call; `nodes` were done by it.

    `nothing` is a reply without text and calls.
    """

    kind: Kind
    progress: Progress
    nodes: tuple[int, ...] = ()
    answers: tuple[Answer, ...] = ()


def begin_task(
    tools: Sequence[Tool],
    nodes: tuple[Node, ...],
    before: Progress | None = None,
    *,
    notes: Mapping[str, ToolNotes] | None = None,
    rule: Rule = "either",
) -> Progress:
    """The Task's beginning; `before` is where the Session's last Task ended, whose rules go on."""
    if before is not None:
        return replace(before, nodes=nodes, done=frozenset())
    schemas = {tool.name: as_sent(tool.parameters) for tool in tools}
    rules = {tool.name: prepare(tool, (notes or {}).get(tool.name, NO_NOTES)) for tool in tools}
    return Progress(nodes, schemas, rules=rules, rule=rule)


def take(progress: Progress, reply: Reply) -> LiveStep:
    """What a reply comes to. Text while calls are due is the ask, if one is ready, else it closes the Task.

    An ask whose dependents are all done counts as skipped. By the rule `strict`, text that shows nothing
    is none.
    """
    if reply.calls:
        return _take_calls(progress, reply.calls)
    if not reply.content or (progress.rule == "strict" and not says_something(reply.content)):
        return LiveStep("nothing", progress)
    ask = next((i for i in range(len(progress.nodes)) if _is_due(progress, i)), None)
    if ask is not None:
        return LiveStep("ask", replace(progress, done=progress.done | {ask}), (ask,))
    closing = tuple(i for i, node in enumerate(progress.nodes) if node.is_close)[:1]
    return LiveStep("close", replace(progress, done=progress.done | set(closing)), closing)


def call_key(call: ToolCall) -> CallKey:
    value = parse_arguments(call.arguments)
    written = call.arguments if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return call.name, str(written)


def _take_calls(progress: Progress, calls: Sequence[ToolCall]) -> LiveStep:
    served = _served(progress, calls)
    done = frozenset(node for node in served if node is not None)
    fresh = [Answer() if node is None else Answer(_observation(progress, node), node) for node in served]
    after = _tell(replace(progress, done=progress.done | done), calls, fresh)
    answers = tuple(
        _repeat(after, call) if answer.node is None else answer
        for call, answer in zip(calls, fresh, strict=True)
    )
    return LiveStep("calls", _tell(after, calls, answers), tuple(sorted(done)), answers)


def _tell(progress: Progress, calls: Sequence[ToolCall], answers: Sequence[Answer]) -> Progress:
    """With what these calls are told."""
    told = dict(progress.told)
    for call, answer in zip(calls, answers, strict=True):
        if answer.text is not None:
            told[call_key(call)] = answer.text
    return replace(progress, told=told)


def _served(progress: Progress, calls: Sequence[ToolCall]) -> list[int | None]:
    """The open node that each call is served, one to one: as many calls as possible, ready nodes first."""
    open_nodes = [i for i, node in enumerate(progress.nodes) if node.is_call and i not in progress.done]
    # More than all that a further call served can cost the others.
    enough = 1.5 * min(len(calls), len(open_nodes))
    fits: dict[CallKey, list[float]] = {}
    keys = [call_key(call) for call in calls]
    for key, call in zip(keys, calls, strict=True):
        if key not in fits:
            fits[key] = [_fit(progress, call, node, enough) for node in open_nodes]
    weights = [fits[key] for key in keys]
    return [
        None if place is None or not row[place] else open_nodes[place]
        for row, place in zip(weights, assign_shorter(weights), strict=True)
    ]


def _fit(progress: Progress, call: ToolCall, node: int, enough: float) -> float:
    """0 if the call is not the node's, else `enough` and 1 to 2.5 more."""
    if not _matches(progress, call, node):
        return 0.0
    ready = set(progress.nodes[node].dependencies) <= progress.done
    agreed = agreement(parse_arguments(call.arguments), progress.nodes[node].arguments)
    return enough + 1.0 + (0.5 if ready else 0.0) + agreed


def _matches(progress: Progress, call: ToolCall, node: int) -> bool:
    wanted = progress.nodes[node]
    if call.name != wanted.name:
        return False
    if progress.rule != "strict" and _matches_released(progress, call, wanted):
        return True
    rules = progress.rules.get(call.name)
    return (
        rules is not None and progress.rule != "released" and judge_call(rules, call.arguments, wanted).right
    )


def _matches_released(progress: Progress, call: ToolCall, wanted: Node) -> bool:
    if not isinstance(call.arguments, str):
        return False
    if agreement(parse_arguments(call.arguments), wanted.arguments) == 1.0:
        return True
    return check_arguments(progress.schemas.get(call.name), call.arguments, wanted.arguments) == CORRECT


def _repeat(progress: Progress, call: ToolCall) -> Answer:
    """What a call gets that no open node is served for: the same again, if it is a repeat.

    An exact repeat gets what that very call was told last, whatever else it resembles.
    """
    told = progress.told.get(call_key(call))
    for node in sorted(progress.done):
        text = _observation(progress, node)
        if told in (None, text) and progress.nodes[node].is_call and _matches(progress, call, node):
            return Answer(text, node, redundant=True)
    return Answer(told, redundant=told is not None)


def _observation(progress: Progress, node: int) -> str:
    return observation_text(progress.nodes[node].observation)


def _is_due(progress: Progress, position: int) -> bool:
    node = progress.nodes[position]
    return (
        node.is_ask
        and position not in progress.done
        and set(node.dependencies) <= progress.done
        and not _skipped(progress, position)
    )


def _skipped(progress: Progress, ask: int) -> bool:
    # The closing text follows whether the user was asked or not: it needs no answer of theirs.
    dependents = {i for i, it in enumerate(progress.nodes) if ask in it.dependencies and not it.is_close}
    return bool(dependents) and dependents <= progress.done
