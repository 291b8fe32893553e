"""What of an agent's own messages goes to the LLM (`--history live`). Pure.

The agent's messages are what is under test, so they are sent. The user's words take the place of
their placeholders, Observations that of whatever the agent's tools said, and Steps that the agent
could not see are put back where they were.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from proxy.findings import Finding, answer_block, find_losses, regions
from proxy.live_blocks import Block, read_blocks, without_calls
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
    before), `dropped_call` (one without an id, or in a message that is not the assistant's),
    `dropped_empty` (an assistant message without text or calls), `message_keys` (keys that
    providers refuse). `findings` are none where they were not asked for.
    """

    messages: tuple[Message, ...]
    changes: tuple[str, ...]
    findings: tuple[Finding, ...]


def live_messages(
    own: Sequence[Any], turns: Sequence[PlayedTurn], aliases: Mapping[str, str], *, findings: bool = True
) -> Sent:
    """The agent's messages as the LLM gets them. Whatever they are, nothing is raised.

    `own` are all messages of the request, in the form of chat completions; what is no object is
    left out. `turns` are the turns so far, the last is the current one. `aliases` has the
    record's id for each id under which the agent knows a call. `findings` says whether to look for
    what was lost, which takes about as long again.
    """
    messages = [message for message in own if isinstance(message, dict)]
    start = next(
        (at for at, message in enumerate(messages) if message.get("role") not in _SYSTEM_ROLES), len(messages)
    )
    record = read_record(turns)
    blocks, changes = read_blocks(messages[start:], record, aliases)
    blocks, replaced = place_turns(blocks, turns)
    found = find_losses(turns, record, blocks, messages[start:]) if findings else ()
    if turns and not any(block.turn == turns[-1].number for block in blocks):
        blocks = _with_turn(blocks, turns[-1])
        replaced.add("user_turn")
    hidden = _hidden(blocks, record, turns)
    if hidden:
        replaced.add("hidden_steps")
    leading = [without_calls(message, replaced) for message in messages[:start]]
    return Sent((*leading, *_woven(blocks, hidden)), tuple(sorted(changes | replaced)), found)


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
    parts = regions(blocks)
    hidden: dict[int, list[Step]] = {}
    for turn in turns:
        steps = record.steps[turn.number]
        marks = _marks(blocks, record, turn.number, sent, parts.get(turn.number))
        numbers = sorted(marks)
        unseen = [at for at, step in enumerate(steps) if not step.handed and at not in marks]
        # Neighbours stay together: the difference to their rank is the same.
        for _, run in groupby(enumerate(unseen), key=lambda pair: pair[1] - pair[0]):
            these = [at for _, at in run]
            after = bisect_left(numbers, these[0])
            place = _place(
                marks[numbers[after - 1]] if after else None,
                marks[numbers[after]] if after < len(numbers) else None,
                len(blocks) if turn is turns[-1] else None,
            )
            if place is not None:
                hidden.setdefault(place, []).extend(steps[at] for at in these)
    return hidden


def _marks(
    blocks: Sequence[Block], record: Record, turn: int, sent: Mapping[str, int], part: range | None
) -> dict[int, int]:
    """Where the agent's messages have what of a turn: its user message (`_USER`), its Steps by
    their number, its answer (one more). `sent` has the places of calls by their id, `part` those
    of the blocks that follow the user message, if it is there.
    """
    steps = record.steps[turn]
    marks: dict[int, int] = {} if part is None else {_USER: part.start - 1}
    for number, step in enumerate(steps):
        places = [sent[call.id] for call in step.calls if call.id in sent]
        if places:
            marks[number] = max(places)
    answer = answer_block(blocks, part or range(0), record.answers.get(turn, ""))
    return marks if answer is None else {**marks, len(steps): answer}


def _place(before: int | None, after: int | None, end: int | None) -> int | None:
    """The block before which a run of Steps goes; None if the agent has nothing around it.

    Right before what followed it (`after`), as the LLM saw it; else right after what it followed
    (`before`), or in the current turn at the `end`.
    """
    if after is not None and (before is None or before < after):
        return after
    if end is not None or before is None:
        return end
    return before + 1
