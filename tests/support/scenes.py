"""Small Scenarios of our own writing, and the parts they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scenarios.load import parse_record
from scenarios.types import ASK, CLOSE, Scenario

Record = dict[str, Any]


def tool(name: str, **properties: str) -> Record:
    """A mock tool whose parameters, given as name=type, are all required."""
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind, "description": f"The {key}."} for key, kind in properties.items()},
        "required": list(properties),
    }
    function = {"name": name, "description": f"Does {name}.", "parameters": parameters}
    return {"type": "function", "function": function}


def call(name: str, arguments: Record, observation: Any, *needs: int) -> Record:
    action = {"name": name, "arguments": arguments}
    return {"action": action, "observation": observation, "dependency_list": list(needs)}


def ask(question: str, reply: str, *needs: int) -> Record:
    action = {"name": ASK, "arguments": {}}
    return {"action": action, "observation": question, "dependency_list": list(needs), "user_input": reply}


def close(text: str, *needs: int) -> Record:
    action = {"name": CLOSE, "arguments": {"answer_type": "tool"}}
    return {"action": action, "observation": text, "dependency_list": list(needs)}


TOOLS = [
    tool("getPrice", thing="string"),
    tool("countStock", thing="string"),
    tool("book", thing="string", day="string"),
    tool("weigh", thing="string", kilos="float"),
]


def record(scenario_id: str, *tasks: tuple[str, list[Record]]) -> Record:
    return {
        "id": scenario_id,
        "env_info": "2025-03-04 09:30:00 Tuesday",
        "tools": TOOLS,
        "tasks": [text for text, _ in tasks],
        "answer_list": [nodes for _, nodes in tasks],
    }


SHOP = record(
    "shop",
    (
        "What does a lamp cost?",
        [call("getPrice", {"thing": "lamp"}, {"price": 3, "unit": "€"}), close("A lamp costs 3.", 0)],
    ),
    (
        "Price of a chair, and how many lamps are there?",
        [
            call("getPrice", {"thing": "chair"}, {"price": 7}),
            call("countStock", {"thing": "lamp"}, "12 lamps"),
            close("7, and 12.", 0, 1),
        ],
    ),
    (
        "Book one.",
        [
            ask("Which day?", "On Monday."),
            call("book", {"thing": "lamp", "day": "Monday"}, {"booked": True}, 0),
            close("Booked for Monday.", 1),
        ],
    ),
    ("Thanks!", [close("You are welcome.")]),
)
"""Four Tasks: one call; two parallel calls; an ask and then a call; chat."""

TWINS = record(
    "twins",
    (
        "What do a lamp and a chair cost, and how heavy are they?",
        [
            call("getPrice", {"thing": "lamp"}, {"price": 3}),
            call("getPrice", {"thing": "chair"}, {"price": 7}),
            call("weigh", {"thing": "lamp", "kilos": 1.5}, "light", 0, 1),
            close("Done.", 2),
        ],
    ),
    ("And now?", [close("Nothing.")]),
)
"""Two calls of one name, which may be made in either order, then a third."""

TRIPLETS = record(
    "triplets",
    (
        "What do a lamp, a chair and a bed cost?",
        [
            call("getPrice", {"thing": "lamp"}, {"price": 3}),
            call("getPrice", {"thing": "chair"}, {"price": 7}),
            call("getPrice", {"thing": "bed"}, {"price": 90}),
            close("3, 7 and 90.", 0, 1, 2),
        ],
    ),
    ("And now?", [close("Nothing.")]),
)
"""Three calls of one name, which the released harness takes all at once or one by one, not as 2 + 1."""


def chat(scenario_id: str, tasks: int = 2) -> Record:
    """A Scenario in which any text is right; its words name the Scenario and the Task."""
    told = [(f"{scenario_id} asks {n}", [close(f"{scenario_id} is told {n}")]) for n in range(1, tasks + 1)]
    return record(scenario_id, *told)


def scenario(of: Record = SHOP) -> Scenario:
    return parse_record(of)


def write(folder: Path, *records: Record, name: str = "scenarios.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(it, ensure_ascii=False) + "\n" for it in records), "utf-8")
    return path
