"""What the commands about logs read: a log in figures, its Runs, one exchange whole."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.log.answers import OWN_DICTIONARY, unpack
from proxy.log.database import BUSY_SECONDS, UNREADABLE, reading
from proxy.log.errors import LogError
from proxy.log.migrations import APPLICATION, MIGRATIONS, version_of
from proxy.log.restore import read_history
from proxy.log.vacuum import log_size
from scenarios.nearest import aside

NEWEST_VERSION = len(MIGRATIONS)
PENDING_SHOWN = 5
CANDIDATES_SHOWN = 5

Document = dict[str, Any]
"""What `--format json` prints."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A Run in figures. Times are Unix seconds; `last_at` is when something of it was last written.

    `sessions` are told apart by scenario and epoch, however often they were begun; `tasks` are those of
    their last attempts that have ended. Exchanges are of all attempts, and so are tokens, which are what
    providers reported.
    """

    id: str
    name: str | None
    created_at: float
    last_at: float
    sessions: int
    tasks: int
    exchanges: int
    pending: int
    newest_pending_at: float | None
    input_tokens: int
    output_tokens: int
    config: dict[str, Any]
    config_hash: str


NEWEST = "newest"
"""In place of a Run: the one that was begun last."""


def schema_version(path: Path) -> int:
    """The schema version of a log of whatever age. Raises LogError if it is none."""
    if not os.path.isfile(path):
        raise LogError(f"{path}: no such log")
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        ) as connection:
            version = version_of(connection)
    except UNREADABLE as error:
        raise LogError(f"{path}: cannot be read as a log ({error})") from error
    if version is None:
        raise LogError(f"{path}: is a SQLite database, but not a log of {APPLICATION}")
    return version


def find_run(connection: sqlite3.Connection, path: Path, wanted: str) -> str:
    """The id of the Run with this id or name, or whose id alone begins so; or `newest`. Raises LogError."""
    runs = connection.execute("SELECT id, name FROM runs ORDER BY created_at, rowid").fetchall()
    if wanted == NEWEST and runs:
        return str(runs[-1]["id"])
    for column in ("id", "name"):
        if found := [run["id"] for run in runs if run[column] == wanted]:
            return str(found[0])
    begin = [run["id"] for run in runs if wanted and run["id"].startswith(wanted)]
    if len(begin) == 1:
        return str(begin[0])
    if begin:
        raise LogError(f"{path}: several runs begin with {wanted!r}: {', '.join(begin)}")
    known = [run["id"] if run["name"] is None else f"{run['id']} ({run['name']})" for run in runs]
    meant = aside(wanted, [it for run in runs for it in (run["id"], run["name"]) if it is not None])
    raise LogError(f"{path}: has no run {wanted!r}{meant}; it has: {', '.join(known) or 'none'}")


def log_info(path: Path) -> Document:
    """A log in figures. Raises LogError."""
    with reading(path) as connection:
        one = connection.execute
        first, last = one(f"SELECT min(started_at), max({_LAST}) FROM exchanges").fetchone()
        given, made = one(f"SELECT {_TOKENS} FROM exchanges WHERE {_COUNTED}").fetchone()
        states: dict[str, dict[str, int]] = {}
        for side, state, count in one(_STATES):
            states.setdefault(side, {})[state] = count
        pending = [dict(row) for row in one(_PENDING)]
        return {
            "path": str(path),
            "bytes": log_size(path),
            "schema_version": version_of(connection),
            "created_at": one("SELECT value FROM meta WHERE key = 'created_at'").fetchone()[0],
            "runs": _count(connection, "runs"),
            "scenarios": _count(connection, "scenarios"),
            "sessions": one(f"SELECT count(*) FROM sessions WHERE {_IS_LAST}").fetchone()[0],
            "exchanges": _count(connection, "exchanges"),
            "messages": _count(connection, "messages"),
            "first_at": first,
            "last_at": last,
            "input_tokens": given,
            "output_tokens": made,
            "finish_states": states,
            "oldest_pending": pending,
        }


def run_summaries(path: Path) -> tuple[RunSummary, ...]:
    """The Runs of a log, the oldest first. Raises LogError."""
    with reading(path) as connection:
        return tuple(_run(row) for row in connection.execute(_RUNS.format(which="")))


def run_summary(path: Path, wanted: str) -> RunSummary:
    """One Run, by its id, name or the beginning of its id. Raises LogError."""
    with reading(path) as connection:
        run_id = find_run(connection, path, wanted)
        return _run(connection.execute(_RUNS.format(which="WHERE id = ?"), (run_id,)).fetchone())


def exchange_document(path: Path, wanted: str) -> tuple[Document, bytes | None]:
    """One exchange, by its id or a beginning that is its alone, and its answer's bytes. Raises LogError."""
    with reading(path) as connection:
        row = connection.execute(_EXCHANGE, (_find_exchange(connection, path, wanted),)).fetchone()
        document = {name: row[name] for name in row.keys() if name not in _APART}  # noqa: SIM118
        document["stream"] = bool(row["stream"])
        for name in _JSON_COLUMNS:
            document[name] = None if row[name] is None else json.loads(row[name])
        document["messages"] = None if row["message_count"] is None else read_history(connection, row["tip"])
        document["provider_exchanges"] = _documents(connection, _CHILDREN, row["id"])
        document["steps"] = _documents(connection, _STEPS, row["id"])
        raw = None if row["raw"] is None else _decompressed(path, row)
        document["raw_bytes"] = None if raw is None else len(raw)
        return document, raw


_LAST = "max(started_at, coalesce(finished_at, 0), coalesce(delivered_at, 0))"
_TOKENS = "coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)"
# What an agent was told it spent is a sum of its provider exchanges: only one without any counts.
_COUNTED = """(side = 'provider' OR NOT EXISTS
    (SELECT 1 FROM exchanges AS child WHERE child.parent_id = exchanges.id))"""
_IS_LAST = """NOT EXISTS (SELECT 1 FROM sessions AS later WHERE later.run_id = sessions.run_id
    AND later.scenario_id = sessions.scenario_id AND later.epoch = sessions.epoch
    AND later.attempt > sessions.attempt)"""
_STATES = """SELECT side, finish_state, count(*) FROM exchanges
    GROUP BY side, finish_state ORDER BY side, finish_state"""
_PENDING = f"""SELECT exchanges.id, side, sessions.name AS session, turn, started_at
    FROM exchanges LEFT JOIN sessions ON sessions.id = session_id
    WHERE finish_state = 'pending' ORDER BY arrival LIMIT {PENDING_SHOWN}"""
_RUNS = f"""WITH chosen AS (SELECT rowid AS place, * FROM runs {{which}}),
    of_exchanges AS (SELECT run_id, max({_LAST}) AS last_at, count(*) AS count,
        count(*) FILTER (WHERE finish_state = 'pending') AS pending,
        max(started_at) FILTER (WHERE finish_state = 'pending') AS newest_pending_at,
        sum(input_tokens) FILTER (WHERE {_COUNTED}) AS input_tokens,
        sum(output_tokens) FILTER (WHERE {_COUNTED}) AS output_tokens
        FROM exchanges WHERE run_id IN (SELECT id FROM chosen) GROUP BY run_id)
    SELECT id, name, created_at, config, config_hash,
    max(created_at, coalesce(last_at, 0),
        coalesce((SELECT max(opened_at) FROM sessions WHERE run_id = chosen.id), 0)) AS last_at,
    (SELECT count(*) FROM sessions WHERE run_id = chosen.id AND {_IS_LAST}) AS sessions,
    (SELECT count(*) FROM tasks JOIN sessions ON sessions.id = session_id
        WHERE run_id = chosen.id AND {_IS_LAST}) AS tasks,
    coalesce(count, 0) AS exchanges, coalesce(pending, 0) AS pending, newest_pending_at,
    coalesce(input_tokens, 0) AS input_tokens, coalesce(output_tokens, 0) AS output_tokens
    FROM chosen LEFT JOIN of_exchanges ON run_id = id ORDER BY created_at, place"""
_CANDIDATES = f"""SELECT id, side FROM exchanges WHERE id >= :begin AND id <= :begin || char(0x10ffff)
    AND substr(id, 1, length(:begin)) = :begin LIMIT {CANDIDATES_SHOWN + 1}"""
_EXCHANGE = f"""SELECT exchanges.id, side, parent_id, exchanges.run_id, runs.name AS run_name,
    exchanges.session_id, sessions.name AS session, sessions.attempt, turns.task, exchanges.turn,
    correlation, reason, method, path, started_at, finished_at, delivered_at, time_to_first_chunk,
    finish_state, status, error_type, error, stream, request_model, response_model, response_id,
    finish_reasons, input_tokens, output_tokens, key_hash, request_sha256, request_headers,
    response_headers, changes, findings, exchanges.body AS parameters, tool_lists.body AS tools,
    message_count, tip, messages.body AS answer, raw, {OWN_DICTIONARY} AS dictionary
    FROM exchanges LEFT JOIN runs ON runs.id = exchanges.run_id
    LEFT JOIN sessions ON sessions.id = exchanges.session_id
    LEFT JOIN turns ON turns.session_id = exchanges.session_id AND turns.turn = exchanges.turn
    LEFT JOIN tool_lists ON tool_lists.hash = tools
    LEFT JOIN messages ON messages.hash = output_message
    WHERE exchanges.id = ?"""
_APART = ("tip", "raw", "dictionary")
_JSON_COLUMNS = (
    "finish_reasons",
    "request_headers",
    "response_headers",
    "changes",
    "findings",
    "parameters",
    "tools",
    "answer",
)
_CHILDREN = """SELECT id, started_at, finished_at, finish_state, status, input_tokens, output_tokens
    FROM exchanges WHERE parent_id = ? ORDER BY arrival"""
_STEPS = "SELECT task, step, decision, reason FROM steps WHERE exchange_id = ? ORDER BY seq"


def _find_exchange(connection: sqlite3.Connection, path: Path, wanted: str) -> str:
    found = connection.execute(_CANDIDATES, {"begin": wanted}).fetchall() if wanted else []
    exact = [row["id"] for row in found if row["id"] == wanted]
    if exact or len(found) == 1:
        return str((exact or [found[0]["id"]])[0])
    if not found:
        raise LogError(f"{path}: has no exchange {wanted!r}")
    names = [f"{row['id']} ({row['side']})" for row in found[:CANDIDATES_SHOWN]]
    more = ", ..." if len(found) > CANDIDATES_SHOWN else ""
    raise LogError(f"{path}: several exchanges begin with {wanted!r}: {', '.join(names)}{more}")


def _decompressed(path: Path, row: sqlite3.Row) -> bytes:
    try:
        return unpack(row["raw"], row["dictionary"])
    except zlib.error as error:
        raise LogError(f"{path}: the raw answer of exchange {row['id']} is damaged ({error})") from error


def _documents(connection: sqlite3.Connection, sql: str, value: str) -> list[Document]:
    return [dict(row) for row in connection.execute(sql, (value,))]


def _run(row: sqlite3.Row) -> RunSummary:
    values = dict(row)
    return RunSummary(**{**values, "config": json.loads(values["config"])})


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
