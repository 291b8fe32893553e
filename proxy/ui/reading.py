"""Reading the log for a page: never in the event loop's thread, never more than one state of it for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.log.database import reading


@contextmanager
def reader(log: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection in autocommit mode. Raises LogError, also for an error of SQLite inside.

    Halves of surrogate pairs, which JSON can hold and UTF-8 cannot, come out as U+FFFD.
    """
    with reading(log) as connection:
        connection.execute("COMMIT")
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        yield connection
