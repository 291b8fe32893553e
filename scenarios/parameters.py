"""Where a path of a tool's parameters leads in its JSON Schema: `filters.tags`, `people[].note`.

A path is the keys joined by dots, with `[]` for the items of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scenarios.types import Tool

Schema = dict[str, Any]


def schemas_at(tool: Tool, path: str) -> tuple[list[Schema], str, list[str]]:
    """(schemas, there, near): what the tool's schema says at `path`, and how far the path leads.

    There are several schemas where `anyOf` and the like offer several, none where nothing is
    declared. `there` is the longest beginning of the path that is declared, "" for the root,
    and `near` are the paths one step on from there.
    """
    words = f".{path}"
    reached: dict[int, list[Schema]] = {0: _unfolded([tool.parameters], tool.parameters)}
    for at in range(len(words)):
        for label, schemas in children_of(tool, reached.get(at, [])).items():
            end = at + len(label)
            # A key may hold a dot itself, so several ways through one path are tried.
            if words.startswith(label, at) and words[end : end + 1] in ("", ".", "["):
                reached[end] = _unfolded([*reached.get(end, []), *schemas], tool.parameters)
    last = max(reached)
    there = words[1:last]
    near = [f"{there}{label}".removeprefix(".") for label in children_of(tool, reached[last])]
    return reached.get(len(words), []), there, near


def children_of(tool: Tool, schemas: Sequence[Schema]) -> dict[str, list[Schema]]:
    """What stands one step below some schemas of `tool`: `.key` and `[]`, each with its schemas."""
    found: dict[str, list[Schema]] = {}
    for schema in schemas:
        properties = schema.get("properties")
        for key, child in properties.items() if isinstance(properties, dict) else ():
            found.setdefault(f".{key}", []).append(child)
        if isinstance(schema.get("items"), dict):
            found.setdefault("[]", []).append(schema["items"])
    return {label: _unfolded(below, tool.parameters) for label, below in found.items()}


def types_of(schemas: Iterable[Schema]) -> set[str]:
    """The names of types that some schemas allow; none where they do not say."""
    found: set[str] = set()
    for schema in schemas:
        said = schema.get("type")
        found.update(name for name in (said if isinstance(said, list) else [said]) if isinstance(name, str))
    return found


def _unfolded(schemas: Iterable[Any], root: Schema) -> list[Schema]:
    """Some schemas and all that they lead to by `$ref`, `anyOf`, `oneOf` and `allOf`, each once."""
    found: dict[int, Schema] = {}
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop(0)
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(key), list):
                waiting += schema[key]
        if isinstance(schema.get("$ref"), str):
            waiting.append(_pointed(root, schema["$ref"]))
    return list(found.values())


def _pointed(root: Schema, reference: str) -> Any:
    """What a `$ref` within the schema (`#/$defs/person`) points at; None where that is nothing."""
    if not reference.startswith("#"):
        return None
    place: Any = root
    for word in reference.split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        place = place.get(key) if isinstance(place, dict) else None
    return place
