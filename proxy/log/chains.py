"""Messages by content: a body is stored once, a history is a chain of hashes.

A message's hash is that of its JSON text; a link's hash is that of (parent link, message).
So a history that is sent again, one message longer, is one new message and one new link.

Links are stored in the order of their hashes. After the second message, which is mostly the user's first, a
link's hash begins as that of the link before: so those of a history are next to each other in the file, where
one page is read or written for many of them, instead of one for each.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

TOO_DEEP = '"[too deeply nested to be logged]"'
HASH_CHARS = 22
"""132 bits of a sha256, in base64 for URLs: far more than a log needs, a third of what hex would cost."""
PLACE_CHARS = 4
"""Characters of a link's hash that say where in the file it is: those that it has of the link before."""
LINK_CHARS = PLACE_CHARS + 20


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
    return _hash(text)[:HASH_CHARS]


def link_hash(parent: str | None, message: str, position: int) -> str:
    """The name of the history that ends with `message`, at `position` in it, after `parent`."""
    name = _hash(f"{parent or ''}>{message}")
    return name[:LINK_CHARS] if parent is None or position < 2 else (parent[:PLACE_CHARS] + name)[:LINK_CHARS]


def chain(messages: Iterable[str], tip: str | None = None, count: int = 0) -> tuple[Link, ...]:
    """The links of a history, given its message hashes. The last one is its tip.

    With `tip`, those that come after the `count` messages of the history that ends there.
    """
    links: list[Link] = []
    for position, message in enumerate(messages, count):
        links.append(Link(link_hash(tip, message, position), tip, message, position))
        tip = links[-1].hash
    return tuple(links)


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:18]).decode()


def quick_json(value: Any) -> bytes | None:
    """`value` as JSON if orjson can write it, in a tenth of the time that `json` takes.

    It cannot if the value is nested deeply, has an integer of more than 64 bits, a lone surrogate, NaN or an
    infinity (for which orjson writes null) or what is not of JSON.
    """
    try:
        data = orjson.dumps(value)
    except TypeError:
        return None
    # What is read again is equal, but for what became a null.
    return None if b"null" in data and orjson.loads(data) != value else data


def _any_json_text(value: Any) -> str:
    quick = quick_json(value)
    if quick is not None:
        return quick.decode()
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
