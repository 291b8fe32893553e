"""The Reference of one Task, read strictly: nodes in shape, an acyclic graph, tools that exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from scenarios.annotations import read_alternatives
from scenarios.problems import Json, Problems, kind_of, short
from scenarios.types import ASK, CLOSE, PSEUDO_ACTIONS, Node


def parse_reference(
    value: Any, tool_names: Collection[str] | None, field: str, problems: Problems
) -> tuple[Node, ...]:
    """The nodes of one Task's Reference; calls are not looked up when `tool_names` is None."""
    items = problems.items(value, field)
    before = len(problems.found)
    nodes = [_node(item, i, len(items), f"{field}[{i}]", problems) for i, item in enumerate(items)]
    if len(problems.found) > before:
        return ()
    whole = tuple(node for node in nodes if node is not None)
    for i, node in enumerate(whole):
        if node.is_call and tool_names is not None and node.name not in tool_names:
            known = ", ".join(sorted(tool_names)[:8]) or "none"
            problems.add(f"{field}[{i}].action.name", f"{short(node.name)} is not among the tools ({known})")
    if isinstance(value, list) and not any(node.is_close for node in whole):
        problems.add(field, f"has no closing node, so the task could never end; add a {CLOSE} node")
    cycle = _cycle(whole)
    if cycle:
        steps = " -> ".join(str(i) for i in cycle)
        problems.add(
            field, f"has a cyclic dependency: node {steps} (each waits for the next); remove one of them"
        )
    return whole


def _node(value: Any, position: int, size: int, field: str, problems: Problems) -> Node | None:
    if problems.object(value, field) is None:
        return None
    missing = [key for key in ("action", "observation", "dependency_list") if key not in value]
    for key in missing:
        hint = "; write [] for a node that waits for nothing" if key == "dependency_list" else ""
        problems.add(f"{field}.{key}", f"is missing{hint}")
    if missing:
        return None
    action = problems.object(value["action"], f"{field}.action")
    if action is None:
        return None
    name = problems.text(action.get("name"), f"{field}.action.name")
    arguments = problems.object(action.get("arguments", {}), f"{field}.action.arguments")
    if name in PSEUDO_ACTIONS:
        problems.text(value["observation"], f"{field}.observation")
    user_input = None
    if name == ASK:
        user_input = _user_input(value, field, problems)
    dependencies = _dependencies(
        value["dependency_list"], position, size, f"{field}.dependency_list", problems
    )
    alternatives = read_alternatives(value, name not in PSEUDO_ACTIONS, field, problems)
    return Node(name, arguments or {}, value["observation"], dependencies, user_input, alternatives)


def _user_input(value: Json, field: str, problems: Problems) -> str | None:
    if value.get("user_input") is None:
        problems.add(f"{field}.user_input", "is missing; an ask needs the user's scripted reply")
        return None
    return problems.text(value["user_input"], f"{field}.user_input")


def _dependencies(value: Any, position: int, size: int, field: str, problems: Problems) -> tuple[int, ...]:
    """The positions a node waits for; one that is listed twice counts once."""
    good: dict[int, None] = {}
    for i, item in enumerate(problems.items(value, field)):
        at = f"{field}[{i}]"
        if not isinstance(item, int) or isinstance(item, bool):
            problems.add(at, f"must be the position of a node, not {kind_of(item)}")
        elif not 0 <= item < size:
            problems.add(at, f"{item} is out of range; the task has the nodes 0 to {size - 1}")
        elif item == position:
            problems.add(at, f"{item} is the node itself, which cannot wait for itself; remove it")
        else:
            good[item] = None
    return tuple(good)


def _cycle(nodes: Sequence[Node]) -> list[int]:
    """One cycle of dependencies, its first node repeated at the end; empty when there is none."""
    left = set(range(len(nodes)))
    while free := {i for i in left if not left.intersection(nodes[i].dependencies)}:
        left -= free
    if not left:
        return []
    walk = [min(left)]
    while walk.count(walk[-1]) == 1:
        walk.append(next(i for i in nodes[walk[-1]].dependencies if i in left))
    return walk[walk.index(walk[-1]) :]
