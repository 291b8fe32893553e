"""The list of Sessions: one short row each, read from the log."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

JSON = dict[str, Any]

PAGE = 50
"""Sessions, exchanges or errors given at a time."""

FAILED = "finish_state NOT IN ('complete', 'pending') OR status >= 400"
# What an agent was told it spent is a sum of its provider exchanges: only one without any counts.
COUNTED = """(side = 'provider' OR NOT EXISTS
    (SELECT 1 FROM exchanges AS child WHERE child.parent_id = exchanges.id))"""

_IDS = "IN (SELECT value FROM json_each(:ids))"
_SESSIONS = f"""SELECT sessions.id, sessions.seq, run_id AS run, name, scenario_id AS scenario, epoch,
    attempt, opened_at, json_array_length(record, '$.tasks') AS size,
    EXISTS (SELECT 1 FROM sessions AS later WHERE later.run_id = sessions.run_id
        AND later.scenario_id = sessions.scenario_id AND later.epoch = sessions.epoch
        AND later.attempt > sessions.attempt) AS replaced
    FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash
    WHERE sessions.id {_IDS} ORDER BY sessions.seq DESC"""
_TASKS = f"""SELECT session_id, task, ending, EXISTS (SELECT 1 FROM steps
        WHERE steps.session_id = tasks.session_id AND steps.task = tasks.task AND reason IS NOT NULL) AS erred
    FROM tasks WHERE session_id {_IDS} ORDER BY session_id, task"""
_TURNS = f"""SELECT session_id, max(turn) AS turn, max(task) AS task, max(opened_at) AS last_at
    FROM turns WHERE session_id {_IDS} GROUP BY session_id"""
_STEPS = f"""SELECT session_id, count(*) AS steps, max(decided_at) AS last_at
    FROM steps WHERE session_id {_IDS} GROUP BY session_id"""
_EXCHANGES = f"""SELECT session_id, coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens, max(coalesce(finished_at, started_at)) AS last_at,
    count(*) FILTER (WHERE {FAILED}) AS errors,
    max(started_at) FILTER (WHERE finish_state = 'pending' AND started_at >= :since) AS asking_since
    FROM exchanges WHERE session_id {_IDS} AND {COUNTED} GROUP BY session_id"""


def names_right(ending: str, erred: bool) -> bool | None:
    """The verdict while playing, as `drive` tells it: names alone. None: not the agent's doing."""
    if ending in ("infrastructure", "not_reached"):
        return None
    return ending == "closed" and not erred


def newest_sessions(connection: sqlite3.Connection, run: str, before: int | None = None) -> list[str]:
    """The ids of a Run's newest Sessions, or of the newest of those before a `seq`."""
    found = connection.execute(
        "SELECT id FROM sessions WHERE run_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (run, 2**62 if before is None else before, PAGE),
    )
    return [session for (session,) in found]


def session_rows(
    connection: sqlite3.Connection, ids: Iterable[str], *, live_run: str | None, since: float
) -> list[JSON]:
    """The rows of these Sessions, the newest first.

    `live_run` is the Run that is being played, since the Unix time `since`: elsewhere nothing is
    waited for any more.
    """
    wanted = {"ids": json.dumps(list(ids)), "since": since}

    def by_session(sql: str) -> Mapping[str, sqlite3.Row]:
        return {row["session_id"]: row for row in connection.execute(sql, wanted)}

    ends: dict[str, list[JSON]] = defaultdict(list)
    for session, _, ending, erred in connection.execute(_TASKS, wanted):
        ends[session].append({"ending": ending, "right": names_right(ending, erred)})
    turns, steps, exchanges = by_session(_TURNS), by_session(_STEPS), by_session(_EXCHANGES)
    return [
        _row(
            dict(row),
            ends[row["id"]],
            [dict(found[row["id"]]) for found in (turns, steps, exchanges) if row["id"] in found],
            live_run,
        )
        for row in connection.execute(_SESSIONS, wanted)
    ]


def _row(session: JSON, ends: list[JSON], found: list[JSON], live_run: str | None) -> JSON:
    last_at = max([session["opened_at"], *(it["last_at"] for it in found if it["last_at"] is not None)])
    told: JSON = {"turn": 0, "task": None, "steps": 0, "input_tokens": 0, "output_tokens": 0, "errors": 0}
    told["asking_since"] = None
    for it in found:
        told.update(it)
    size = session.pop("size") or 0
    open_tasks: list[JSON] = [{"ending": None, "right": None}] * (size - len(ends))
    replaced = bool(session.pop("replaced"))
    return {
        **session,
        **{name: told[name] for name in ("turn", "steps", "input_tokens", "output_tokens", "errors")},
        "task": None if told["task"] is None else told["task"] + 1,
        "tasks": [*ends, *open_tasks],
        "asking_since": told["asking_since"] if session["run"] == live_run else None,
        "last_at": last_at,
        "state": _state(over=len(ends) >= size, replaced=replaced, live=session["run"] == live_run),
    }


def _state(*, over: bool, replaced: bool, live: bool) -> str:
    """`over`, `replaced` (by a later attempt), `playing`, or `unfinished` in a Run of the past."""
    if over:
        return "over"
    return "replaced" if replaced else "playing" if live else "unfinished"
