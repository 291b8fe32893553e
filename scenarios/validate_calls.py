"""Checks of the calls of a Reference, and of what is annotated for them and for their tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from scenarios.annotations import ANNOTATIONS
from scenarios.mutations import required_keys
from scenarios.parameters import schemas_at
from scenarios.types import NO_NOTES, Node, Scenario, Tool

Level = Literal["error", "warning", "note"]

Found = tuple[Level, str, str]
"""How grave it is, the field that it is about, and what is wrong there."""


def about_notes(scenario: Scenario) -> Iterator[Found]:
    """What is odd about the annotations of tools."""
    for tool in scenario.tools:
        notes = scenario.notes.get(tool.name, NO_NOTES)
        field = f"{ANNOTATIONS}.{tool.name}"
        for path in sorted(notes.free_text):
            if any("enum" in schema for schema in schemas_at(tool, path)[0]):
                reason = f"{path!r} has an enum, and no other words stand for a value of an enum; take it out"
                yield "warning", f"{field}.free_text", reason
        for path in sorted(notes.defaults):
            if path in required_keys(tool):
                yield "warning", f"{field}.defaults", f"{path!r} is required, so a default is of no use"


def about_calls(nodes: Sequence[Node], answer: str, tools: Sequence[Tool]) -> Iterator[Found]:
    """What is wrong with the arguments of calls, and which calls cannot be told apart.

    `answer` is the field of the Reference.
    """
    named = {tool.name: tool for tool in tools}
    for i, node in enumerate(nodes):
        if node.is_call:
            field, tool = f"{answer}[{i}]", named[node.name]
            yield from _about_keys(tool, node.arguments, f"{field}.action.arguments")
            for k, alternative in enumerate(node.alternatives):
                yield from _about_keys(tool, alternative, f"{field}.alternatives[{k}]")
    yield from _about_ambiguity(nodes, answer)


def ancestors(nodes: Sequence[Node], node: int) -> set[int]:
    """All the nodes that one waits for."""
    found: set[int] = set()
    waiting = list(nodes[node].dependencies)
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting.extend(nodes[current].dependencies)
    return found


def _about_keys(tool: Tool, arguments: Mapping[str, Any], field: str) -> Iterator[Found]:
    for key in required_keys(tool):
        if key not in arguments:
            yield "error", field, f"lack {key!r}, which {tool.name} requires"
    properties = tool.parameters.get("properties")
    if isinstance(properties, dict):
        for key in arguments:
            if key not in properties:
                yield "error", field, f"have {key!r}, which {tool.name} does not declare"


def _about_ambiguity(nodes: Sequence[Node], answer: str) -> Iterator[Found]:
    """Two nodes of which neither waits for the other can be ready together."""
    before = [ancestors(nodes, i) for i in range(len(nodes))]
    calls = [_calls(node) for node in nodes]
    for i in range(len(nodes)):
        alike = [k for k in range(i) if calls[k] & calls[i] and k not in before[i] and i not in before[k]]
        if alike:
            listed = ", ".join(map(str, alike))
            reason = f"is ambiguous: node {listed} can be ready at the same time and takes the very same call"
            yield "note", f"{answer}[{i}]", f"{reason}; let them differ, or link them by dependencies"


def _calls(node: Node) -> set[str]:
    """The calls that a node takes, each as text in which the order of keys does not show."""
    objects = (node.arguments, *node.alternatives) if node.is_call else ()
    return {json.dumps([node.name, arguments], sort_keys=True) for arguments in objects}
