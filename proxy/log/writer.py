"""The one way into the log: a thread that owns the write connection.

Callers hand rows over and go on, or wait until they are committed; neither can be
interrupted half-way by a cancellation. The thread writes all that has come in meanwhile as
one transaction (group commit). A committed row survives the death of the process; against
a power cut, SQLite's `synchronous=NORMAL` keeps the file whole but may lose the last rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

from proxy.log.checkpoints import Checkpoints
from proxy.log.database import open_for_writing
from proxy.log.errors import LogError
from proxy.log.redaction import PLACEHOLDER, forms
from proxy.log.rows import Row
from proxy.log.store import RowError, Store
from proxy.log.waiting import Call, Waiter, tell

SECRETS_LIMIT = 128
"""Agents' keys looked for in whatever is written: one that sends ever new ones must not slow the log."""

__all__ = ["LogError", "LogWriter"]


RETRY_S = 5.0
"""How often a log that cannot be written is tried while nobody asks for it."""
LINGER_S = 0.05
"""How long rows that nobody waits for may wait for others, to be written in one transaction with them."""

_REASONS = {
    "disk is full": "the disk is full: make room",
    "is locked": "another program has locked it: let that end",
    "readonly": "it is read-only: give write permission",
}
"""What SQLite's messages mean, and what helps."""

_log = logging.getLogger(__name__)


class LogWriter:
    """Writes rows to a log. May be used from any thread and any event loop.

    While SQLite cannot write (the disk is full, another program has locked the log), the
    writer is `failed`, and whoever waits for rows is told so; their rows are given up. Rows that nobody
    waits for are kept, in their order, since what follows builds upon them. All is tried again with each
    further call, and every RETRY_S seconds.

    After a row that cannot be was handed over and nobody was told, the writer is `failed` for good:
    every further call raises LogError, because traffic must not go on unrecorded.
    """

    def __init__(self, path: Path, store: Store) -> None:
        self.path = path
        self._store = store
        self._gate = threading.Lock()
        self._new: list[Call] = []
        self._asleep = False
        self._hurry = threading.Lock()
        """Held while nobody waits for what is new; letting go of it wakes the thread."""
        self._hurry.acquire()
        self._closed = False
        self._failure: LogError | None = None
        self._lost: LogError | None = None
        self._kept: list[Call] = []
        self._secrets: OrderedDict[str, None] = OrderedDict()
        """The last one used is the last to be forgotten."""
        self._owners: tuple[str, ...] = ()
        self._forms: tuple[str, ...] = ()
        self._checkpoints = Checkpoints(path)
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, now: Callable[[], float] = time.time) -> LogWriter:
        """Make the log, or open it and bring its schema up to date. Raises LogError."""
        path = Path(path)
        return cls(path, Store(open_for_writing(path, now=now), path))

    @property
    def failed(self) -> LogError | None:
        """Why nothing can be written now; None while all is well."""
        return self._lost or self._failure

    def hide(self, secret: str, *, always: bool = False) -> None:
        """Mask this key or token in whatever is handed over from now on. Call it at each use.

        `always`: it is the owner's, and no number of keys that agents send makes it forgotten.
        """
        if not secret or secret.startswith(PLACEHOLDER):
            return
        with self._gate:
            if secret in self._owners:
                return
            if always:
                self._owners = (*self._owners, secret)
            elif secret in self._secrets:
                self._secrets.move_to_end(secret)
                return
            else:
                self._secrets[secret] = None
                if len(self._secrets) > SECRETS_LIMIT:
                    self._secrets.popitem(last=False)
            self._forms = forms((*self._owners, *self._secrets))

    def put(self, *rows: Row) -> None:
        """Hand rows over, without waiting. Raises LogError if the log is closed or has failed for good.

        They are turned into text later, in the writer's thread: what they hold must not
        be changed any more.
        """
        self._hand_over(rows, None)

    async def commit(self, *rows: Row) -> None:
        """Hand rows over and wait until they, and all handed over before, are committed.

        Raises LogError if these rows were not written, and will not be. A cancelled caller does
        not take its rows back.
        """
        future = asyncio.get_running_loop().create_future()
        call = self._hand_over(rows, future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is not None:
                self._take_back(call)  # it was told too late to hear of it
            raise

    def commit_blocking(self, *rows: Row) -> None:
        """As `commit`, for callers without an event loop."""
        future: Future[None] = Future()
        self._hand_over(rows, future)
        future.result()

    def close(self) -> None:
        """Write what was handed over, then close the file. Raises LogError if rows were lost."""
        with self._gate:
            first, self._closed = not self._closed, True
            self._wake()
        self._thread.join()
        if first and (failure := self.failed) is not None:
            raise failure

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

    def _hand_over(self, rows: tuple[Row, ...], waiter: Waiter | None) -> Call:
        with self._gate:
            if self._lost is not None:
                raise LogError(str(self._lost))
            if self._closed:
                raise LogError(f"{self.path}: the log is closed")
            call = Call(rows, self._forms, waiter)
            self._new.append(call)
            if waiter is not None or self._asleep:
                self._wake()
            return call

    def _take_back(self, call: Call) -> None:
        """Rows that were given up, but whose caller was cancelled before it was told."""
        with self._gate:
            self._new.append(call.unawaited)
            self._wake()

    def _wake(self) -> None:
        if self._hurry.locked():
            self._hurry.release()

    def _work(self) -> None:
        """The thread: one transaction for all that is there, until told to stop."""
        closed = False
        while not closed:
            self._wait()
            with self._gate:
                calls, self._new, closed = self._new, [], self._closed
            if calls or self._failure is not None:
                self._write(calls)
        self._checkpoints.close()
        try:
            self._store.close()
        except Exception as error:
            self._fail(error)

    def _wait(self) -> None:
        """Until somebody waits for rows, or rows have lingered, or a failed log is to be tried again.

        Who only hands rows over does not wake the thread, but for the first after a while without any.
        """
        if self._hurry.acquire(timeout=LINGER_S):
            return
        with self._gate:
            self._asleep = not self._new and not self._closed
        if not self._asleep:
            return
        self._hurry.acquire(timeout=-1 if self._failure is None else RETRY_S)
        with self._gate:
            self._asleep = False
            if self._closed or not self._new or any(call.waiter for call in self._new):
                return
        self._hurry.acquire(timeout=LINGER_S)

    def _write(self, new: Sequence[Call]) -> None:
        if self._lost is not None:
            tell(new, [self._lost] * len(new))
            return
        calls = [*self._kept, *new]
        try:
            errors = self._transact(calls)
        except Exception as error:  # whatever it was, the callers must know that nothing was written
            self._store.rollback()
            failure = self._fail(error)
            told, self._kept = [], []
            for call in calls:
                if call.waiter is not None and not call.waiter.cancelled():
                    told.append(call)
                else:
                    self._kept.append(call.unawaited)
            tell(told, [failure] * len(told), self._take_back)
            return
        self._kept = []
        self._mend()
        for call, row_error in zip(calls, errors, strict=True):
            if row_error is not None and call.waiter is None:
                self._lose(row_error)
        tell(calls, errors)

    def _transact(self, calls: Sequence[Call]) -> list[LogError | None]:
        """Write the calls. For each, what was wrong with its rows: these, and only these, are left out."""
        with self._checkpoints.gate:
            errors = self._store.transact([(call.rows, call.secrets) for call in calls])
        self._checkpoints.wrote()
        return [None if it is None else self._refusal(it) for it in errors]

    def _refusal(self, error: RowError) -> LogError:
        return LogError(f"{self.path}: a row was refused: {error}")

    def _fail(self, error: Exception) -> LogError:
        failure = error if isinstance(error, LogError) else self._failure_of(error)
        if self._failure is None:
            _log.error("%s: requests get 503 until it can be written again", failure)
        self._failure = failure
        return failure

    def _mend(self) -> None:
        if self._failure is not None:
            self._failure = None
            _log.warning("%s: is written again, requests are served", self.path)

    def _lose(self, error: LogError) -> None:
        if self._lost is None:
            _log.error("%s: nothing more is recorded, so requests get 503", error)
        with self._gate:
            self._lost = self._lost or error

    def _failure_of(self, error: Exception) -> LogError:
        known = (said for sign, said in _REASONS.items() if sign in str(error))
        reason = next(known, f"{type(error).__name__}: {error}")
        failure = LogError(f"{self.path}: cannot be written ({reason})")
        failure.__cause__ = error
        return failure
