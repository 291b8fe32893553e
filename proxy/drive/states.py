"""What the proxy says of a Run, its Sessions and their turns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from proxy.drive.agent import Delivery

Inject = Literal["sentinel", "driver"]
"""Who puts the user's words into an agent's request: the proxy, in place of the sentinel that
the agent was prompted with, or the driver, which prompts the agent with the words."""


@dataclass(frozen=True, slots=True)
class ScenarioInfo:
    """A Scenario that the Run can play; `tasks` is how many it has."""

    id: str
    hash: str
    tasks: int


@dataclass(frozen=True, slots=True)
class RunInfo:
    id: str
    scenarios: tuple[ScenarioInfo, ...]
    config: Mapping[str, Any]

    @property
    def goes_on(self) -> bool:
        """Does a Task go on after a wrong step?"""
        return self.config.get("on_mismatch") == "continue"


@dataclass(frozen=True, slots=True)
class Opened:
    """A Session that can be played. `url` is the agent's whole base URL, `turn` the last one opened.

    `mcp_url` is where an MCP client finds its tools, where they are offered so.

    `process` tells one start of the proxy from the next.
    """

    session: str
    url: str
    over: bool
    mcp_url: str | None = None
    turn: int = 0
    process: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """An open user turn: what to say to the agent.

    `prompt` is the placeholder, `text` the user's words (None: the proxy does not tell them).
    """

    number: int
    prompt: str
    text: str | None = None

    def said(self, inject: Inject) -> str:
        """What the agent is prompted with: the words if the driver puts them in, unless they are blank."""
        return self.text if inject == "driver" and self.text and self.text.strip() else self.prompt


@dataclass(frozen=True, slots=True)
class TaskState:
    """How a Task (`number` from 1) stands. `end` and `names_right` are None while it is open."""

    number: int
    end: str | None
    names_right: bool | None


@dataclass(frozen=True, slots=True)
class SessionState:
    """Where a Session stands, as the proxy says; `turn` is None before the first one.

    `asked` is the last turn that the agent asked for, `answered` the last one whose answer
    reached it, `failed_turn` the last one that the provider failed, `failed_status` the HTTP status
    of that failure, `refused_turn` the last one in which the proxy let a request not in; each 0 if
    there was none. `steps` are
    those of the open Task; `waits_for` is what it waits for (`proxy.tally`), `waited` for how many
    seconds: blank and 0 where an earlier version does not say.
    """

    session: str
    scenario: str
    epoch: int
    turn: int | None
    over: bool
    tasks: tuple[TaskState, ...]
    input_tokens: int
    output_tokens: int
    provider_errors: int
    asked: int = 0
    answered: int = 0
    failed_turn: int = 0
    refused_turn: int = 0
    process: str = ""
    provider_retries: int = 0
    steps: int = 0
    waits_for: str = ""
    waited: float = 0.0
    failed_status: int = 0


def delivery_of(state: SessionState, turn: int) -> Delivery:
    """What became of a turn, by the state of its Session."""
    if state.answered >= turn:
        return "answered"
    if state.failed_turn >= turn:
        return "failed"
    if state.asked >= turn:
        return "waiting"
    return "refused" if state.refused_turn >= turn else "unasked"


def session_state(body: Mapping[str, Any]) -> SessionState:
    """Reads an answer of the control API. Raises KeyError, TypeError or ValueError for another shape."""
    return SessionState(
        session=str(body["session"]),
        scenario=str(body["scenario"]),
        epoch=int(body["epoch"]),
        turn=None if body["turn"] is None else int(body["turn"]),
        over=bool(body["over"]),
        asked=int(body["asked"]),
        answered=int(body["answered"]),
        failed_turn=int(body["failed_turn"]),
        refused_turn=int(body.get("refused_turn") or 0),
        process=str(body.get("process") or ""),
        tasks=tuple(TaskState(int(task["task"]), task["end"], task["names_right"]) for task in body["tasks"]),
        input_tokens=int(body["input_tokens"] or 0),
        output_tokens=int(body["output_tokens"] or 0),
        provider_errors=int(body["provider_errors"] or 0),
        provider_retries=int(body.get("provider_retries") or 0),
        steps=int(body.get("steps") or 0),
        waits_for=str(body.get("waits_for") or ""),
        waited=float(body.get("waited") or 0.0),
        failed_status=int(body.get("failed_status") or 0),
    )
