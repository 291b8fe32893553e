"""Rows to SQL. Used by the writer thread alone; nothing here knows of threads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from proxy.log import rows
from proxy.log import statements as sql
from proxy.log.chains import TOO_DEEP, chain, content_hash, json_text, storable
from proxy.log.errors import LogError
from proxy.log.redaction import allowed_headers, mask, mask_bytes, scrub, scrub_bytes, scrub_json
from proxy.log.repeats import Histories, Texts

KNOWN_LIMIT = 200_000
"""Hashes remembered as stored. At 32 characters each, about 20 MB."""


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


def _identity(path: str) -> tuple[int, int] | None:
    """Which file a path means; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Store:
    """Writes rows into an open log: `begin`, any number of `write`, then `commit` or `rollback`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._path = str(connection.execute("PRAGMA database_list").fetchone()[2])
        self._file = _identity(self._path)
        self._known: set[str] = set()
        self._fresh: list[str] = []
        self._histories = Histories()
        self._parameter_texts, self._header_texts, self._tool_lists = Texts(), Texts(), Texts()
        self._data_version = -1
        self._seq = 0
        self._secrets: tuple[str, ...] = ()
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

    def begin(self) -> None:
        """Take the write lock. What another process has written since is taken account of."""
        if _identity(self._path) != self._file:
            raise LogError(f"{self._path}: was deleted or replaced while it was written to")
        self._execute("BEGIN IMMEDIATE")
        version = self._execute("PRAGMA data_version").fetchone()[0]
        if version != self._data_version:
            self._forget()
            self._data_version = version
        self._seq = self._execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0]

    def write(self, new: Iterable[rows.Row], secrets: tuple[str, ...]) -> None:
        """Write these rows, all or none. `secrets` (as `redaction.forms` gives them) are masked.

        Raises RowError; the transaction stays usable then.
        """
        if secrets != self._secrets:  # what is to be masked is another text now
            self._forget_texts()
        self._secrets = secrets
        self._fresh.clear()
        self._execute("SAVEPOINT call")
        try:
            for row in new:
                self._writers[type(row)](row)
        except (RowError, *_BAD_ROW) as error:
            self._execute("ROLLBACK TO call")
            self._execute("RELEASE call")
            self._known.difference_update(self._fresh)
            self._forget_texts()
            raise RowError(f"{type(row).__name__}: {error}") from error
        self._execute("RELEASE call")

    def commit(self) -> None:
        self._execute("UPDATE meta SET value = ? WHERE key = 'seq'", (self._seq,))
        self._execute("COMMIT")

    def rollback(self) -> None:
        self._forget()
        with contextlib.suppress(sqlite3.Error):  # it follows another error, which is the one to report
            if self._connection.in_transaction:
                self._execute("ROLLBACK")

    def close(self) -> None:
        """Move everything into the main file and close. The side files go away with the last user."""
        try:
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._connection.close()

    def _forget(self) -> None:
        """What was stored may be stored no more."""
        self._known.clear()
        self._forget_texts()

    def _forget_texts(self) -> None:
        for repeats in (self._histories, self._parameter_texts, self._header_texts, self._tool_lists):
            repeats.clear()

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _run(self, row: rows.RunRow) -> None:
        values = {**_fields(row), "config": self._parameters(row.config), "versions": json_text(row.versions)}
        self._execute(sql.RUN, values)

    def _started(self, row: rows.StartRow) -> None:
        self._execute(sql.STARTED, _fields(row))

    def _scenario(self, row: rows.ScenarioRow) -> None:
        self._execute(sql.SCENARIO, {**_fields(row), "record": json_text(row.record)})

    def _session(self, row: rows.SessionRow) -> None:
        self._execute(sql.SESSION, {**_fields(row), "seq": self._next_seq()})

    def _turn(self, row: rows.TurnRow) -> None:
        self._execute(sql.TURN, {**_fields(row), "seq": self._next_seq()})

    def _planned(self, row: rows.PlannedRow) -> None:
        self._execute(sql.PLANNED, _fields(row))

    def _turn_begun(self, row: rows.TurnBegunRow) -> None:
        asked = None if row.asked is None else self._json(row.asked)
        texts = {"said": self._json(row.message), "asked": asked, "thread": json_text(row.thread)}
        values = {**_fields(row), "seq": self._next_seq(), **texts}
        if self._execute(sql.BEGUN, values).rowcount != 1:
            raise RowError(f"no turn {row.turn} of {row.session_id}")

    def _task_end(self, row: rows.TaskEndRow) -> None:
        self._execute(sql.TASK, {**_fields(row), "seq": self._next_seq(), "ending": row.end})

    def _start(self, row: rows.ExchangeStart) -> None:
        seq = self._next_seq()
        body, tools = self._request(row)
        own = {
            "seq": seq,
            "arrival": seq,
            "reason": self._text(row.reason),
            "path": self._text(row.path),
            "finish_state": "pending",
            "request_model": self._text(row.request_model),
            "request_headers": self._headers(row.headers),
            "message_count": None if row.messages is None else len(row.messages),
            "tip": self._history(row.messages or []),
            "tools": tools,
            "body": body,
            "changes": self._parameters(row.changes),
            "findings": self._parameters(row.findings) if row.findings else None,
        }
        self._execute(sql.START, {**_fields(row), **own})

    def _finish(self, row: rows.ExchangeFinish) -> None:
        own = {
            "seq": self._next_seq(),
            "response_id": self._text(row.response_id),
            "response_model": self._text(row.response_model),
            "finish_reasons": json_text(row.finish_reasons),
            "input_tokens": _count(row.input_tokens),
            "output_tokens": _count(row.output_tokens),
            "output_message": None if row.message is None else self._message(row.message),
            "response_headers": self._headers(row.headers),
            "raw": self._raw(row),
            "error_type": self._text(row.error_type),
            "error": self._text(row.error),
        }
        if self._execute(sql.FINISH, {**_fields(row), **own}).rowcount != 1:
            raise RowError(f"no pending exchange {row.id}")

    def _delivered(self, row: rows.ExchangeDelivered) -> None:
        if self._execute(sql.DELIVERED, {**_fields(row), "seq": self._next_seq()}).rowcount != 1:
            raise RowError(f"no exchange {row.id}")

    def _step(self, row: rows.StepRow) -> None:
        own = {
            "seq": self._next_seq(),
            "reason": self._evidence(row.reason),
            "nodes": json_text(row.nodes),
            "message": self._message(row.message),
        }
        self._execute(sql.STEP, {**_fields(row), **own})
        for call in row.calls:
            self._tool_call(row, call)

    def _handover(self, row: rows.HandoverRow) -> None:
        own = {"message": self._json(row.message), "aliases": json_text(row.aliases)}
        self._execute(sql.HANDOVER, {**_fields(row), **own, "results": None, "thread": None})

    def _handover_done(self, row: rows.HandoverDoneRow) -> None:
        own = {"results": self._json(row.results), "thread": json_text(row.thread)}
        self._execute(sql.HANDOVER_DONE, {**_fields(row), **own})

    def _json(self, value: Any) -> str:
        """Evidence that is no text."""
        return mask(json_text(value), self._secrets)

    def _tool_call(self, step: rows.StepRow, call: rows.ToolCallRow) -> None:
        own = {
            "session_id": step.session_id,
            "task": step.task,
            "step": step.step,
            "tool_call_id": self._evidence(call.tool_call_id),
            "name": self._evidence(call.name),
            "arguments": self._evidence(call.arguments),
            "observation": self._evidence(call.observation),
        }
        self._execute(sql.TOOL_CALL, {**_fields(call), **own})

    def _request(self, row: rows.ExchangeStart) -> tuple[str | None, str | None]:
        """A request's parameters as JSON, and the hash of its tools."""
        if row.body is None:
            return None, None
        body = dict(row.body)
        if row.messages is not None:
            body.pop("messages", None)
        tools = None
        if isinstance(body.get("tools"), list):
            tools = self._tool_lists.made(body.pop("tools"), lambda it: self._content("tool_lists", it))
        return self._parameters(body), tools

    def _history(self, messages: list[Any]) -> str | None:
        """Store what is new of a history. The hash of its last link, None if it is empty."""
        if not messages:
            return None
        looked = self._histories.look(messages)
        tip, count = (looked.known.tip, looked.known.count) if looked.known else (None, 0)
        for link in chain((self._message(message) for message in messages[count:]), tip, count):
            tip = link.hash
            if self._is_new(tip):
                values = {"hash": tip, "parent": link.parent, "message": link.message}
                self._execute(sql.LINK, {**values, "position": link.position})
        assert tip is not None
        self._histories.remember(looked, len(messages), tip)
        return tip

    def _message(self, message: Any) -> str:
        return self._content("messages", message)

    def _content(self, table: str, value: Any) -> str:
        text = mask(json_text(value), self._secrets)
        name = content_hash(text)
        if self._is_new(table[0] + name):
            self._execute(sql.CONTENT[table], {"hash": name, "body": text})
        return name

    def _is_new(self, key: str) -> bool:
        if key in self._known:
            return False
        if len(self._known) >= KNOWN_LIMIT:
            self._known.clear()
        self._known.add(key)
        self._fresh.append(key)
        return True

    def _parameters(self, value: Any) -> str:
        return self._parameter_texts.made(value, self._scrubbed)

    def _scrubbed(self, value: Any) -> str:
        try:
            return json_text(scrub_json(value, self._secrets))
        except RecursionError:
            return TOO_DEEP

    def _headers(self, headers: dict[str, str]) -> str:
        return self._header_texts.made(headers, lambda it: self._scrubbed(allowed_headers(it)))

    def _text(self, text: object) -> str | None:
        """A text of the envelope. What should be text and is not, as some providers do, is kept as JSON."""
        if text is None:
            return None
        return storable(scrub(text if isinstance(text, str) else json_text(text), self._secrets))

    def _evidence(self, text: object) -> str | None:
        if text is None:
            return None
        return storable(mask(text if isinstance(text, str) else json_text(text), self._secrets))

    def _raw(self, row: rows.ExchangeFinish) -> bytes | None:
        if row.raw is None:
            return None
        failed = row.status is not None and row.status >= 400
        return zlib.compress((scrub_bytes if failed else mask_bytes)(row.raw, self._secrets))


def _fields(row: rows.Row | rows.ToolCallRow) -> dict[str, Any]:
    """A row's values by name, texts made storable. A statement takes those that it names."""
    values = ((name, getattr(row, name)) for name in row.__slots__)
    return {name: storable(value) if isinstance(value, str) else value for name, value in values}


def _count(value: object) -> int | None:
    """A token count, if that is what the provider sent."""
    return value if isinstance(value, int) and 0 <= value < 2**63 else None
