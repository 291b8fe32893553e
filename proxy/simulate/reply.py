"""What a policy may say, and the chance it may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from scenarios.history import encode
from scenarios.types import Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call before it has an id; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message: text, or a batch of calls; neither is the empty reply.

    `way` names the deliberate mistake that was made, "" if none was.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    way: str = ""


def call_of(node: Node) -> Call:
    """The call exactly as the rebuilt history writes it."""
    return Call(node.name, encode(node.arguments))


def digest(*parts: Any) -> str:
    """40 hexadecimal digits that depend on nothing but `parts`."""
    return blake2b("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


@dataclass(frozen=True, slots=True)
class Draw:
    """Chance that is the same whenever, and in whatever order, it is asked: a hash of `key`."""

    key: tuple[Any, ...]

    def fraction(self, label: str) -> float:
        """A number in [0, 1), evenly distributed over keys and labels."""
        return int(digest(*self.key, label)[:13], 16) / 16**13

    def choose(self, label: str, options: Sequence[T]) -> T:
        """One of `options`, which must not be empty."""
        return options[int(self.fraction(label) * len(options))]

    def shuffle(self, options: Sequence[str]) -> list[str]:
        return sorted(options, key=lambda option: (self.fraction(f"order {option}"), option))
