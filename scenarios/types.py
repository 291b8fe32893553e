"""The shared vocabulary: a Scenario, its Tasks and the Reference graph of each.

Every type here is immutable. JSON values that came from a scenario file
(`Tool.parameters`, `Node.arguments`, `Node.observation`) are kept as the plain
objects `json.loads` gave and must not be changed by anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ASK = "ask_user_for_required_parameters"
CLOSE = "prepare_to_answer"
PSEUDO_ACTIONS = frozenset({ASK, CLOSE})
"""Reference actions that an assistant performs by replying in text."""

LABELS = (
    "Single-Tool",
    "Parallel Multi-Tool",
    "Sequential Multi-Tool",
    "Mixed Multi-Tool",
    "Clarify",
    "Chat",
)
"""Task labels of the released data (facts: section 1, "Seven labels")."""

SUBTYPES = ("Coreferential Reference", "Partial Information", "Long-Range Dependency")
"""Turn subtypes of a Scenario's second and later Tasks (paper 3.4)."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an assistant message.

    `arguments` is the text exactly as the LLM wrote it; a provider that breaks
    the protocol can put anything there, so it is `Any` and may be absent (None).
    """

    id: str | None
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message as the LLM sent it, reduced to what is judged (see `replies.read_reply`).

    `content` may be None; `calls` is empty when there were none.
    """

    content: str | None
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a Reference: an action, what it observes, what it waits for.

    `dependencies` are positions in the Task's `nodes`. `observation` is the mock
    tool's answer (any JSON value); for the two pseudo-actions it is the gold
    question or the gold final answer. `user_input` is the scripted reply to an ask.
    `alternatives` are whole argument objects that the `strict` scorer takes as well.
    """

    name: str
    arguments: dict[str, Any]
    observation: Any
    dependencies: tuple[int, ...] = ()
    user_input: str | None = None
    alternatives: tuple[dict[str, Any], ...] = ()

    @property
    def is_ask(self) -> bool:
        return self.name == ASK

    @property
    def is_close(self) -> bool:
        return self.name == CLOSE

    @property
    def is_call(self) -> bool:
        return self.name not in PSEUDO_ACTIONS


@dataclass(frozen=True, slots=True)
class Task:
    """One user request and its Reference.

    `subtype` is None for a Scenario's first Task, and where the data has none.
    """

    text: str
    label: str
    subtype: str | None
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """One mock tool: `spec` is the JSON object as the file has it, unconverted."""

    name: str
    description: str
    parameters: dict[str, Any]
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolNotes:
    """What a Scenario's author says of a tool beyond its schema. Never sent to the LLM.

    `free_text` and `unordered` are paths of parameters: text that may be worded differently, and
    arrays whose order does not matter. A path is the keys joined by dots, with `[]` for the items of
    an array: `filters.tags`, `people[].note`. `defaults` are values of parameters that count as given
    where a call leaves them out. `side_effects` says that a call writes something; `undoes` names the
    tools whose writes a call of this one takes back.
    """

    free_text: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    side_effects: bool = False
    undoes: frozenset[str] = frozenset()


NO_NOTES = ToolNotes()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One record of the benchmark.

    `hash` is the sha256 (hex) of the record in plain keys, so the same content
    has the same hash whichever key form or language column it was read from.
    `record` is that plain-key record; `load.parse_record` reads it back. `notes` are the
    annotations, by name of the tool; a tool without any is not in it.
    """

    id: str
    date: str
    tools: tuple[Tool, ...]
    tasks: tuple[Task, ...]
    hash: str
    record: dict[str, Any]
    notes: Mapping[str, ToolNotes] = field(default_factory=dict)

    def __hash__(self) -> int:
        """So that what is made of a Scenario can be remembered."""
        return hash(self.hash)
