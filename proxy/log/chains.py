"""Messages by content: a body is stored once, a history is a chain of hashes.

A message's hash is that of its JSON text; a link's hash is that of (parent link, message).
So a history that is sent again, one message longer, is one new message and one new link.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

TOO_DEEP = '"[too deeply nested to be logged]"'
HASH_CHARS = 32
"""128 bits of a sha256, in hex: far more than a log needs, half of what its indexes would cost."""


_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Link:
    """One place in a history. `parent` is the link before it (None at `position` 0)."""

    hash: str
    parent: str | None
    message: str
    position: int


def json_text(value: Any) -> str:
    """A JSON value as compact text that SQLite stores and its JSON functions read.

    Keys stay in the order they came in: some chat templates render it. Characters are
    plain, unless a lone surrogate (which UTF-8 cannot hold) makes the whole text ASCII
    escapes. NaN and the infinities, which JSON does not have, become the strings
    `"NaN"`, `"Infinity"` and `"-Infinity"`. A value nested deeper than Python can follow
    becomes `TOO_DEEP`: nobody who sends one may stop the log.
    """
    try:
        return _any_json_text(value)
    except RecursionError:
        return TOO_DEEP


def storable(text: str) -> str:
    """`text` as it is; if it holds lone surrogates, those as `\\udxxx` (six plain characters)."""
    return text if _encodable(text) else text.encode("utf-8", "backslashreplace").decode()


def content_hash(text: str) -> str:
    """The name of a stored text."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]


def link_hash(parent: str | None, message: str) -> str:
    """The name of the history that ends with `message` after `parent`."""
    return hashlib.sha256(f"{parent or ''}>{message}".encode()).hexdigest()[:HASH_CHARS]


def chain(messages: Iterable[str], tip: str | None = None, count: int = 0) -> tuple[Link, ...]:
    """The links of a history, given its message hashes. The last one is its tip.

    With `tip`, those that come after the `count` messages of the history that ends there.
    """
    links: list[Link] = []
    for position, message in enumerate(messages, count):
        links.append(Link(link_hash(tip, message), tip, message, position))
        tip = links[-1].hash
    return tuple(links)


def _any_json_text(value: Any) -> str:
    try:
        text = _PLAIN.encode(value)
    except ValueError:
        value = _without_nan(value)
        text = _PLAIN.encode(value)
    return text if _encodable(text) else _ESCAPED.encode(value)


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value
