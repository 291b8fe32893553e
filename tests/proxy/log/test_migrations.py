from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import pytest
from sqlite_utils import Database
from support import logs

from proxy.log.answers import DICTIONARY
from proxy.log.database import BUSY_SECONDS, open_for_writing, reading
from proxy.log.errors import LogError
from proxy.log.migrations import MIGRATIONS, migrate, version_of
from proxy.log.restore import read_history
from proxy.log.writer import LogWriter
from scoring.logs.opening import APPLICATION, SCHEMA_VERSION

ROOT = Path(__file__).resolve().parents[3]


def clock() -> float:
    return 12.5


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))


def test_a_new_log_has_the_newest_schema_in_wal_mode(tmp_path: Path) -> None:
    with closing(open_for_writing(tmp_path / "log.db", now=clock)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (BUSY_SECONDS * 1000,)
        assert dict(connection.execute("SELECT * FROM meta")) == {
            "application": APPLICATION,
            "schema_version": len(MIGRATIONS),
            "seq": 0,
            "created_at": 12.5,
            "answer_dictionary": DICTIONARY,
        }


def test_a_new_log_is_what_the_steps_make_of_nothing(tmp_path: Path) -> None:
    with (
        closing(open_for_writing(tmp_path / "log.db", now=clock)) as made,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated,
    ):
        migrate(migrated, clock)
        assert dumped(made) == dumped(migrated)


def dumped(connection: sqlite3.Connection) -> set[str]:
    """Without quotes of names: sqlite-utils has changed which it makes."""
    return {re.sub(r'["\[\]]', "", statement) for statement in connection.iterdump()}


def test_no_library_is_loaded_to_make_a_log(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from proxy.log.database import open_for_writing\n"
        "for _ in range(2): open_for_writing(pathlib.Path(sys.argv[1]), now=lambda: 1.0).close()\n"
        "print('sqlite_utils' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log.db")]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert made.stdout == "False\n"


def test_two_programs_may_make_a_log_at_once(tmp_path: Path) -> None:
    path, gate = tmp_path / "log.db", threading.Barrier(8)

    def make(_: int) -> int | None:
        gate.wait()
        with closing(open_for_writing(path, now=clock)) as connection:
            return version_of(connection)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(make, range(8))) == {len(MIGRATIONS)}


def test_the_scorer_reads_the_newest_schema() -> None:
    assert len(MIGRATIONS) == SCHEMA_VERSION


def test_an_empty_file_becomes_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()

    with closing(open_for_writing(path, now=clock)) as connection:
        assert version_of(connection) == len(MIGRATIONS)


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter.open(path, now=clock) as writer:
        writer.commit_blocking(*logs.opened())
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())

    open_for_writing(path, now=lambda: 99.0).close()

    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


def test_every_step_runs_once_and_in_order() -> None:
    ran = []

    def step(name: str) -> Callable[[Database], None]:
        return lambda db: ran.append(name)

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, clock, (step("one"), step("two")))
        migrate(connection, clock, (step("one"), step("two"), step("three")))

        assert ran == ["one", "two", "three"]
        assert version_of(connection) == 3


def test_a_step_that_fails_leaves_the_version_before_it() -> None:
    def good(db: Database) -> None:
        db.execute("CREATE TABLE good (x)")

    def bad(db: Database) -> None:
        db.execute("CREATE TABLE half (x)")
        db.execute("CREATE TABLE good (x)")

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, clock, (good, bad))

        assert version_of(connection) == 1
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        assert names == {"meta", "good"}


def test_a_log_from_version_0_is_migrated_by_the_writer_and_refused_by_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, clock, ())
    with (
        pytest.raises(LogError, match=r"has schema 0, .*: run `wildproxy log migrate .*log.db`"),
        reading(path),
    ):
        pass

    LogWriter.open(path).close()

    with reading(path) as connection:
        assert version_of(connection) == len(MIGRATIONS)


def test_a_log_of_a_newer_version_is_refused_by_both(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    LogWriter.open(path).close()
    set_version(path, 99)

    with pytest.raises(LogError, match=r"newer version .*schema 99.*: upgrade wildtoolbench-proxy$"):
        LogWriter.open(path)
    with pytest.raises(LogError, match=r"has schema 99.*: upgrade wildtoolbench-proxy$"), reading(path):
        pass


def test_what_is_not_a_log_is_refused_in_one_line_and_left_as_it_was(tmp_path: Path) -> None:
    text, foreign, folder = tmp_path / "notes.txt", tmp_path / "other.db", tmp_path / "folder"
    text.write_text("these are my notes, not a database at all\n" * 10)
    folder.mkdir()
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE meta (a, b)")
    before = {path: path.read_bytes() for path in (text, foreign)}

    for path, words in (
        (text, "is not a SQLite database"),
        (foreign, "is a SQLite database, but not a log"),
        (folder, "is a folder"),
        (tmp_path / "missing" / "log.db", "does not exist"),
        (text / "log.db", "does not exist"),
    ):
        with pytest.raises(LogError, match=words) as caught:
            LogWriter.open(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
    assert {path: path.read_bytes() for path in (text, foreign)} == before
    assert {entry.name for entry in tmp_path.iterdir()} == {"notes.txt", "other.db", "folder"}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_log_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    LogWriter.open(path).close()
    path.chmod(0o444)

    with pytest.raises(LogError, match="is read-only"):
        LogWriter.open(path)


def test_a_place_where_nothing_can_be_made_is_refused() -> None:
    with pytest.raises(LogError, match=r"^/dev/null/log.db: "):
        LogWriter.open("/dev/null/log.db")
    with pytest.raises(LogError, match=r"^/proc/log.db: "):
        LogWriter.open("/proc/log.db")


def test_migrating_a_missing_log_makes_none(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such log"):
        open_for_writing(tmp_path / "log.db", now=clock, must_exist=True)

    assert list(tmp_path.iterdir()) == []


def test_reading_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with pytest.raises(LogError, match="no such log"), reading(path):
        pass
    assert list(tmp_path.iterdir()) == []

    LogWriter.open(path).close()
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_log_that_is_written_to_while_it_is_read_at_rest_is_not_taken_for_one_state(
    tmp_path: Path, goes_on: bool
) -> None:
    path = tmp_path / "log.db"
    LogWriter.open(path).close()
    found = nullcontext() if goes_on else pytest.raises(LogError, match="was written to while it was read")
    with ExitStack() as stack, found, reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0
        writer = stack.enter_context(LogWriter.open(path))
        writer.commit_blocking(logs.run("r1"))
        if not goes_on:
            stack.close()  # what was beside the file is moved into it
        else:
            assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0


def test_a_log_in_use_is_read_in_one_state_whatever_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter.open(path) as writer, reading(path) as connection:
        for number in range(3):
            writer.commit_blocking(logs.run(f"r{number}"))
            assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter.open(path), pytest.raises(LogError, match="read-only"), reading(path) as connection:
        connection.execute("DELETE FROM meta")


def test_a_run_is_renamed_and_deleted_with_all_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter.open(path) as writer:
        rows = (logs.turn(), logs.start(), logs.start("x2", None, run_id="r1"), logs.step(), logs.end())
        writer.commit_blocking(*logs.opened(), *rows)

    with closing(open_for_writing(path, now=clock)) as connection:
        connection.execute("UPDATE runs SET id = 'better'")
        assert connection.execute("SELECT DISTINCT run_id FROM exchanges").fetchall() == [("better",)]
        connection.execute("DELETE FROM runs")
        for table in ("sessions", "turns", "tasks", "exchanges", "steps", "tool_calls"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_histories_and_messages_outlast_the_migration_of_an_older_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, clock, MIGRATIONS[:4])
        connection.execute("""INSERT INTO messages VALUES ('m1', '"one"'), ('m2', '"two"')""")
        connection.execute("INSERT INTO chains VALUES ('c2', 'c1', 'm2', 1), ('c1', NULL, 'm1', 0)")
        connection.execute(
            """INSERT INTO exchanges (id, seq, arrival, side, method, path, started_at, finish_state, stream,
            request_sha256, request_headers, changes, tip) VALUES
            ('x1', 1, 1, 'agent', 'POST', '/', 1.0, 'complete', 0, '', '{}', '[]', 'c2')"""
        )

    with closing(open_for_writing(path, now=clock)) as connection:
        assert version_of(connection) == len(MIGRATIONS)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    with reading(path) as connection:
        assert read_history(connection, "c2") == ["one", "two"]
    made = tmp_path / "new.db"
    LogWriter.open(made).close()
    schema = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name"
    assert logs.query(path, schema) == logs.query(made, schema)
