"""The schema of the log, as numbered steps that are only ever added to.

A log's version is the number of steps that made it; it stands in the table `meta`. Every
step runs in a transaction of its own, together with its number. JSON columns hold compact
JSON text; times are Unix seconds; `seq` grows with every write of a row that has it, over
all tables, so that a reader may ask for what is new.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sqlite_utils import Database

from proxy.log.schema_steps import (
    answers,
    first_schema,
    growth,
    live_sessions,
    plans_and_threads,
    run_names,
)

APPLICATION = "wildtoolbench-proxy"

MIGRATIONS: tuple[Callable[[Database], None], ...] = (
    first_schema,
    run_names,
    plans_and_threads,
    live_sessions,
    growth,
    answers,
)
"""Append only: a step that has been released is never changed."""


_PLAYED = frozenset({"sessions", "turns", "tasks", "steps", "tool_calls", "handovers", "planned"})
_OURS = _PLAYED | {"meta", "runs", "scenarios", "messages", "chains", "tool_lists", "exchanges"}


def version_of(connection: sqlite3.Connection) -> int | None:
    """The schema version of a log; 0 for an empty database; None if it is something else.

    So is one in which a view or a virtual table has the name of a table of ours: it could do whatever
    its maker likes to who reads it. Nothing that the schema holds may call what is not harmless.
    """
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    tables = dict(tuple(row) for row in connection.execute("SELECT name, sql FROM sqlite_master"))
    if not tables:
        return 0
    if any(not (tables[name] or "").startswith("CREATE TABLE") for name in _OURS & tables.keys()):
        return None
    if [row[1] for row in connection.execute("PRAGMA table_info(meta)")] != ["key", "value"]:
        return None
    meta = dict(tuple(row) for row in connection.execute("SELECT key, value FROM meta"))
    return int(meta["schema_version"]) if meta.get("application") == APPLICATION else None


def migrate(
    connection: sqlite3.Connection,
    now: Callable[[], float],
    migrations: tuple[Callable[[Database], None], ...] = MIGRATIONS,
) -> None:
    """Bring an open log to the newest version, one transaction for each step.

    Takes the write lock even when there is nothing to do, so that a log that cannot be
    written is found out now.
    """
    db = Database(connection)
    for number in range(len(migrations) + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if number == 0:
                _make_meta(connection, now)
            elif number > _schema_version(connection):
                migrations[number - 1](db)
                connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (number,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _make_meta(connection: sqlite3.Connection, now: Callable[[], float]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value)")
    values = (("application", APPLICATION), ("schema_version", 0), ("seq", 0), ("created_at", now()))
    connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values)


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])
