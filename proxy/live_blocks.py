"""An agent's messages as blocks: each call with its results, and ours in place of the agent's. Pure.

Providers refuse a call without a result, and a result without a call. Agents send results in any
order, twice, late, or not at all, and an Observation takes the place of whatever they hold.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from proxy.live_record import Known, Message, Record, squeezed, text_of

NO_RESULT = "[no result]"
"""What a call was told for which neither the agent nor the record has a result."""

_REFUSED = frozenset({"annotations", "refusal", "parsed", "audio", "cache_breakpoint"})
"""What clients echo of an answer, or add to a message, and providers refuse."""
_ADDED = frozenset({"cache_breakpoint"})
_CALLS = frozenset({"tool_calls", "function_call"})


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
        return tuple([call.known for call in self.calls if call.known is not None])


def without_calls(message: Message, changes: set[str]) -> Message:
    """A message that is not the assistant's: it can have no calls, which providers refuse there."""
    if _CALLS.isdisjoint(message):
        return message
    changes.add("dropped_call" if any(message.get(key) for key in _CALLS) else "message_keys")
    return {key: value for key, value in message.items() if key not in _CALLS}


def without_refused(message: Message) -> Message:
    """A message without the keys that providers refuse."""
    keys = _REFUSED if message.get("role") == "assistant" else _ADDED
    if keys.isdisjoint(message):
        return message
    return {key: value for key, value in message.items() if key not in keys}


def read_blocks(
    messages: Sequence[Message], record: Record, aliases: Mapping[str, str]
) -> tuple[list[Block], set[str]]:
    """The blocks, and the names of what was changed. `aliases` are the agent's ids for the record's."""
    reader = _Reader(record, aliases)
    for place, message in enumerate(messages):
        reader.read(place, message)
    blocks = [reader.closed(*it) for it in reader.read_so_far]
    return _without_interruptions(blocks, reader.changes), reader.changes


class _Reader:
    """Reads an agent's messages in their order; every known call is taken once."""

    def __init__(self, record: Record, aliases: Mapping[str, str]) -> None:
        self.read_so_far: list[tuple[Message, int, tuple[Call, ...]]] = []
        self.changes: set[str] = set()
        self._record = record
        self._aliases = aliases
        self._taken: set[str] = set()
        self._whole: set[tuple[int, int]] = set()
        self._open: dict[tuple[bool, str], int] = {}
        self._results: dict[tuple[bool, str, int], tuple[int, Message]] = {}
        self._unsent: dict[str, deque[Known]] | None = None

    def read(self, place: int, message: Message) -> None:
        role = message.get("role")
        if role == "assistant":
            self._assistant(place, message)
        elif role in ("tool", "function"):
            self._result(place, message, legacy=role == "function")
        else:
            kept = without_calls(self._without(message, _ADDED), self.changes)
            self.read_so_far.append((kept, place, ()))

    def closed(self, message: Message, place: int, calls: tuple[Call, ...]) -> Block:
        """The block with its results: the agent's in their order, then those it has not sent."""
        there: list[tuple[int, Message]] = []
        missing: list[Message] = []
        for call in calls:
            found = self._results.get((call.legacy, call.key, place))
            if found is None:
                missing.append(_made(call))
            else:
                there.append((found[0], self._told(found[1], call)))
        if missing:
            self.changes.add("added_result")
        there.sort(key=itemgetter(0))
        until = there[-1][0] if there else -1
        return Block(message, place, calls, (*(it for _, it in there), *missing), until)

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
        self.read_so_far.append((cleaned, place, tuple(calls)))

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
        steps = {(it.turn, it.step): it for it in handed if (it.turn, it.step) not in self._whole}
        self._whole |= steps.keys()
        hidden = {
            mate.id: mate
            for known in steps.values()
            for mate in self._record.mates(known)
            if not mate.handed and mate.id not in seen and mate.id not in self._taken
        }
        if hidden:
            self.changes.add("hidden_steps")
        for mate in sorted(hidden.values(), key=lambda it: (it.turn, it.step, it.place)):
            entries.insert(mate.place, mate.entry)
        return entries

    def _by_name(self, name: str) -> Known | None:
        """The first call of this name that the agent was handed and has not yet sent: there are no ids."""
        if self._unsent is None:
            self._unsent = defaultdict(deque)
            for known in self._record.calls.values():
                if known.handed:
                    self._unsent[known.call.name].append(known)
        unsent = self._unsent.get(name, deque())
        while unsent and unsent[0].id in self._taken:
            unsent.popleft()
        return unsent[0] if unsent else None

    def _result(self, place: int, message: Message, *, legacy: bool) -> None:
        key = message.get("name" if legacy else "tool_call_id")
        key = self._aliases.get(key, key) if isinstance(key, str) else ""
        at = self._open.get((legacy, key))
        if at is None or (legacy, key, at) in self._results:
            self.changes.add("dropped_result")
            return
        cleaned = without_calls(self._without(message, _ADDED), self.changes)
        self._results[legacy, key, at] = (place, {**cleaned, "name" if legacy else "tool_call_id": key})

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

    def _without(self, message: Message, keys: frozenset[str]) -> Message:
        """A copy of the message without these keys."""
        if keys.isdisjoint(message):
            return dict(message)
        self.changes.add("message_keys")
        return {key: value for key, value in message.items() if key not in keys}


def _without_interruptions(blocks: Sequence[Block], changes: set[str]) -> list[Block]:
    """Leaves out a user message that some agents repeat between a call and its result."""
    kept: list[Block] = []
    last, until = "", -1
    for block in blocks:
        if block.role == "user":
            text = squeezed(text_of(block.message))
            if text and text == last and until > block.place:
                changes.add("dropped_repeat")
                continue
            last, until = text, -1
        until = max(until, block.until)
        kept.append(block)
    return kept


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
