"""What a log holds of each Step beyond what is judged: its request, its answer, time and tokens."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scoring.logs.reader import LAST_ATTEMPTS, Log, read_trajectories
from scoring.types import Trajectory

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One Step in full. Its JSON values are shared between Steps and must not be changed.

    `message` is the assistant message as the provider sent it; `sent` and `tools` what the
    request held (None: no tools). `latency` is in seconds. `call_ids` and `observations`
    are, by position of the tool call, the id that it went by in the conversation and what
    it was told (None: nothing). What the log does not know is None.
    """

    message: Any
    sent: tuple[Message, ...]
    tools: tuple[Any, ...] | None
    model: str | None
    latency: float | None
    input_tokens: int | None
    output_tokens: int | None
    call_ids: tuple[str | None, ...]
    observations: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class SessionDetail:
    """A Session as it is scored, and the Steps of each of its Tasks, one for each reply."""

    trajectory: Trajectory
    tasks: tuple[tuple[StepDetail, ...], ...]


def session_details(log: Log, run_id: str) -> list[SessionDetail]:
    """The Sessions of a Run, those and in that order which `Log.trajectories` gives. Raises LogError."""
    return log.ask(lambda connection: _session_details(connection, log.path, run_id))


def models(details: Sequence[SessionDetail]) -> tuple[str, ...]:
    """The models that the Steps asked for, in alphabetical order."""
    return tuple(
        sorted({step.model for detail in details for task in detail.tasks for step in task if step.model})
    )


_STEPS = f"""{LAST_ATTEMPTS} SELECT scenario_id, last.epoch, task, step, messages.body, tip, tools,
        request_model, max(0, finished_at - started_at), input_tokens, output_tokens
    FROM last JOIN steps ON steps.session_id = last.id JOIN messages ON messages.hash = steps.message
    JOIN exchanges ON exchanges.id = steps.exchange_id
    WHERE place = 1 ORDER BY scenario_id, last.epoch, task, step"""
_CALLS = f"""{LAST_ATTEMPTS} SELECT scenario_id, epoch, task, step, tool_call_id, observation
    FROM last JOIN tool_calls ON tool_calls.session_id = last.id
    WHERE place = 1 ORDER BY scenario_id, epoch, task, step, position"""
_REQUESTS = """SELECT tip, tools FROM last JOIN steps ON steps.session_id = last.id
        JOIN exchanges ON exchanges.id = steps.exchange_id WHERE place = 1"""
_HISTORIES = f"""{LAST_ATTEMPTS}, wanted AS ({_REQUESTS}), links AS (
        SELECT hash, parent, message FROM chains WHERE hash IN (SELECT tip FROM wanted)
        UNION SELECT chains.hash, chains.parent, chains.message
        FROM chains JOIN links ON chains.hash = links.parent)"""
_LINKS = f"{_HISTORIES} SELECT hash, parent, message FROM links"
_MESSAGES = f"{_HISTORIES} SELECT hash, body FROM messages WHERE hash IN (SELECT message FROM links)"
_TOOLS = f"""{LAST_ATTEMPTS}, wanted AS ({_REQUESTS})
    SELECT hash, body FROM tool_lists WHERE hash IN (SELECT tools FROM wanted)"""


@dataclass(frozen=True, slots=True)
class _Requests:
    """The histories and tool lists of a Run, each message and list read once."""

    links: Mapping[str, tuple[str | None, str]]
    messages: Mapping[str, Any]
    tools: Mapping[str, Any]

    def history(self, tip: str | None) -> tuple[Message, ...]:
        found = []
        while tip is not None:
            tip, message = self.links[tip]
            found.append(self.messages[message])
        return tuple(reversed(found))


def _session_details(connection: sqlite3.Connection, path: Path, run_id: str) -> list[SessionDetail]:
    trajectories = read_trajectories(connection, path, run_id)
    steps = _steps(connection, run_id)
    return [
        SessionDetail(
            trajectory,
            tuple(
                tuple(steps[trajectory.scenario.id, trajectory.epoch, task])
                for task in range(len(trajectory.tasks))
            ),
        )
        for trajectory in trajectories
    ]


def _steps(
    connection: sqlite3.Connection, run_id: str
) -> Mapping[tuple[str, int, int], Sequence[StepDetail]]:
    """The Steps by (scenario, epoch, Task)."""
    requests = _requests(connection, run_id)
    calls: dict[tuple[Any, ...], list[tuple[str | None, str | None]]] = defaultdict(list)
    for *key, call_id, observation in connection.execute(_CALLS, {"run": run_id}):
        calls[tuple(key)].append((call_id, observation))
    found: dict[tuple[str, int, int], list[StepDetail]] = defaultdict(list)
    for row in connection.execute(_STEPS, {"run": run_id}):
        scenario, epoch, task, step, body, tip, tools, model, latency, given, made = row
        told = calls[scenario, epoch, task, step]
        detail = StepDetail(
            json.loads(body),
            requests.history(tip),
            None if tools is None else tuple(requests.tools[tools]),
            model,
            latency,
            given,
            made,
            tuple(call_id for call_id, _ in told),
            tuple(observation for _, observation in told),
        )
        found[scenario, epoch, task].append(detail)
    return found


def _requests(connection: sqlite3.Connection, run_id: str) -> _Requests:
    run = {"run": run_id}
    return _Requests(
        links={link: (parent, message) for link, parent, message in connection.execute(_LINKS, run)},
        messages={name: json.loads(body) for name, body in connection.execute(_MESSAGES, run)},
        tools={name: json.loads(body) for name, body in connection.execute(_TOOLS, run)},
    )
