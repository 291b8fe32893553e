"""Which nodes of a Task a conversation has behind it, found by going through it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.simulate.conversation import (
    Message,
    as_json,
    calls_of,
    fold,
    is_text,
    results_after,
    text_of,
)
from scenarios.assign import agreement, assign_calls, parse_arguments, same
from scenarios.reference import ready
from scenarios.types import Node, ToolCall


@dataclass(frozen=True, slots=True)
class Progress:
    """The nodes done, and the number of assistant messages that it took."""

    done: frozenset[int]
    steps: int


def replay(
    nodes: Sequence[Node],
    replies: Mapping[int, str],
    own_names: Mapping[str, str],
    messages: Sequence[Message],
) -> Progress:
    """Goes through `messages`, those since the Task's words.

    `replies` are the folded scripted replies of the ask nodes; `own_names` maps the names
    under which tools were offered to the scenario's.
    """
    state = _State(nodes, replies)
    steps = 0
    for at, message in enumerate(messages):
        role = message.get("role")
        if role == "user":
            state.hear(fold(text_of(message.get("content"))))
        elif role == "assistant":
            steps += 1
            if is_text(message):
                state.speak()
            elif calls := calls_of(message):
                named = [ToolCall(c.id, own_names.get(c.name, c.name), c.arguments) for c in calls]
                state.call(named, results_after(messages, at))
    return Progress(state.everything_done(), steps)


class _State:
    def __init__(self, nodes: Sequence[Node], replies: Mapping[int, str]) -> None:
        self.nodes = nodes
        self.replies = replies
        self.done: set[int] = set()
        self.closed: int | None = None
        self.spoke = False

    def speak(self) -> None:
        self.spoke = True
        if self.closed is None:
            self.closed = next((i for i in self._ready() if self.nodes[i].is_close), None)

    def hear(self, text: str) -> None:
        """The scripted reply to an ask, after a text of the assistant, says that it was asked."""
        if not self.spoke:
            return
        self.spoke = False
        first = self._ready()
        for i in sorted(self.replies, key=lambda i: (i not in first, i)):
            if i not in self.done and self.replies[i] in text:
                self.done.add(i)
                self.closed = None
                return

    def call(self, calls: Sequence[ToolCall], results: Mapping[str, str]) -> None:
        """Ready nodes first, by name; then, for a live history, any node that was called exactly."""
        due = [i for i in self._ready() if self.nodes[i].is_call]
        assigned = assign_calls(self.nodes, due, calls)
        taken = [i for i in assigned if i is not None]
        left = []
        for call, position in zip(calls, assigned, strict=True):
            if position is not None and self._served(call, position, taken, results.get(call.id or "")):
                self.done.add(position)
            else:
                left.append(call)
        early = [i for i, node in enumerate(self.nodes) if node.is_call and i not in self.done]
        for call, position in zip(left, assign_calls(self.nodes, early, left), strict=True):
            if position is not None and self._exact(call, position):
                self.done.add(position)

    def everything_done(self) -> frozenset[int]:
        """What is done, with the closing node if it was spoken and the asks that nothing waits for."""
        closing = frozenset() if self.closed is None else frozenset({self.closed})
        skipped = {i for i in self.replies if self._is_skipped(i)}
        return frozenset(self.done | skipped) | closing

    def _ready(self) -> tuple[int, ...]:
        return ready(self.nodes, frozenset(self.done))

    def _exact(self, call: ToolCall, position: int) -> bool:
        return agreement(parse_arguments(call.arguments), self.nodes[position].arguments) == 1

    def _served(self, call: ToolCall, position: int, batch: Sequence[int], result: str | None) -> bool:
        """Was the call accepted? With other arguments only if it was told what the batch observes.

        The released harness looks at names alone and serves it, to any call of the batch;
        a live session refuses it.
        """
        if result is None or self._exact(call, position):
            return True
        told = as_json(result)
        return any(same(told, as_json(self.nodes[i].observation)) for i in batch)

    def _is_skipped(self, ask: int) -> bool:
        followers = [i for i, node in enumerate(self.nodes) if ask in node.dependencies]
        return bool(followers) and all(i in self.done for i in followers)
