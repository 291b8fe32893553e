"""What can happen in a session, as values. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any

RECORDED = "recorded"
"""The reason of an exchange that the proxy passed through because it plays no sessions."""

OWNER_ONLY = {"owner_only": True}
"""Marks what gives the Reference away: for the owner of the log alone (see `public`)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it happened. `session` is the name, with `#attempt` from the second on; Tasks count from 0."""

    run: str | None = None
    session: str | None = None
    task: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class RunBegun:
    """From here on, events are those of this Run."""

    place: Place
    at: float
    created_at: float
    name: str | None
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProxyStarted:
    """A proxy was started on a log that was there: it goes on with a Run, or a new one begins."""

    place: Place
    at: float


@dataclass(frozen=True, slots=True)
class SessionOpened:
    place: Place
    at: float


@dataclass(frozen=True, slots=True)
class UserTurn:
    """The user's words. `kind`: `task`, `reply`, or `recorded` (an agent's own, passed through)."""

    place: Place
    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a provider: what it cost, in tokens and `seconds`, and how it failed, if it did."""

    model: str | None
    status: int | None
    state: str
    input_tokens: int | None
    output_tokens: int | None
    seconds: float | None
    first_chunk: float | None
    error: str | None

    @property
    def failed(self) -> bool:
        return self.state != "complete" or (self.status is not None and self.status >= 400)


@dataclass(frozen=True, slots=True)
class ProviderCall:
    place: Place
    at: float
    call: Call


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """What the agent lost or changed of a turn of its own history; `place` is where that was found."""

    place: Place
    at: float
    turn: int
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class SideCall:
    """A request that is not the session's conversation, with its answer in short."""

    place: Place
    at: float
    reason: str
    call: Call
    answer: str


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """An agent's request that got no completion, or whose agent left."""

    place: Place
    at: float
    call: Call


@dataclass(frozen=True, slots=True)
class AssistantText:
    place: Place
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """`arguments` is the text as the LLM wrote it."""

    place: Place
    at: float
    name: str
    arguments: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """What the last named tool call was told.

    `outcome` says what that was: `served`, `redundant` (the same again), or the error of a real
    tool: `unknown_tool`, `invalid_arguments`, `no_data`. None if the log does not say.
    """

    place: Place
    at: float
    text: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a Step (from 0) came to: `observe`, `ask`, `close` or `stop`.

    `did` is what the LLM did, told from its message alone; `reason` is why a Step was
    stopped, and names what the Reference allows.
    """

    place: Place
    at: float
    step: int
    decision: str
    did: str
    reason: str | None = field(metadata=OWNER_ONLY)


@dataclass(frozen=True, slots=True)
class TaskEnded:
    place: Place
    at: float
    ending: str


Event = (
    RunBegun
    | ProxyStarted
    | SessionOpened
    | UserTurn
    | ProviderCall
    | HistoryFinding
    | SideCall
    | AgentFailure
    | AssistantText
    | ToolCalled
    | Observed
    | Verdict
    | TaskEnded
)


def event_name(kind: type[Event]) -> str:
    """What an event is called on the wire: `user_turn`, `tool_called`, ..."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def public(event: Event) -> dict[str, Any]:
    """An event's fields that the agent's side may know."""
    told = asdict(event)
    return {it.name: told[it.name] for it in fields(event) if not it.metadata.get("owner_only")}
