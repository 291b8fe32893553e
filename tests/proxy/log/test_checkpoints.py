from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from proxy.log.checkpoints import TOO_LONG, Checkpoints

LONG = 64 * 1024
ENOUGH = 20_000
"""Commits in which a checkpoint is bound to happen."""


class Written:
    """A table that is written to under the eyes of `checkpoints`, row by row."""

    def __init__(self, path: Path, checkpoints: Checkpoints, connection: sqlite3.Connection) -> None:
        self.path = path
        self.rows = 0
        self._wal = path.with_name(path.name + "-wal")
        self._checkpoints = checkpoints
        self._connection = connection

    @property
    def size(self) -> int:
        return self._wal.stat().st_size

    def write(self) -> None:
        with self._checkpoints.gate:
            self._connection.execute("INSERT INTO t VALUES (zeroblob(3000))")
        self._checkpoints.wrote()
        self.rows += 1


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in ("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t (x)"):
            connection.execute(sql)
        checkpoints = Checkpoints(path, LONG)
        yield Written(path, checkpoints, connection)
        checkpoints.close()


def rows(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])


def test_the_write_ahead_log_begins_anew_although_somebody_always_writes(written: Written) -> None:
    for _ in range(3):
        while written.size < TOO_LONG * LONG:
            written.write()
        long = written.size
        while written.size >= long and written.rows < ENOUGH:
            written.write()
            long = max(long, written.size)
        assert written.size < long
    with closing(sqlite3.connect(written.path)) as reader:
        assert rows(reader) == written.rows


def test_a_reader_that_stays_keeps_its_state_and_holds_nobody_up(written: Written) -> None:
    written.write()
    with closing(sqlite3.connect(written.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert rows(reader) == 1
        while written.size < 3 * TOO_LONG * LONG:
            written.write()
        assert rows(reader) == 1
        reader.execute("COMMIT")
        assert rows(reader) == written.rows
    long = written.size
    while written.size >= long and written.rows < ENOUGH:
        written.write()
        long = max(long, written.size)
    assert written.size < long


def test_readers_that_take_turns_for_ever_do_not_keep_the_log_long(written: Written) -> None:
    done = threading.Event()

    def read() -> None:
        with ExitStack() as stack:
            readers = [
                stack.enter_context(closing(sqlite3.connect(written.path, isolation_level=None)))
                for _ in range(2)
            ]
            for turn in count():
                readers[turn % 2].execute("BEGIN")
                rows(readers[turn % 2])
                if turn:
                    readers[1 - turn % 2].execute("COMMIT")
                if done.is_set():
                    return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        long = written.size
        while written.size >= long and written.rows < ENOUGH:
            written.write()
            long = max(long, written.size)
        assert written.size < long
    finally:
        done.set()
        thread.join()


def test_closing_twice_or_with_nothing_written_ends_the_thread(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "none.db")
    checkpoints.wrote()
    checkpoints.close()
    checkpoints.close()
    assert list(tmp_path.iterdir()) == []
