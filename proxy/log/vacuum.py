"""Making a log smaller: what nothing refers to goes, and the file shrinks to what is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proxy.log.database import reading
from proxy.log.errors import LogError

UNUSED = (
    (
        "chains",
        """DELETE FROM chains WHERE hash NOT IN (WITH RECURSIVE used (hash) AS (
            SELECT tip FROM exchanges WHERE tip IS NOT NULL
            UNION SELECT parent FROM chains JOIN used USING (hash) WHERE parent IS NOT NULL)
            SELECT hash FROM used)""",
    ),
    (
        "messages",
        """DELETE FROM messages WHERE hash NOT IN (SELECT message FROM chains
            UNION SELECT output_message FROM exchanges WHERE output_message IS NOT NULL
            UNION SELECT message FROM steps)""",
    ),
    (
        "tool_lists",
        """DELETE FROM tool_lists WHERE hash NOT IN
            (SELECT tools FROM exchanges WHERE tools IS NOT NULL)""",
    ),
)
"""By table, what takes out the rows that nothing refers to, in this order."""

_SCENARIOS = (
    "scenarios",
    """DELETE FROM scenarios WHERE hash NOT IN
        (SELECT scenario_hash FROM sessions UNION SELECT scenario_hash FROM planned)""",
)
"""Not when a run is deleted: a proxy may have loaded them and not opened a Session yet."""


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """Bytes on disk, and how many rows went, by table."""

    before: int
    after: int
    removed: dict[str, int]


def vacuum_log(path: Path) -> Vacuumed:
    """Takes out what nothing refers to, and gives the room back to the disk. Raises LogError.

    Nobody else may have the log open: a proxy would have to wait for longer than it does. There are two
    transactions of SQLite, so that the log is whole whenever this is interrupted.
    """
    with reading(path):  # is it one, and of the present schema?
        pass
    before = log_size(path)
    try:
        with closing(_alone(path)) as connection:
            removed = _without_unused(connection)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise LogError(f"{path}: {_explained(error)}") from error
    return Vacuumed(before, log_size(path), removed)


def log_size(path: Path) -> int:
    """Bytes on disk, with what has not been moved into the main file yet."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _alone(path: Path) -> sqlite3.Connection:
    """A connection beside which there is no other, nor can be as long as it is open."""
    uri = path.resolve().as_uri() + "?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _without_unused(connection: sqlite3.Connection) -> dict[str, int]:
    """Foreign keys are not looked after: there are no indexes by which what refers to a row is found."""
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    removed = {table: connection.execute(sql).rowcount for table, sql in (*UNUSED, _SCENARIOS)}
    connection.execute("COMMIT")
    return removed


def _explained(error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return "is open in another program (a proxy, or one that reads it): end that, and try again"
    if "disk is full" in str(error):
        return (
            "nothing is lost, but the disk is full: a vacuum needs room for the log once more, where it is "
            "and where temporary files are (TMPDIR)"
        )
    if "readonly" in str(error):
        return "is read-only: give write permission"
    return f"nothing is lost, but it could not be made smaller ({error})"
