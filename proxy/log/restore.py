"""What a restarted proxy needs of a run, read from the log alone."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from proxy.log.database import reading
from proxy.log.rows import (
    HandoverRow,
    RunRow,
    ScenarioRow,
    SessionRow,
    StepRow,
    TaskEndRow,
    ToolCallRow,
    TurnRow,
)


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """An agent exchange of the main thread, with the outcome that a re-sent request gets.

    `message` is what the agent was answered.
    """

    id: str
    turn: int
    request_sha256: str
    started_at: float
    correlation: str | None
    finish_state: str
    status: int | None
    response_id: str | None
    response_model: str | None
    tokens: tuple[int, int]
    message: dict[str, Any] | None
    error_type: str | None
    delivered_at: float | None
    path: str


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A Session attempt as far as it was played, everything in the order in which it happened.

    `said` has the agent's user message of each turn that was begun, with the turn's words in it, `asked`
    the same as it came; `thread` tells its
    conversation from calls on the side (see `proxy.threads`); `tokens` are (input,
    output) of all its provider calls.
    """

    row: SessionRow
    turns: tuple[TurnRow, ...]
    steps: tuple[StepRow, ...]
    ends: tuple[TaskEndRow, ...]
    exchanges: tuple[StoredExchange, ...]
    said: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: dict[int, dict[str, Any]] = field(default_factory=dict)
    handovers: tuple[HandoverRow, ...] = ()
    thread: dict[str, Any] = field(default_factory=dict)
    tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A Run with its Scenarios and its Session attempts, in the order of their opening.

    Of attempts that are `over` there may be the row alone.
    """

    row: RunRow
    scenarios: tuple[ScenarioRow, ...]
    sessions: tuple[StoredSession, ...]
    over: tuple[SessionRow, ...] = ()


def read_runs(path: str | os.PathLike[str]) -> tuple[RunRow, ...]:
    """The Runs of a log, the oldest first. Raises LogError."""
    with reading(path) as connection:
        return tuple(_run(row) for row in connection.execute(f"{_RUNS} ORDER BY created_at, rowid"))


def read_run(path: str | os.PathLike[str], run_id: str) -> StoredRun | None:
    """One Run with all that was played of it; None if the log has no such Run. Raises LogError."""
    with reading(path) as connection:
        row = connection.execute(f"{_RUNS} WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else _stored_run(connection, _run(row))


def read_open(path: str | os.PathLike[str], run_id: str) -> StoredRun | None:
    """As `read_run`, with the last attempt of each Session alone. Of those that are over it has the rows,
    but for the one that was asked for last where no request named a Session. Raises LogError.
    """
    with reading(path) as connection:
        run = connection.execute(f"{_RUNS} WHERE id = ?", (run_id,)).fetchone()
        if run is None:
            return None
        queued = connection.execute(_QUEUED, (run_id,)).fetchone()
        whole, over = list[StoredSession](), list[SessionRow]()
        for is_over, *columns in connection.execute(_LAST_ATTEMPTS, (run_id,)).fetchall():
            row = SessionRow(*columns)
            if is_over and (queued is None or queued[0] != row.id):
                over.append(row)
            else:
                whole += _stored_sessions(connection, "session_id", row.id)
        scenarios = connection.execute(_SCENARIOS, (run_id,)).fetchall()
        return StoredRun(_run(run), tuple(map(_scenario, scenarios)), tuple(whole), tuple(over))


def read_session(path: str | os.PathLike[str], session_id: str) -> StoredSession | None:
    """One Session attempt; None if the log has no such. Raises LogError."""
    with reading(path) as connection:
        found = _stored_sessions(connection, "session_id", session_id)
        return found[0] if found else None


def read_history(connection: sqlite3.Connection, tip: str | None) -> list[Any]:
    """The messages of the history that ends with `tip` (the column of that name in `exchanges`)."""
    return [json.loads(body) for (body,) in connection.execute(_HISTORY, (tip,))]


_RUNS = "SELECT id, created_at, config, config_hash, versions FROM runs"
_SCENARIOS = """SELECT hash, id, record, source, source_sha256 FROM scenarios WHERE hash IN
    (SELECT scenario_hash FROM sessions WHERE run_id = ?) ORDER BY rowid"""
_SESSIONS = """SELECT id, run_id, name, scenario_id, scenario_hash, epoch, attempt, opened_at
    FROM sessions WHERE {of} = ? ORDER BY seq"""
_LAST_ATTEMPTS = """SELECT
    (SELECT count(*) FROM tasks WHERE session_id = sessions.id) >= json_array_length(record, '$.tasks'),
    sessions.id, run_id, name, scenario_id, scenario_hash, epoch, attempt, opened_at
    FROM sessions JOIN scenarios ON hash = scenario_hash WHERE run_id = ? AND attempt =
    (SELECT max(attempt) FROM sessions AS others WHERE others.run_id = sessions.run_id
    AND others.scenario_id = sessions.scenario_id AND others.epoch = sessions.epoch) ORDER BY seq"""
_QUEUED = """SELECT session_id FROM exchanges WHERE run_id = ? AND correlation = 'queue'
    AND session_id IS NOT NULL ORDER BY arrival DESC LIMIT 1"""
_TURNS = """SELECT session_id, turn, turns.task, kind, text, turns.opened_at, said, thread, asked
    FROM turns JOIN sessions ON sessions.id = session_id WHERE {of} = ? ORDER BY turns.seq"""
_ENDS = """SELECT session_id, task, ending, ended_at
    FROM tasks JOIN sessions ON sessions.id = session_id WHERE {of} = ? ORDER BY tasks.seq"""
_STEPS = """SELECT session_id, task, step, turn, exchange_id, decided_at, decision, body, nodes, reason
    FROM steps JOIN sessions ON sessions.id = session_id JOIN messages ON messages.hash = message
    WHERE {of} = ? ORDER BY steps.seq"""
_CALLS = """SELECT session_id, task, step, position, tool_call_id, tool_calls.name, arguments, observation,
    node, outcome FROM tool_calls JOIN sessions ON sessions.id = session_id WHERE {of} = ?
    ORDER BY session_id, task, step, position"""
_EXCHANGES = """SELECT session_id, id, turn, request_sha256, started_at, correlation, finish_state,
    status, response_id, response_model, input_tokens, output_tokens,
    messages.body AS answer, error_type, delivered_at, path
    FROM exchanges LEFT JOIN messages ON messages.hash = output_message
    WHERE {of} = ? AND side = 'agent' AND session_id IS NOT NULL AND turn IS NOT NULL AND reason IS NULL
    ORDER BY arrival"""
_HANDOVERS = """SELECT session_id, turn, position, step, exchange_id, message, aliases, results,
    handovers.thread FROM handovers JOIN sessions ON sessions.id = session_id WHERE {of} = ?
    ORDER BY session_id, turn, position"""
_TOKENS = """SELECT session_id, coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)
    FROM exchanges WHERE {of} = ? AND side = 'provider' AND session_id IS NOT NULL GROUP BY session_id"""
_HISTORY = """WITH RECURSIVE history (parent, message, position) AS (
        SELECT parent, message, position FROM chains WHERE hash = ?
        UNION ALL
        SELECT chains.parent, chains.message, chains.position
        FROM chains JOIN history ON chains.hash = history.parent AND chains.position < history.position)
    SELECT body FROM history JOIN messages ON messages.hash = message ORDER BY position"""


def _stored_run(connection: sqlite3.Connection, run: RunRow) -> StoredRun:
    scenarios = connection.execute(_SCENARIOS, (run.id,)).fetchall()
    sessions = _stored_sessions(connection, "run_id", run.id)
    return StoredRun(run, tuple(map(_scenario, scenarios)), sessions)


def _stored_sessions(connection: sqlite3.Connection, of: str, id: str) -> tuple[StoredSession, ...]:
    """Those of the Run with this id, or (`of` is `session_id`) the one that has it."""

    def query(sql: str) -> list[sqlite3.Row]:
        return connection.execute(sql.format(of=of), (id,)).fetchall()

    turns, ends = _by_session(query(_TURNS)), _by_session(query(_ENDS))
    steps, exchanges = _by_session(query(_STEPS)), _by_session(query(_EXCHANGES))
    handovers = _by_session(query(_HANDOVERS))
    calls: dict[tuple[str, int, int], list[ToolCallRow]] = defaultdict(list)
    for session, task, step, *values in query(_CALLS):
        calls[session, task, step].append(ToolCallRow(*values))
    tokens = {session: (given, made) for session, given, made in query(_TOKENS)}
    rows = connection.execute(_SESSIONS.format(of="run_id" if of == "run_id" else "id"), (id,))
    return tuple(
        StoredSession(
            row=SessionRow(*row),
            turns=tuple(TurnRow(*turn[:6]) for turn in turns[row["id"]]),
            steps=tuple(_step(step, calls[tuple(step)[:3]]) for step in steps[row["id"]]),
            ends=tuple(TaskEndRow(*end) for end in ends[row["id"]]),
            exchanges=tuple(_exchange(exchange) for exchange in exchanges[row["id"]]),
            said={turn["turn"]: json.loads(turn["said"]) for turn in turns[row["id"]] if turn["said"]},
            asked={turn["turn"]: json.loads(turn["asked"]) for turn in turns[row["id"]] if turn["asked"]},
            handovers=tuple(_handover(handover) for handover in handovers[row["id"]]),
            thread=_last_thread([*turns[row["id"]], *handovers[row["id"]]]),
            tokens=tokens.get(row["id"], (0, 0)),
        )
        for row in rows
    )


def _by_session(found: list[sqlite3.Row]) -> dict[str, list[sqlite3.Row]]:
    groups: dict[str, list[sqlite3.Row]] = defaultdict(list)
    for row in found:
        groups[row["session_id"]].append(row)
    return groups


def _last_thread(known: list[sqlite3.Row]) -> dict[str, Any]:
    """Of turns, then hand-overs, each in order."""
    threads = {row["turn"]: json.loads(row["thread"]) for row in known if row["thread"]}
    return threads[max(threads)] if threads else {}


def _run(row: sqlite3.Row) -> RunRow:
    run_id, created_at, config, config_hash, versions = row
    return RunRow(run_id, created_at, json.loads(config), config_hash, json.loads(versions))


def _scenario(row: sqlite3.Row) -> ScenarioRow:
    name, scenario_id, record, source, source_sha256 = row
    return ScenarioRow(name, scenario_id, json.loads(record), source, source_sha256)


def _step(row: sqlite3.Row, calls: list[ToolCallRow]) -> StepRow:
    session, task, step, turn, exchange, decided_at, decision, body, nodes, reason = row
    return StepRow(
        session_id=session,
        task=task,
        step=step,
        turn=turn,
        exchange_id=exchange,
        decided_at=decided_at,
        decision=decision,
        message=json.loads(body),
        nodes=tuple(json.loads(nodes)),
        reason=reason,
        calls=tuple(calls),
    )


def _handover(row: sqlite3.Row) -> HandoverRow:
    session, turn, position, step, exchange, *texts = row
    values: list[Any] = [None if text is None else json.loads(text) for text in texts]
    message, aliases, results, thread = values
    return HandoverRow(session, turn, position, step, exchange, message, aliases, results, thread or {})


def _exchange(row: sqlite3.Row) -> StoredExchange:
    return StoredExchange(
        id=row["id"],
        turn=row["turn"],
        request_sha256=row["request_sha256"],
        started_at=row["started_at"],
        correlation=row["correlation"],
        finish_state=row["finish_state"],
        status=row["status"],
        response_id=row["response_id"],
        response_model=row["response_model"],
        tokens=(row["input_tokens"] or 0, row["output_tokens"] or 0),
        message=None if row["answer"] is None else json.loads(row["answer"]),
        error_type=row["error_type"],
        delivered_at=row["delivered_at"],
        path=row["path"],
    )
