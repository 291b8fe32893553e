"""Are the arguments of a call right, by meaning? The rules are in `rules.RULES`.

Sources: JSON Schema 2020-12 for what a schema says, RFC 8259 for JSON, RFC 3986 for URLs, Unicode
TR15 for NFKC. What the released checker says instead is in `scenarios.arguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from scenarios.strict.faults import Fault
from scenarios.strict.parsing import read_arguments
from scenarios.strict.places import Place, root_place
from scenarios.strict.schema import schema_faults, validator_of
from scenarios.strict.values import compare_objects, exactly
from scenarios.types import NO_NOTES, Node, Tool, ToolNotes

_ALMOST = 1 - 2**-20


@dataclass(frozen=True, slots=True)
class Rules:
    """What the arguments of one tool's calls are held to. `validator` makes a JSON Schema validator, once."""

    tool: Tool
    notes: ToolNotes
    root: Place = field(repr=False, compare=False)
    validator: Callable[[], Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The faults of a call, in the order of their paths, and how like the Reference it is.

    `likeness` is the share of the keys of both that are right, nested ones in proportion: 1 only if
    the call is right, 0 if its arguments cannot be read. `expected` is the alternative that it was
    measured against; None for the node's own arguments.
    """

    faults: tuple[Fault, ...]
    likeness: float
    expected: Mapping[str, Any] | None = None

    @property
    def right(self) -> bool:
        return not self.faults


_RIGHT = Comparison((), 1.0)


def prepare(tool: Tool, notes: ToolNotes = NO_NOTES) -> Rules:
    """The rules for one tool; make them once."""
    return Rules(
        tool, notes, root_place(tool.parameters, notes), cache(lambda: validator_of(tool.parameters))
    )


def compare(rules: Rules, arguments: Any, expected: Mapping[str, Any]) -> Comparison:
    """Judge arguments, as a call has them, against one argument object of the Reference. Never raises."""
    read = read_arguments(arguments)
    return Comparison((read,), 0.0) if isinstance(read, Fault) else _compare_read(rules, read, expected)


def judge_call(rules: Rules, arguments: Any, node: Node) -> Comparison:
    """Right by any of the node's argument objects; else the faults by the likeliest, the first of equals."""
    read = read_arguments(arguments)
    if isinstance(read, Fault):
        return Comparison((read,), 0.0)
    likeliest = _compare_read(rules, read, node.arguments)
    for expected in node.alternatives:
        if likeliest.right:
            break
        found = _compare_read(rules, read, expected)
        if found.right or found.likeness > likeliest.likeness:
            likeliest = replace(found, expected=expected)
    return likeliest


def _compare_read(rules: Rules, actual: dict[str, Any], expected: Mapping[str, Any]) -> Comparison:
    if exactly(actual, expected):
        return _RIGHT
    found = compare_objects(rules.root, (), actual, expected)
    if found.faults:
        return Comparison(found.faults, min(found.likeness, _ALMOST))
    broken = schema_faults(rules.validator(), actual, expected)
    # By what tells them apart, because a fault whose value is an object or array has no hash.
    faults = tuple({(it.rule, it.path, it.message): it for it in broken}.values())
    if not faults:
        return _RIGHT
    keys = len(actual.keys() | expected.keys())
    return Comparison(faults, max(0.0, keys - len(faults)) / (keys + 1))
