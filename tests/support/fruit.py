"""A record of our own, sound until it is changed, and the commands `scenarios` on files of such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from scenarios import load
from scoring.scenarios_cli import scenarios

IDS = [scenario.id for scenario in load(["bundled"])[0].scenarios]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(scenarios, [str(argument) for argument in arguments])


def node(name: str, *dependencies: int, observation: Any = "Done.", **more: Any) -> dict[str, Any]:
    action = {"name": name, "arguments": more.pop("arguments", {})}
    return {"action": action, "observation": observation, "dependency_list": list(dependencies), **more}


def record(**changes: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {
            "item": {"type": "string", "enum": ["pear", "fig"]},
            "tags": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["item"],
    }
    function = {"name": "weigh", "description": "Weigh a fruit.", "parameters": parameters}
    sound = {
        "id": "fruit_1",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": [{"type": "function", "function": function}],
        "tasks": ["Weigh it.", "Thank you."],
        "answer_list": [
            [
                node("ask_user_for_required_parameters", observation="Which fruit?", user_input="The pear."),
                node("weigh", 0, arguments={"item": "pear"}, observation={"grams": 180}),
                node("prepare_to_answer", 1, observation="180 grams.\nAnything else?"),
            ],
            [node("prepare_to_answer", observation="You are welcome.")],
        ],
        "task_types": ["Clarify", "Chat"],
        "turn_subtypes": ["Partial Information"],
    }
    return {**sound, **changes}


def cyclic(**changes: Any) -> dict[str, Any]:
    nodes = [node("weigh", 1, arguments={"item": "fig"}), node("prepare_to_answer", 0)]
    return record(answer_list=[nodes, record()["answer_list"][1]], **changes)


def annotated() -> dict[str, Any]:
    """The record with annotations for its one tool, and another right call."""
    noted = record(
        annotations={
            "weigh": {
                "side_effects": True,
                "unordered": ["tags"],
                "free_text": ["note", "by"],
                "defaults": {"tags": [1], "by": "me"},
                "undoes": ["weigh"],
            }
        }
    )
    properties = noted["tools"][0]["function"]["parameters"]["properties"]
    properties.update(note={"type": "string"}, by={"type": "string"})
    noted["answer_list"][0][1]["alternatives"] = [{"item": "pear", "note": "ü"}]
    return noted
