"""The default of a parameter: from the notes, the schema, or the words of its description.

Words are taken only where they can be read in one way: "the default is the current date", "defaults
to 10 minutes" or two sentences that disagree give no default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from scenarios.strict.parsing import read_json
from scenarios.strict.places import Place
from scenarios.strict.rules import ABSENT

_INTRODUCED = re.compile(
    r"""
    \b default (?: \s+ value | \s+ setting )? \s* (?: [:=] | \s (?: is | being | of | will \s be ) \b )
        (?: \s+ set \s+ to \b )? \s*
    | \b default (?: s | ing | ed )? \s+ to \b \s*
    | [(\[] \s* default \s+
    | (?: 默认|缺省 ) (?: 值 | 设置 )? \s* (?: 设? 为 | 就?是 | [:：=] )? \s*
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What stands before a default."""

_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』"}
_ENDED = re.compile(
    r"\s*(?:$|[.。](?:\s|$|[^\d\s])|[,，;；、:：()（）\]】\n!！]|(?:for|which|representing|represents|meaning|means)\b)",
    re.IGNORECASE,
)
"""How a text goes on after a default that is complete: `10 minutes` and `all types` are not 10 and "all"."""

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TRUTH = re.compile(r"(true|false|真|假|是|否)(?![A-Za-z_\u4e00-\u9fff])", re.IGNORECASE)
_TRUE = frozenset({"true", "真", "是"})
_EMPTY = re.compile(r"(?:an? )?empty(?: string)?|空字符串", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][\w-]*")
_NO_VALUES = frozenset(
    {
        "all",
        "any",
        "auto",
        "automatic",
        "blank",
        "current",
        "disabled",
        "enabled",
        "everything",
        "latest",
        "no",
        "none",
        "not",
        "nothing",
        "now",
        "null",
        "off",
        "on",
        "optional",
        "required",
        "the",
        "today",
        "tomorrow",
        "undefined",
        "unlimited",
        "unset",
        "unspecified",
        "yes",
        "yesterday",
    }
)
"""Single words, without quotes, that describe a default rather than spell it."""


def default_of(place: Place) -> Any:
    """The value that counts as given where the parameter is left out; ABSENT where nobody says one."""
    said = place.said_default()
    if said is not ABSENT:
        return said
    found = [value for text in place.descriptions() for value in _values(text, place)]
    # Compared as text, because True == 1.
    return found[0] if found and all(repr(it) == repr(found[0]) for it in found) else ABSENT


def _values(description: str, place: Place) -> Iterator[Any]:
    """A value for every place where the description speaks of a default; ABSENT where it cannot be read."""
    for introduced in _INTRODUCED.finditer(description):
        yield _read(description[introduced.end() :], place)


def _read(text: str, place: Place) -> Any:
    """The value at the beginning of `text`, of the parameter's type."""
    quoted, bare = _quoted(text), text
    if place.allowed is not None:
        return _choice(quoted, bare, place.allowed)
    types = place.types
    if types == {"string"}:
        return _text(quoted, bare)
    if len(types) != 1:
        return quoted if not types and quoted is not None else ABSENT
    spelt = text if quoted is None else quoted
    (wanted,) = types
    if wanted in ("number", "integer"):
        return _number(spelt, wanted)
    if wanted == "boolean":
        found = _TRUTH.match(spelt)
        ended = found is not None and _ENDED.match(spelt, found.end())
        return found[1].casefold() in _TRUE if found is not None and ended else ABSENT
    return _structure(spelt, wanted)


def _quoted(text: str) -> str | None:
    end = _QUOTES.get(text[:1])
    if end is None or (close := text.find(end, 1)) < 0:
        return None
    return text[1:close] if _after_quote(text[close + 1 :]) else None


def _after_quote(rest: str) -> bool:
    """Not `'a' or 'b'`, `'a' if ...`: what depends has no one default."""
    return not re.match(r"\s*(?:or|if|when|unless|或|如果|当)\b|[A-Za-z0-9]", rest, re.IGNORECASE)


def _choice(quoted: str | None, bare: str, allowed: list[Any]) -> Any:
    """The one of the allowed values that is spelt, in quotes or not."""
    if quoted is not None:
        same = [it for it in allowed if _spelling(it) == quoted]
        same = same or [it for it in allowed if _spelling(it).casefold() == quoted.casefold()]
    else:
        same = [
            it
            for it in allowed
            if (name := _spelling(it))
            and bare[: len(name)].casefold() == name.casefold()
            and _ENDED.match(bare, len(name))
        ]
    return same[0] if len(same) == 1 else ABSENT


def _spelling(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(quoted: str | None, bare: str) -> Any:
    if quoted is not None:
        return quoted
    empty = _EMPTY.match(bare)
    if empty is not None and _ENDED.match(bare, empty.end()):
        return ""
    word = _WORD.match(bare)
    if word is None or not _ENDED.match(bare, word.end()) or word[0].casefold() in _NO_VALUES:
        return ABSENT
    return word[0]


def _number(spelt: str, wanted: str) -> Any:
    found = _NUMBER.match(spelt)
    if found is None or not _ENDED.match(spelt, found.end()) or re.match(r",\d", spelt[found.end() :]):
        return ABSENT
    try:
        value = read_json(found[0].removeprefix("+"))
    except ValueError:
        return ABSENT
    return ABSENT if wanted == "integer" and value != int(value) else value


def _structure(spelt: str, wanted: str) -> Any:
    """An array or object that is spelt as JSON."""
    try:
        value, _ = json.JSONDecoder().raw_decode(spelt)
    except (ValueError, RecursionError):
        return ABSENT
    return value if isinstance(value, {"array": list, "object": dict}.get(wanted, ())) else ABSENT
