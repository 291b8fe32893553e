"""The schema of the log, as numbered steps that are only ever added to.

A log's version is the number of steps that made it; it stands in the table `meta`. Every
step runs in a transaction of its own, together with its number. A new log is made in one, by
`schema.sql`, which `docs/generate.py` writes by the steps: the library that they need takes
long to import. JSON columns hold compact
JSON text; times are Unix seconds; `seq` grows with every write of a row that has it, over
all tables, so that a reader may ask for what is new.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.log.answers import DICTIONARY
from proxy.log.schema_steps import (
    answers,
    first_schema,
    growth,
    live_sessions,
    plans_and_threads,
    run_names,
)

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION = "wildtoolbench-proxy"
SCHEMA = Path(__file__).with_name("schema.sql")

Migration = Callable[["Database"], None]

MIGRATIONS: tuple[Migration, ...] = (
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
    Raises sqlite3.Error, also for a log whose version is no number.
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
    if meta.get("application") != APPLICATION:
        return None
    version = meta.get("schema_version")
    if not isinstance(version, int):
        raise sqlite3.DatabaseError("the schema_version in its meta is no number")
    return version


def bring_up_to_date(connection: sqlite3.Connection, now: Callable[[], float]) -> None:
    """Make an open, empty database a log of the newest version, or bring an older log to it.

    Takes the write lock even when there is nothing to do, so that a log that cannot be
    written is found out now.
    """
    with _transaction(connection):
        is_new = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if is_new:
            for statement in _statements(SCHEMA.read_text(encoding="utf-8")):
                connection.execute(statement)
            _fill_meta(connection, now, schema_version=len(MIGRATIONS), answer_dictionary=DICTIONARY)
    if not is_new:
        migrate(connection, now)


def migrate(
    connection: sqlite3.Connection,
    now: Callable[[], float],
    migrations: tuple[Migration, ...] = MIGRATIONS,
) -> None:
    """Bring a database from whichever step it is at to the last, one transaction for each."""
    with _transaction(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value)")
        _fill_meta(connection, now, schema_version=0)
    for number, migration in enumerate(migrations, 1):
        with _transaction(connection):
            if number > _schema_version(connection):
                _run(migration, connection)
                connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (number,))


def _run(migration: Migration, connection: sqlite3.Connection) -> None:
    from sqlite_utils import Database

    migration(Database(connection))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _fill_meta(connection: sqlite3.Connection, now: Callable[[], float], **more: int | str) -> None:
    values = {"application": APPLICATION, "seq": 0, "created_at": now(), **more}
    connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values.items())


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])
