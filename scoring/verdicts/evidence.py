"""Why `strict` says that a Step is wrong: one rule by a stable id, and what would have been right. Pure.

Each wrong call of a refused reply is told the first rule of `RULES` that it breaks; the Step is told
the first of these, whatever the order of its calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.assign import agreement, parse_arguments
from scenarios.reference import Batch, bits, mask_of
from scenarios.strict.arguments import judge_call
from scenarios.strict.faults import Fault
from scenarios.strict.frontier import Frontier, Refused
from scenarios.strict.frontier_order import Order
from scenarios.strict.frontier_places import Placed, Rulebook, written
from scenarios.text import clip, visible
from scenarios.types import ToolCall
from scoring.types import AGENT_STOPPED, CORRECT, Evidence, Nearest

RULES: Mapping[str, str] = {
    "step.not_reached": "The session ended before this task.",
    "step.no_reply": "The replies ended, or the agent stopped, before the task was over.",
    "step.empty_reply": "The reply has neither text nor tool calls.",
    "step.text_instead_of_call": "The reply is text while calls are due and no text is.",
    "step.unknown_tool": "The called name is none of the tools.",
    "step.call_instead_of_question": "A call was made where only a question to the user is due.",
    "step.call_instead_of_answer": "A call was made where only the closing text is due.",
    "step.redundant_call": "The call repeats one that was answered in this task, or one of the same reply.",
    "step.wrong_tool": "The tool is one that nothing of what is left to do uses.",
    "step.too_early": "The call is one to be made, but waits for others.",
    "step.extra_call": "The tool is right, but is called more often than there is use for.",
}
"""Rule id -> what it says, in order of priority. Below them all come those of `args.*`."""

_PRIORITY = {rule: number for number, rule in enumerate(RULES)}
_MOST_ALLOWED = 8


@dataclass(frozen=True, slots=True)
class Divergence:
    """A refused Step: its evidence, for each of its calls `correct` or the rule and what it says of
    it, and how many of the calls are right.
    """

    evidence: Evidence
    checks: tuple[str, ...]
    right: int


@dataclass(frozen=True, slots=True)
class _Blame:
    rule: str
    message: str
    node: int | None = None
    faults: tuple[Fault, ...] = ()
    expected: Mapping[str, Any] | None = None


def not_reached(reason: str) -> Evidence:
    return Evidence(0, "step.not_reached", reason)


def no_reply(frontier: Frontier, step: int, ending: str | None) -> Evidence:
    """For a Task of which the replies ran out before `step`; `ending` is how it ended, if that is known."""
    who = "the agent stopped" if ending == AGENT_STOPPED else "the replies ended"
    return _of_step(
        frontier.order, frontier.masks[0], step, "step.no_reply", f"{who} before the task was over"
    )


def diverge(refused: Refused, rulebook: Rulebook, calls: tuple[ToolCall, ...], step: int) -> Divergence:
    """What is wrong with a refused reply, of which these are the calls."""
    order, done = refused.frontier.order, refused.done
    if refused.did == "none":
        message = "replied with neither text nor tool calls"
        return Divergence(_of_step(order, done, step, "step.empty_reply", message), (), 0)
    if refused.did == "text":
        due = " + ".join(visible(order.nodes[i].name) for i in order.calls(done))
        message = f"replied in text while calls are due: {due}"
        return Divergence(_of_step(order, done, step, "step.text_instead_of_call", message), (), 0)
    blames = _blames(refused, rulebook, calls)
    wrong = [(number, blame) for number, blame in enumerate(blames) if blame is not None]
    number, blame = min(wrong, key=lambda it: (*_rank(it[1], len(order.nodes)), written(calls[it[0]])))
    checks = tuple(CORRECT if it is None else f"{it.rule}: {it.message}" for it in blames)
    evidence = _of_call(refused, calls, number, blame, step)
    return Divergence(evidence, checks, len(calls) - len(wrong))


def _rank(blame: _Blame, size: int) -> tuple[int, int]:
    return _PRIORITY.get(blame.rule, len(_PRIORITY)), size if blame.node is None else blame.node


def _of_step(order: Order, done: int, step: int, rule: str, message: str) -> Evidence:
    return Evidence(step, rule, message, _allowed(order, done), _nearest_text(order, done))


def _of_call(
    refused: Refused, calls: tuple[ToolCall, ...], number: int, blame: _Blame, step: int
) -> Evidence:
    order, done, call = refused.frontier.order, refused.done, calls[number]
    which = f"call {number + 1} of {len(calls)}, " if len(calls) > 1 else ""
    return Evidence(
        step=step,
        rule=blame.rule,
        message=f"{which}{_name(call)}: {blame.message}",
        allowed=_allowed(order, done),
        nearest=_nearest(refused, call)
        if blame.node is None
        else _as_nearest(order, blame.node, blame.expected),
        call=number,
        tool=call.name,
        faults=blame.faults,
    )


def _name(call: ToolCall) -> str:
    return visible(clip(call.name, 80)) or "something without a name"


# --- What is wrong with each call --------------------------------------------


def _blames(refused: Refused, rulebook: Rulebook, calls: tuple[ToolCall, ...]) -> list[_Blame | None]:
    """For each call None if it is right, else the first rule that it breaks."""
    keys = [written(call) for call in calls]
    right = {key for key, it in zip(keys, refused.placed, strict=True) if it.right}
    near = {key for key, it in zip(keys, refused.placed, strict=True) if it.node is not None}
    answered = {written(call) for call in refused.frontier.calls}
    blames: list[_Blame | None] = []
    for call, key, placed in zip(calls, keys, refused.placed, strict=True):
        if placed.right:
            blames.append(None)
        elif (blame := _misplaced(refused, rulebook, call)) is not None:
            blames.append(blame)
        elif key in answered or _is_answered(refused, rulebook, call):
            blames.append(_Blame("step.redundant_call", "repeats a call that was answered in this task"))
        elif key in right or (placed.node is None and key in near):
            blames.append(_Blame("step.redundant_call", "repeats a call of the same reply"))
        else:
            blames.append(_out_of_place(refused, rulebook, call, placed) or _of_arguments(placed))
    return blames


def _misplaced(refused: Refused, rulebook: Rulebook, call: ToolCall) -> _Blame | None:
    """The rules that look at no more than whether a call of this tool can be due."""
    order, done = refused.frontier.order, refused.done
    if call.name not in rulebook:
        return _Blame("step.unknown_tool", "is none of the tools")
    if order.calls(done):
        return None
    ask, close = order.ask(done), order.close(done)
    if ask is not None:
        return _Blame("step.call_instead_of_question", "called where the user is to be asked", ask)
    return _Blame("step.call_instead_of_answer", "called where only the closing text was left", close)


def _is_answered(refused: Refused, rulebook: Rulebook, call: ToolCall) -> bool:
    """Is it, by meaning, a call that is done?"""
    nodes = refused.frontier.order.nodes
    return any(
        nodes[i].name == call.name and judge_call(rulebook[call.name], call.arguments, nodes[i]).right
        for i in bits(refused.done)
    )


def _out_of_place(refused: Refused, rulebook: Rulebook, call: ToolCall, placed: Placed) -> _Blame | None:
    """The rules for a tool that has nothing, or nothing more, to do here."""
    order, done = refused.frontier.order, refused.done
    waiting = [i for i in order.waiting(done) if order.nodes[i].name == call.name]
    compared = [(judge_call(rulebook[call.name], call.arguments, order.nodes[i]), i) for i in waiting]
    if waiting and (placed.node is None or any(it.right for it, _ in compared)):
        _, node = max(compared, key=lambda it: (it[0].right, it[0].likeness, -it[1]))
        return _Blame("step.too_early", f"waits for {_awaited(order, done, node)}")
    if placed.node is not None:
        return None
    ready = sum(order.nodes[i].name == call.name for i in order.calls(done))
    if ready:
        times = "once" if ready == 1 else f"{ready} times"
        return _Blame("step.extra_call", f"is due {times} and was called more often")
    return _Blame("step.wrong_tool", "is of no use for what is left to do")


def _awaited(order: Order, done: int, node: int) -> str:
    names = [visible(order.nodes[i].name) for i in bits(order.needs[node] & ~done)]
    return " + ".join(names)


def _of_arguments(placed: Placed) -> _Blame:
    assert placed.comparison is not None
    found = placed.comparison
    return _Blame(found.faults[0].rule, found.faults[0].message, placed.node, found.faults, found.expected)


# --- What would have been right ----------------------------------------------


def _allowed(order: Order, done: int) -> tuple[tuple[str, ...], ...]:
    """Each ready node as a batch of its own, then all ready calls as one; no batch twice, at most 8."""
    calls = order.calls(done)
    texts = [i for i in (order.ask(done), order.close(done)) if i is not None][:1]
    alone = list(dict.fromkeys((order.nodes[i].name,) for i in sorted((*calls, *texts))))
    together = [tuple(order.nodes[i].name for i in calls)] if len(calls) > 1 else []
    return (*alone[: _MOST_ALLOWED - len(together)], *together)


def _nearest_text(order: Order, done: int) -> Nearest | None:
    """For a Step without calls: the text that is due, else the first call."""
    due = [i for i in (order.ask(done), order.close(done), *order.calls(done)) if i is not None]
    return _as_nearest(order, due[0]) if due else None


def _nearest(refused: Refused, call: ToolCall) -> Nearest | None:
    """The ready node that this call is most like, of those that no right call stands for."""
    order, done = refused.frontier.order, refused.done
    taken = {it.node for it in refused.placed if it.right}
    free: Batch = tuple(i for i in order.calls(done) if i not in taken)
    if not free:
        return _nearest_text(order, done | mask_of([i for i in taken if i is not None]))
    given = parse_arguments(call.arguments)

    def likeness(i: int) -> tuple[bool, float, int]:
        node = order.nodes[i]
        return node.name == call.name, agreement(given, node.arguments), -i

    return _as_nearest(order, max(free, key=likeness))


def _as_nearest(order: Order, position: int, arguments: Mapping[str, Any] | None = None) -> Nearest:
    """`arguments` are those of an alternative, if it is one."""
    node = order.nodes[position]
    if node.is_call:
        return Nearest("call", position, node.name, dict(node.arguments if arguments is None else arguments))
    return Nearest("ask" if node.is_ask else "close", position)
