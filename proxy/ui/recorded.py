"""Exchanges for the live page: those that were only recorded, those that failed, and one of them whole."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from proxy.tail.messages import calls_of, said, text_of
from proxy.ui.room import TEXT_CHARS, Room
from proxy.ui.rows import COUNTED, FAILED, PAGE

JSON = dict[str, Any]
Window = tuple[int, int]
"""Values of `seq`: after the first, up to the second."""

MESSAGES = 400
"""Messages of one history that are given, the last ones."""
READ_WHOLE_CHARS = 200_000
"""A stored message that is longer is not taken apart: the beginning of its text is all that is read."""
SHORT_CHARS = 160

_COLUMNS = """exchanges.id, exchanges.seq, arrival, side, session_id, exchanges.turn, reason, path,
    started_at, finished_at, finish_state, status, stream, time_to_first_chunk,
    coalesce(response_model, request_model) AS model, input_tokens, output_tokens, error_type,
    substr(error, 1, 600) AS error"""
# A window is looked for by `seq`, a Run by `run_id`: the planner cannot know which is the smaller.
_IN_WINDOW = "exchanges.seq > :after AND exchanges.seq <= :upto AND +exchanges.run_id = :run"
_IN_RUN = "exchanges.run_id = :run AND arrival < :before"
WORDS = "coalesce(json_extract({body}, '$.content[0].text'), json_extract({body}, '$.content'))"
_WHOLE = f"CASE WHEN length({{body}}) <= {READ_WHOLE_CHARS} THEN {{body}} END"
_BEGINS = f"CASE WHEN length({{body}}) > {READ_WHOLE_CHARS} THEN substr({WORDS}, 1, {TEXT_CHARS}) END"


def bounded(body: str) -> str:
    """Columns of a stored message: its `length`, its `body`, or if that is too long how its words begin."""
    return (
        f"length({body}) AS length, {_WHOLE.format(body=body)} AS body, {_BEGINS.format(body=body)} AS begins"
    )


_RECORDED = f"""SELECT {_COLUMNS}, substr({WORDS.format(body="asked.body")}, 1, {SHORT_CHARS}) AS asked
    FROM exchanges LEFT JOIN chains ON chains.hash = tip
    LEFT JOIN messages AS asked ON asked.hash = chains.message
    WHERE {{where}} AND side = 'agent' ORDER BY arrival DESC LIMIT {PAGE}"""
_ERRORS = f"""SELECT {_COLUMNS}, sessions.name AS session
    FROM exchanges LEFT JOIN sessions ON sessions.id = session_id
    WHERE {{where}} AND ({FAILED}) AND {COUNTED} ORDER BY arrival DESC LIMIT {PAGE}"""
_ONE = f"""SELECT {_COLUMNS}, sessions.name AS session, message_count, tip, request_headers,
    response_headers, changes, findings, {bounded("answer.body")},
    CASE WHEN length(exchanges.body) <= {READ_WHOLE_CHARS} THEN exchanges.body END AS parameters,
    (SELECT json_group_array(coalesce(json_extract(value, '$.function.name'), json_extract(value, '$.name')))
        FROM tool_lists, json_each(tool_lists.body) WHERE tool_lists.hash = tools) AS tools
    FROM exchanges LEFT JOIN sessions ON sessions.id = session_id
    LEFT JOIN messages AS answer ON answer.hash = output_message WHERE exchanges.id = ?"""
HISTORY = f"""WITH RECURSIVE history (parent, message, position) AS (
        SELECT parent, message, position FROM chains WHERE hash = ?
        UNION ALL
        SELECT chains.parent, chains.message, chains.position
        FROM chains JOIN history ON chains.hash = history.parent LIMIT {MESSAGES})"""
"""The last messages of the chain with this tip, as a table `history`."""
_HISTORY = f"""{HISTORY}
    SELECT position, json_extract(body, '$.role') AS role, {bounded("body")}
    FROM history JOIN messages ON messages.hash = message ORDER BY position"""


def exchange_rows(
    connection: sqlite3.Connection, run: str, window: Window | None, before: int | None = None
) -> list[JSON]:
    """The agents' exchanges of a Run, the newest first: those of the window, or before an `arrival`."""
    return _rows(connection, _RECORDED, run, window, before)


def error_rows(
    connection: sqlite3.Connection, run: str, window: Window | None, before: int | None = None
) -> list[JSON]:
    """What providers failed, and requests that were not let in, as `exchange_rows`."""
    return _rows(connection, _ERRORS, run, window, before)


def exchange(connection: sqlite3.Connection, wanted: str) -> JSON | None:
    """One exchange with its messages and its answer, in bounds; None if there is none with this id.

    `omitted` is how many of the first messages are left out.
    """
    row = connection.execute(_ONE, (wanted,)).fetchone()
    if row is None:
        return None
    room = Room()
    found = dict(row)
    history = [_message(it, room) for it in connection.execute(_HISTORY, (found.pop("tip"),))]
    answer = {name: found.pop(name) for name in ("length", "body", "begins")}
    answered = answer["length"] is not None
    if answered:
        history.append(_message({**answer, "role": "assistant"}, room))
    for name in ("request_headers", "response_headers", "changes", "findings", "parameters", "tools"):
        found[name] = None if found[name] is None else room.value(json.loads(found[name]))
    omitted = max(0, (found.pop("message_count") or 0) - MESSAGES)
    return {**found, "messages": history, "omitted": omitted, "answered": answered}


def _rows(
    connection: sqlite3.Connection, sql: str, run: str, window: Window | None, before: int | None
) -> list[JSON]:
    after, upto = window or (None, None)
    values = {"run": run, "after": after, "upto": upto, "before": 2**62 if before is None else before}
    where = _IN_RUN if window is None else _IN_WINDOW
    return [dict(row) for row in connection.execute(sql.format(where=where), values)]


def _message(row: sqlite3.Row | JSON, room: Room) -> JSON:
    """A message of a history: who says it, its words, its calls."""
    if row["body"] is None:
        words = row["begins"] if isinstance(row["begins"], str) else ""
        return {"role": _word(row["role"]), "text": room.text(words, row["length"]), "calls": []}
    message = json.loads(row["body"])
    if not isinstance(message, dict):
        return {"role": "?", "text": room.text(text_of(message)), "calls": []}
    role = _word(message.get("role"))
    words = said(message) if role == "assistant" else text_of(message.get("content"))
    calls = [
        {"name": room.text(name), "arguments": None if arguments is None else room.text(arguments)}
        for name, arguments in calls_of(message)
    ]
    told: JSON = {"role": role, "text": room.text(words), "calls": calls}
    if thought := message.get("reasoning_content") or message.get("reasoning"):
        told["reasoning"] = room.text(text_of(thought))
    if isinstance(message.get("tool_call_id"), str):
        told["tool_call_id"] = message["tool_call_id"][:SHORT_CHARS]
    return told


def _word(role: Any) -> str:
    return role[:SHORT_CHARS] if isinstance(role, str) else "?"
