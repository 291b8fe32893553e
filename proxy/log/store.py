"""Rows to SQL. Used by the writer thread alone; nothing here knows of threads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from proxy.log import rows
from proxy.log import statements as sql
from proxy.log.answers import ANSWER_DICTIONARY, pack
from proxy.log.chains import json_text
from proxy.log.contents import Contents
from proxy.log.errors import LogError
from proxy.log.stored_text import StoredText

WAL_LIMIT = 64 * 2**20
"""Bytes that the file of the write-ahead log keeps when it begins anew, after a reader made it longer."""

Group = tuple[Sequence[rows.Row], tuple[str, ...]]
"""Rows that are written all or none, and the secrets to mask in them, as `redaction.forms` gives them."""

_BAD_ROW = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    TypeError,
    ValueError,
)
"""Errors that a row's values cause. Other errors of SQLite are the file's or the disk's."""


class RowError(Exception):
    """A row that cannot be: a key used twice, a finish without a start, a value without a form."""


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path means; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Store:
    """Writes rows into an open log, a transaction at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._execute("PRAGMA wal_autocheckpoint = 0")  # see `checkpoints`
        self._execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        self._path = path.absolute()
        self._file = _identity(self._path)
        self._text = StoredText()
        self._contents = Contents(connection.execute, self._text.evidence)
        self._dictionary = connection.execute(ANSWER_DICTIONARY).fetchone()[0].encode()
        self._data_version = -1
        self._seq = 0
        self._writers: dict[type, Callable[[Any], None]] = {
            rows.RunRow: self._run,
            rows.StartRow: self._started,
            rows.ScenarioRow: self._scenario,
            rows.SessionRow: self._session,
            rows.TurnRow: self._turn,
            rows.PlannedRow: self._planned,
            rows.TurnBegunRow: self._turn_begun,
            rows.TaskEndRow: self._task_end,
            rows.ExchangeStart: self._start,
            rows.ExchangeFinish: self._finish,
            rows.ExchangeDelivered: self._delivered,
            rows.StepRow: self._step,
            rows.HandoverRow: self._handover,
            rows.HandoverDoneRow: self._handover_done,
        }

    def transact(self, groups: Sequence[Group]) -> list[RowError | None]:
        """Write the groups, and commit. For each, what was wrong with its rows: these, and only these,
        are left out.

        Savepoints, which cost a quarter of what the statements do, are only made once a row was bad.
        """
        try:
            self._begin()
            for new, secrets in groups:
                self._write(new, secrets)
        except (RowError, *_BAD_ROW):
            self.rollback()
            return self._one_by_one(groups)
        self._commit()
        return [None] * len(groups)

    def rollback(self) -> None:
        self._contents.forget()
        self._data_version = -1
        with contextlib.suppress(sqlite3.Error):  # it follows another error, which is the one to report
            if self._connection.in_transaction:
                self._execute("ROLLBACK")

    def close(self) -> None:
        """Move everything into the main file and close. The side files go away with the last user."""
        try:
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._connection.close()

    def _one_by_one(self, groups: Sequence[Group]) -> list[RowError | None]:
        errors: list[RowError | None] = []
        self._begin()
        for new, secrets in groups:
            self._contents.begin()
            self._execute("SAVEPOINT one")
            try:
                self._write(new, secrets)
            except (RowError, *_BAD_ROW) as error:
                self._execute("ROLLBACK TO one")
                self._contents.undo()
                errors.append(error if isinstance(error, RowError) else RowError(str(error)))
            else:
                errors.append(None)
            self._execute("RELEASE one")
        self._commit()
        return errors

    def _begin(self) -> None:
        """Take the write lock. What another process has written since is taken account of."""
        if _identity(self._path) != self._file:
            raise LogError(f"{self._path}: was deleted or replaced while it was written to")
        self._execute("BEGIN IMMEDIATE")
        version = self._execute("PRAGMA data_version").fetchone()[0]
        if version != self._data_version:
            self._contents.forget()
            self._data_version = version
            self._seq = self._execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0]
        self._contents.begin()

    def _write(self, new: Iterable[rows.Row], secrets: tuple[str, ...]) -> None:
        self._text.secrets = secrets
        for row in new:
            try:
                self._writers[type(row)](row)
            except (RowError, *_BAD_ROW) as error:
                raise RowError(f"{type(row).__name__}: {error}") from error

    def _commit(self) -> None:
        self._execute("UPDATE meta SET value = ? WHERE key = 'seq'", (self._seq,))
        self._execute("COMMIT")

    def _put(self, statement: sql.Statement, row: Any, *made: Any) -> int:
        """How many rows of the log that changed."""
        return self._execute(statement.sql, statement.values(row, *made)).rowcount

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _run(self, row: rows.RunRow) -> None:
        self._put(sql.RUN, row, self._text.parameters(row.config), json_text(row.versions))

    def _started(self, row: rows.StartRow) -> None:
        self._put(sql.STARTED, row)

    def _scenario(self, row: rows.ScenarioRow) -> None:
        self._put(sql.SCENARIO, row, json_text(row.record))

    def _session(self, row: rows.SessionRow) -> None:
        self._put(sql.SESSION, row, self._next_seq())

    def _turn(self, row: rows.TurnRow) -> None:
        self._put(sql.TURN, row, self._next_seq())

    def _planned(self, row: rows.PlannedRow) -> None:
        self._put(sql.PLANNED, row)

    def _turn_begun(self, row: rows.TurnBegunRow) -> None:
        said = self._text.evidence(row.message)
        asked = None if row.asked is None else self._text.evidence(row.asked)
        if self._put(sql.BEGUN, row, self._next_seq(), said, asked, json_text(row.thread)) != 1:
            raise RowError(f"no turn {row.turn} of {row.session_id}")

    def _task_end(self, row: rows.TaskEndRow) -> None:
        self._put(sql.TASK, row, self._next_seq(), row.end)

    def _start(self, row: rows.ExchangeStart) -> None:
        seq, text = self._next_seq(), self._text
        body, tools = self._request(row)
        self._put(
            sql.START,
            row,
            seq,
            seq,
            "pending",
            text.text(row.reason),
            text.text(row.path),
            text.text(row.request_model),
            text.headers(row.headers),
            None if row.messages is None else len(row.messages),
            self._contents.history(row.messages or []),
            tools,
            body,
            text.parameters(row.changes),
            text.parameters(row.findings) if row.findings else None,
        )

    def _finish(self, row: rows.ExchangeFinish) -> None:
        text = self._text
        message, said = (None, "") if row.message is None else self._contents.stored(row.message)
        changed = self._put(
            sql.FINISH,
            row,
            self._next_seq(),
            text.text(row.response_id),
            text.text(row.response_model),
            text.parameters(row.finish_reasons),
            _count(row.input_tokens),
            _count(row.output_tokens),
            message,
            text.headers(row.headers),
            None
            if row.raw is None
            else pack(text.raw(row.raw, row.status, row.message, said), self._dictionary + said.encode()),
            text.text(row.error_type),
            text.text(row.error),
        )
        if changed != 1:
            raise RowError(f"no pending exchange {row.id}")

    def _delivered(self, row: rows.ExchangeDelivered) -> None:
        if self._put(sql.DELIVERED, row, self._next_seq()) != 1:
            raise RowError(f"no exchange {row.id}")

    def _step(self, row: rows.StepRow) -> None:
        reason, nodes = self._text.evidence_text(row.reason), json_text(row.nodes)
        self._put(sql.STEP, row, self._next_seq(), reason, nodes, self._contents.message(row.message))
        for call in row.calls:
            evidence = (call.tool_call_id, call.name, call.arguments, call.observation)
            texts = map(self._text.evidence_text, evidence)
            self._put(sql.TOOL_CALL, call, row.session_id, row.task, row.step, *texts)

    def _handover(self, row: rows.HandoverRow) -> None:
        self._put(sql.HANDOVER, row, self._text.evidence(row.message), json_text(row.aliases), None, None)

    def _handover_done(self, row: rows.HandoverDoneRow) -> None:
        self._put(sql.HANDOVER_DONE, row, self._text.evidence(row.results), json_text(row.thread))

    def _request(self, row: rows.ExchangeStart) -> tuple[str | None, str | None]:
        """A request's parameters as JSON, and the hash of its tools."""
        if row.body is None:
            return None, None
        body = dict(row.body)
        if row.messages is not None:
            body.pop("messages", None)
        tools = None
        if isinstance(body.get("tools"), list):
            tools = self._contents.tools(body.pop("tools"))
        return self._text.parameters(body), tools


def _count(value: object) -> int | None:
    """A token count, if that is what the provider sent."""
    return value if isinstance(value, int) and 0 <= value < 2**63 else None
