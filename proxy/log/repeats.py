"""What was lately turned into text, known again by its exact content, so that it is not done twice.

An agent sends its whole history with every call, under the same headers, with the same tools and
parameters. To serialise, mask, hash and look up all of it again was three quarters of what a call cost
the writer. One pass in native code tells whether it is the same: equal bytes mean equal values of equal types
with keys in equal order, which `==` does not. They are those of `quick_json` or, for what that cannot write,
of `marshal` (version 2, which has no references). Should this ever write one value in two ways, the work is
only done again.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from proxy.log.chains import quick_json

_VERSION = 2
_LIST_HEAD = 5
"""Bytes before a list's first element: the type, and how many there are."""

_COMMA = ord(",")
_MARSHALLED = b"\xff"
"""What no JSON begins with."""

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
    is_quick: bool = False
    size: int = 0
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class _Branches:
    """Histories with one second message, by their digests, the latest last, and how they were written."""

    is_quick: bool
    stored: dict[bytes, Stored]


class Histories:
    """Finds how much of a history is stored already, whoever sent it."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Branches] = {}

    def clear(self) -> None:
        self._known.clear()

    def look(self, messages: list[Any]) -> Looked:
        try:
            beginning = hashlib.sha256(marshal.dumps(messages[1:2], _VERSION)).digest()
            branches = self._known.get(beginning, _Branches(True, {}))
            data, is_quick = _written(messages, branches.is_quick)
        except ValueError:  # nested too deeply, or not of JSON's types
            return Looked(None)
        found = branches.stored.values() if is_quick == branches.is_quick else ()
        hasher, done, known = hashlib.sha256(), 0, None
        for stored in sorted(found, key=lambda it: it.size):
            if stored.size > len(data):
                break
            hasher.update(data[done : stored.size])
            done = stored.size
            if hasher.digest() == stored.digest and _is_whole(data, done, is_quick):
                known = stored
        hasher.update(data[done:])
        return Looked(known, beginning, is_quick, len(data), hasher.digest())

    def remember(self, looked: Looked, count: int, tip: str) -> None:
        if not looked.digest:
            return
        branches = self._known.pop(looked.beginning, None)
        if branches is None or branches.is_quick != looked.is_quick:
            branches = _Branches(looked.is_quick, {})
        stored = branches.stored
        stored.pop(looked.digest, None)
        stored[looked.digest] = Stored(looked.size, looked.digest, count, tip)
        if len(stored) > BRANCHES:
            del stored[next(iter(stored))]
        self._known[looked.beginning] = branches  # the last in line to be forgotten
        if len(self._known) > CONVERSATIONS:
            del self._known[next(iter(self._known))]


def _written(messages: list[Any], is_quick: bool) -> tuple[memoryview, bool]:
    """The bytes of the elements, and whether JSON's: what could once not be written so is not tried again."""
    quick = quick_json(messages) if is_quick else None
    if quick is not None:
        return memoryview(quick)[1:-1], True
    return memoryview(marshal.dumps(messages, _VERSION))[_LIST_HEAD:], False


def _is_whole(data: memoryview, size: int, is_quick: bool) -> bool:
    """Whether an element ends there, where bytes end that are those of elements.

    `marshal` writes none so that another begins with it; in JSON, a number may go on.
    """
    return not is_quick or size == len(data) or data[size] == _COMMA


class Texts:
    """Remembers what was made of a value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes], tuple[bytes, Any]] = {}

    def clear(self) -> None:
        self._known.clear()

    def made(self, value: Any, make: Callable[[Any], _Result]) -> _Result:
        try:
            data = quick_json(value) or _MARSHALLED + marshal.dumps(value, _VERSION)
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
