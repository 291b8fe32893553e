"""Moving what the write-ahead log holds into the main file, beside the writer and not in its way.

SQLite does it within the commit that makes the log long enough, which then takes milliseconds. Here a
thread with a connection of its own does it: first all that can be moved while the writer goes on; then,
should the log be long all the same because there is always more, what is left, between two transactions
of the writer, so that the next one begins the log anew. Readers are never in the way of the first. The
second cannot be done while one reads what is in the log. So they are waited for, a moment in which those that
begin read the main file alone; if one stays, it is tried again when the log has grown as much again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

LONG = 1024
"""Frames of write-ahead log, of a page each, that are worth moving: 4 MB."""
TOO_LONG = 4
"""How many times that long the log must begin anew."""
FEW, ROUNDS = 250, 5
"""Frames that may be left for the moment in which the writer stands still, and in how many rounds at most."""
PATIENCE_MS = (20, 200)
"""How long readers are waited for: at first, and at most, after it was in vain."""
PAUSE = 0.1
"""Seconds between two looks at the log."""

_HEAD, _FRAME_HEAD, _PAGE = 32, 24, 4096


class Gate:
    """A lock that two threads have in turn: one that takes it again at once does not get before the other."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._turn:
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Checkpoints:
    """Keeps the write-ahead log of the database at `path` short: a few times `long` frames.

    `gate` is to be held in each transaction, and `wrote` to be called after it.
    """

    def __init__(self, path: Path, long: int = LONG) -> None:
        self.gate = Gate()
        self._long = long
        self._too_long = TOO_LONG * long
        self._patience = PATIENCE_MS[0]
        self._path = path
        self._written = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log-checkpoints", daemon=True)
        self._thread.start()

    def wrote(self) -> None:
        self._written.set()

    def close(self) -> None:
        self._closed.set()
        self._written.set()
        self._thread.join()

    def _work(self) -> None:
        """Whatever goes wrong here goes wrong for the writer too, or does no harm: it is its to tell."""
        connection: sqlite3.Connection | None = None
        try:
            while not self._closed.is_set():
                self._written.wait()
                self._written.clear()
                if has_frames(self._path, self._long):
                    with contextlib.suppress(sqlite3.Error):
                        connection = connection or self._connect()
                        self._move(connection)
                self._closed.wait(PAUSE)
        finally:
            if connection is not None:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path.resolve().as_uri() + "?mode=rw", uri=True, timeout=0)

    def _move(self, connection: sqlite3.Connection) -> None:
        for _ in range(ROUNDS):
            _, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if frames - moved < FEW:
                break
        if frames < self._too_long:
            return
        connection.execute(f"PRAGMA busy_timeout = {self._patience}")
        with self.gate:
            is_busy = connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0]
        least, most = PATIENCE_MS
        self._too_long = TOO_LONG * self._long + (frames if is_busy else 0)
        self._patience = min(2 * self._patience, most) if is_busy else least


def has_frames(path: Path, count: int) -> bool:
    """Whether the write-ahead log of a database with pages of 4 KB holds so many frames or more.

    Its file is not made shorter when it begins anew: a frame is of this time if it has the salt in the
    file's head (https://sqlite.org/fileformat2.html#walformat).
    """
    try:
        with path.with_name(path.name + "-wal").open("rb", buffering=0) as file:
            salt = file.read(_HEAD)[16:24]
            file.seek(_HEAD + (count - 1) * (_FRAME_HEAD + _PAGE))
            return file.read(_FRAME_HEAD)[8:16] == salt != b""
    except OSError:
        return False
