"""What of an agent's own messages goes to the LLM (`--history live`). Pure.

The agent's messages are what is under test, so they are sent. The user's words take the place of
their placeholders, Observations that of whatever the agent's tools said, and Steps that the agent
could not see are put back where they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proxy.findings import Finding, answer_block, find_losses
from proxy.live_blocks import Block, read_blocks
from proxy.live_record import Message, Record, Step, read_record
from proxy.live_turns import place_turns
from proxy.session import PlayedTurn

__all__ = ["Finding", "PlayedTurn", "Sent", "live_messages"]

_SYSTEM_ROLES = ("system", "developer")
_USER = -1


@dataclass(frozen=True, slots=True)
class Sent:
    """The messages for the LLM, in a form that providers accept.

    `changes` names what was changed in the agent's own: `user_turn` (words put in, or a lost
    message of the current turn), `tool_result`, `added_result`, `dropped_result` (a second one, or
    one without a call), `hidden_steps`, `dropped_repeat` (a call, or a user message, that came
    before), `dropped_call` (one without an id), `dropped_empty` (an assistant message without
    text or calls), `message_keys` (keys that providers refuse).
    """

    messages: tuple[Message, ...]
    changes: tuple[str, ...]
    findings: tuple[Finding, ...]


def live_messages(own: Sequence[Any], turns: Sequence[PlayedTurn], aliases: Mapping[str, str]) -> Sent:
    """The agent's messages as the LLM gets them. Whatever they are, nothing is raised.

    `own` are all messages of the request, in the form of chat completions; what is no object is
    left out. `turns` are the turns so far, the last is the current one. `aliases` has the
    record's id for each id under which the agent knows a call.
    """
    messages = [message for message in own if isinstance(message, dict)]
    start = next(
        (at for at, message in enumerate(messages) if message.get("role") not in _SYSTEM_ROLES), len(messages)
    )
    record = read_record(turns)
    blocks, changes = read_blocks(messages[start:], record, aliases)
    blocks, replaced = place_turns(blocks, turns)
    findings = find_losses(turns, record, blocks, messages[start:])
    if turns and not any(block.turn == turns[-1].number for block in blocks):
        blocks = _with_turn(blocks, turns[-1])
        replaced.add("user_turn")
    hidden = _hidden(blocks, record, turns)
    if hidden:
        replaced.add("hidden_steps")
    return Sent((*messages[:start], *_woven(blocks, hidden)), tuple(sorted(changes | replaced)), findings)


def _with_turn(blocks: Sequence[Block], turn: PlayedTurn) -> list[Block]:
    """The user's message put back, before the first call of its turn, else at the end."""
    calls = (at for at, block in enumerate(blocks) if any(it.turn == turn.number for it in block.known))
    at = next(calls, len(blocks))
    return [*blocks[:at], Block(turn.said, -1, turn=turn.number), *blocks[at:]]


def _woven(blocks: Sequence[Block], hidden: Mapping[int, Sequence[Step]]) -> Iterator[Message]:
    for at in range(len(blocks) + 1):
        for step in hidden.get(at, ()):
            yield from step.messages
        if at < len(blocks):
            yield blocks[at].message
            yield from blocks[at].results


def _hidden(blocks: Sequence[Block], record: Record, turns: Sequence[PlayedTurn]) -> dict[int, list[Step]]:
    """The Steps that the agent could not see, by the place of the block that they come before."""
    sent = {it.id: at for at, block in enumerate(blocks) for it in block.known}
    hidden: dict[int, list[Step]] = {}
    for turn in turns:
        steps = record.steps[turn.number]
        marks = _marks(blocks, record, turn.number, sent)
        unseen = [at for at, step in enumerate(steps) if not step.handed and at not in marks]
        # Neighbours stay together: the difference to their rank is the same.
        for _, run in groupby(enumerate(unseen), key=lambda pair: pair[1] - pair[0]):
            these = [at for _, at in run]
            place = _place(marks, these[0], these[-1], len(blocks) if turn is turns[-1] else None)
            if place is not None:
                hidden.setdefault(place, []).extend(steps[at] for at in these)
    return hidden


def _marks(blocks: Sequence[Block], record: Record, turn: int, sent: Mapping[str, int]) -> dict[int, int]:
    """Where the agent's messages have what of a turn: its user message (`_USER`), its Steps by
    their number, its answer (one more).
    """
    steps = record.steps[turn]
    marks: dict[int, int] = {}
    for at, block in enumerate(blocks):
        if block.turn == turn:
            marks[_USER] = at
    for number, step in enumerate(steps):
        places = [sent[call.id] for call in step.calls if call.id in sent]
        if places:
            marks[number] = max(places)
    answer = answer_block(blocks, turn, record.answers.get(turn, ""))
    return marks if answer is None else {**marks, len(steps): answer}


def _place(marks: Mapping[int, int], first: int, last: int, end: int | None) -> int | None:
    """The block before which Steps `first` to `last` go; None if the agent has nothing around them.

    Right before what followed them, as the LLM saw it; else right after what they followed, or
    in the current turn at the `end`.
    """
    before = max((number for number in marks if number < first), default=None)
    after = min((number for number in marks if number > last), default=None)
    if after is not None and (before is None or marks[before] < marks[after]):
        return marks[after]
    if end is not None or before is None:
        return end
    return marks[before] + 1
