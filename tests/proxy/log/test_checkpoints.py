from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from proxy.log.checkpoints import TOO_LONG, Checkpoints, has_frames

LONG = 16
FRAME = 24 + 4096
ENOUGH_S = 30.0
"""In which a checkpoint is bound to happen, however busy the machine is."""
PAUSE_S = 0.0005
"""Between two commits, that a file in memory does not outrun every other thread."""


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

    def write_frames(self, count: int) -> None:
        """Each row is a frame at least."""
        while self.size < count * FRAME:
            self.write()

    def begins_anew(self) -> bool:
        """Writes on until the file holds less than what was written since it grew last."""
        size, since = self.size, self.rows
        ends, never = time.monotonic() + ENOUGH_S, threading.Event()
        while time.monotonic() < ends:
            self.write()
            never.wait(PAUSE_S)
            if self.size > size:
                size, since = self.size, self.rows
            if (self.rows - since) * FRAME > size:
                return True
        return False


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
    written.write_frames(TOO_LONG * LONG)
    assert written.begins_anew()
    with closing(sqlite3.connect(written.path)) as reader:
        assert rows(reader) == written.rows


def test_a_reader_that_stays_keeps_its_state_and_holds_nobody_up(written: Written) -> None:
    written.write()
    with closing(sqlite3.connect(written.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert rows(reader) == 1
        written.write_frames(3 * TOO_LONG * LONG)
        assert rows(reader) == 1
        reader.execute("COMMIT")
        assert rows(reader) == written.rows
    assert written.begins_anew()


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
                readers[turn % 2].execute("SELECT max(rowid) FROM t").fetchone()
                if turn:
                    readers[1 - turn % 2].execute("COMMIT")
                if done.is_set():
                    return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert written.begins_anew()
    finally:
        done.set()
        thread.join()


def test_closing_twice_or_with_nothing_written_ends_the_thread(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "none.db")
    checkpoints.wrote()
    checkpoints.close()
    checkpoints.close()
    assert list(tmp_path.iterdir()) == []


def test_frames_of_an_earlier_time_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    assert not has_frames(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in ("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE t (x)"):
            connection.execute(sql)
        for _ in range(9):
            connection.execute("INSERT INTO t VALUES (zeroblob(3000))")
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert [has_frames(path, frames + more) for more in (-1, 0, 1)] == [True, True, False]
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (1)")
        assert [has_frames(path, count) for count in (1, frames)] == [True, False]
