"""Trajectories from a log, offline: the log alone, never a proxy.

The log is opened read-only and is never made, changed or migrated here. What comes out
depends on the log's content alone: same log, same Trajectories, in the same order.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from scenarios.load import ScenarioError, parse_record
from scenarios.replies import read_reply
from scenarios.types import Reply, Scenario
from scoring.logs.opening import LogError, Result, read
from scoring.types import AGENT_STOPPED, NOT_REACHED, STOPPED, TaskTrajectory, Trajectory

NOT_BEGUN = "not begun"
NOT_PLAYED = "not played"
NOT_ENDED = "not played to its end"

_ENDED = frozenset({"closed", STOPPED, AGENT_STOPPED})
"""Endings that are the agent's doing: such a Task is scored."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A Run, in short. `sessions` counts (scenario, epoch), whatever the attempts.

    `model` is what was asked for in the Steps; several are joined by a comma; None if no
    Step names one. `name` is what `log runs rename` gave it. `created_at` is in Unix seconds.
    """

    id: str
    created_at: float
    config: dict[str, Any]
    sessions: int
    model: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A log at `path`. Every method reads one state of it and leaves nothing open."""

    path: Path

    def runs(self, models_of: Collection[str] = ()) -> list[RunInfo]:
        """The Runs, the oldest first. Raises LogError.

        With `models_of`, only those Runs (by id or name) are told the model of: it takes a look at all
        exchanges of each.
        """
        return read(self.path, lambda connection: _runs(connection, models_of))

    def trajectories(self, run_id: str) -> list[Trajectory]:
        """The last attempt of every Session of a Run, by scenario id in natural order, then epoch.

        A Session that was planned and never begun is among them, with none of its Tasks
        played. Raises LogError, also for a Run that is not there.
        """
        return self.ask(lambda connection: read_trajectories(connection, self.path, run_id))

    def ask(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        """What `query` finds in one state of the log. Raises LogError."""
        return read(self.path, query)


def open_log(path: str | os.PathLike[str]) -> Log:
    """A log that is there, is one of ours and has the schema that is read here; else LogError."""
    log = Log(Path(path))
    read(log.path, lambda connection: None)
    return log


def natural(text: str) -> tuple[list[str | int], str]:
    """A sort key by which `a_2` comes before `a_10`."""
    parts = re.split(r"([0-9]+)", text)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], text


_RUNS = """SELECT id, name, created_at, config,
    (SELECT count(*) FROM (SELECT DISTINCT scenario_id, epoch FROM sessions WHERE run_id = runs.id))
    FROM runs ORDER BY created_at, rowid"""
_MODELS = """SELECT DISTINCT request_model FROM exchanges
    WHERE run_id = ? AND request_model IS NOT NULL AND id IN (SELECT exchange_id FROM steps)
    ORDER BY request_model"""
LAST_ATTEMPTS = """WITH last AS (
        SELECT *, row_number() OVER (PARTITION BY scenario_id, epoch ORDER BY attempt DESC) AS place
        FROM sessions WHERE run_id = :run)"""
"""Begins a query: in `last`, the rows with `place = 1` are the attempts of a Run that count."""

_SESSIONS = f"""{LAST_ATTEMPTS} SELECT last.id, name, scenario_id, epoch, hash, record
    FROM last JOIN scenarios ON hash = scenario_hash WHERE place = 1"""
_NOT_BEGUN = """SELECT planned.scenario_id, planned.epoch, hash, record
    FROM planned JOIN scenarios ON hash = planned.scenario_hash
    LEFT JOIN sessions USING (run_id, scenario_id, epoch)
    WHERE run_id = :run AND sessions.id IS NULL"""
_STEPS = f"""{LAST_ATTEMPTS} SELECT session_id, task, body
    FROM last JOIN steps ON session_id = last.id JOIN messages ON messages.hash = message
    WHERE place = 1 ORDER BY session_id, task, step"""
_ENDS = f"""{LAST_ATTEMPTS} SELECT session_id, task, ending
    FROM last JOIN tasks ON session_id = last.id WHERE place = 1"""
_TURNS = f"""{LAST_ATTEMPTS} SELECT DISTINCT session_id, task
    FROM last JOIN turns ON session_id = last.id WHERE place = 1"""
_OUTCOMES = f"""{LAST_ATTEMPTS}
    SELECT exchanges.session_id, turns.task, finish_state, status, error_type, error
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    JOIN turns ON turns.session_id = last.id AND turns.turn = exchanges.turn
    WHERE place = 1 AND side = 'agent' AND reason IS NULL ORDER BY arrival"""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _runs(connection: sqlite3.Connection, models_of: Collection[str]) -> list[RunInfo]:
    found = []
    for run_id, name, created_at, config, sessions in connection.execute(_RUNS).fetchall():
        is_asked = not models_of or run_id in models_of or name in models_of
        models = [str(it) for (it,) in connection.execute(_MODELS, (run_id,))] if is_asked else []
        settings = json.loads(config, parse_constant=_refuse)
        if not isinstance(settings, dict):
            raise TypeError(f"the configuration of run {run_id} is no JSON object")
        found.append(RunInfo(run_id, created_at, settings, sessions, ", ".join(models) or None, name))
    return found


@dataclass(frozen=True, slots=True)
class _Played:
    """What a Run's last attempts hold, by (session, Task)."""

    replies: Mapping[tuple[str, int], list[Reply]]
    ends: Mapping[tuple[str, int], str]
    begun: frozenset[tuple[str, int]]
    failures: Mapping[tuple[str, int], str | None]


def read_trajectories(connection: sqlite3.Connection, path: Path, run_id: str) -> list[Trajectory]:
    """As `Log.trajectories`, on a connection that is open; `path` is for error texts."""
    if connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is None:
        known = ", ".join(
            name for (name,) in connection.execute("SELECT id FROM runs ORDER BY created_at, rowid")
        )
        raise LogError(f"{path}: has no run {run_id}; it has: {known or 'none'}")
    known_scenarios = _Scenarios(path)
    found = [
        *_begun(connection, known_scenarios, run_id),
        *_not_begun(connection, known_scenarios, run_id),
    ]
    return sorted(found, key=lambda it: (natural(it.scenario.id), it.epoch))


def _begun(connection: sqlite3.Connection, scenarios: _Scenarios, run_id: str) -> Iterator[Trajectory]:
    played = _played(connection, run_id)
    for session, name, scenario_id, epoch, digest, record in connection.execute(_SESSIONS, {"run": run_id}):
        if not isinstance(epoch, int):
            raise TypeError(f"the epoch of session {name} is no number")
        scenario = scenarios.get(digest, scenario_id, record)
        tasks = tuple(_task(played, (session, task)) for task in range(len(scenario.tasks)))
        yield Trajectory(name, epoch, scenario, tasks)


def _not_begun(connection: sqlite3.Connection, scenarios: _Scenarios, run_id: str) -> Iterator[Trajectory]:
    """The Sessions of the Run's plan that nobody ever opened."""
    missing = TaskTrajectory((), finished=False, unfinished_reason=NOT_BEGUN)
    for scenario_id, epoch, digest, record in connection.execute(_NOT_BEGUN, {"run": run_id}):
        scenario = scenarios.get(digest, scenario_id, record)
        yield Trajectory(f"{scenario_id}.e{epoch}", epoch, scenario, (missing,) * len(scenario.tasks))


def _played(connection: sqlite3.Connection, run_id: str) -> _Played:
    run = {"run": run_id}
    replies: dict[tuple[str, int], list[Reply]] = defaultdict(list)
    for session, task, body in connection.execute(_STEPS, run):
        replies[session, task].append(read_reply(json.loads(body)))
    failures: dict[tuple[str, int], str | None] = {}
    for session, task, *outcome in connection.execute(_OUTCOMES, run):
        failures[session, task] = _failure(*outcome)
    return _Played(
        replies=replies,
        ends={(session, task): ending for session, task, ending in connection.execute(_ENDS, run)},
        begun=frozenset((session, task) for session, task in connection.execute(_TURNS, run)),
        failures=failures,
    )


def _task(played: _Played, key: tuple[str, int]) -> TaskTrajectory:
    replies = tuple(played.replies.get(key, ()))
    ending = played.ends.get(key)
    if ending == NOT_REACHED:
        return _not_reached(played, key)
    if ending in _ENDED:
        return TaskTrajectory(replies, ending)
    reason = played.failures.get(key) or ending
    if reason is None:
        reason = NOT_ENDED if replies or key in played.begun else NOT_PLAYED
    return TaskTrajectory(replies, ending, finished=False, unfinished_reason=reason)


def _not_reached(played: _Played, key: tuple[str, int]) -> TaskTrajectory:
    """A Task that the Session did not come to: scored if that is the agent's doing."""
    session, task = key
    earlier = {number + 1: played.ends.get((session, number)) for number in range(task)}
    if AGENT_STOPPED in earlier.values():
        return TaskTrajectory((), NOT_REACHED)
    cause = next((f": {how} in task {n}" for n, how in earlier.items() if how not in _ENDED and how), "")
    return TaskTrajectory((), NOT_REACHED, finished=False, unfinished_reason=f"not reached{cause}")


def _failure(finish_state: str, status: int | None, error_type: str | None, error: str | None) -> str | None:
    """How an exchange failed, in words; None if it did not, or is still open."""
    failed = finish_state not in ("complete", "pending") or (status is not None and status >= 400)
    if not failed:
        return None
    what = finish_state if finish_state != "complete" else "answered"
    details = []
    if status is not None and status >= 400:
        details = [f"status {status}"]
        # A provider's failure begins with its status too.
        error_type = None if error_type == str(status) else error_type
        error = (error or "").removeprefix(f"HTTP {status}").removeprefix(": ")
    details += [detail for detail in (error_type, error) if detail]
    return f"{what}: {', '.join(details)}" if details else what


class _Scenarios:
    """The Scenarios of a log, each read once, by hash. Two Sessions of one share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, Scenario] = {}

    def get(self, digest: str, scenario_id: str, record: str) -> Scenario:
        """Raises LogError for a record that is broken."""
        if digest not in self._read:
            try:
                self._read[digest] = parse_record(json.loads(record))
            except ScenarioError as error:
                raise LogError(
                    f"{self._path}: the scenario {scenario_id} in the log cannot be read: {error}"
                ) from error
        return self._read[digest]
