"""Reads what is new in a log that another process writes, without ever writing itself."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.log.database import UNREADABLE, reading
from proxy.log.errors import LogError
from proxy.log.inspect import find_run
from proxy.tail.events import Event, Place, ProxyStarted, RunBegun
from proxy.tail.reader import Reader

ALL_RUNS = "all"
WINDOW = 1000
"""Values of `seq` read at a time: what is held in memory, and how long a reading may last."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to show. `run`: an id, a name, `all`; None for the newest and those that follow it.

    `session`: a session's name, or a scenario's id for all its epochs. `since`: Unix seconds.
    """

    run: str | None = None
    session: str | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """`Wanted`, as it was found in a log: the Runs from the `first` (a rowid) to the `last`."""

    session: str | None = None
    since: float | None = None
    first: int = 0
    last: int | None = None
    all_runs: bool = False


@dataclass(frozen=True, slots=True)
class Overview:
    """What a log holds of what is wanted. `run` is the one Run that was chosen; None with `all`, or if
    there is none yet. `sessions` are the names of the wanted Sessions, `known` of all in those Runs."""

    scope: Scope
    runs: int
    run: str | None
    sessions: tuple[str, ...]
    known: tuple[str, ...]


def overview(path: Path, wanted: Wanted) -> Overview:
    """Looks once. Raises LogError, also for a Run that is not there."""
    with reading(path) as connection:
        runs = connection.execute("SELECT rowid, id FROM runs ORDER BY rowid").fetchall()
        run = runs[-1]["id"] if runs else None
        scope = Scope(wanted.session, wanted.since)
        if wanted.run == ALL_RUNS:
            run, scope = None, Scope(wanted.session, wanted.since, all_runs=True)
        elif wanted.run is not None:
            run = find_run(connection, path, wanted.run)
            place = next(row["rowid"] for row in runs if row["id"] == run)
            scope = Scope(wanted.session, wanted.since, place, place)
        elif runs:
            scope = Scope(wanted.session, wanted.since, runs[-1]["rowid"])
        values = _parameters(connection, scope)
        sessions = connection.execute(f"{_NAMES} AND {_OF_SESSION} ORDER BY seq", values)
        known = connection.execute(f"{_NAMES} ORDER BY seq", values)
        return Overview(scope, len(runs), run, _distinct(sessions), _distinct(known))


class Follower:
    """Gives the events of a log, each once, in the order in which they were written.

    A log in use has a `-wal` file beside it: then one connection stays open, and its
    `data_version` tells for next to nothing if anybody has written since. Without one the
    file's own size and time tell, and SQLite is not let near it but to read. A file that
    was put in the place of the old one is read from its beginning.
    """

    def __init__(self, path: Path, scope: Scope) -> None:
        self.replaced = False
        self._path = path
        self._scope = scope
        self._stack = ExitStack()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._made: float | None = None
        self._seen: object = None
        self._started: float | None = None
        self._after = 0
        self._reader = Reader()

    @property
    def connection(self) -> sqlite3.Connection:
        """To look up what an event does not say; while the events are gone through, and not longer."""
        return self._connection or self._connect()

    def new(self) -> Iterator[Event]:
        """What has been written since the last call. Raises LogError; none if the file is gone."""
        try:
            if self._has_changed():
                yield from self._events()
        except UNREADABLE as error:
            raise LogError(f"{self._path}: cannot be read as a log ({error})") from error
        except (json.JSONDecodeError, RecursionError) as error:
            raise LogError(f"{self._path}: is damaged: what should be JSON in it is not ({error})") from error

    def close(self) -> None:
        self._connection = None
        self._stack.close()

    def _has_changed(self) -> bool:
        try:
            found = os.stat(self._path)
        except OSError:
            return False
        if self._connection is not None and self._file != (found.st_dev, found.st_ino):
            self.close()
        self._file = (found.st_dev, found.st_ino)
        if self._connection is None and self._has_wal():
            self._connect()
        seen: object = (found.st_mtime_ns, found.st_size)
        if self._connection is not None:
            seen = self._connection.execute("PRAGMA data_version").fetchone()[0]
        changed, self._seen = seen != self._seen, seen
        return changed

    def _has_wal(self) -> bool:
        return self._path.with_name(self._path.name + "-wal").exists()

    def _connect(self) -> sqlite3.Connection:
        connection = self._stack.enter_context(reading(self._path, lasting=True))
        # One look must not last: a snapshot that is kept keeps the writer from tidying up.
        connection.execute("COMMIT")
        self._connection, self._seen = connection, None
        # Not by inode: that of a deleted file is soon given to another.
        made = connection.execute("SELECT value FROM meta WHERE key = 'created_at'").fetchone()[0]
        if self._made not in (None, made):
            self._begin_again()
        self._made = made
        return connection

    def _begin_again(self) -> None:
        self.replaced = True
        self._scope = Scope(self._scope.session, self._scope.since, all_runs=self._scope.all_runs)
        self._after, self._reader, self._started = 0, Reader(), None

    def _events(self) -> Iterator[Event]:
        lasting = self._has_wal()
        seen, connection = self._seen, self._connection or self._connect()
        upto = connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0]
        yield from self._restart(connection)
        last = upto
        if not self._after:
            self._after, last = self._bounds(connection, upto)
        while self._after < last:
            window = min(self._after + WINDOW, last)
            runs, rows = self._rows(connection, window)
            self._after = window
            yield from self._reader.events(rows, runs)
        self._after = upto
        if not lasting:
            self.close()
        self._seen = seen

    def _bounds(self, connection: sqlite3.Connection, upto: int) -> tuple[int, int]:
        """Between which values of `seq` the Runs that are wanted lie: a log may hold a million others."""
        if self._scope.all_runs:
            return 0, upto
        values = _parameters(connection, self._scope)
        first, last = connection.execute(_BOUNDS, values).fetchone()
        return (upto, upto) if first is None else (int(first) - 1, min(int(last), upto))

    def _restart(self, connection: sqlite3.Connection) -> Iterator[ProxyStarted]:
        """A proxy that was started since the last look. One that began a Run is told of by the Run."""
        row = connection.execute(_STARTED).fetchone()
        if row is None or row["started_at"] == self._started:
            return
        self._started = row["started_at"]
        if self._after and not row["of_run"]:
            yield ProxyStarted(Place(), self._started)

    def _rows(
        self, connection: sqlite3.Connection, upto: int
    ) -> tuple[dict[str, RunBegun], list[dict[str, Any]]]:
        """The rows after the last ones up to `seq` = `upto`, all of one state of the log."""
        connection.execute("BEGIN")
        try:
            values = {**_parameters(connection, self._scope), "after": self._after, "upto": upto}
            found = [dict(row) for sql in _QUERIES for row in connection.execute(sql, values)]
            calls = connection.execute(_CALLS, values).fetchall()
            runs = {row["id"]: _run(row) for row in connection.execute(_RUNS)} if found else {}
        finally:
            with contextlib.suppress(sqlite3.Error):  # it can only follow another error
                connection.execute("COMMIT")
        steps = {row["seq"]: row for row in found if row["kind"] == "step"}
        for step in steps.values():
            step["calls"] = []
        for call in calls:
            steps[call["seq"]]["calls"].append(call)
        return runs, sorted(found, key=lambda row: int(row["seq"]))


_STARTED = """SELECT value AS started_at, EXISTS (SELECT 1 FROM runs WHERE created_at = value) AS of_run
    FROM meta WHERE key = 'started_at'"""
_RUNS = "SELECT rowid, id, created_at, name, config FROM runs ORDER BY rowid"
_CHOSEN = "run_id IN (SELECT value FROM json_each(:runs))"
_LASTS = " UNION ALL ".join(
    f"SELECT NULL, max({table}.seq) FROM sessions JOIN {table} ON session_id = sessions.id WHERE {_CHOSEN}"
    for table in ("turns", "tasks", "steps")
)
_BOUNDS = f"""SELECT min(first), max(last) FROM (
    SELECT min(seq) AS first, max(seq) AS last FROM sessions WHERE {_CHOSEN} UNION ALL {_LASTS}
    UNION ALL SELECT min(arrival), max(seq) FROM exchanges WHERE {_CHOSEN}
    UNION ALL SELECT min(arrival), max(seq) FROM exchanges WHERE run_id IS NULL)"""
_IN_RUN = "(:all_runs OR {run} IN (SELECT value FROM json_each(:runs)))"
_OF_SESSION = "(:session IS NULL OR :session IN (sessions.name, sessions.scenario_id, sessions.id))"
_NEW = "{table}.seq > :after AND {table}.seq <= :upto AND {at} >= :since"
_NAMES = f"SELECT name FROM sessions WHERE {_IN_RUN.format(run='run_id')}"


def _query(kind: str, table: str, at: str, columns: str, joins: str = "") -> str:
    """A query on a table whose rows belong to Sessions."""
    join = "" if table == "sessions" else "JOIN sessions ON sessions.id = session_id"
    return f"""SELECT {table}.seq, '{kind}' AS kind, sessions.run_id AS run, sessions.name AS session,
        sessions.attempt, {at} AS at, {columns} FROM {table} {join} {joins}
        WHERE {_NEW.format(table=table, at=at)} AND {_IN_RUN.format(run="sessions.run_id")}
        AND {_OF_SESSION}"""


# An exchange without a Run belongs to the one that had begun last.
_EXCHANGE_RUN = """coalesce(exchanges.run_id,
    (SELECT id FROM runs WHERE created_at <= started_at ORDER BY rowid DESC LIMIT 1))"""
_EXCHANGE_AT = "coalesce(finished_at, started_at)"
_EXCHANGES = f"""SELECT exchanges.seq, 'exchange' AS kind, {_EXCHANGE_RUN} AS run,
    sessions.name AS session, sessions.attempt, {_EXCHANGE_AT} AS at, turns.task, exchanges.turn,
    exchanges.id, side, reason, started_at, finished_at, finish_state, status, time_to_first_chunk,
    request_model, response_model, input_tokens, output_tokens, error_type, error, findings,
    answer.body AS answer, asked.body AS asked
    FROM exchanges LEFT JOIN sessions ON sessions.id = exchanges.session_id
    LEFT JOIN turns ON turns.session_id = exchanges.session_id AND turns.turn = exchanges.turn
    LEFT JOIN messages AS answer ON answer.hash = output_message AND reason IS NOT NULL
    LEFT JOIN chains ON chains.hash = tip AND reason IS NOT NULL
    LEFT JOIN messages AS asked ON asked.hash = chains.message
    WHERE {_NEW.format(table="exchanges", at=_EXCHANGE_AT)} AND finish_state != 'pending'
    AND {_IN_RUN.format(run=_EXCHANGE_RUN)} AND {_OF_SESSION}"""
_QUERIES = (
    _query("session", "sessions", "sessions.opened_at", "NULL AS task, NULL AS turn"),
    _query("turn", "turns", "turns.opened_at", "session_id, turns.task, turn, turns.kind AS turn_kind, text"),
    _query("task", "tasks", "ended_at", "tasks.task, NULL AS turn, ending"),
    _query(
        "step",
        "steps",
        "decided_at",
        "steps.task, turn, step, decision, reason, body",
        "JOIN messages ON messages.hash = message",
    ),
    _EXCHANGES,
)
_CALLS = f"""SELECT steps.seq, tool_calls.name, arguments, observation, outcome
    FROM steps JOIN sessions ON sessions.id = steps.session_id
    JOIN tool_calls USING (session_id, task, step)
    WHERE {_NEW.format(table="steps", at="decided_at")} AND {_IN_RUN.format(run="sessions.run_id")}
    AND {_OF_SESSION} ORDER BY steps.seq, position"""


def _parameters(connection: sqlite3.Connection, scope: Scope) -> dict[str, Any]:
    runs = connection.execute(
        "SELECT id FROM runs WHERE rowid >= ? AND (? IS NULL OR rowid <= ?)",
        (scope.first, scope.last, scope.last),
    )
    return {
        "runs": json.dumps([name for (name,) in runs]),
        "all_runs": scope.all_runs,
        "session": scope.session,
        "since": float("-inf") if scope.since is None else scope.since,
    }


def _run(row: sqlite3.Row) -> RunBegun:
    at = row["created_at"]
    return RunBegun(Place(run=row["id"]), at, at, row["name"], json.loads(row["config"]))


def _distinct(names: sqlite3.Cursor) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for (name,) in names))
