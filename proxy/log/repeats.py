"""What was lately turned into text, known again by its exact content, so that it is not done twice.

An agent sends its whole history with every call, under the same headers, with the same tools and
parameters. To serialise, mask, hash and look up all of it again was three quarters of what a call cost
the writer. `marshal` (version 2, which has no references) tells in one pass in C whether it is the same:
equal bytes mean equal values of equal types with keys in equal order, which `==` does not. Should it
ever write one value in two ways, the work is only done again.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_VERSION = 2
_LIST_HEAD = 5
"""Bytes before a list's first element: the type, and how many there are."""

CONVERSATIONS = 4096
"""Second messages, which are mostly the user's first, of the histories that are remembered."""
BRANCHES = 8
"""Histories with one of them that are remembered: sessions side by side, and where a turn set out."""
TEXTS = 512
END = 64
"""Bytes at both ends by which values are looked up; then all are compared, which is next to nothing."""
TEXT_BYTES = 16_384
"""Larger values are hardly sent twice, but for tools."""

_Result = TypeVar("_Result")


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
    size: int = 0
    digest: bytes = b""


class Histories:
    """Finds how much of a history is stored already, whoever sent it."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[bytes, Stored]] = {}

    def clear(self) -> None:
        self._known.clear()

    def look(self, messages: list[Any]) -> Looked:
        """An element is written so that no other begins with it: equal bytes are equal messages."""
        try:
            data = memoryview(marshal.dumps(messages, _VERSION))[_LIST_HEAD:]
            beginning = hashlib.sha256(marshal.dumps(messages[1:2], _VERSION)).digest()
        except ValueError:  # nested too deeply, or not of JSON's types
            return Looked(None)
        hasher, done, known = hashlib.sha256(), 0, None
        branches = self._known.get(beginning, {})
        for stored in sorted(branches.values(), key=lambda it: it.size):
            if stored.size > len(data):
                break
            hasher.update(data[done : stored.size])
            done = stored.size
            if hasher.digest() == stored.digest:
                known = stored
        hasher.update(data[done:])
        return Looked(known, beginning, len(data), hasher.digest())

    def remember(self, looked: Looked, count: int, tip: str) -> None:
        if not looked.digest:
            return
        branches = self._known.pop(looked.beginning, {})
        branches.pop(looked.digest, None)
        branches[looked.digest] = Stored(looked.size, looked.digest, count, tip)
        if len(branches) > BRANCHES:
            del branches[next(iter(branches))]
        self._known[looked.beginning] = branches  # the last in line to be forgotten
        if len(self._known) > CONVERSATIONS:
            del self._known[next(iter(self._known))]


class Texts:
    """Remembers what was made of a value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes], tuple[bytes, Any]] = {}

    def clear(self) -> None:
        self._known.clear()

    def made(self, value: Any, make: Callable[[Any], _Result]) -> _Result:
        try:
            data = marshal.dumps(value, _VERSION)
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
