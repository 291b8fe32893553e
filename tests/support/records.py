"""A sound record with two tasks, its parts, and what a change to it leads to."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from scenarios import ScenarioError, parse_record

Record = dict[str, Any]


def close(*dependencies: int) -> Record:
    action = {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}}
    return {"action": action, "observation": "That is all.", "dependency_list": list(dependencies)}


def ask(*dependencies: int) -> Record:
    action = {"name": "ask_user_for_required_parameters", "arguments": {}}
    node = {"action": action, "observation": "Which one?", "dependency_list": list(dependencies)}
    return {**node, "user_input": "The left one."}


def call(*dependencies: int, name: str = "weigh", **arguments: Any) -> Record:
    action = {"name": name, "arguments": arguments or {"item": "pear"}}
    return {"action": action, "observation": {"grams": 180}, "dependency_list": list(dependencies)}


def tool(name: str = "weigh") -> Record:
    parameters = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


def record(**changes: Any) -> Record:
    """A sound record with two tasks; `changes` replace its columns."""
    sound = {
        "id": "fruit_1",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": [tool()],
        "tasks": ["How heavy is the pear?", "And that one?"],
        "answer_list": [[call(), close(0)], [ask(), call(0), close(0, 1)]],
        "task_types": ["Single-Tool", "Clarify"],
        "turn_subtypes": ["Coreferential Reference"],
    }
    return {**sound, **changes}


def english(plain: Record) -> Record:
    once = {"id", "annotations"}
    return {key if key in once else f"english_{key}": value for key, value in plain.items()}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
    return path


def refused(broken: Record, language: str = "en") -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        parse_record(broken, language)
    return caught.value


def changed(path: list[Any], value: Any) -> Record:
    """The sound record with the value at `path` replaced, or removed when it is `...`."""
    broken = copy.deepcopy(record())
    inner: Any = broken
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return broken
