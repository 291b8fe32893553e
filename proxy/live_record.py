"""The proxy's record of a Session, laid out to be found again in an agent's messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.session import PlayedTurn
from scenarios.replies import join_text, read_call
from scenarios.types import ToolCall

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """A call of the record: entry `place` of the calls of step `step` of turn `turn`.

    `told` is the content of its result, None if there is none. An agent that was not `handed` the
    call cannot know of it.
    """

    id: str
    turn: int
    step: int
    place: int
    entry: Message
    told: Any
    handed: bool

    @property
    def call(self) -> ToolCall:
        return read_call(self.entry)


@dataclass(frozen=True, slots=True)
class Step:
    """An assistant message of the record with what follows it up to the next one."""

    messages: tuple[Message, ...]
    calls: tuple[Known, ...]

    @property
    def handed(self) -> bool:
        return any(call.handed for call in self.calls)


@dataclass(frozen=True, slots=True)
class Record:
    """`steps` and, where there is one, the text that was given (`answers`) by turn; `calls` by id."""

    steps: Mapping[int, tuple[Step, ...]]
    answers: Mapping[int, str]
    calls: Mapping[str, Known]

    def mates(self, known: Known) -> tuple[Known, ...]:
        """All calls of the step that `known` is of."""
        return self.steps[known.turn][known.step].calls


def read_record(turns: Sequence[PlayedTurn]) -> Record:
    steps: dict[int, tuple[Step, ...]] = {}
    answers: dict[int, str] = {}
    for turn in turns:
        followed = turn.messages
        if turn.done and followed and not followed[-1].get("tool_calls"):
            answers[turn.number] = text_of(followed[-1])
            followed = followed[:-1]
        steps[turn.number] = _steps(turn, followed)
    calls: dict[str, Known] = {}
    for known in (call for these in steps.values() for step in these for call in step.calls):
        calls.setdefault(known.id, known)
    return Record(steps, answers, calls)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message: its content, or the texts of its parts in one."""
    content = message.get("content")
    if isinstance(content, list):
        return join_text(content)
    return content if isinstance(content, str) else ""


def squeezed(text: str) -> str:
    """A text without its whitespace, which agents change on the way."""
    return "".join(text.split())


def _steps(turn: PlayedTurn, messages: Sequence[Message]) -> tuple[Step, ...]:
    groups: list[list[Message]] = []
    for message in messages:
        if groups and message.get("role") == "tool":
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(Step(tuple(group), _calls(turn, at, group)) for at, group in enumerate(groups))


def _calls(turn: PlayedTurn, step: int, group: Sequence[Message]) -> tuple[Known, ...]:
    told = {message.get("tool_call_id"): message.get("content") for message in reversed(group[1:])}
    return tuple(
        Known(entry["id"], turn.number, step, place, entry, told.get(entry["id"]), entry["id"] in turn.handed)
        for place, entry in enumerate(group[0].get("tool_calls") or ())
    )
