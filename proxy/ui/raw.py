"""Exchanges as they were on the wire, in bounds: in the shape that the report has them in."""

from __future__ import annotations

import base64
import json
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

from proxy.log.answers import OWN_DICTIONARY, unpack
from proxy.ui.recorded import HISTORY
from proxy.ui.room import TEXT_CHARS, Room

JSON = dict[str, Any]

MOST = 8
"""Exchanges given at a time."""
ANSWER_BYTES = 200_000
"""Bytes of an answer that are given, from its beginning."""

_ABOUT = """id, side, parent_id AS parent, turn, reason, correlation, method, path, started_at, finished_at,
    time_to_first_chunk, status, finish_state, request_model, response_model, input_tokens, output_tokens,
    error_type, error"""
_EXCHANGES = f"""SELECT {_ABOUT}, stream, changes, findings, request_headers, response_headers, tip,
    message_count, tools, length(body) AS length, substr(body, 1, {TEXT_CHARS}) AS body, output_message, raw,
    {OWN_DICTIONARY} AS dictionary
    FROM exchanges WHERE id IN (SELECT value FROM json_each(?)) ORDER BY arrival LIMIT {MOST}"""
_HISTORY = f"{HISTORY} SELECT message FROM history ORDER BY position"
_BODY = "SELECT length(body), substr(body, 1, ?) FROM {table} WHERE hash = ?"
_JSON_COLUMNS = ("changes", "findings", "request_headers", "response_headers")


def raw_exchanges(connection: sqlite3.Connection, ids: Sequence[str]) -> JSON:
    """The exchanges with these ids, as far as they are there; the first MOST of them."""
    room = Room()
    messages = _Once(connection, "messages", room)
    tools = _Once(connection, "tool_lists", room)
    told = []
    for row in connection.execute(_EXCHANGES, (json.dumps(list(ids)),)).fetchall():
        about = {name: row[name] for name in row.keys() if name not in _TAKEN}  # noqa: SIM118
        told.append(
            {
                **about,
                **{name: None if row[name] is None else json.loads(row[name]) for name in _JSON_COLUMNS},
                "stream": bool(row["stream"]),
                "messages": None if row["message_count"] is None else _history(connection, row, messages),
                "tools": tools.number(row["tools"]),
                "body": None if row["body"] is None else room.text(row["body"], row["length"]),
                "message": messages.number(row["output_message"]),
                **_answer(row["raw"], row["dictionary"], room),
            }
        )
    return {"messages": messages.texts, "tools": tools.texts, "exchanges": told}


_TAKEN = {
    *_JSON_COLUMNS,
    "tip",
    "message_count",
    "tools",
    "length",
    "body",
    "output_message",
    "raw",
    "dictionary",
}


class _Once:
    """Texts by hash, each read once and numbered as it first comes up."""

    def __init__(self, connection: sqlite3.Connection, table: str, room: Room) -> None:
        self.texts: list[str] = []
        self._connection = connection
        self._sql = _BODY.format(table=table)
        self._room = room
        self._numbers: dict[str, int] = {}

    def number(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._numbers:
            length, text = self._connection.execute(self._sql, (self._room.chars, name)).fetchone()
            self._numbers[name] = len(self.texts)
            self.texts.append(self._room.text(text, length))
        return self._numbers[name]


def _history(connection: sqlite3.Connection, row: sqlite3.Row, messages: _Once) -> list[int | None]:
    return [messages.number(name) for (name,) in connection.execute(_HISTORY, (row["tip"],)).fetchall()]


def _answer(raw: bytes | None, dictionary: str, room: Room) -> JSON:
    if raw is None:
        return {"answer": None, "answer_base64": None}
    try:
        found = unpack(raw, dictionary, ANSWER_BYTES)
    except zlib.error:
        return {"answer": "(what is stored of it is damaged)", "answer_base64": None}
    whole = len(found) < ANSWER_BYTES
    room.left -= len(found)
    try:
        text = found.decode() if whole else found.decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return {"answer": None, "answer_base64": base64.b64encode(found).decode("ascii")}
    return {"answer": text if whole else f"{text}… (cut off)", "answer_base64": None}
