"""A log is opened to be read: one of ours, of the schema that is read here, and never changed by it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from scenarios.text import visible

APPLICATION = "wildtoolbench-proxy"
SCHEMA_VERSION = 6
"""The schema that is read here: the newest one there is."""
_PLAYED = frozenset({"sessions", "turns", "tasks", "steps", "tool_calls", "handovers", "planned"})
TABLES = _PLAYED | {"meta", "runs", "scenarios", "messages", "chains", "tool_lists", "exchanges"}

BUSY_SECONDS = 5.0

Result = TypeVar("Result")

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class LogError(Exception):
    """A log that cannot be read. One line: what, where, how to mend; fit to be shown."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))


def read(path: Path, query: Callable[[sqlite3.Connection], Result]) -> Result:
    """What `query` finds in one state of the log at `path`, opened read-only. Raises LogError."""
    if os.path.isdir(path):
        raise LogError(f"{path}: is a folder, not a log")
    if not os.path.exists(path):
        raise LogError(f"{path}: no such log")
    if not os.path.isfile(path):
        raise LogError(f"{path}: is not a file, so not a log")
    try:
        return _of_one_state(path, query)
    except sqlite3.Error as error:
        if "not a database" in str(error):
            raise LogError(f"{path}: is not a SQLite database, so not a log") from error
        raise LogError(f"{path}: cannot be read as a log ({error})") from error
    except _DAMAGE as error:
        # Whatever a file holds in place of what was written there, it is the file's fault.
        raise LogError(
            f"{path}: is damaged ({error}): what is stored in it is not what was written"
        ) from error


def _of_one_state(path: Path, query: Callable[[sqlite3.Connection], Result]) -> Result:
    """A log at rest may be begun to be written to while it is read: what was read then may be a mixture."""
    if not _has_wal(path):
        before = os.stat(path)
        with suppress(sqlite3.Error, *_DAMAGE):
            result = _query(path, query, immutable=True)
            if _marks(os.stat(path)) == _marks(before):
                return result
    return _query(path, query, immutable=not _has_wal(path))


def _marks(file: os.stat_result) -> tuple[int, int]:
    return file.st_mtime_ns, file.st_size


def _has_wal(path: Path) -> bool:
    return path.with_name(path.name + "-wal").exists()


def _query(path: Path, query: Callable[[sqlite3.Connection], Result], *, immutable: bool) -> Result:
    """Run `query` on one state of the log. With `immutable`, SQLite makes no files beside it."""
    uri = path.resolve().as_uri() + "?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN")
        _check_schema(connection, path)
        return query(connection)
    finally:
        connection.close()


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    meta: Mapping[Any, Any] = {}
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
        connection.execute(f"PRAGMA {pragma}")
    # What reads a view runs what its maker wrote: a log has tables.
    made = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    if any(not (made[name] or "").startswith("CREATE TABLE") for name in TABLES & made.keys()):
        raise LogError(f"{path}: is no log of {APPLICATION}: it has views in the place of tables")
    if [row[1] for row in connection.execute("PRAGMA table_info(meta)")] == ["key", "value"]:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
    if meta.get("application") != APPLICATION:
        raise LogError(f"{path}: is a SQLite database, but not a log of {APPLICATION}")
    version = meta.get("schema_version")
    if not isinstance(version, int):
        raise TypeError("the schema_version in its meta is no number")
    if version < SCHEMA_VERSION:
        raise LogError(f"{path}: is from an older version: run `wildproxy log migrate {path}`")
    if version > SCHEMA_VERSION:
        raise LogError(
            f"{path}: is from a newer version (schema {version}, this one reads {SCHEMA_VERSION}): "
            f"upgrade {APPLICATION}"
        )
