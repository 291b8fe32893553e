"""What a set of sessions is made of, so that one can see what it lacks. Pure: counts and text out.

The shape of a Reference is told by its calls: none, one, several in one step (parallel), several in one
chain, both (mixed); and where it asks, by whether the question comes before every call. Its steps are
those of the first shortest path: `1-2` is a call and then two at once, `ask-1` a question and then a call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scenarios.labels import FIRST_TURN, derived_label
from scenarios.mutations import steps
from scenarios.text import width
from scenarios.types import LABELS, NO_NOTES, SUBTYPES, Node, Scenario, Task

Json = dict[str, Any]

SHAPES = ("no call", "single", "parallel", "chain", "mixed", "ask first", "ask later")

SHAPE_OF_LABEL = dict(
    zip(LABELS, ("single", "parallel", "chain", "mixed", "ask first", "no call"), strict=True)
)

UNSAID = "none"
"""The row of a later Task of which no subtype is said; that of a first one is FIRST_TURN."""

CHINESE = re.compile("[\u4e00-\u9fff]")


def balance(scenarios: Sequence[Scenario]) -> Json:
    """The counts: Tasks by label, subtype and position, shapes, writes, languages."""
    tasks = [(scenario, task, i) for scenario in scenarios for i, task in enumerate(scenario.tasks)]
    return {
        "sessions": len(scenarios),
        "tasks": len(tasks),
        "languages": _counts(language_of(scenario) for scenario in scenarios),
        "annotated": sum(is_annotated(scenario) for scenario in scenarios),
        "tools": _tools(scenarios),
        "labels": _counts((task.label for _, task, _ in tasks), LABELS),
        "subtypes": _counts((_subtype(task, i) for _, task, i in tasks), (FIRST_TURN, *SUBTYPES)),
        "labels_by_subtype": _grouped(((task.label, _subtype(task, i)) for _, task, i in tasks), LABELS),
        "labels_by_position": _grouped(((task.label, str(i + 1)) for _, task, i in tasks), LABELS),
        "shapes": _counts((shape(task.nodes) for _, task, _ in tasks), SHAPES),
        "steps_by_shape": _grouped(((shape(t.nodes), step_pattern(t.nodes)) for _, t, _ in tasks), SHAPES),
        "parallel_tasks": sum(_has_parallel_calls(task) for _, task, _ in tasks),
        "writing_tasks": sum(bool(_writes(scenario, task)) for scenario, task, _ in tasks),
        "writes": sum(_writes(scenario, task) for scenario, task, _ in tasks),
    }


def is_annotated(scenario: Scenario) -> bool:
    """Whether its author said anything of its tools, or of other arguments that are right."""
    nodes = (node for task in scenario.tasks for node in task.nodes)
    return bool(scenario.notes) or any(node.alternatives for node in nodes)


def language_of(scenario: Scenario) -> str:
    """`zh` where a user's words have Chinese characters, else `en`: other languages are not told apart."""
    return "zh" if any(CHINESE.search(task.text) for task in scenario.tasks) else "en"


def shape(nodes: Sequence[Node]) -> str:
    """One of SHAPES."""
    found = SHAPE_OF_LABEL[derived_label(nodes)]
    asks_first = nodes[steps(nodes)[0][0]].is_ask
    return "ask later" if found == "ask first" and not asks_first else found


def step_pattern(nodes: Sequence[Node]) -> str:
    """The steps before the close: how many calls each has, or `ask`; "" when there are none."""
    path = [step for step in steps(nodes) if not nodes[step[0]].is_close]
    return "-".join("ask" if nodes[step[0]].is_ask else str(len(step)) for step in path)


def _has_parallel_calls(task: Task) -> bool:
    return any(len(step) > 1 for step in steps(task.nodes))


def _writes(scenario: Scenario, task: Task) -> int:
    """How many calls of a Reference change something, as far as that is annotated."""
    calls = (node.name for node in task.nodes if node.is_call)
    return sum(scenario.notes.get(name, NO_NOTES).side_effects for name in calls)


def _tools(scenarios: Sequence[Scenario]) -> Json:
    sizes = [len(scenario.tools) for scenario in scenarios]
    writing = {name for one in scenarios for name, notes in one.notes.items() if notes.side_effects}
    return {
        "fewest": min(sizes, default=0),
        "most": max(sizes, default=0),
        "names": len({tool.name for scenario in scenarios for tool in scenario.tools}),
        "with_side_effects": len(writing),
    }


def _subtype(task: Task, position: int) -> str:
    return task.subtype or (UNSAID if position else FIRST_TURN)


def _counts(found: Iterable[str], order: Sequence[str] = ()) -> dict[str, int]:
    """How often each was found: those of `order` first, zeros too, then any other."""
    counted = Counter(found)
    return {name: counted[name] for name in (*order, *sorted(set(counted) - set(order)))}


def _grouped(pairs: Iterable[tuple[str, str]], order: Sequence[str]) -> dict[str, dict[str, int]]:
    """For each of `order` what was found beside it, most first."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in order}
    for group, name in pairs:
        counted[group][name] += 1
    return {
        group: dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
        for group, counts in counted.items()
    }


def balance_text(counted: Mapping[str, Any]) -> str:
    """The counts for people: labels by subtype and by position, then shapes, then what else there is."""
    by_subtype, by_position = counted["labels_by_subtype"], counted["labels_by_position"]
    subtypes = [name for name, count in counted["subtypes"].items() if count or name in SUBTYPES]
    positions = sorted({place for row in by_position.values() for place in row}, key=int)
    head = [
        "label",
        "all",
        *(name.split()[0].lower() for name in subtypes),
        *(f"task {p}" for p in positions),
    ]
    body = [
        [label, count, *(by_subtype[label].get(name, 0) for name in subtypes)]
        + [by_position[label].get(place, 0) for place in positions]
        for label, count in counted["labels"].items()
    ]
    total = ["all", *(sum(column) for column in list(zip(*body, strict=True))[1:])]
    shapes = [
        [
            name,
            count,
            ", ".join(f"{steps}: {n}" for steps, n in counted["steps_by_shape"][name].items() if steps),
        ]
        for name, count in counted["shapes"].items()
    ]
    lines = [*_aligned([head, *body, total]), "", *_aligned([["shape", "all", "steps"], *shapes]), ""]
    return "\n".join([*lines, *(f"  {line}" for line in _rest(counted))])


def _rest(counted: Mapping[str, Any]) -> Iterator[str]:
    tools = counted["tools"]
    room = f"{tools['fewest']} to {tools['most']}" if tools["fewest"] != tools["most"] else str(tools["most"])
    languages = ", ".join(f"{count} {name}" for name, count in counted["languages"].items())
    yield f"tasks with several calls in one step: {counted['parallel_tasks']}"
    yield f"tasks with side effects: {counted['writing_tasks']}; calls: {counted['writes']}"
    writing = tools["with_side_effects"]
    yield f"tools in a session: {room}; in all: {tools['names']}; with side effects: {writing}"
    yield f"sessions by language: {languages}; annotated: {counted['annotated']}"


def _aligned(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The rows in columns, numbers to the right; a zero is a dot, so that gaps are seen."""
    cells = [["." if cell == 0 else str(cell) for cell in row] for row in rows]
    rooms = [max(map(width, column)) for column in zip(*cells, strict=True)]
    right = [isinstance(cell, int) for cell in rows[-1]]
    for row in cells:
        padded = (
            " " * (room - width(cell)) + cell if number else cell + " " * (room - width(cell))
            for cell, room, number in zip(row, rooms, right, strict=True)
        )
        yield ("  " + "  ".join(padded)).rstrip()
