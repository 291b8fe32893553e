"""The rows of the log, as plain values. Times are Unix seconds (float).

Numbers of Tasks, Steps, call positions and nodes count from 0; Turns are numbered as
their sentinel says. The dicts and lists in a row are read later, by the writer's thread:
nobody may change them once the row has been handed over.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunRow:
    """One Run: its whole configuration (no secrets) and the versions that made it."""

    id: str
    created_at: float
    config: dict[str, Any]
    config_hash: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class StartRow:
    """A proxy was started; the same time as its Run's, if it began one. Only the last is kept, in `meta`."""

    started_at: float


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """One Scenario as it was when the run started: the plain-key record."""

    hash: str
    id: str
    record: dict[str, Any]
    source: str
    source_sha256: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One Session attempt: (run, scenario, epoch, attempt). `name` is what URLs use."""

    id: str
    run_id: str
    name: str
    scenario_id: str
    scenario_hash: str
    epoch: int
    attempt: int
    opened_at: float


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A user turn. `kind`: `task` (the Task's first words) or `reply` (the answer to an ask)."""

    session_id: str
    turn: int
    task: int
    kind: str
    text: str
    opened_at: float


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A Session that a driver is going to play."""

    run_id: str
    scenario_id: str
    scenario_hash: str
    epoch: int


@dataclass(frozen=True, slots=True)
class TurnBegunRow:
    """An agent asked for a turn: its user message, with the turn's words in it; `asked` as it came.

    `thread` tells its conversation from calls on the side (see `proxy.threads`).
    """

    session_id: str
    turn: int
    message: dict[str, Any]
    thread: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TaskEndRow:
    """How a Task ended: `closed`, `stopped` (a wrong Step), `agent_stopped`, `infrastructure`; or that it
    was `not_reached`, because a `live` Session had ended.
    """

    session_id: str
    task: int
    end: str
    ended_at: float


@dataclass(frozen=True, slots=True)
class ExchangeStart:
    """What is known when a request arrives (agent side) or is sent (provider side).

    `messages` are the request's messages in full, stored once by content; `body` is the
    rest of the request (model, parameters, tools). `headers` have been through the
    allow-list. `correlation` says how the session was found; `reason` why it is a side
    call (None on the main thread); `changes` lists what the proxy changed in the request.
    `findings` are what the agent has lost or changed of its history: {turn, what, detail} each.
    `run_id` is needed only without a session: else it is the session's. Of `raw`, the request's
    bytes, only the hash is kept.
    """

    id: str
    side: str
    parent_id: str | None
    session_id: str | None
    turn: int | None
    correlation: str | None
    reason: str | None
    method: str
    path: str
    started_at: float
    stream: bool
    request_model: str | None
    raw: bytes
    key_hash: str | None
    headers: dict[str, str]
    messages: list[Any] | None
    body: dict[str, Any] | None
    changes: tuple[str, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    run_id: str | None = None

    @property
    def request_sha256(self) -> str:
        # Made when it is written: hashing lets go of the interpreter, which the agent would wait for.
        return hashlib.sha256(self.raw).hexdigest()


@dataclass(frozen=True, slots=True)
class ExchangeFinish:
    """What is known when an exchange is over. `raw` is the answer's bytes as received."""

    id: str
    finished_at: float
    finish_state: str
    status: int | None
    time_to_first_chunk: float | None
    response_id: str | None = None
    response_model: str | None = None
    finish_reasons: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    message: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    error_type: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ExchangeDelivered:
    """The terminal event of an agent exchange was written out: known only afterwards."""

    id: str
    delivered_at: float


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """One tool call of a Step and what the agent or LLM was told.

    `arguments` is the text as written, or what a provider gave in its place as JSON; `observation` the text
    served (None if none was); `node` the position in the Reference that the Observation came from. `outcome`:
    `served`, `redundant`, or why there was no Observation: `unknown_tool`, `invalid_arguments`, `no_data`;
    None where the Step was stopped.
    """

    position: int
    tool_call_id: str | None
    name: str
    arguments: str | None
    observation: str | None
    node: int | None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class StepRow:
    """One Step as play decided it.

    `message` is the assistant message as the provider sent it. `decision`: `observe`
    (calls accepted, observations served), `ask`, `close` or `stop`. `nodes` are the
    Reference positions the matcher consumed. `reason` says what is wrong with a Step.
    """

    session_id: str
    task: int
    step: int
    turn: int
    exchange_id: str
    decided_at: float
    decision: str
    message: dict[str, Any]
    nodes: tuple[int, ...] = ()
    reason: str | None = None
    calls: tuple[ToolCallRow, ...] = ()


@dataclass(frozen=True, slots=True)
class HandoverRow:
    """Calls of the agent's control tools, which are no Steps, given to it between two of them.

    `position` counts them in the turn, `step` is the number of Steps of the Task before it. `message`
    is the assistant message as it stands in the conversation, `aliases` has its call id for each id
    that the agent was given, `results` what the agent said they gave, null until then. `thread` is what the
    conversation is known by from then on, as in `TurnBegunRow`: a handoff may lead to another agent.
    """

    session_id: str
    turn: int
    position: int
    step: int
    exchange_id: str
    message: dict[str, Any]
    aliases: dict[str, str]
    results: list[Any] | None = None
    thread: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HandoverDoneRow:
    """What the agent said that its control calls gave."""

    session_id: str
    turn: int
    position: int
    results: list[Any]
    thread: dict[str, Any] = field(default_factory=dict)


Row = (
    RunRow
    | StartRow
    | ScenarioRow
    | SessionRow
    | PlannedRow
    | TurnRow
    | TurnBegunRow
    | TaskEndRow
    | ExchangeStart
    | ExchangeFinish
    | ExchangeDelivered
    | StepRow
    | HandoverRow
    | HandoverDoneRow
)
FINISH_STATES = (
    "complete",
    "client_abort",
    "provider_abort",
    "error_event",
    "provider_error",
    "proxy_error",
    "pending",
)
