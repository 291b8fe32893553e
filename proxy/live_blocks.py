"""An agent's messages as blocks: each call with its results, and ours in place of the agent's. Pure.

Providers refuse a call without a result, and a result without a call. Agents send results in any
order, twice, late, or not at all, and an Observation takes the place of whatever they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proxy.live_record import Known, Message, Record, squeezed, text_of

NO_RESULT = "[no result]"
"""What a call was told for which neither the agent nor the record has a result."""

_REFUSED = frozenset({"annotations", "refusal", "parsed", "audio", "cache_breakpoint"})
"""What clients echo of an answer, or add to a message, and providers refuse."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call in an agent's message. `key` is what its result names: the record's id for it, or
    the agent's own if it is not `known`; in the dialect of `functions` the name.
    """

    key: str
    known: Known | None
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A message of the agent's, at `place` in its request, and the results of its calls.

    `until` is the place of the last of these, as the agent sent them. `turn` is the number of the
    user turn that begins here.
    """

    message: Message
    place: int
    calls: tuple[Call, ...] = ()
    results: tuple[Message, ...] = ()
    until: int = -1
    turn: int | None = None

    @property
    def role(self) -> Any:
        return self.message.get("role")

    @property
    def known(self) -> tuple[Known, ...]:
        return tuple(call.known for call in self.calls if call.known is not None)


def read_blocks(
    messages: Sequence[Message], record: Record, aliases: Mapping[str, str]
) -> tuple[list[Block], set[str]]:
    """The blocks, and the names of what was changed. `aliases` are the agent's ids for the record's."""
    reader = _Reader(record, aliases)
    for place, message in enumerate(messages):
        reader.read(place, message)
    blocks = [reader.closed(block) for block in reader.blocks]
    return _without_interruptions(blocks, reader.changes), reader.changes


class _Reader:
    """Reads an agent's messages in their order; every known call is taken once."""

    def __init__(self, record: Record, aliases: Mapping[str, str]) -> None:
        self.blocks: list[Block] = []
        self.changes: set[str] = set()
        self._record = record
        self._aliases = aliases
        self._taken: set[str] = set()
        self._open: dict[tuple[bool, str], int] = {}
        self._results: dict[tuple[bool, str, int], tuple[int, Message]] = {}

    def read(self, place: int, message: Message) -> None:
        role = message.get("role")
        if role == "assistant":
            self._assistant(place, message)
        elif role in ("tool", "function"):
            self._result(place, message, legacy=role == "function")
        else:
            self.blocks.append(Block(self._without(message, {"cache_breakpoint"}), place))

    def closed(self, block: Block) -> Block:
        """The block with its results: the agent's in their order, then those it has not sent."""
        if not block.calls:
            return block
        sent = [(*self._results.get(_slot(call, block), (-1, None)), call) for call in block.calls]
        there = sorted(((at, it, call) for at, it, call in sent if it is not None), key=lambda one: one[0])
        results = [self._told(message, call) for _, message, call in there]
        missing = [_made(call) for _, message, call in sent if message is None]
        if missing:
            self.changes.add("added_result")
        until = max((at for at, _, _ in there), default=-1)
        return replace(block, results=(*results, *missing), until=until)

    def _assistant(self, place: int, message: Message) -> None:
        cleaned = self._without(message, _REFUSED)
        content = cleaned.get("content")
        if isinstance(content, list):
            cleaned["content"] = [_plain(part) for part in content]
            if any(len(plain) != len(part) for plain, part in _texts(cleaned["content"], content)):
                self.changes.add("message_keys")
        entries = self._entries(cleaned.pop("tool_calls", None))
        function = cleaned.pop("function_call", None)
        if entries is None:
            self.changes.add("dropped_repeat")
            return
        calls = [Call(entry["id"], self._record.calls.get(entry["id"])) for entry in entries]
        if calls:
            cleaned["tool_calls"] = entries
        elif isinstance(function, dict) and isinstance(function.get("name"), str):
            cleaned["function_call"] = function
            calls = [Call(function["name"], self._by_name(function["name"]), legacy=True)]
        elif not text_of(cleaned) and not _has_other_parts(content):
            self.changes.add("dropped_empty")
            return
        self._taken |= {call.known.id for call in calls if call.known is not None}
        self._open |= {(call.legacy, call.key): place for call in calls}
        self.blocks.append(Block(cleaned, place, tuple(calls)))

    def _entries(self, raw: Any) -> list[Message] | None:
        """The calls of an assistant message, with the record's ids; None if all were there before."""
        entries: list[Message] = []
        seen: set[str] = set()
        repeats = 0
        for entry in raw if isinstance(raw, list) else ():
            if not _is_call(entry):
                self.changes.add("dropped_call")
                continue
            call_id = self._aliases.get(entry["id"], entry["id"])
            if call_id in seen or call_id in self._taken:
                repeats += 1
                continue
            seen.add(call_id)
            entries.append({**entry, "id": call_id})
        if repeats and not entries:
            return None
        if repeats:
            self.changes.add("dropped_repeat")
        return self._with_hidden(entries, seen)

    def _with_hidden(self, entries: list[Message], seen: set[str]) -> list[Message]:
        """Puts back the calls that were taken out of a step before the agent was handed the others."""
        handed = [self._record.calls[it] for it in seen if it in self._record.calls]
        mates = {mate.id: mate for known in handed for mate in self._record.mates(known)}
        for mate in sorted(mates.values(), key=lambda it: (it.turn, it.step, it.place)):
            if not mate.handed and mate.id not in seen and mate.id not in self._taken:
                entries.insert(mate.place, mate.entry)
                self.changes.add("hidden_steps")
        return entries

    def _by_name(self, name: str) -> Known | None:
        """The first call of this name that the agent was handed and has not yet sent: there are no ids."""
        unsent = (it for it in self._record.calls.values() if it.handed and it.id not in self._taken)
        return next((it for it in unsent if it.call.name == name), None)

    def _result(self, place: int, message: Message, *, legacy: bool) -> None:
        key = message.get("name" if legacy else "tool_call_id")
        key = self._aliases.get(key, key) if isinstance(key, str) else ""
        at = self._open.get((legacy, key))
        if at is None or (legacy, key, at) in self._results:
            self.changes.add("dropped_result")
            return
        cleaned = self._without(message, {"cache_breakpoint"})
        self._results[legacy, key, at] = (place, cleaned if legacy else {**cleaned, "tool_call_id": key})

    def _told(self, message: Message, call: Call) -> Message:
        """The agent's result, with what the call was really told."""
        if call.known is None or call.known.told is None:
            return message
        content = message.get("content")
        told = call.known.told
        if isinstance(content, list):
            kinds = [part["type"] for part in content if _is_text(part) and isinstance(part.get("type"), str)]
            told = [{"type": kinds[0] if kinds else "text", "text": told}]
        if told != content:
            self.changes.add("tool_result")
        return {**message, "content": told}

    def _without(self, message: Message, keys: Iterable[str]) -> Message:
        kept = {key: value for key, value in message.items() if key not in keys}
        if len(kept) != len(message):
            self.changes.add("message_keys")
        return kept


def _without_interruptions(blocks: Sequence[Block], changes: set[str]) -> list[Block]:
    """Leaves out a user message that some agents repeat between a call and its result."""
    kept: list[Block] = []
    last: Block | None = None
    for block in blocks:
        if block.role == "user":
            if last is not None and _interrupts(block, last, kept):
                changes.add("dropped_repeat")
                continue
            last = block
        kept.append(block)
    return kept


def _interrupts(block: Block, last: Block, before: Sequence[Block]) -> bool:
    text = squeezed(text_of(block.message))
    if not text or text != squeezed(text_of(last.message)):
        return False
    return any(last.place < it.place and it.until > block.place for it in before)


def _slot(call: Call, block: Block) -> tuple[bool, str, int]:
    return call.legacy, call.key, block.place


def _made(call: Call) -> Message:
    told = None if call.known is None else call.known.told
    content = NO_RESULT if told is None else told
    if call.legacy:
        return {"role": "function", "name": call.key, "content": content}
    return {"role": "tool", "content": content, "tool_call_id": call.key}


def _is_call(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not entry["id"]:
        return False
    return isinstance(entry.get("function"), dict) or isinstance(entry.get("custom"), dict)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _has_other_parts(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(it, dict) and not _is_text(it) for it in content)


def _texts(plain: Sequence[Any], parts: Sequence[Any]) -> Iterator[tuple[Message, Message]]:
    return ((new, old) for new, old in zip(plain, parts, strict=True) if _is_text(old))


def _plain(part: Any) -> Any:
    return {"type": part.get("type", "text"), "text": part["text"]} if _is_text(part) else part
