"""Strategies for what strangers send: any JSON value at any place, any bytes, sound ones with changes."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

HALF = "\ud800"
"""Half of a surrogate pair: JSON has an escape for it, UTF-8 has no bytes."""

ODD_TEXTS = ["", " ", "\n", "\r\n", "\x00", "\x1b[31m", "\u2028", "\u202e", HALF, "é", "你好", "NaN", "[]"]
TEXTS = (
    st.text(max_size=8)
    | st.text(st.characters(), max_size=4)
    | st.sampled_from(ODD_TEXTS)
    | st.builds(lambda: "x" * 5000)
)
"""Any characters, halves of surrogate pairs too."""

NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([0, -1, True, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 1e308, -0.0])
    | st.builds(lambda: 10**400)
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def json_values(keys: st.SearchStrategy[str], max_leaves: int = 10) -> st.SearchStrategy[Any]:
    """Any value that `json` reads: NaN, big integers and halves of surrogate pairs are among them."""
    return st.recursive(
        st.none()
        | st.booleans()
        | NUMBERS
        | TEXTS
        | keys
        | st.builds(nested, st.sampled_from([90, 150, 250])),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | TEXTS, inner, max_size=4),
        max_leaves=max_leaves,
    )


def places(value: Any) -> list[tuple[Any, ...]]:
    """The path of every value inside of a JSON value, its own (empty) first."""
    found: list[tuple[Any, ...]] = [()]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        found += [(key, *path) for path in places(child)]
    return found


@st.composite
def changed(
    draw: st.DrawFn, sound: Any, values: st.SearchStrategy[Any], keys: st.SearchStrategy[str], most: int = 3
) -> Any:
    """A sound JSON value in which up to `most` values are replaced, left out, doubled or renamed."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, most))):
        path = draw(st.sampled_from(places(value)))
        if not path:
            value = draw(values) if draw(st.integers(0, 9)) == 0 else value
            continue
        outer = value
        for key in path[:-1]:
            outer = outer[key]
        _change(draw, outer, path[-1], values, keys)
    return value


def _change(
    draw: st.DrawFn, outer: Any, key: Any, values: st.SearchStrategy[Any], keys: st.SearchStrategy[str]
) -> None:
    how = draw(st.sampled_from(["replace", "replace", "leave out", "double", "rename"]))
    if how == "leave out":
        del outer[key]
    elif how == "double" and isinstance(outer, list):
        outer.insert(key, copy.deepcopy(outer[key]))
    elif how == "rename" and isinstance(outer, dict):
        outer[draw(keys | TEXTS)] = outer.pop(key)
    else:
        outer[key] = draw(values)


@st.composite
def damaged(draw: st.DrawFn, sound: bytes, fragments: st.SearchStrategy[bytes], most: int = 4) -> bytes:
    """Sound bytes of which some stretches are replaced by others."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 3) | st.integers(0, len(data) - at))
        data[at : at + length] = draw(fragments | st.binary(max_size=4))
    return bytes(data)
