"""Scenarios as text for a terminal and as JSON documents. Pure: values in, text out.

Whoever wrote a scenario file is not trusted: nothing of it reaches the terminal that the
terminal would obey.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from scenarios.annotations import plain_notes
from scenarios.load import ScenarioFile
from scenarios.mutations import steps
from scenarios.text import counted, visible, width
from scenarios.types import LABELS, Node, Scenario, Task, Tool, ToolNotes
from scenarios.validate import Finding
from scoring.scenarios_balance import balance, balance_text, is_annotated

Json = dict[str, Any]
Located = tuple[str, int, Finding]
"""A finding with the file (as the user named it) and the line it is about."""

SHORT = 200
"""Characters of an observation, or of a gold text, that are shown unless all are asked for."""

HASH_SHOWN = 12

PACKS = {
    "bundled": "a bit of everything: the sessions of the demo",
    "everyday": "errands of daily life and of the office",
    "ledger": "plain-text accounting, read and written",
    "zh": "daily life and office, in Chinese",
}
"""What the packs are about; a pack that is not among them is listed without."""

PACKS_HINT = (
    "A pack's name may stand wherever a scenario file is asked for:",
    "  wildproxy scenarios list ledger",
    "  wildproxy drive --agent builtin --scenarios ledger --provider sim:oracle",
)
UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def json_text(value: Any) -> str:
    """`value` as indented JSON; characters a terminal would obey are escaped, which JSON allows."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def sizes(scenario: Scenario) -> dict[str, int]:
    nodes = sum(len(task.nodes) for task in scenario.tasks)
    return {"tasks": len(scenario.tasks), "tools": len(scenario.tools), "nodes": nodes}


def list_document(files: Sequence[tuple[str, ScenarioFile]]) -> Json:
    """What `scenarios list --format json` prints."""
    return {"files": [_file_document(name, file) for name, file in files]}


def _file_document(name: str, file: ScenarioFile) -> Json:
    sessions = [
        {
            "id": scenario.id,
            "line": line,
            "date": scenario.date,
            "labels": [task.label for task in scenario.tasks],
            "subtypes": [task.subtype for task in scenario.tasks],
            **sizes(scenario),
            "annotated": is_annotated(scenario),
            "hash": scenario.hash,
        }
        for scenario, line in zip(file.scenarios, file.lines, strict=True)
    ]
    return {
        "file": name,
        "sha256": file.sha256,
        "language": file.language,
        "sessions": sessions,
        "balance": balance(file.scenarios),
    }


def list_text(name: str, file: ScenarioFile) -> str:
    """The sessions of one file, a line each, under the file's name and sha256; then their balance."""
    rows = [("id", "tasks", "tools", "nodes", "labels", "subtypes", "hash")]
    for scenario in file.scenarios:
        labels = " ".join(task.label.split()[0].removesuffix("-Tool") for task in scenario.tasks)
        subtypes = " ".join(task.subtype.split()[0] if task.subtype else "-" for task in scenario.tasks)
        tasks, tools, nodes = (str(n) for n in sizes(scenario).values())
        rows.append((scenario.id, tasks, tools, nodes, labels, subtypes, scenario.hash[:HASH_SHOWN]))
    title = f"{visible(name)}  {counted(len(file.scenarios), 'session')}  sha256 {file.sha256}"
    return "\n".join([title, *_table(rows), "", balance_text(balance(file.scenarios))])


def packs_document(packs: Sequence[tuple[str, ScenarioFile]]) -> Json:
    """What `scenarios list --format json` prints when it is given no file."""
    listed = []
    for name, file in packs:
        counted = balance(file.scenarios)
        kept = {
            key: counted[key] for key in ("sessions", "tasks", "languages", "labels", "subtypes", "shapes")
        }
        listed.append({"pack": name, "about": PACKS.get(name, ""), "sha256": file.sha256, **kept})
    return {"packs": listed}


def packs_text(packs: Sequence[tuple[str, ScenarioFile]]) -> str:
    """The packs, a line each, with what they hold; what they are about; what to do with a name."""
    labels = (label.split()[0].removesuffix("-Tool") for label in LABELS)
    rows = [("pack", "sessions", "tasks", "lang", *labels)]
    for name, file in packs:
        counted = balance(file.scenarios)
        held = (str(counted["sessions"]), str(counted["tasks"]), ", ".join(counted["languages"]))
        rows.append((name, *held, *map(str, counted["labels"].values())))
    about = [(name, PACKS[name]) for name, _ in packs if name in PACKS]
    return "\n".join(["Packs", *_table(rows), "", *_table(about), "", *PACKS_HINT])


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + " " * (room - width(cell)) for cell, room in zip(row, widths, strict=True))
        yield ("  " + "  ".join(cells)).rstrip()


def session_document(scenario: Scenario, only: int | None = None) -> Json:
    """What `scenarios show --format json` prints: References as steps along the first minimal path."""
    notes = {name: plain_notes(said) for name, said in scenario.notes.items()}
    return {
        "id": scenario.id,
        "date": scenario.date,
        "hash": scenario.hash,
        "tools": [tool.spec for tool in scenario.tools],
        **({"annotations": notes} if notes else {}),
        "tasks": [_task_document(number, task) for number, task in _numbered(scenario, only)],
    }


def _numbered(scenario: Scenario, only: int | None) -> list[tuple[int, Task]]:
    return [(n, task) for n, task in enumerate(scenario.tasks, start=1) if only in (None, n)]


def _task_document(number: int, task: Task) -> Json:
    path = [[_node_document(i, task.nodes[i]) for i in step] for step in steps(task.nodes)]
    return {"task": number, "label": task.label, "subtype": task.subtype, "text": task.text, "steps": path}


def _node_document(position: int, node: Node) -> Json:
    return {
        "node": position,
        "name": node.name,
        "arguments": node.arguments,
        "dependencies": list(node.dependencies),
        "observation": node.observation,
        **({} if node.user_input is None else {"user_input": node.user_input}),
        **({"alternatives": list(node.alternatives)} if node.alternatives else {}),
    }


def session_text(scenario: Scenario, only: int | None = None, *, full: bool = False) -> str:
    """One session to read: date, tools, and each task's words and Reference.

    `only` shows that task (from 1) alone; `full` does not shorten observations.
    """
    lines = [
        f"{visible(scenario.id)}  hash {scenario.hash[:HASH_SHOWN]}",
        f"Date: {visible(scenario.date)}",
        "",
        "Tools",
    ]
    for tool in scenario.tools:
        lines.append(f"  {visible(_signature(tool))}")
        lines += _block(tool.description, "      ")
        if tool.name in scenario.notes:
            lines += _block(_notes_text(scenario.notes[tool.name]), "      ", "Annotations: ")
    for number, task in _numbered(scenario, only):
        subtype = f", {task.subtype}" if task.subtype else ""
        lines += ["", f"Task {number}: {task.label}{subtype}", *_block(task.text, "  ", "User: ")]
        for step, nodes in enumerate(steps(task.nodes), start=1):
            lines.append(f"  Step {step}")
            for i in nodes:
                lines += _node_lines(i, task.nodes[i], full)
    return "\n".join(lines)


def _node_lines(position: int, node: Node, full: bool) -> Iterator[str]:
    waits = f"  after {', '.join(map(str, node.dependencies))}" if node.dependencies else ""
    if node.is_call:
        yield f"    [{position}] {visible(_call_text(node.name, node.arguments))}{waits}"
        for alternative in node.alternatives:
            yield f"        or {visible(_call_text(node.name, alternative))}"
        yield from _block(
            _shortened(json.dumps(node.observation, ensure_ascii=False), full), "        ", "-> "
        )
        return
    yield f"    [{position}] {'ask' if node.is_ask else 'close'}{waits}"
    yield from _block(_shortened(node.observation, full), "        ", "Assistant: ")
    if node.user_input is not None:
        yield from _block(node.user_input, "        ", "User: ")


def _call_text(name: str, arguments: Json) -> str:
    shown = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{name}({', '.join(shown)})"


def _notes_text(notes: ToolNotes) -> str:
    """The annotations of one tool in a line."""
    defaults = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in notes.defaults.items())
    said = {
        "free text": sorted(notes.free_text),
        "unordered": sorted(notes.unordered),
        "defaults": list(defaults),
        "undoes": sorted(notes.undoes),
    }
    effects = ["side effects"] if notes.side_effects else []
    return "; ".join([*effects, *(f"{what} {', '.join(names)}" for what, names in said.items() if names)])


def _shortened(text: str, full: bool) -> str:
    if full or len(text) <= SHORT:
        return text
    return f"{text[:SHORT]}... ({len(text) - SHORT} more characters)"


def _block(text: str, indent: str, mark: str = "") -> Iterator[str]:
    """The lines of `text`, indented, the first with a mark and the rest under it."""
    for i, line in enumerate(text.split("\n")):
        yield f"{indent}{mark if i == 0 else ' ' * len(mark)}{visible(line)}".rstrip()


def _signature(tool: Tool) -> str:
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    if not isinstance(properties, dict):
        return f"{tool.name}()"
    must = required if isinstance(required, list) else []
    shown = (f"{key}{'' if key in must else '?'}: {_type(schema)}" for key, schema in properties.items())
    return f"{tool.name}({', '.join(shown)})"


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if isinstance(schema.get("enum"), list):
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema.get('items'))}"
    return kind if isinstance(kind, str) else json.dumps(kind, ensure_ascii=False)


def finding_text(located: Located) -> str:
    """`FILE:LINE: error: task 2: field: reason`, on one line."""
    name, line, finding = located
    where = f"{name}:{line}" if line else name
    task = f"task {finding.task}" if finding.task else ""
    parts = (where, finding.level, task, finding.field, finding.reason)
    return visible(": ".join(part for part in parts if part))


def summary_text(files: int, sessions: int, counts: Counter[str]) -> str:
    numbers = [(files, "file"), (sessions, "session")]
    numbers += [(counts[level], level) for level in ("error", "warning", "note")]
    return ", ".join(counted(n, noun) for n, noun in numbers)


def findings_document(
    files: Sequence[tuple[str, ScenarioFile]], located: Sequence[Located], counts: Counter[str]
) -> Json:
    """What `scenarios validate --format json` prints; `counts` has the findings not shown too."""
    return {
        "files": [
            {"file": name, "sha256": file.sha256, "sessions": len(file.scenarios)} for name, file in files
        ],
        "findings": [
            {
                "file": name,
                "line": line,
                "level": finding.level,
                "scenario": finding.scenario or None,
                "task": finding.task,
                "field": finding.field,
                "reason": finding.reason,
            }
            for name, line, finding in located
        ],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
    }
