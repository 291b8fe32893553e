"""Opening a log: for writing (made or migrated as needed) or for reading (never touched)."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.log.errors import LogError
from proxy.log.migrations import APPLICATION, MIGRATIONS, bring_up_to_date, version_of

BUSY_SECONDS = 4.0
"""How long SQLite waits for another program's lock. An agent gets its first sign of life after 5 seconds:
until then it can be told of an error."""


UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What is raised for a log that cannot be read: of some damage SQLite's own words are no text."""


def open_for_writing(path: Path, *, now: Callable[[], float], must_exist: bool = False) -> sqlite3.Connection:
    """A connection to the log at `path`, made or migrated to the newest version, in WAL mode.

    It may be used by one thread at a time, is in autocommit mode (transactions are
    explicit) and enforces foreign keys. Raises LogError; a file that is not ours is left
    as it was. With `must_exist`, none is made.
    """
    _check_place(path, must_exist)
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise LogError(f"{path}: cannot be opened for writing ({error})") from error
    try:
        _prepare(connection, path, now)
    except UNREADABLE as error:
        connection.close()
        raise LogError(f"{path}: {_explain(error)}") from error
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reading(path: str | os.PathLike[str], *, lasting: bool = False) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a log of the present schema, seeing one state of it throughout.

    Rows are `sqlite3.Row`. Raises LogError, also for an error of SQLite inside the block, and at its end
    if the file was written to meanwhile: SQLite does not keep that from who reads a log at rest.
    With `lasting` the caller looks again by itself.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise LogError(f"{path}: no such log")
    before = None if lasting else _at_rest(path)
    try:
        connection = sqlite3.connect(
            read_only_uri(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            _check_version(connection, path)
            yield connection
        finally:
            connection.close()
    except UNREADABLE as error:
        _check_untouched(path, before)
        raise LogError(f"{path}: {_explain(error)}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise LogError(f"{path}: is damaged: what should be JSON in it is not ({error})") from error
    _check_untouched(path, before)


def _at_rest(path: Path) -> tuple[int, int] | None:
    """What tells whether a log that nobody writes to has been written to; None for one in use."""
    return None if _has_wal(path) else _marks(path)


def _marks(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _check_untouched(path: Path, before: tuple[int, int] | None) -> None:
    if before is not None and _marks(path) != before:
        raise LogError(f"{path}: was written to while it was read: try again")


def _check_place(path: Path, must_exist: bool) -> None:
    if os.path.isdir(path):
        raise LogError(f"{path}: is a folder, not a log: give the name of a file")
    if must_exist and not os.path.exists(path):
        raise LogError(f"{path}: no such log")
    if not os.path.isdir(path.parent):
        raise LogError(f"{path}: the folder {path.parent} does not exist: make it, or give another name")


def _prepare(connection: sqlite3.Connection, path: Path, now: Callable[[], float]) -> None:
    version = _known_version(connection, path)
    if version > len(MIGRATIONS):
        raise LogError(
            f"{path}: was written by a newer version of this program (schema {version}, "
            f"this one knows {len(MIGRATIONS)}): upgrade {APPLICATION}"
        )
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise LogError(f"{path}: this place does not support SQLite's WAL mode: use a local disk")
    connection.execute("PRAGMA synchronous = NORMAL")
    # A table that is made anew would cost a search for every row of it that another one refers to.
    connection.execute("PRAGMA foreign_keys = OFF")
    bring_up_to_date(connection, now)
    connection.execute("PRAGMA foreign_keys = ON")


def read_only_uri(path: Path) -> str:
    """Without a `-wal` beside it nobody writes; `immutable` then keeps SQLite from making one."""
    return path.resolve().as_uri() + ("?mode=ro" if _has_wal(path) else "?mode=ro&immutable=1")


def _has_wal(path: Path) -> bool:
    return path.with_name(path.name + "-wal").exists()


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version = _known_version(connection, path)
    if version != len(MIGRATIONS):
        cure = (
            f"run `wildproxy log migrate {path}`" if version < len(MIGRATIONS) else f"upgrade {APPLICATION}"
        )
        raise LogError(f"{path}: has schema {version}, this program reads {len(MIGRATIONS)}: {cure}")


def _known_version(connection: sqlite3.Connection, path: Path) -> int:
    version = version_of(connection)
    if version is None:
        raise LogError(
            f"{path}: is a SQLite database, but not a log of {APPLICATION}: give another file name"
        )
    return version


def _explain(error: Exception) -> str:
    if "not a database" in str(error):
        return "is not a SQLite database: give another file name"
    if "readonly" in str(error):
        return "is read-only: give write permission, or another file name"
    if "locked" in str(error):
        return "is locked by another program: close it and try again"
    return f"cannot be used as a log ({error})"
