"""What is wrong with a log that a command could not make sense of: cells that no proxy writes.

For afterwards, when something has failed: it looks at every row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from proxy.log.database import UNREADABLE
from proxy.log.migrations import MIGRATIONS

META = {
    "application": (str,),
    "created_at": (float, int),
    "seq": (int,),
    "answer_dictionary": (str,),
}
"""What `meta` has in a log of the present schema: its columns are not declared to hold anything."""

MAGIC = b"SQLite format 3\x00"

KINDS = {
    "TEXT": ("text",),
    "INTEGER": ("integer",),
    "REAL": ("real", "integer"),
    "BLOB": ("blob",),
}
"""What SQLite may say of a cell, by what its column is declared to hold."""

OBJECTS = {
    "runs": ("config", "versions"),
    "scenarios": ("record",),
    "messages": ("body",),
    "exchanges": ("request_headers", "response_headers"),
    "handovers": ("message", "aliases"),
}
ARRAYS = {
    "exchanges": ("finish_reasons", "changes", "findings"),
    "steps": ("nodes",),
    "handovers": ("results",),
}
"""Columns of JSON text."""


def damage(path: Path) -> str | None:
    """One line about the first cell that is not as it should be; None if all are, or if it is no log."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            found = next(_found(connection), None)
    except UNREADABLE as error:
        found = str(error)
    except OSError:
        return None
    return found and f"{path}: is damaged: {found}; use a copy of the log, if there is one"


def _found(connection: sqlite3.Connection) -> Iterator[str]:
    for (said,) in connection.execute("PRAGMA quick_check(1)"):
        if said != "ok":
            yield said
    told = dict(connection.execute("SELECT key, value FROM meta"))
    if str(told.get("schema_version")) == str(len(MIGRATIONS)):
        yield from (f"meta has no {key}" for key, kinds in META.items() if type(told.get(key)) not in kinds)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = connection.execute(f"PRAGMA table_info('{table}')").fetchall()
        keys = [column[1] for column in columns if column[5]]
        for _, name, declared, *_ in columns:
            for condition, belongs in _conditions(table, name, declared):
                query = f"SELECT {', '.join(keys)}, typeof({name}) FROM {table} WHERE {condition} LIMIT 1"
                for *row, kind in connection.execute(query):
                    yield f"{table}.{name} of the row {row!r} holds {belongs} no more, but {kind}"
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table} has a row that refers to one of {parent}, which is not there"


def _conditions(table: str, name: str, declared: str) -> Iterator[tuple[str, str]]:
    """What is true of a cell that is not as it should be, and what should be there."""
    if declared in KINDS:
        kinds = ", ".join(f"'{kind}'" for kind in (*KINDS[declared], "null"))
        yield f"typeof({name}) NOT IN ({kinds})", declared.lower()
    for columns, kind in ((OBJECTS, "object"), (ARRAYS, "array")):
        if name in columns.get(table, ()):
            is_one = f"CASE WHEN json_valid({name}) THEN json_type({name}) = '{kind}' END"
            yield f"{name} IS NOT NULL AND {is_one} IS NOT TRUE", f"a JSON {kind}"
