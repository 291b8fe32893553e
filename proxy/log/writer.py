"""The one way into the log: a thread that owns the write connection.

Callers hand rows over and go on, or wait until they are committed; neither can be
interrupted half-way by a cancellation. The thread writes all that has come in meanwhile as
one transaction (group commit). A committed row survives the death of the process; against
a power cut, SQLite's `synchronous=NORMAL` keeps the file whole but may lose the last rows.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from proxy.log.checkpoints import Checkpoints
from proxy.log.database import open_for_writing
from proxy.log.errors import LogError
from proxy.log.redaction import PLACEHOLDER, forms
from proxy.log.rows import Row
from proxy.log.store import RowError, Store

SECRETS_LIMIT = 256
"""Secrets looked for in what is written: an agent that sends ever new keys must not slow the log."""

__all__ = ["LogError", "LogWriter"]

Waiter = Callable[[LogError | None], None]


@dataclass(frozen=True, slots=True)
class _Call:
    """The rows of one call: written all in one transaction, or not at all."""

    rows: tuple[Row, ...]
    secrets: tuple[str, ...]
    waiter: Waiter | None = None


class LogWriter:
    """Writes rows to a log. May be used from any thread and any event loop.

    After a row could not be written and nobody was told, or after SQLite failed (disk
    full), the writer is `failed`: every further call raises LogError, because traffic
    must not go on unrecorded.
    """

    def __init__(self, path: Path, store: Store) -> None:
        self.path = path
        self._store = store
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._failure: LogError | None = None
        self._secrets: tuple[str, ...] = ()
        self._forms: tuple[str, ...] = ()
        self._checkpoints = Checkpoints(path)
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, now: Callable[[], float] = time.time) -> LogWriter:
        """Make the log, or open it and bring its schema up to date. Raises LogError."""
        path = Path(path)
        return cls(path, Store(open_for_writing(path, now=now)))

    @property
    def failed(self) -> LogError | None:
        """Why nothing can be written any more; None while all is well."""
        return self._failure

    def hide(self, secret: str) -> None:
        """Mask this key or token in whatever is handed over from now on. Call it at each use."""
        if not secret or secret.startswith(PLACEHOLDER):
            return
        with self._gate:
            if secret not in self._secrets[-1:]:
                others = (known for known in self._secrets if known != secret)
                self._secrets = (*others, secret)[-SECRETS_LIMIT:]
                self._forms = forms(self._secrets)

    def put(self, *rows: Row) -> None:
        """Hand rows over, without waiting. Raises LogError if the log is closed or has failed.

        They are turned into text later, in the writer's thread: what they hold must not
        be changed any more.
        """
        self._hand_over(rows, None)

    async def commit(self, *rows: Row) -> None:
        """Hand rows over and wait until they, and all handed over before, are committed.

        Raises LogError if these rows were not written. A cancelled caller does not take
        its rows back.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def tell(error: LogError | None) -> None:
            try:
                loop.call_soon_threadsafe(_settle, future, error)
            except RuntimeError:
                return  # the loop was closed: nobody waits any more

        self._hand_over(rows, tell)
        await future

    def commit_blocking(self, *rows: Row) -> None:
        """As `commit`, for callers without an event loop."""
        future: Future[None] = Future()
        self._hand_over(rows, lambda error: _settle(future, error))
        future.result()

    def close(self) -> None:
        """Write what was handed over, then close the file. Raises LogError if rows were lost."""
        with self._gate:
            first, self._closed = not self._closed, True
            if first:
                self._queue.put(None)
        self._thread.join()
        if first and self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except LogError:
            if error is None:
                raise

    def _hand_over(self, rows: tuple[Row, ...], waiter: Waiter | None) -> None:
        with self._gate:
            if self._failure is not None:
                raise LogError(str(self._failure))
            if self._closed:
                raise LogError(f"{self.path}: the log is closed")
            self._queue.put(_Call(rows, self._forms, waiter))

    def _work(self) -> None:
        """The thread: one transaction for all that is there, until told to stop."""
        running = True
        while running:
            taken = [self._queue.get(), *(self._queue.get() for _ in range(self._queue.qsize()))]
            calls = [call for call in taken if call is not None]
            running = len(calls) == len(taken)
            if calls:
                self._write(calls)
        self._checkpoints.close()
        try:
            self._store.close()
        except Exception as error:
            self._fail(error)

    def _write(self, calls: Sequence[_Call]) -> None:
        if self._failure is not None:
            _tell(calls, [self._failure] * len(calls))
            return
        try:
            errors = self._transact(calls)
        except Exception as error:  # whatever it was, the callers must know that nothing was written
            failure = self._fail(error)
            self._store.rollback()
            _tell(calls, [failure] * len(calls))
            return
        for call, row_error in zip(calls, errors, strict=True):
            if row_error is not None and call.waiter is None:
                self._fail(row_error)
        _tell(calls, errors)

    def _transact(self, calls: Sequence[_Call]) -> list[LogError | None]:
        """Write the calls. For each, what was wrong with its rows: these, and only these, are left out."""
        with self._checkpoints.gate:
            errors = self._store.transact([(call.rows, call.secrets) for call in calls])
        self._checkpoints.wrote()
        return [None if it is None else self._refusal(it) for it in errors]

    def _refusal(self, error: RowError) -> LogError:
        return LogError(f"{self.path}: a row was refused: {error}")

    def _fail(self, error: Exception) -> LogError:
        failure = error if isinstance(error, LogError) else self._failure_of(error)
        with self._gate:
            self._failure = self._failure or failure
        return failure

    def _failure_of(self, error: Exception) -> LogError:
        failure = LogError(f"{self.path}: cannot be written ({type(error).__name__}: {error})")
        failure.__cause__ = error
        return failure


def _tell(calls: Sequence[_Call], errors: Sequence[LogError | None]) -> None:
    for call, error in zip(calls, errors, strict=True):
        if call.waiter is not None:
            call.waiter(error)


def _settle(future: asyncio.Future[None] | Future[None], error: LogError | None) -> None:
    if future.done():
        return  # the caller was cancelled
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
