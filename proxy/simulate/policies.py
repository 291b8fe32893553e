"""What the scripted provider answers: a pure function of the request, by policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.simulate.conversation import Message, call_ids, tool_names
from proxy.simulate.mistakes import Decision, make_mistake
from proxy.simulate.place import Index, Place, find_place
from proxy.simulate.reply import Call, Draw, Reply, call_of, digest
from scenarios.history import observation_text
from scenarios.nearest import aside
from scenarios.reference import graph_of, next_minimal_batch, run_length
from scenarios.types import Node, ToolCall

FIXED_TEXT = "This is a scripted reply."
"""What `text-only` always says."""

NO_TOOLS_TEXT = "I have no tools to do this with."
"""Said instead of a call when the request offers no tools, as a request for a title does."""


class PolicyError(ValueError):
    """A policy that does not exist or cannot be read; the text says which ones there are."""


class NoPlace(LookupError):
    """The conversation holds the words of no Task that the provider was given."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a policy may look at; `names` are the tools the request offers."""

    place: Place | None
    session: str
    names: tuple[str, ...]

    def require_place(self) -> Place:
        if self.place is None:
            raise NoPlace(
                "the conversation matches no scenario: none of its user messages holds the words of a task; "
                "let the agent's prompt be [[next-user-turn 1]], or give this provider the scenario files, "
                "and the language, that are being played"
            )
        return self.place


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply ready to be sent: text (perhaps empty), or calls with their ids."""

    text: str
    calls: tuple[ToolCall, ...]
    way: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its settings; `spec` reads back with `parse_policy`."""

    spec: str
    decide: Decide
    probability: float = 0.0
    seed: int = 0


Decide = Callable[[Policy, Situation], Reply]


def oracle(policy: Policy, situation: Situation) -> Reply:
    """The Reference along its first minimal path."""
    place = situation.require_place()
    return _perform(place, next_minimal_batch(place.nodes, place.done))


def serial(policy: Policy, situation: Situation) -> Reply:
    """The Reference, one node per step, in an order that the released scorer accepts."""
    place = situation.require_place()
    following = [i for i in serial_order(place.nodes) if i not in place.done]
    return _perform(place, following[:1])


def noisy(policy: Policy, situation: Situation) -> Reply:
    """The oracle, but each decision wrong with the policy's probability."""
    right = oracle(policy, situation)
    place = situation.require_place()
    draw = Draw((policy.seed, situation.session, place.scenario.id, place.task, place.step))
    if draw.fraction("is it wrong") >= policy.probability:
        return right
    return make_mistake(Decision(place, right, draw))


def text_only(policy: Policy, situation: Situation) -> Reply:
    return Reply(text=FIXED_TEXT)


def always_call(policy: Policy, situation: Situation) -> Reply:
    """The first tool that the request offers, without arguments."""
    return Reply(calls=(Call(situation.names[0] if situation.names else "", "{}"),))


def say_nothing(policy: Policy, situation: Situation) -> Reply:
    return Reply()


POLICIES: Mapping[str, tuple[Decide, str]] = {
    "oracle": (oracle, "oracle"),
    "serial": (serial, "serial"),
    "noisy": (noisy, "noisy:P[:SEED]"),
    "text-only": (text_only, "text-only"),
    "always-call": (always_call, "always-call"),
    "empty": (say_nothing, "empty"),
}
"""By name: the function, and how the policy is written."""


def parse_policy(spec: str) -> Policy:
    """Reads `oracle`, `noisy:0.3`, `noisy:0.3:7` and so on; raises PolicyError."""
    name, *settings = spec.strip().split(":")
    if name not in POLICIES:
        raise _refusal(spec, f"there is no such policy{aside(name, POLICIES)}")
    decide, written = POLICIES[name]
    if ":" not in written:
        if settings:
            raise _refusal(spec, f"{name} takes no settings")
        return Policy(name, decide)
    if not 1 <= len(settings) <= 2:
        raise _refusal(spec, f"write {written}")
    probability = _probability(spec, settings[0])
    seed = _seed(spec, settings[1]) if len(settings) == 2 else 0
    return Policy(spec.strip(), decide, probability, seed)


def respond(
    policy: Policy,
    index: Index,
    messages: Sequence[Message],
    tools: Sequence[Any] | None,
    session: str | None = None,
) -> Answer:
    """The policy's answer to a request; raises NoPlace where it needs a place and finds none.

    `session` is the value of the header `x-eval-session`; without it epochs of one
    scenario cannot be told apart and get the same draws.
    """
    place = find_place(index, messages, tools)
    known_as = session or (place.scenario.id if place else "")
    names = tool_names(tools)
    if place is None and not names:
        # A call on the side, such as one for a title: not part of any scenario.
        return Answer(NO_TOOLS_TEXT, (), "")
    reply = policy.decide(policy, Situation(place, known_as, names))
    if reply.calls and not names:
        reply = Reply(text=NO_TOOLS_TEXT)
    offered = place.offered if place else {}
    ids = _call_ids(place, known_as, messages, len(reply.calls))
    calls = tuple(
        ToolCall(call_id, offered.get(call.name, call.name), call.arguments)
        for call_id, call in zip(ids, reply.calls, strict=True)
    )
    return Answer(reply.text, calls, reply.way)


def serial_order(nodes: Sequence[Node]) -> tuple[int, ...]:
    """All nodes, one by one: always the first ready one, but a run of equal names is finished first.

    A lone call of the first of several neighbouring ready nodes with one name commits
    the released scorer to the rest of them (design: the matcher).
    """
    graph = graph_of(nodes)
    order: list[int] = []
    done = 0
    while waiting := graph.ready(done):
        run = waiting[: run_length(graph.names, waiting, 0)]
        order.extend(run)
        for position in run:
            done |= 1 << position
    return tuple(order)


def _perform(place: Place, batch: Sequence[int]) -> Reply:
    """The calls of a batch; if it has none its text; after the end the closing text again."""
    nodes = [place.nodes[i] for i in batch]
    if calls := tuple(call_of(node) for node in nodes if node.is_call):
        return Reply(calls=calls)
    closing = [node for node in place.nodes if node.is_close]
    speaking = (nodes or closing)[:1]
    return Reply(text=observation_text(speaking[0].observation) if speaking else FIXED_TEXT)


def _call_ids(place: Place | None, session: str, messages: Sequence[Message], count: int) -> list[str]:
    """Ids of at most 40 characters that depend on the place alone and are new to the conversation."""
    here: tuple[Any, ...] = (session, "", "", len(messages))
    if place is not None:
        here = (session, place.scenario.id, place.task, place.step)
    used = set(call_ids(messages)) if count else set()
    ids: list[str] = []
    for position in range(count):
        turn = 0
        while (call_id := "call_" + digest(*here, position, turn)[:24]) in used:
            turn += 1
        used.add(call_id)
        ids.append(call_id)
    return ids


def _probability(spec: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise _refusal(spec, f"the probability {text!r} is not a number from 0 to 1")
    return value


def _seed(spec: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _refusal(spec, f"the seed {text!r} is not a whole number") from None


def _refusal(spec: str, reason: str) -> PolicyError:
    allowed = ", ".join(written for _, written in POLICIES.values())
    return PolicyError(f"policy {spec!r}: {reason}; use one of {allowed}")
