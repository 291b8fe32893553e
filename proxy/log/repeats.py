"""What was lately turned into text, known again by its exact content, so that it is not done twice.

An agent sends its whole history with every call, under the same headers, with the same tools and
parameters. To serialise, mask, hash and look up all of it again was three quarters of what a call cost
the writer. One pass in native code tells whether it is the same: equal bytes mean equal values of equal types
with keys in equal order, which `==` does not. Those of histories are `marshal`'s (version 2, which has no
references), of which one can see where messages end; those of texts are orjson's where that loses nothing.
Should one value ever be written in two ways, the work is only done again.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

import orjson

_VERSION = 2
_MARSHALLED = b"\xff"
"""What no JSON begins with."""
_LIST_HEAD = 5
"""Bytes before a list's first element: the type, and how many there are."""

CONVERSATIONS = 4096
"""First two messages, which are mostly the system's and the user's, of the histories that are remembered."""
BRANCHES = 16
"""Histories with the same two that are remembered: sessions side by side, and where a turn set out."""
FEW = 4
"""Messages that an agent's next step adds at most, mostly: its calls, and what they gave."""
TEXTS = 512
END = 64
"""Bytes at both ends by which values are looked up; then all are compared, which is next to nothing."""
TEXT_BYTES = 16_384
"""Larger values are hardly sent twice, but for tools."""

_Result = TypeVar("_Result")
_size = attrgetter("size")


@dataclass(frozen=True, slots=True)
class Stored:
    """A history that is in the log: the size and digest of its bytes, its messages, its last link."""

    size: int
    digest: bytes
    count: int
    tip: str


@dataclass(frozen=True, slots=True)
class Looked:
    """A history that was looked for. `known`: the longest stored one that it begins with."""

    known: Stored | None
    beginning: bytes = b""
    data: memoryview | bytes = b""
    hasher: hashlib._Hash = field(default_factory=hashlib.sha256)
    """Has taken in the bytes of what is known."""


class Histories:
    """Finds how much of a history is stored already, whoever sent it."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[bytes, Stored]] = {}
        """By their first two messages, the latest last: histories by their digests, the latest last."""

    def clear(self) -> None:
        self._known.clear()

    def look(self, messages: list[Any]) -> Looked:
        try:
            beginning = hashlib.sha256(marshal.dumps(messages[:2], _VERSION)).digest()
            data = memoryview(marshal.dumps(messages, _VERSION))[_LIST_HEAD:]
        except ValueError:  # nested too deeply, or not of JSON's types
            return Looked(None)
        hasher, done, known, begun = hashlib.sha256(), 0, None, hashlib.sha256()
        for stored in sorted(self._known.get(beginning, {}).values(), key=_size):
            if stored.size > len(data):
                break
            hasher.update(data[done : stored.size])
            done = stored.size
            # Where the bytes of whole elements end, one ends here: `marshal` writes none so that
            # another begins with it.
            if hasher.digest() == stored.digest:
                known, begun = stored, hasher.copy()
        return Looked(known, beginning, data, begun)

    def remember(self, looked: Looked, messages: list[Any], tips: Sequence[str]) -> None:
        """`tips` are the links of those of the messages that were not known."""
        if not looked.beginning:
            return
        branches = self._known.pop(looked.beginning, {})
        if looked.known is not None:
            branches.pop(looked.known.digest, None)
            branches[looked.known.digest] = looked.known
        for stored in _ends(looked, messages, tips):
            branches[stored.digest] = stored
        while len(branches) > BRANCHES:
            del branches[next(iter(branches))]
        self._known[looked.beginning] = branches
        if len(self._known) > CONVERSATIONS:
            del self._known[next(iter(self._known))]


def _ends(looked: Looked, messages: list[Any], tips: Sequence[str]) -> Iterator[Stored]:
    """The histories to know again. A few messages more are an agent's next step, which goes on from there; of
    many, nobody knows where others part from them."""
    size, ends = len(looked.data), []
    for back in range(min(BRANCHES, len(tips)) if len(tips) > FEW else len(tips[-1:])):
        ends.append((size, len(messages) - back, tips[-1 - back]))
        size -= len(marshal.dumps(messages[-1 - back], _VERSION))
    hasher, done = looked.hasher.copy(), looked.known.size if looked.known else 0
    for size, count, tip in reversed(ends):
        hasher.update(looked.data[done:size])
        done = size
        yield Stored(size, hasher.digest(), count, tip)


class Texts:
    """Remembers what was made of a value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes], tuple[bytes, Any]] = {}

    def clear(self) -> None:
        self._known.clear()

    def made(self, value: Any, make: Callable[[Any], _Result]) -> _Result:
        try:
            data = _told_apart(value)
        except ValueError:  # nested too deeply, or not of JSON's types
            return make(value)
        key = (len(data), data[:END], data[-END:])
        known, found = self._known.get(key, (b"", None))
        if known == data:
            result: _Result = found
            return result
        result = make(value)
        if len(data) <= TEXT_BYTES:
            if len(self._known) >= TEXTS:
                del self._known[next(iter(self._known))]
            self._known[key] = (data, result)
        return result


def _told_apart(value: Any) -> bytes:
    """Bytes that no other JSON value has. orjson takes a third of `marshal`'s time, but makes null of NaN."""
    with suppress(orjson.JSONEncodeError):
        data = orjson.dumps(value)
        if b"null" not in data:
            return data
    return _MARSHALLED + marshal.dumps(value, _VERSION)
