"""The words of a Scenario as chat messages, to the byte as the released harness sends them.

Strings inside messages come from the standard library's `json.dumps` with its default
separators: a more compact form would be another prompt (facts: section 3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from scenarios.reference import Batch, minimal_path
from scenarios.types import Node, Scenario

Message = dict[str, Any]

REMEMBERED = 1024
"""Lists of tools, and Tasks as messages, that are made once for all Steps that send them."""


def date_text(scenario: Scenario) -> str:
    """The whole system prompt of the released harness."""
    return f"Current Date: {scenario.date}"


def observation_text(observation: Any) -> str:
    """An Observation as the current Task serves it: a string stays as it is."""
    return observation if isinstance(observation, str) else encode(observation)


def encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def released_tools(scenario: Scenario) -> list[dict[str, Any]]:
    """The tools of a Scenario as the released harness sends them."""
    return list(_sent_tools(scenario))


@lru_cache(maxsize=REMEMBERED)
def _sent_tools(scenario: Scenario) -> tuple[dict[str, Any], ...]:
    return tuple(as_sent(tool.spec) for tool in scenario.tools)


def as_sent(spec: dict[str, Any]) -> dict[str, Any]:
    """A tool, or a part of one, with type `float` as `number` at any depth, nothing else changed."""
    sent: dict[str, Any] = json.loads(encode(spec).replace('"type": "float"', '"type": "number"'))
    return sent


def gold_history(scenario: Scenario, task: int) -> list[Message]:
    """What comes before Task `task` (0-based): the earlier Tasks, rebuilt from their References."""
    return [message for earlier in range(task) for message in _task_messages(scenario, earlier)]


def reference_call_id(scenario_id: str, task: int, node: int) -> str:
    """The id of a rebuilt tool call: always the same for the same node."""
    digest = hashlib.sha256(f"{scenario_id}\x00{task}\x00{node}".encode()).hexdigest()
    return f"call_{digest[:24]}"


@lru_cache(maxsize=REMEMBERED)
def _task_messages(scenario: Scenario, task: int) -> tuple[Message, ...]:
    asked = {"role": "user", "content": scenario.tasks[task].text}
    path = minimal_path(scenario.tasks[task].nodes)
    return (asked, *(message for batch in path for message in _batch_messages(scenario, task, batch)))


def _batch_messages(scenario: Scenario, task: int, batch: Batch) -> Iterator[Message]:
    nodes = scenario.tasks[task].nodes
    calls = [i for i in batch if nodes[i].is_call]
    if calls:
        ids = {i: reference_call_id(scenario.id, task, i) for i in calls}
        yield {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call(nodes[i], ids[i]) for i in calls],
        }
        for i in calls:
            # Here even a string is encoded, as released; within the current Task it is not.
            yield {"role": "tool", "content": encode(nodes[i].observation), "tool_call_id": ids[i]}
    for i in batch:
        if not nodes[i].is_call:
            yield {"role": "assistant", "content": observation_text(nodes[i].observation)}
            if nodes[i].is_ask:
                yield {"role": "user", "content": nodes[i].user_input}


def _call(node: Node, call_id: str) -> dict[str, Any]:
    function = {"name": node.name, "arguments": encode(node.arguments)}
    return {"type": "function", "function": function, "id": call_id}
