"""Several logs made one: their runs, one after another, in a log that was not there before.

Contents are known by their hashes, runs, sessions and exchanges by their ids. `seq` is counted anew, so
that the runs are in the order in which they began, and what happened in each in the order in which it did.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proxy.log.database import open_for_writing, read_only_uri, reading
from proxy.log.errors import LogError

_CONTENTS = {"messages": "body", "tool_lists": "body", "chains": "message", "scenarios": "record"}
"""Tables of what is known by a hash, and a column that must be the same where the hash is."""

_OF_SESSION = "session_id IN (SELECT id FROM {source}.sessions WHERE run_id = :run)"
_TABLES = {
    "runs": "id = :run",
    "sessions": "run_id = :run",
    "planned": "run_id = :run",
    "exchanges": "run_id = :run",
    "turns": _OF_SESSION,
    "tasks": _OF_SESSION,
    "steps": _OF_SESSION,
    "tool_calls": _OF_SESSION,
    "handovers": _OF_SESSION,
}
"""Which rows of a table belong to a run, in an order in which they can be written."""
_COUNTED = ("sessions", "turns", "tasks", "steps", "exchanges")
"""Tables with a `seq`."""
_STRAY = "run_id IS NULL AND id NOT IN (SELECT id FROM main.exchanges)"
"""Exchanges of old proxies that belong to no run."""


@dataclass(frozen=True, slots=True)
class Merged:
    """`doubled`: runs that more than one log had, as copies."""

    runs: int
    exchanges: int
    doubled: int


@dataclass(frozen=True, slots=True)
class _Run:
    id: str
    name: str | None
    created_at: float
    log: Path


def merge_logs(paths: Sequence[Path], output: Path, now: Callable[[], float]) -> Merged:
    """Makes `output` of the logs. Raises LogError; then there is none, and the logs are as they were."""
    if output.exists():
        raise LogError(f"{output}: is there already, and is not overwritten: give another name")
    if not output.parent.is_dir():
        raise LogError(f"{output}: the folder {output.parent} does not exist: make it, or give another name")
    found = [run for path in paths for run in _runs(path)]
    runs = sorted(_once(found), key=lambda run: run.created_at)
    _check_names(runs)
    with _in_place(output) as draft:
        exchanges = _written(draft, paths, runs, now)
    return Merged(len(runs), exchanges, len(found) - len(runs))


def _runs(path: Path) -> list[_Run]:
    with reading(path) as connection:
        found = connection.execute("SELECT id, name, created_at FROM runs ORDER BY created_at, rowid")
        return [_Run(run_id, name, at, path) for run_id, name, at in found]


def _once(found: Sequence[_Run]) -> Iterator[_Run]:
    """Each run once, with a name if any of its copies has one."""
    copies: dict[str, list[_Run]] = {}
    for run in found:
        copies.setdefault(run.id, []).append(run)
    for first, *others in copies.values():
        content = _digest(first) if others else ""
        for other in others:
            if _digest(other) != content:
                raise LogError(
                    f"{other.log}: run {other.id} is not the same as in {first.log}: take only the log in "
                    "which it is complete, or delete it from the other (`wildproxy log runs delete`)"
                )
        names = [run.name for run in (first, *others) if run.name is not None]
        yield _Run(first.id, names[0] if names else None, first.created_at, first.log)


def _digest(run: _Run) -> str:
    """Of all that a log has of a run, but for its name and what only counts writes."""
    hasher = hashlib.sha256()
    with reading(run.log) as connection:
        for table, which in _TABLES.items():
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names = [it["name"] for it in columns if it["name"] not in ("seq", "arrival")]
            key = ", ".join(it["name"] for it in sorted(columns, key=lambda it: it["pk"]) if it["pk"])
            taken = [name for name in names if (table, name) != ("runs", "name")]
            where = which.format(source="main")
            sql = f"SELECT {', '.join(taken)} FROM {table} WHERE {where} ORDER BY {key}"
            for row in connection.execute(sql, {"run": run.id}):
                hasher.update(repr((table, *row)).encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()


def _check_names(runs: Sequence[_Run]) -> None:
    called: dict[str, _Run] = {}
    for run in runs:
        for word in {run.id, run.name} - {None}:
            other = called.setdefault(str(word), run)
            if other is not run:
                raise LogError(
                    f"{run.log}: its run {run.id} and {other.id} of {other.log} are both called {word!r}: "
                    "rename one of them (`wildproxy log runs rename`)"
                )


@contextmanager
def _in_place(output: Path) -> Iterator[Path]:
    """A file to write to, which is at `output` once all went well, and gone else."""
    draft = output.with_name(f".{output.name}.{os.getpid()}.merging")
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(draft, output)
        except FileExistsError:
            raise LogError(f"{output}: was made by another program meanwhile: give another name") from None
    except (OSError, sqlite3.Error) as error:
        raise LogError(f"{output}: cannot be made ({error})") from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def _written(draft: Path, paths: Sequence[Path], runs: Sequence[_Run], now: Callable[[], float]) -> int:
    """How many exchanges the new log has."""
    open_for_writing(draft, now=now).close()
    with closing(sqlite3.connect(draft.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
        # Until it is whole, nobody needs it.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")
        for path in paths:
            with _attached(connection, path):
                _copy_contents(connection, path)
        seq = 0
        for run in runs:
            with _attached(connection, run.log):
                seq = _copy_run(connection, run, seq)
        for path in paths:
            with _attached(connection, path):
                seq = _copy_stray(connection, seq)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'seq'", (seq,))
        if (broken := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
            raise LogError(
                f"{', '.join(map(str, paths))}: something that a row of {broken[0]} refers to is missing: "
                "a log is damaged, or was written to meanwhile"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        return int(connection.execute("SELECT count(*) FROM exchanges").fetchone()[0])


@contextmanager
def _attached(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """One state of the log at `path`, as `source`."""
    connection.execute("ATTACH ? AS source", (read_only_uri(path),))
    try:
        connection.execute("BEGIN")
        yield
        connection.execute("COMMIT")
    finally:
        with suppress(sqlite3.Error):  # it follows another error
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute("DETACH source")


def _copy_contents(connection: sqlite3.Connection, path: Path) -> None:
    for table, column in _CONTENTS.items():
        differs = connection.execute(
            f"""SELECT hash FROM source.{table} AS theirs JOIN main.{table} AS ours USING (hash)
            WHERE theirs.{column} IS NOT ours.{column} LIMIT 1"""
        ).fetchone()
        if differs is not None:
            raise LogError(
                f"{path}: is damaged: {table} {differs[0]} is not what another log has by this hash"
            )
        names = ", ".join(_columns(connection, table))
        connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) SELECT {names} FROM source.{table}")
    for key, least in (("created_at", "min"), ("started_at", "max")):
        connection.execute(
            f"""INSERT OR REPLACE INTO meta SELECT key, {least}(value) FROM
            (SELECT * FROM source.meta WHERE key = :key UNION ALL SELECT * FROM main.meta WHERE key = :key)
            GROUP BY key""",
            {"key": key},
        )


def _copy_run(connection: sqlite3.Connection, run: _Run, seq: int) -> int:
    """The last `seq` that was given."""
    values = {"run": run.id}
    bounds = " UNION ALL ".join(
        f"SELECT min({'arrival' if table == 'exchanges' else 'seq'}) AS low, max(seq) AS high "
        f"FROM source.{table} WHERE {_TABLES[table].format(source='source')}"
        for table in _COUNTED
    )
    low, high = connection.execute(f"SELECT min(low), max(high) FROM ({bounds})", values).fetchone()
    shift = 0 if low is None else seq + 1 - low
    for table, which in _TABLES.items():
        try:
            _copy(connection, table, which.format(source="source"), {**values, "shift": shift})
        except sqlite3.IntegrityError as error:
            raise LogError(
                f"{run.log}: run {run.id} has ids in {table} that another run has too ({error}): "
                "it cannot be in a log with that one"
            ) from error
    connection.execute("UPDATE runs SET name = ? WHERE id = ?", (run.name, run.id))
    return seq if high is None else int(high + shift)


def _copy_stray(connection: sqlite3.Connection, seq: int) -> int:
    """The last `seq` that was given."""
    bounds = f"SELECT min(arrival), max(seq) FROM source.exchanges WHERE {_STRAY}"
    low, high = connection.execute(bounds).fetchone()
    if low is None:
        return seq
    _copy(connection, "exchanges", _STRAY, {"shift": seq + 1 - low})
    return int(high + seq + 1 - low)


def _copy(connection: sqlite3.Connection, table: str, which: str, values: dict[str, object]) -> None:
    names = _columns(connection, table)
    taken = [f"{name} + :shift" if name in ("seq", "arrival") else name for name in names]
    connection.execute(
        f"""INSERT INTO {table} ({", ".join(names)})
        SELECT {", ".join(taken)} FROM source.{table} WHERE {which}""",
        values,
    )


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
