"""Changing what a log says of its Runs: giving one a name, taking one out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.log.database import open_for_writing
from proxy.log.errors import LogError
from proxy.log.inspect import NEWEST, RunSummary, run_summaries, run_summary
from proxy.log.vacuum import UNUSED

IN_USE_SECONDS = 600.0
"""A Run that was written to so recently, in a log that is open elsewhere, may still be played."""

MEANT_OTHERWISE = ("all", NEWEST)
"""Words that stand for runs where one is asked for."""

Clock = Callable[[], float]


def rename_run(path: Path, wanted: str, name: str, now: Clock) -> str:
    """Names a Run (given by id, name or the beginning of its id); gives its id. Raises LogError."""
    name = _usable(name)
    run_id = run_summary(path, wanted).id
    with _writing(path, now) as connection:
        taken = connection.execute(
            "SELECT id FROM runs WHERE ? IN (id, name) AND id != ?", (name, run_id)
        ).fetchone()
        if taken is not None:
            raise _taken(path, taken[0], name)
        connection.execute("UPDATE runs SET name = ? WHERE id = ?", (name, run_id))
    return run_id


def check_name(path: Path, name: str) -> None:
    """Raises LogError for a name that a new Run of the log, which need not be there yet, cannot have."""
    name = _usable(name)
    runs = run_summaries(path) if path.exists() and path.stat().st_size else []
    if taken := next((run.id for run in runs if name in (run.id, run.name)), None):
        raise _taken(path, taken, name)


def _usable(name: str) -> str:
    name = name.strip()
    if not name or not name.isprintable() or name in MEANT_OTHERWISE:
        words = " or ".join(map(repr, MEANT_OTHERWISE))
        raise LogError(
            f"{name!r} cannot be a run's name: take printable characters, and not the word {words}"
        )
    return name


def _taken(path: Path, run_id: str, name: str) -> LogError:
    return LogError(f"{path}: the run {run_id} is already called {name!r}: take another name")


def check_unused(path: Path, run: RunSummary, now: float) -> None:
    """Raises LogError if the Run seems to be still played."""
    wal = path.with_name(path.name + "-wal")
    if run.newest_pending_at is not None and now - run.newest_pending_at < IN_USE_SECONDS:
        why = "it has exchanges that are not finished"
    elif now - run.last_at < IN_USE_SECONDS and wal.exists() and wal.stat().st_size:
        why = "the log is open elsewhere, and it was written to a short while ago"
    else:
        return
    raise LogError(f"{path}: run {run.id} seems to be still played ({why}): stop it, or give --force")


def delete_run(
    path: Path, run_id: str, now: Clock, *, vacuum: bool = False, force: bool = False
) -> dict[str, int]:
    """Takes a Run out, with all its rows and the messages, histories and tool lists of no other Run.

    Gives how many rows went, by table. Scenarios stay: a proxy may have loaded them and not
    opened a Session yet. Raises LogError, also (unless `force`) if the Run seems to be still
    played: its proxy could not write any more.
    """
    run = run_summary(path, run_id)
    if not force:
        check_unused(path, run, now())
    with _writing(path, now) as connection:
        connection.execute(_DOOMED, {"run": run.id})
        removed = {table: connection.execute(sql, {"run": run.id}).rowcount for table, sql in _DELETIONS}
    if vacuum:
        _vacuum(path, now)
    return removed


_SESSIONS = "(SELECT id FROM sessions WHERE run_id = :run)"
_DOOMED = """CREATE TEMP TABLE doomed AS WITH RECURSIVE ids (id) AS (
    SELECT id FROM exchanges WHERE run_id = :run
    UNION SELECT exchanges.id FROM exchanges JOIN ids ON parent_id = ids.id) SELECT id FROM ids"""
_DELETIONS = (
    ("tool_calls", f"DELETE FROM tool_calls WHERE session_id IN {_SESSIONS}"),
    ("steps", f"DELETE FROM steps WHERE session_id IN {_SESSIONS}"),
    ("tasks", f"DELETE FROM tasks WHERE session_id IN {_SESSIONS}"),
    ("turns", f"DELETE FROM turns WHERE session_id IN {_SESSIONS}"),
    ("exchanges", "DELETE FROM exchanges WHERE id IN (SELECT id FROM temp.doomed)"),
    ("sessions", "DELETE FROM sessions WHERE run_id = :run"),
    ("runs", "DELETE FROM runs WHERE id = :run"),
    *UNUSED,
)


@contextmanager
def _writing(path: Path, now: Clock) -> Iterator[sqlite3.Connection]:
    """One transaction. Foreign keys are not looked after: without indexes on them, every message
    that goes would cost a search through all histories."""
    connection = open_for_writing(path, now=now, must_exist=True)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise LogError(f"{path}: could not be changed, and is as it was ({error})") from error
    finally:
        connection.close()


def _vacuum(path: Path, now: Clock) -> None:
    connection = open_for_writing(path, now=now, must_exist=True)
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise LogError(
            f"{path}: the run is gone, but the file could not be made smaller ({error}): "
            "close what else has it open, then run `VACUUM` with sqlite3"
        ) from error
    finally:
        connection.close()
