"""The argument rules of all tools of a Scenario, made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scenarios.strict.arguments import judge_call
from scenarios.strict.frontier import rulebook
from scenarios.strict.frontier_places import Rulebook
from scenarios.types import Node, Scenario, ToolCall

KEPT = 512
"""So many Scenarios' rules are kept: more than a Run of the benchmark has."""


def rulebook_of(scenario: Scenario) -> Rulebook:
    """The rules of a Scenario's tools; they are kept for its other Tasks and epochs."""
    return _rulebook_of(_Known(scenario))


def is_right(scenario: Scenario, call: ToolCall, node: Node) -> bool:
    """Is the call, by name and by what its arguments mean, the node's?"""
    rules = rulebook_of(scenario).get(call.name)
    return call.name == node.name and rules is not None and judge_call(rules, call.arguments, node).right


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A Scenario's tools and notes, known by being the very same objects."""

    scenario: Scenario

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Known)
            and self.scenario.tools is other.scenario.tools
            and self.scenario.notes is other.scenario.notes
        )

    def __hash__(self) -> int:
        return hash((id(self.scenario.tools), id(self.scenario.notes)))


@lru_cache(maxsize=KEPT)
def _rulebook_of(known: _Known) -> Rulebook:
    return rulebook(known.scenario.tools, known.scenario.notes)
