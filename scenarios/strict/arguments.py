"""Are the arguments of a call right? Stub of the interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.assign import agreement, parse_arguments
from scenarios.strict.faults import Fault
from scenarios.types import NO_NOTES, Node, Tool, ToolNotes


@dataclass(frozen=True, slots=True)
class Rules:
    tool: Tool
    notes: ToolNotes


@dataclass(frozen=True, slots=True)
class Comparison:
    faults: tuple[Fault, ...]
    likeness: float

    @property
    def right(self) -> bool:
        return not self.faults


def prepare(tool: Tool, notes: ToolNotes = NO_NOTES) -> Rules:
    return Rules(tool, notes)


def compare(rules: Rules, arguments: Any, expected: Mapping[str, Any]) -> Comparison:
    likeness = agreement(parse_arguments("" if arguments is None else arguments), dict(expected))
    return Comparison(() if likeness == 1.0 else (Fault("args.value", "$", "differs"),), likeness)


def judge_call(rules: Rules, arguments: Any, node: Node) -> Comparison:
    found = [compare(rules, arguments, it) for it in (node.arguments, *node.alternatives)]
    return max(found, key=lambda it: (it.right, it.likeness))
