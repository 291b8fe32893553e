"""One record of a scenario file, read strictly: a Scenario, or every reason why it cannot be played."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from scenarios.annotations import ANNOTATIONS, plain_notes, read_notes
from scenarios.answers import parse_reference
from scenarios.labels import FIRST_TURN, MULTI, derived_label, label_named, multi_tool_label, subtype_named
from scenarios.problems import Json, Problems, ScenarioError, kind_of, short
from scenarios.types import LABELS, PSEUDO_ACTIONS, SUBTYPES, Node, Scenario, Task, Tool, ToolNotes

LANGUAGES = ("en", "zh")
COLUMNS = ("env_info", "tools", "tasks", "answer_list")
"""What every record must have, in plain keys or with the prefix `english_`."""

ID = re.compile(r"[A-Za-z0-9._~-]+")


def parse_record(record: Json, language: str = "en") -> Scenario:
    """The Scenario of one record; raises ScenarioError (path "", line 0) for its first problem."""
    scenario, problems = read_record(record, language)
    if scenario is None:
        raise ScenarioError("", 0, *problems[0])
    return scenario


def read_record(record: Any, language: str = "en") -> tuple[Scenario | None, list[tuple[str, str]]]:
    """The Scenario of one record, or None and every problem as (field, reason).

    `language` en reads the columns `english_*` where there are any, else the plain ones; zh
    reads the plain ones. Labels and subtypes are names, not words: either column will do.
    """
    if language not in LANGUAGES:
        raise ValueError(f"unknown language {language!r}; known are {', '.join(LANGUAGES)}")
    problems = Problems()
    if problems.object(record, "") is None:
        return None, problems.found
    _check_encodable(record, problems)
    scenario_id = _id(record, problems)
    columns = _columns(record, language, problems)
    date = problems.text(record[columns["env_info"]], columns["env_info"]) if columns["env_info"] else ""
    before = len(problems.found)
    tools = _tools(record, columns["tools"], problems)
    # A tool that could not be read would make every call of it a second error.
    sound = columns["tools"] and len(problems.found) == before
    tasks = _tasks(record, columns, language, {tool.name for tool in tools} if sound else None, problems)
    notes = read_notes(record, tools if sound else None, problems)
    if problems.found:
        return None, problems.found
    return _scenario(scenario_id, date, tools, tasks, notes), []


def _scenario(
    scenario_id: str,
    date: str,
    tools: Sequence[Tool],
    tasks: Sequence[Task],
    notes: Mapping[str, ToolNotes],
) -> Scenario:
    record: Json = {
        "id": scenario_id,
        "env_info": date,
        "tools": [tool.spec for tool in tools],
        "tasks": [task.text for task in tasks],
        "answer_list": [[_plain_node(node) for node in task.nodes] for task in tasks],
        "task_types": [task.label for task in tasks],
        "turn_subtypes": [task.subtype for task in tasks[1:]],
    }
    if notes:
        record[ANNOTATIONS] = {name: plain_notes(said) for name, said in notes.items()}
    dumped = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(dumped.encode()).hexdigest()
    return Scenario(scenario_id, date, tuple(tools), tuple(tasks), digest, record, notes)


def _plain_node(node: Node) -> Json:
    plain: Json = {
        "action": {"name": node.name, "arguments": node.arguments},
        "observation": node.observation,
        "dependency_list": list(node.dependencies),
    }
    if node.user_input is not None:
        plain["user_input"] = node.user_input
    if node.alternatives:
        plain["alternatives"] = list(node.alternatives)
    return plain


def _check_encodable(record: Json, problems: Problems) -> None:
    for key, value in record.items():
        try:
            json.dumps([key, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            problems.add(key, f"holds half of a surrogate pair ({half!a}), which no UTF-8 text can carry")


def _id(record: Json, problems: Problems) -> str:
    if "id" not in record:
        problems.add("id", "is missing; give every session its own")
        return ""
    value = record["id"]
    if not isinstance(value, str):
        problems.add("id", f"must be text, not {kind_of(value)}")
        return ""
    if not ID.fullmatch(value) or value in (".", ".."):
        problems.add("id", f"{short(value)} cannot stand in a URL; use only letters, digits and . _ ~ -")
    return value


def _columns(record: Json, language: str, problems: Problems) -> dict[str, str]:
    """For each of COLUMNS the key to read; "" (and one problem for all of them) when there is none."""
    keys = {name: f"english_{name}" for name in COLUMNS}
    if language == "zh":
        keys = dict.fromkeys(COLUMNS, "")
    columns = {name: keys[name] if keys[name] in record else name for name in COLUMNS}
    missing = [name for name, key in columns.items() if key not in record]
    if missing:
        there = [key for name in COLUMNS for key in (f"english_{name}", name) if key in record]
        others = f" (also missing: {', '.join(missing[1:])})" if missing[1:] else ""
        reason = f"is missing{others}; the record has {', '.join(there) or 'no column of a scenario'}"
        if all(f"english_{name}" in record for name in missing):
            reason += "; read it with language en"
        problems.add(missing[0], reason)
    return {name: "" if name in missing else key for name, key in columns.items()}


def _tools(record: Json, key: str, problems: Problems) -> list[Tool]:
    tools: list[Tool] = []
    if not key:
        return tools
    for i, spec in enumerate(problems.items(record[key], key)):
        tool = _tool(spec, f"{key}[{i}]", problems)
        if tool is None:
            continue
        if tool.name in (other.name for other in tools):
            problems.add(
                f"{key}[{i}].function.name", f"{short(tool.name)} is the name of an earlier tool too"
            )
        tools.append(tool)
    return tools


def _tool(spec: Any, field: str, problems: Problems) -> Tool | None:
    if problems.object(spec, field) is None:
        return None
    if "function" not in spec:
        problems.add(f"{field}.function", 'is missing; a tool is {"type": "function", "function": {...}}')
        return None
    function = problems.object(spec["function"], f"{field}.function")
    if function is None:
        return None
    if "name" not in function:
        problems.add(f"{field}.function.name", "is missing")
        return None
    name = problems.text(function["name"], f"{field}.function.name")
    if name in PSEUDO_ACTIONS:
        problems.add(f"{field}.function.name", f"{name} is an action of References and cannot be a tool")
    description = "" if function.get("description") is None else function["description"]
    problems.text(description, f"{field}.function.description", empty=True)
    parameters = {} if function.get("parameters") is None else function["parameters"]
    if problems.object(parameters, f"{field}.function.parameters") is None or not name:
        return None
    return Tool(name, description, parameters, spec)


def _tasks(
    record: Json,
    columns: dict[str, str],
    language: str,
    tool_names: Collection[str] | None,
    problems: Problems,
) -> list[Task]:
    key, answers = columns["tasks"], columns["answer_list"]
    if not key or not answers:
        return []
    texts = problems.items(record[key], key)
    if isinstance(record[key], list) and not texts:
        problems.add(key, "is empty; a session has at least one task")
    references = problems.items(record[answers], answers)
    if isinstance(record[answers], list) and len(references) != len(texts):
        problems.add(answers, f"has {len(references)} answers for {len(texts)} tasks; each task needs one")
    words = [problems.text(text, f"{key}[{i}]") for i, text in enumerate(texts)]
    nodes = [
        parse_reference(value, tool_names, f"{answers}[{i}]", problems) for i, value in enumerate(references)
    ]
    types = _names(record, "task_types", language, len(texts), problems)
    subtypes = _names(record, "turn_subtypes", language, len(texts) - 1, problems)
    labels = [_label(name, field, problems) for name, field in types]
    kinds = [None, *(_subtype(name, field, problems) for name, field in subtypes)]
    if problems.found:
        return []
    return [
        Task(text, _settled(label, reference), subtype, reference)
        for text, label, subtype, reference in zip(words, labels, kinds, nodes, strict=True)
    ]


def _names(record: Json, name: str, language: str, size: int, problems: Problems) -> list[tuple[Any, str]]:
    """The (value, field) of each label or subtype; None for all of them when the column is absent."""
    keys = (f"english_{name}", name) if language == "en" else (name, f"english_{name}")
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        return [(None, name)] * max(size, 0)
    pairs = [(value, f"{key}[{i}]") for i, value in enumerate(problems.items(record[key], key))]
    if name == "turn_subtypes" and len(pairs) == size + 1 and pairs[0][0] in (None, "", FIRST_TURN):
        pairs = pairs[1:]
    if len(pairs) != size and isinstance(record[key], list):
        meaning = "one per task" if name == "task_types" else "one per task after the first"
        problems.add(key, f"has {len(pairs)} entries instead of {max(size, 0)} ({meaning})")
    return pairs


def _label(name: Any, field: str, problems: Problems) -> str | None:
    if name is None:
        return None
    label = label_named(name) if isinstance(name, str) else None
    if label is None:
        problems.add(field, f"{short(name)} is not a task label; allowed are {', '.join(LABELS)}")
    return label


def _settled(label: str | None, nodes: Sequence[Node]) -> str:
    if label is None:
        return derived_label(nodes)
    return multi_tool_label(nodes) if label == MULTI else label


def _subtype(name: Any, field: str, problems: Problems) -> str | None:
    if name is None or name == "":
        return None
    subtype = subtype_named(name) if isinstance(name, str) else None
    if subtype is None:
        problems.add(field, f"{short(name)} is not a turn subtype; allowed are {', '.join(SUBTYPES)}")
    return subtype
