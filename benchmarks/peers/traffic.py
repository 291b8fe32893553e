"""What the load generator sends: requests of an agent, about 12 KB each, and the scenario that they play.

Marks in it are filled in by `load.c`: `@num@` is the session's number, `@id0@` the id of the tool call that
answered the session's first request. Texts are drawn from a vocabulary by a seed: they compress as real
ones do.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Tool = dict[str, Any]

TASKS = 4
TOOLS = 8
SCENARIO = "bench_1"
CALL = {"name": "get_item", "arguments": '{"item": "lamp", "count": 2}'}
"""What the provider calls (provider.c), which is right at each task's first step."""
CLOSING = "There are two of them, and both can be had today."

_RANDOM = random.Random(7)
_WORDS = [
    "".join(_RANDOM.choices("aaabcdeeefghiiklmnooprsttuvw", k=_RANDOM.randint(2, 9))) for _ in range(900)
]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Files of request bodies: `plain` and `stream` hold one request each, `session` those of a whole session
    with `--tools relay`, `turns` with `--tools intercept`. `scenarios` is what these play."""

    plain: tuple[Path, ...]
    stream: tuple[Path, ...]
    session: tuple[Path, ...]
    turns: tuple[Path, ...]
    scenarios: Path


def write_traffic(folder: Path) -> Traffic:
    tools = [_tool(number) for number in range(TOOLS)]
    plain = {"model": "bench-model", "messages": _conversation(), "tools": tools, "temperature": 0.0}
    scenarios = folder / "scenarios.jsonl"
    scenarios.write_text(json.dumps(_scenario(tools)) + "\n", encoding="utf-8")
    return Traffic(
        _written(folder, "plain", [plain]),
        _written(folder, "stream", [{**plain, "stream": True, "stream_options": {"include_usage": True}}]),
        _written(folder, "session", _session(tools, relayed=True)),
        _written(folder, "turns", _session(tools, relayed=False)),
        scenarios,
    )


def _written(folder: Path, name: str, bodies: list[dict[str, Any]]) -> tuple[Path, ...]:
    paths = tuple(folder / f"{name}{number}.json" for number in range(len(bodies)))
    for path, body in zip(paths, bodies, strict=True):
        path.write_text(json.dumps(body), encoding="utf-8")
    return paths


def _text(size: int) -> str:
    """Words of `size` characters, or a few more."""
    words = [""]
    while sum(len(word) + 1 for word in words) < size:
        words.append(_RANDOM.choice(_WORDS))
    return " ".join(words[1:])


def _tool(number: int) -> Tool:
    item = {"type": "string", "description": _text(150)}
    count = {"type": "integer", "description": _text(100)}
    function = {
        "name": CALL["name"] if number == 0 else f"tool_{number}",
        "description": _text(250),
        "parameters": {
            "type": "object",
            "properties": {"item": item, "count": count},
            "required": ["item", "count"],
        },
    }
    return {"type": "function", "function": function}


def _asked(call_id: str) -> Message:
    calls = [{"id": call_id, "type": "function", "function": CALL}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _told(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _conversation() -> list[Message]:
    """An agent's history of ten messages after its system prompt. The last two are new with each request, as
    in an agent's loop, so that no log has them yet."""
    messages: list[Message] = [{"role": "system", "content": _text(3000)}]
    for call_id in ("call_a1", "call_a2", "call_a3"):
        messages += [{"role": "user", "content": _text(250)}, _asked(call_id), _told(call_id, _text(550))]
    closing = {"role": "assistant", "content": f"@num@ {_text(250)}"}
    return [*messages[:-1], closing, {"role": "user", "content": f"@num@ {_text(250)}"}]


def _session(tools: list[Tool], *, relayed: bool) -> list[dict[str, Any]]:
    """The requests of a session: of each task the prompt and, if calls are relayed, the result."""
    messages: list[Message] = [{"role": "system", "content": _text(4000)}]
    requests = []
    for turn in range(1, TASKS + 1):
        messages.append({"role": "user", "content": f"[[next-user-turn {turn}]]"})
        requests.append(list(messages))
        if relayed:
            call_id = f"@id{len(requests) - 1}@"
            messages += [_asked(call_id), _told(call_id, _text(550))]
            requests.append(list(messages))
        messages.append({"role": "assistant", "content": _text(200)})
    return [
        {"model": "bench-model", "messages": sent, "tools": tools, "temperature": 0.0} for sent in requests
    ]


def _scenario(tools: list[Tool]) -> dict[str, Any]:
    answers = []
    for _ in range(TASKS):
        action = {"name": CALL["name"], "arguments": json.loads(CALL["arguments"])}
        closing = {"name": "prepare_to_answer", "arguments": {}}
        answers.append(
            [
                {"action": action, "observation": {"said": _text(550)}, "dependency_list": []},
                {"action": closing, "observation": CLOSING, "dependency_list": [0]},
            ]
        )
    return {
        "id": SCENARIO,
        "env_info": "2025-01-02 09:00:00 Thursday",
        "tools": tools,
        "tasks": [_text(250) for _ in range(TASKS)],
        "answer_list": answers,
        "task_types": ["Single-Tool"] * TASKS,
        "turn_subtypes": ["Coreferential Reference"] * (TASKS - 1),
    }
