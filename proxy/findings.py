"""What an agent lost or changed of a conversation that it was given. Pure.

Nothing here is an error: with `--history live` an agent's memory is under test too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from proxy.live_blocks import Block
from proxy.live_record import Known, Message, Record, squeezed, text_of
from proxy.live_turns import sentinel_numbers
from proxy.offered import plain
from proxy.session import PlayedTurn
from scenarios.replies import read_call, read_reply
from scenarios.text import clip, visible

What = Literal["lost_history", "lost_turn", "lost_calls", "changed_calls", "lost_answer", "changed_answer"]

_LONGEST = 200
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_BLANK_ESCAPES = "nrtfvb"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was lost or changed of a turn; `detail` is one line of at most 200 characters.

    `lost_history` stands for all earlier turns, and has the number of the current one.
    """

    turn: int
    what: What
    detail: str


def find_losses(
    turns: Sequence[PlayedTurn], record: Record, blocks: Sequence[Block], own: Sequence[Message]
) -> tuple[Finding, ...]:
    """Compares the agent's messages, `own` and as `blocks`, with the record. The last turn is the current."""
    if not turns:
        return ()
    seen = _Seen(turns, record, blocks, own)
    past, current = turns[:-1], turns[-1]
    found: list[Finding] = []
    if past and not any(seen.traces(turn) for turn in past):
        gone = f"turns {past[0].number} to {past[-1].number}" if past[1:] else f"turn {past[0].number}"
        found.append(Finding(current.number, "lost_history", f"nothing of {gone} is in the request"))
    else:
        for turn in past:
            found += [*seen.words(turn), *seen.calls(turn), *seen.answer(turn)]
    return (*found, *seen.words(current), *seen.calls(current))


def answer_block(blocks: Sequence[Block], region: range, answer: str) -> int | None:
    """Where the text that was given for a turn stands among the agent's blocks of that turn (`regions`).

    It may stand inside another form: agents make it the argument of a call, or text about one.
    """
    wanted = squeezed(answer)
    spoken = [at for at in region if _speaks(blocks[at])] if wanted else []
    exact = (at for at in spoken if squeezed(text_of(blocks[at].message)) == wanted)
    within = (at for at in reversed(spoken) if any(wanted in text for text in _forms(blocks[at].message)))
    return next(exact, next(within, None))


def regions(blocks: Sequence[Block]) -> dict[int, range]:
    """By turn, the places of the blocks after the user's message, up to the next turn's."""
    starts = [(block.turn, at) for at, block in enumerate(blocks) if block.turn is not None]
    ends = [*(at for _, at in starts[1:]), len(blocks)]
    return {turn: range(start + 1, end) for (turn, start), end in zip(starts, ends, strict=False)}


class _Seen:
    """What there is of each turn in the agent's messages."""

    def __init__(
        self,
        turns: Sequence[PlayedTurn],
        record: Record,
        blocks: Sequence[Block],
        own: Sequence[Message],
    ) -> None:
        self._record = record
        self._blocks = blocks
        self._turns = {block.turn for block in blocks}
        for message in own:
            if message.get("role") == "user":
                self._turns |= sentinel_numbers(message)
        self._regions = regions(blocks)
        self._said = {squeezed(text_of(block.message)) for block in blocks if _speaks(block)}
        self._own = own
        self._texts: list[str] | None = None
        self._sent = {
            call.known.id: entry
            for block in blocks
            for call, entry in zip(block.calls, _entries(block), strict=True)
            if call.known is not None
        }

    def traces(self, turn: PlayedTurn) -> bool:
        return turn.number in self._turns or not turn.handed.isdisjoint(self._sent) or self._has_answer(turn)

    def words(self, turn: PlayedTurn) -> Iterator[Finding]:
        if turn.number not in self._turns:
            yield Finding(turn.number, "lost_turn", "what the user said is not in the request")

    def calls(self, turn: PlayedTurn) -> Iterator[Finding]:
        handed = [it for step in self._record.steps[turn.number] for it in step.calls if it.handed]
        lost = [it.call.name for it in handed if it.id not in self._sent]
        if lost:
            detail = f"{len(lost)} of {len(handed)} calls are not in the request: {', '.join(lost)}"
            yield _finding(turn, "lost_calls", detail)
        changed = [it.call.name for it in handed if it.id in self._sent and self._changed(it)]
        if changed:
            yield _finding(turn, "changed_calls", f"changed on the way: {', '.join(changed)}")

    def answer(self, turn: PlayedTurn) -> Iterator[Finding]:
        given = self._record.answers.get(turn.number, "")
        if not squeezed(given) or self._has_answer(turn):
            return
        blocks = (self._blocks[at] for at in self._regions.get(turn.number, ()))
        spoken = [block for block in blocks if _speaks(block)]
        texts = [text for text in (text_of(block.message) for block in spoken) if text]
        if texts:
            detail = f"given: {clip(visible(given), 80)}; sent: {clip(visible(texts[-1]), 80)}"
            yield _finding(turn, "changed_answer", detail)
        else:
            yield _finding(turn, "lost_answer", f"not in the request: {clip(visible(given), 80)}")

    def _has_answer(self, turn: PlayedTurn) -> bool:
        answer = squeezed(self._record.answers.get(turn.number, ""))
        if not answer or answer in self._said:
            return bool(answer)
        if self._texts is None:
            self._texts = [text for message in self._own for text in _forms(message)]
        return any(answer in text for text in self._texts)

    def _changed(self, known: Known) -> bool:
        entry = self._sent[known.id]
        if _is_as_it_was(entry, known.entry):
            return False
        call, sent = known.call, read_call(entry)
        # Some agents put their own prefix to the names of tools.
        ours, theirs = plain(call.name), plain(sent.name)
        same_name = ours.endswith(theirs) or theirs.endswith(ours)
        return not (sent.name and same_name and same_arguments(call.arguments, sent.arguments))


def same_arguments(first: Any, second: Any) -> bool:
    """Are these the same arguments, however they are written? Blank is `{}`."""
    try:
        return bool(first == second) or _same(_parsed(first), _parsed(second))
    except (ValueError, RecursionError):
        return False


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    return json.loads(arguments) if arguments.strip() else {}


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    # JSON tells `true` from 1, but not 1 from 1.0.
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _is_as_it_was(sent: Message, given: Message) -> bool:
    """Are two entries of `tool_calls` equal to the letter? Most are, and need not be read."""
    new, old = sent.get("function"), given.get("function")
    if not isinstance(new, dict) or not isinstance(old, dict) or not isinstance(new.get("arguments"), str):
        return False
    same = new["arguments"] == old.get("arguments") and new.get("name") == old.get("name")
    return same and isinstance(new.get("name"), str) and new["name"] != ""


def _entries(block: Block) -> Sequence[Message]:
    """The calls of a block as entries of `tool_calls`, which the dialect of `functions` has none of."""
    if block.calls and block.calls[0].legacy:
        return [{"function": block.message["function_call"]}]
    entries: Sequence[Message] = block.message["tool_calls"] if block.calls else ()
    return entries


def _speaks(block: Block) -> bool:
    return block.role == "assistant" and not block.known


def _forms(message: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a message without whitespace, as they stand and with escapes undone."""
    has_calls = message.get("tool_calls") or message.get("function_call")
    arguments = [call.arguments for call in read_reply(message).calls] if has_calls else []
    for text in (text_of(message), *(it for it in arguments if isinstance(it, str))):
        if text:
            yield squeezed(text)
            if "\\" in text:
                yield squeezed(_paired(_ESCAPE.sub(_unescaped, text)))


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return " " if match[2] in _BLANK_ESCAPES else match[2]


def _paired(text: str) -> str:
    """Two escapes that stand for one character, as JSON has them, made one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finding(turn: PlayedTurn, what: What, detail: str) -> Finding:
    return Finding(turn.number, what, clip(visible(detail), _LONGEST))
