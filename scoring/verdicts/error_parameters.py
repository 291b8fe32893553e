"""What is wrong with the arguments of a call, in the words of the published error table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.assign import parse_arguments, same
from scenarios.strict.faults import Fault
from scoring.verdicts.published_arguments import comparable, in_description, members, required

_UNREADABLE = frozenset({"args.invalid_json", "args.duplicate_key", "args.not_finite"})
"""Rules of `scenarios.strict.rules` about arguments that `strict` does not read."""

CallFaults = frozenset[str]
"""Any of `invalid_json`, `required_missing`, `undeclared_key`, `type`, `invented`, `value`."""


def faults_of(
    parameters: Any, arguments: Any, expected: Mapping[str, Any], found: Sequence[Fault] = ()
) -> CallFaults:
    """What is wrong with `arguments` (as read of the call) beside the Reference's; at least one fault.

    `found` are the faults that a scorer names: parameters that none of them is about are left out.
    """
    given = {} if arguments is None else parse_arguments(arguments)
    unread = given is None and arguments.strip() != "null"
    if unread or any(fault.rule in _UNREADABLE for fault in found):
        return frozenset({"invalid_json"})
    if not isinstance(given, dict):
        return frozenset({"type"})
    keys = _to_blame(given.keys() | expected.keys() | set(required(parameters)), found)
    try:
        faults = frozenset(_in_members(given, expected, parameters, keys))
    except RecursionError:
        faults = frozenset()
    return faults or frozenset({"value"})


def _to_blame(keys: set[str], found: Sequence[Fault]) -> set[str]:
    """The top-level keys that the faults are about; all of them where a fault is about the whole, or none."""
    named = {fault.path: {key for key in keys if _is_in(key, fault.path)} for fault in found}
    return set().union(*named.values()) if named and all(named.values()) else keys


def _is_in(key: str, path: str) -> bool:
    starts = (f"$.{key}", f"$[{json.dumps(key)}]")
    return any(path == start or path.startswith((f"{start}.", f"{start}[")) for start in starts)


def _in_members(given: dict[str, Any], gold: Mapping[str, Any], schema: Any, keys: set[str]) -> Iterator[str]:
    declared = members(schema)
    missing = set(required(schema)) - given.keys()
    for key in keys:
        if key in missing:
            yield "required_missing"
        elif key not in given:
            yield "value"
        elif key not in declared and not _is_open(schema):
            yield "undeclared_key"
        elif key in gold:
            yield from _in_value(given[key], gold[key], declared.get(key))
        else:
            yield "value" if in_description(given[key], declared.get(key)) else "invented"


def _is_open(schema: Any) -> bool:
    """Whether an object may have keys of any name: it declares none, or says so."""
    return (
        not isinstance(schema, dict) or "properties" not in schema or bool(schema.get("additionalProperties"))
    )


def _in_value(given: Any, gold: Any, schema: Any) -> Iterator[str]:
    if type(comparable(given)) is not type(comparable(gold)):
        yield "type"
    elif isinstance(given, dict):
        yield from _in_members(given, gold, schema, given.keys() | gold.keys() | set(required(schema)))
    elif isinstance(given, list):
        if len(given) != len(gold):
            yield "value"
        items = schema.get("items") if isinstance(schema, dict) else None
        for mine, theirs in zip(given, gold, strict=False):
            yield from _in_value(mine, theirs, items)
    elif not same(given, gold):
        yield "value"
