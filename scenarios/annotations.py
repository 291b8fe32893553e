"""What a Scenario's author says of its tools beyond their schemas, read strictly (`types.ToolNotes`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from scenarios.parameters import Schema, children_of, schemas_at, types_of
from scenarios.problems import Json, Problems, kind_of, short
from scenarios.types import NO_NOTES, Tool, ToolNotes

ANNOTATIONS = "annotations"
"""The key of a record: an object, name of a tool -> what is said of it."""

KEYS = ("side_effects", "free_text", "unordered", "defaults", "undoes")

SHOWN = 8
"""Names that a message lists at most."""

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "float": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
"""The JSON values of each type; `float` is the data's word for `number`."""


def read_notes(record: Json, tools: Sequence[Tool] | None, problems: Problems) -> dict[str, ToolNotes]:
    """The notes of a record, by name of the tool; a tool of which nothing is said is not in it.

    One key serves both languages, since names of tools and parameters are the same in either.
    Tools, and what they declare, are not looked up when `tools` is None.
    """
    if f"english_{ANNOTATIONS}" in record:
        problems.add(
            f"english_{ANNOTATIONS}", f"is not read; annotations hold for both languages: write {ANNOTATIONS}"
        )
    if ANNOTATIONS not in record:
        return {}
    known = None if tools is None else {tool.name: tool for tool in tools}
    notes: dict[str, ToolNotes] = {}
    before = len(problems.found)
    for name, said in (problems.object(record[ANNOTATIONS], ANNOTATIONS) or {}).items():
        field = f"{ANNOTATIONS}.{name}"
        if known is not None and name not in known:
            problems.add(field, _unknown(name, known, "is not among the tools"))
            continue
        one = _tool_notes(said, None if known is None else known[name], known, field, problems)
        if one != NO_NOTES:
            notes[name] = one
    # A tool whose notes could not be read would look like one without side effects.
    if known is not None and len(problems.found) == before:
        _check_undoes(notes, record[ANNOTATIONS], problems)
    return notes


def plain_notes(notes: ToolNotes) -> Json:
    """The notes of one tool as a file has them: what says nothing is left out, paths are sorted."""
    plain: Json = {
        "side_effects": notes.side_effects,
        "free_text": sorted(notes.free_text),
        "unordered": sorted(notes.unordered),
        "defaults": dict(notes.defaults),
        "undoes": sorted(notes.undoes),
    }
    return {key: value for key, value in plain.items() if value}


def read_alternatives(node: Json, is_call: bool, field: str, problems: Problems) -> tuple[Json, ...]:
    """The argument objects of a node that count as well as its own; `field` is the node's."""
    if "alternatives" not in node:
        return ()
    at = f"{field}.alternatives"
    if not is_call:
        problems.add(at, "belongs to a call, but this node is done in plain text; remove it")
        return ()
    read = (
        problems.object(item, f"{at}[{i}]") for i, item in enumerate(problems.items(node["alternatives"], at))
    )
    return tuple(item for item in read if item is not None)


def _tool_notes(
    said: Any, tool: Tool | None, known: Collection[str] | None, field: str, problems: Problems
) -> ToolNotes:
    if problems.object(said, field) is None:
        return NO_NOTES
    for key in said:
        if key not in KEYS:
            problems.add(f"{field}.{key}", _unknown(key, KEYS, "is not among the annotations"))
    effects = said.get("side_effects", False)
    if not isinstance(effects, bool):
        problems.add(f"{field}.side_effects", f"must be true or false, not {kind_of(effects)}")
    defaults = problems.object(said.get("defaults", {}), f"{field}.defaults") or {}
    for path, value in defaults.items():
        _check_default(path, value, tool, f"{field}.defaults", problems)
    return ToolNotes(
        free_text=_paths(said, "free_text", "string", tool, field, problems),
        unordered=_paths(said, "unordered", "array", tool, field, problems),
        defaults=defaults,
        side_effects=effects is True,
        undoes=_undoes(said, known, f"{field}.undoes", problems),
    )


def _paths(
    said: Json, key: str, kind: str, tool: Tool | None, field: str, problems: Problems
) -> frozenset[str]:
    """The paths under `key`, each of which must lead to a parameter of type `kind`."""
    paths: list[str] = []
    for i, item in enumerate(problems.items(said.get(key, []), f"{field}.{key}")):
        at = f"{field}.{key}[{i}]"
        path = problems.text(item, at)
        schemas = _declared(path, tool, at, problems) if path and tool else []
        types = types_of(schemas)
        if tool and types and kind not in types:
            reason = f"{short(path)} is of type {_listed(types)}, but {key} is for type {kind}"
            if kind in types_of(children_of(tool, schemas).get("[]", [])):
                reason += f"; write {short(path + '[]')} for its items"
            problems.add(at, reason)
        paths.append(path)
    return frozenset(paths)


def _check_default(path: str, value: Any, tool: Tool | None, field: str, problems: Problems) -> None:
    types = types_of(_declared(path, tool, field, problems)) if tool else set()
    if types and not any(_is_of(value, name) for name in types):
        problems.add(field, f"{short(path)} is of type {_listed(types)}, but its default is {kind_of(value)}")


def _is_of(value: Any, name: str) -> bool:
    """A bool is no number, 5.0 is an integer, and of a type that JSON Schema lacks is everything."""
    if name not in PYTHON_TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    whole = name == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, PYTHON_TYPES[name])


def _declared(path: str, tool: Tool, field: str, problems: Problems) -> list[Schema]:
    """What the tool's schema says at `path`; a problem where it says nothing."""
    schemas, there, near = schemas_at(tool, path)
    if not schemas:
        has = f"which has {_listed(near)}" if near else f"which has nothing below {short(there)}"
        if not near and not there:
            has = "which declares no parameters"
        problems.add(field, f"{short(path)} is no parameter of {tool.name}, {has}{_meant(path, near)}")
    return schemas


def _undoes(said: Json, known: Collection[str] | None, field: str, problems: Problems) -> frozenset[str]:
    names: list[str] = []
    for i, item in enumerate(problems.items(said.get("undoes", []), field)):
        name = problems.text(item, f"{field}[{i}]")
        if name and known is not None and name not in known:
            problems.add(f"{field}[{i}]", _unknown(name, known, "is not among the tools"))
        names.append(name)
    return frozenset(names)


def _check_undoes(notes: dict[str, ToolNotes], annotations: Json, problems: Problems) -> None:
    """Only what has side effects can take back side effects."""
    mend = 'add "side_effects": true'
    for name, one in notes.items():
        field = f"{ANNOTATIONS}.{name}.undoes"
        if one.undoes and not one.side_effects:
            problems.add(field, f"{name} has no side effects, so it can take none back; {mend}")
        for i, other in enumerate(annotations[name].get("undoes", [])):
            if other != name and not notes.get(other, NO_NOTES).side_effects:
                reason = f"{short(other)} has no side effects to take back; {mend} to {ANNOTATIONS}.{other}"
                problems.add(f"{field}[{i}]", reason)


def _unknown(name: str, known: Collection[str], reason: str) -> str:
    return f"{short(name)} {reason} ({_listed(known)}){_meant(name, known)}"


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _listed(names: Collection[str]) -> str:
    more = f", ... ({len(names)})" if len(names) > SHOWN else ""
    return (", ".join(sorted(names)[:SHOWN]) or "none") + more
