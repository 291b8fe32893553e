"""The named ways in which the policy `noisy` goes wrong.

Each takes the right reply and the place and gives another reply, or None where it does
not apply. What comes out is refused by the released scorer, or judged wrong for its
arguments, but for two detours: `one_at_a_time` and `drop_call` split a batch, which
some References allow; then the Task can still end correct, only not optimal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from proxy.simulate.place import Place
from proxy.simulate.reply import Call, Draw, Reply, call_of
from scenarios.history import encode
from scenarios.reference import ready
from scenarios.types import Tool


@dataclass(frozen=True, slots=True)
class Decision:
    """One step: where it is taken, what would be right, and the chance that decides."""

    place: Place
    right: Reply
    draw: Draw

    def pick_call(self) -> int:
        return self.draw.choose("which call", range(len(self.right.calls)))

    @property
    def text_is_due(self) -> bool:
        """Would the scorer take any text for an ask or for the end?"""
        nodes = self.place.nodes
        return any(not nodes[i].is_call for i in ready(nodes, self.place.done))

    def surplus_tools(self) -> list[Tool]:
        """Tools of the scenario that the Reference has no use for, now or later in the Task."""
        due = {n.name for i, n in enumerate(self.place.nodes) if i not in self.place.done}
        return [tool for tool in self.place.scenario.tools if tool.name not in due]


Mistake = Callable[[Decision], Reply | None]


def drop_call(decision: Decision) -> Reply | None:
    calls = decision.right.calls
    if len(calls) < 2:
        return None
    at = decision.pick_call()
    return Reply(calls=calls[:at] + calls[at + 1 :])


def one_at_a_time(decision: Decision) -> Reply | None:
    calls = decision.right.calls
    return Reply(calls=calls[:1]) if len(calls) > 1 else None


def extra_call(decision: Decision) -> Reply | None:
    """A call more: of a tool that is not needed, else the same call twice."""
    calls, tools = decision.right.calls, decision.surplus_tools()
    if not calls:
        return None
    if tools:
        tool = decision.draw.choose("which tool", tools)
        return Reply(calls=(*calls, Call(tool.name, encode(sample_arguments(tool)))))
    due = [n.name for i, n in enumerate(decision.place.nodes) if i not in decision.place.done]
    asked = [call.name for call in calls]
    repeated = next((call for call in calls if asked.count(call.name) == due.count(call.name)), None)
    return Reply(calls=(*calls, repeated)) if repeated else None


def wrong_tool(decision: Decision) -> Reply | None:
    tools = decision.surplus_tools()
    if not decision.right.calls or not tools:
        return None
    return _renamed(decision, decision.draw.choose("which tool", tools).name)


def unknown_tool(decision: Decision) -> Reply | None:
    if not decision.right.calls:
        return None
    known = {tool.name for tool in decision.place.scenario.tools} | set(decision.place.offered.values())
    name = decision.right.calls[decision.pick_call()].name + "V2"
    while name in known:
        name += "V2"
    return _renamed(decision, name)


def wrong_argument(decision: Decision) -> Reply | None:
    """Another value for one argument of one call that has any."""
    calls = decision.right.calls
    with_arguments = [i for i, call in enumerate(calls) if json.loads(call.arguments)]
    if not with_arguments:
        return None
    at = decision.draw.choose("which call", with_arguments)
    arguments = json.loads(calls[at].arguments)
    key = decision.draw.choose("which key", sorted(arguments))
    return _changed(decision, at, {**arguments, key: another_value(arguments[key])})


def missing_key(decision: Decision) -> Reply | None:
    """One required argument of one call left out."""
    required = {tool.name: _required(tool) for tool in decision.place.scenario.tools}
    options = [
        (at, key)
        for at, call in enumerate(decision.right.calls)
        for key in sorted(json.loads(call.arguments))
        if key in required.get(call.name, ())
    ]
    if not options:
        return None
    at, left_out = decision.draw.choose("which key", options)
    arguments = json.loads(decision.right.calls[at].arguments)
    del arguments[left_out]
    return _changed(decision, at, arguments)


def text_instead_of_call(decision: Decision) -> Reply | None:
    if not decision.right.calls or decision.text_is_due:
        return None
    return Reply(text="I have looked into it, and everything is as you wished.")


def ask_instead_of_call(decision: Decision) -> Reply | None:
    if not decision.right.calls or decision.text_is_due:
        return None
    return Reply(text="Could you please tell me more about what you need?")


def call_instead_of_text(decision: Decision) -> Reply | None:
    """Calls without asking first, or goes on calling when it should answer."""
    place = decision.place
    if decision.right.calls:
        return None
    due = [i for i, node in enumerate(place.nodes) if node.is_call and i not in place.done]
    now = {place.nodes[i].name for i in ready(place.nodes, place.done)}
    too_early = [place.nodes[i] for i in due if place.nodes[i].name not in now]
    if too_early:
        return Reply(calls=(call_of(too_early[0]),))
    tools = decision.surplus_tools()
    if not tools:
        return None
    tool = decision.draw.choose("which tool", tools)
    return Reply(calls=(Call(tool.name, encode(sample_arguments(tool))),))


def empty(decision: Decision) -> Reply | None:
    return Reply()


MISTAKES: Mapping[str, Mistake] = {
    "drop_call": drop_call,
    "one_at_a_time": one_at_a_time,
    "extra_call": extra_call,
    "wrong_tool": wrong_tool,
    "unknown_tool": unknown_tool,
    "wrong_argument": wrong_argument,
    "missing_key": missing_key,
    "text_instead_of_call": text_instead_of_call,
    "ask_instead_of_call": ask_instead_of_call,
    "call_instead_of_text": call_instead_of_text,
    "empty": empty,
}
"""By name, in no order of preference; `empty` applies everywhere."""


def make_mistake(decision: Decision) -> Reply:
    """The reply of the first way that applies, the ways taken in drawn order."""
    for name in decision.draw.shuffle(list(MISTAKES)):
        reply = MISTAKES[name](decision)
        if reply is not None:
            return replace(reply, way=name)
    raise AssertionError("no mistake applies, not even the empty reply")


def another_value(value: Any) -> Any:
    """A value of the same JSON type that no tolerant comparison takes for `value`."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1000 if abs(value) < 1e9 else type(value)(0)
        case str():
            return "something else entirely" if "else" not in value else "none of these"
        case list():
            return [*value, *value, "something else"]
        case dict():
            return {**value, "unexpectedKey": "something else"}
        case _:
            return "something else entirely"


_SAMPLES: Mapping[str, Any] = {
    "string": "example",
    "integer": 1,
    "number": 1.0,
    "float": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}


def sample_arguments(tool: Tool) -> dict[str, Any]:
    """Values for a tool's required parameters: the first of an enum, else one by type."""
    properties = tool.parameters.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    return {key: _sample(properties.get(key)) for key in _required(tool)}


def _sample(schema: Any) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    options, kind = schema.get("enum"), schema.get("type")
    if isinstance(options, list) and options:
        return options[0]
    return _SAMPLES.get(kind, "example") if isinstance(kind, str) else "example"


def _required(tool: Tool) -> tuple[str, ...]:
    required = tool.parameters.get("required")
    return tuple(k for k in required if isinstance(k, str)) if isinstance(required, list) else ()


def _renamed(decision: Decision, name: str) -> Reply:
    at, calls = decision.pick_call(), decision.right.calls
    return Reply(calls=(*calls[:at], Call(name, calls[at].arguments), *calls[at + 1 :]))


def _changed(decision: Decision, at: int, arguments: dict[str, Any]) -> Reply:
    calls = decision.right.calls
    return Reply(calls=(*calls[:at], Call(calls[at].name, encode(arguments)), *calls[at + 1 :]))
