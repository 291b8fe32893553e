"""Moving what the write-ahead log holds into the main file, beside the writer and not in its way.

SQLite does it within the commit that makes the log long enough, which then takes milliseconds. Here a
thread with a connection of its own does it: first all that can be moved while the writer goes on; then,
should the log be long all the same because there is always more, what is left, between two transactions
of the writer, so that the next one begins the log anew. Readers are never in the way of the first. The
second cannot be done while one reads what is in the log; it is tried again and again, and only where readers
take turns for long are they waited for: a moment, in which those that begin read the main file alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

LONG = 4 * 2**20
"""Bytes of write-ahead log that are worth moving."""
TOO_LONG = 4
"""How many times that long the log must begin anew, if no reader is in the way."""
FAR_TOO_LONG = 16
"""How many times that long readers are waited for; and again when it has doubled, should one stay."""
PATIENCE_MS = 200
PAUSE = 0.1
"""Seconds between two looks at the log."""


class Checkpoints:
    """Keeps the write-ahead log of the database at `path` short: a few times `long` bytes.

    `gate` is to be held in each transaction, and `wrote` to be called after it.
    """

    def __init__(self, path: Path, long: int = LONG) -> None:
        self.gate = threading.Lock()
        self._long = long
        self._wait_at = FAR_TOO_LONG * long
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
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
                if self._size() >= self._long:
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
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        size = self._size()
        if size < TOO_LONG * self._long:
            return
        waits = size >= self._wait_at
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS if waits else 0}")
        with self.gate:
            is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not is_busy:
            self._wait_at = FAR_TOO_LONG * self._long
        elif waits:
            self._wait_at = 2 * size

    def _size(self) -> int:
        try:
            return os.stat(self._wal).st_size
        except OSError:
            return 0
