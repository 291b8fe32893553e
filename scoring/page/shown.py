"""What a page shows of a Run beyond what is scored. Plain values, as the log has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.metrics.usage import Usage


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A user turn. `number` counts in the Session, `kind` is `task` or `reply`."""

    number: int
    kind: str
    text: str
    opened_at: float


@dataclass(frozen=True, slots=True)
class ShownCall:
    """What the proxy made of a tool call: the text that it was told, None if nothing, and the outcome."""

    observation: str | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A Step as the proxy decided it: `exchanges` are the ids of all tries, that which it came of last."""

    turn: int
    decision: str
    reasoning: str | None
    calls: tuple[ShownCall, ...]
    exchanges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownTask:
    """One Task as it was played; `steps` has one entry for each reply of its Trajectory."""

    turns: tuple[ShownTurn, ...] = ()
    steps: tuple[ShownStep, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """One HTTP request and its answer.

    `about` are the columns of the log that are shown as they are. `messages` are the hashes of the
    request's messages, `tools` that of its tools, `message` that of what the assistant said; None
    where there is none. `body` is the rest of the request as JSON text, `answer` the bytes received.
    """

    about: Mapping[str, Any]
    messages: tuple[str, ...] | None
    tools: str | None
    body: str | None
    message: str | None
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A Session's last attempt; `attempt` is None if it was never begun. One entry for each of its Tasks."""

    attempt: int | None
    opened_at: float | None
    tasks: tuple[ShownTask, ...]
    exchanges: tuple[ShownExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A Run; `sessions` belong to its Trajectories in their order.

    `texts` are the JSON texts of messages and tool lists by hash: those that the exchanges refer to.
    """

    name: str | None
    created_at: float
    versions: Mapping[str, Any]
    usage: Usage
    sessions: tuple[ShownSession, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
