"""Which of an agent's user messages are the user's turns, and the user's words in them. Pure.

A numbered sentinel says so itself; others are known by their order, by the text that the agent
sent for the turn at first, or by the words in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proxy.live_blocks import Block
from proxy.live_record import Message, squeezed, text_of
from proxy.sentinel import PATTERN, fill, find, find_words, put_whole
from proxy.session import PlayedTurn


def place_turns(blocks: Sequence[Block], turns: Sequence[PlayedTurn]) -> tuple[list[Block], set[str]]:
    """The blocks with the user's words in them, and the names of what was changed.

    The first message of a turn has its number as `turn`. A message that repeats an earlier one of
    its turn is left out.
    """
    by_number = {turn.number: turn for turn in turns}
    words = {turn.number: turn.words for turn in turns}
    placed: list[Block] = []
    changes: set[str] = set()
    seen: dict[int, set[str]] = {}
    for block, number in zip(blocks, _numbers(blocks, turns), strict=True):
        if number is None:
            placed.append(block)
            continue
        message = _said(block.message, by_number[number], words)
        text = squeezed(text_of(message))
        if text in seen.get(number, ()):
            changes.add("dropped_repeat")
            continue
        if message != block.message:
            changes.add("user_turn")
        placed.append(replace(block, message=message, turn=None if number in seen else number))
        seen.setdefault(number, set()).add(text)
    return placed, changes


def sentinel_numbers(message: Message) -> set[int]:
    """The turns that are named in a message of the user's."""
    return {int(it["turn"]) for it in PATTERN.finditer(text_of(message)) if it["turn"]}


def _said(message: Message, turn: PlayedTurn, words: dict[int, str]) -> Message:
    """The agent's message with the words of its turn, and of others that it names."""
    as_at_first = type(message.get("content")) is type(turn.asked.get("content"))
    if as_at_first and text_of(message) == text_of(turn.asked):
        return {**message, "content": turn.said.get("content")}
    if find([message]) or find_words([message], turn.words, turn.number):
        return fill(message, turn.words, words)
    if squeezed(text_of(message)) == squeezed(text_of(turn.said)):
        return message
    return put_whole(message, text_of(turn.said))


def _numbers(blocks: Sequence[Block], turns: Sequence[PlayedTurn]) -> list[int | None]:
    """The turn of each block, from the last one back: what is in doubt belongs to an earlier turn."""
    numbers: list[int | None] = [None] * len(blocks)
    if not turns:
        return numbers
    asked = {turn.number: squeezed(text_of(turn.asked)) for turn in turns}
    above = turns[-1].number + 1
    called: int | None = None
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if block.role == "user":
            number = _number(block.message, asked, above, called)
            numbers[at] = number
            above, called = above if number is None else number, None
        else:
            called = next((known.turn for known in block.known), called)
    placed = set(numbers)
    users = [at for at, block in enumerate(blocks) if block.role == "user"]
    for turn in reversed(turns):
        if turn.number not in placed:
            _find_by_words(blocks, users, numbers, turn, last=turn is turns[-1])
    return numbers


def _number(message: Message, asked: dict[int, str], above: int, called: int | None) -> int | None:
    """`asked` is what the agent sent for each turn, `above` the turn of the message that comes next,
    `called` that of the first known call in between.
    """
    named = sentinel_numbers(message)
    found = find([message])
    if named:
        return max(named & asked.keys(), default=max(asked))
    if found is not None:
        # Bare ones that are more than the turns repeat the first.
        return called or max(min(asked), above - 1)
    text = squeezed(text_of(message))
    same = [number for number in asked if text and asked[number] == text]
    if called in same:
        return called
    return max([number for number in same if number < above] or same, default=None)


def _find_by_words(
    blocks: Sequence[Block],
    users: Sequence[int],
    numbers: list[int | None],
    turn: PlayedTurn,
    *,
    last: bool,
) -> None:
    """Looks for a turn by its words, but only if its agent knew them, between the turns around it.

    `users` are the places of the user's blocks, `numbers` the turns of all blocks as far as known.
    """
    placed = [(at, number) for at in users if (number := numbers[at]) is not None]
    after = max((at for at, number in placed if number < turn.number), default=-1)
    before = min((at for at, number in placed if number > turn.number), default=len(blocks))
    said = squeezed(text_of(turn.said))
    knew = find_words([turn.asked], turn.words, turn.number) is not None
    found = [
        at
        for at in users
        if after < at < before
        and numbers[at] is None
        and (
            (said and squeezed(text_of(blocks[at].message)) == said)
            or (knew and find_words([blocks[at].message], turn.words, turn.number))
        )
    ]
    if found:
        numbers[found[-1 if last else 0]] = turn.number
