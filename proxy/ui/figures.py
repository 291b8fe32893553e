"""A Run in figures, counted once and then kept up to date by what is new in the log."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.ui.rows import COUNTED, FAILED, names_right
from proxy.ui.verdicts import Verdict

JSON = dict[str, Any]

BUCKET_S = 10
BUCKETS = 60
"""The rate of requests is told by counts of BUCKET_S seconds, the last BUCKETS of them."""
_RECENT = 5_000
"""The most exchanges that are looked at for the rate."""
_REMEMBERED = 10_000
"""Exchanges that were counted: more than are ever written again at a time."""

_EXCHANGE = f"id, started_at, input_tokens, output_tokens, ({FAILED}) AS failed"
_TOTALS = f"""SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
    count(*) FILTER (WHERE {FAILED})
    FROM exchanges WHERE run_id = ? AND finish_state != 'pending' AND {COUNTED}"""
_LAST = f"""SELECT {_EXCHANGE} FROM (SELECT * FROM exchanges WHERE run_id = ?
    ORDER BY arrival DESC LIMIT {_RECENT}) AS exchanges WHERE finish_state != 'pending' AND {COUNTED}"""
_NEW = f"""SELECT {_EXCHANGE} FROM exchanges WHERE seq > ? AND seq <= ? AND run_id = ?
    AND finish_state != 'pending' AND {COUNTED}"""
_SESSIONS = """SELECT sessions.id, scenario_id, epoch, attempt, json_array_length(record, '$.tasks') AS size
    FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash
    WHERE run_id = :run AND (:ids IS NULL OR sessions.id IN (SELECT value FROM json_each(:ids)))
    ORDER BY sessions.seq"""
_TASKS = """SELECT session_id, task, ending, EXISTS (SELECT 1 FROM steps
        WHERE steps.session_id = tasks.session_id AND steps.task = tasks.task AND reason IS NOT NULL)
    FROM tasks JOIN sessions ON sessions.id = session_id
    WHERE run_id = :run AND (:ids IS NULL OR session_id IN (SELECT value FROM json_each(:ids)))"""


@dataclass(slots=True)
class _Session:
    """A Session's last attempt: how many Tasks it has, and of those that are over, what they came to."""

    id: str
    attempt: int
    size: int
    tasks: dict[int, bool | None] = field(default_factory=dict)


@dataclass(slots=True)
class Figures:
    """The figures of one Run. `verdicts` are by (session, Task); names decide where there are none."""

    run: str
    verdicts: Mapping[tuple[str, int], Verdict]
    _sessions: dict[tuple[str, int], _Session] = field(default_factory=dict)
    _totals: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    _planned: int = 0
    _buckets: Counter[int] = field(default_factory=Counter)
    _counted: dict[str, None] = field(default_factory=dict)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Counts everything that there is of the Run."""
        self._look_at_sessions(connection, None)
        self._totals = list(connection.execute(_TOTALS, (self.run,)).fetchone())
        for row in connection.execute(_LAST, (self.run,)):
            self._remember(row["id"], row["started_at"])

    def go_on(self, connection: sqlite3.Connection, after: int, upto: int, sessions: list[str]) -> None:
        """Counts what was written with `seq` after `after`, up to `upto`; `sessions` are those concerned."""
        if sessions:
            self._look_at_sessions(connection, sessions)
        for row in connection.execute(_NEW, (after, upto, self.run)):
            if row["id"] in self._counted:
                continue
            self._remember(row["id"], row["started_at"])
            more = (1, row["input_tokens"] or 0, row["output_tokens"] or 0, row["failed"] or 0)
            self._totals = [count + new for count, new in zip(self._totals, more, strict=True)]

    def document(self) -> JSON:
        """The figures. `rate` has counts of requests by the time at which they were sent."""
        requests, given, made, errors = self._totals
        over = sum(len(it.tasks) >= it.size for it in self._sessions.values())
        verdicts = [
            self.verdicts.get((it.id, task), Verdict(right, right))
            for it in self._sessions.values()
            for task, right in it.tasks.items()
        ]
        told = Counter(verdict.right for verdict in verdicts)
        newest = max(self._buckets, default=0)
        return {
            "sessions": {
                "planned": max(self._planned, len(self._sessions)),
                "begun": len(self._sessions),
                "over": over,
            },
            "tasks": {
                "all": sum(it.size for it in self._sessions.values()),
                "right": told[True],
                "wrong": told[False],
                "other": told[None],
                "released_right": sum(verdict.released is True for verdict in verdicts),
            },
            "requests": requests,
            "input_tokens": given,
            "output_tokens": made,
            "errors": errors,
            "rate": {
                "seconds": BUCKET_S,
                "newest": newest * BUCKET_S,
                "counts": [self._buckets[newest - back] for back in reversed(range(BUCKETS))],
            },
        }

    def unjudged(self) -> list[str]:
        """Sessions with Tasks that are over and that no scorer has looked at, the newest first."""
        return [
            it.id
            for it in reversed(self._sessions.values())
            if any((it.id, task) not in self.verdicts for task in it.tasks)
        ]

    def still_open(self) -> list[str]:
        """Sessions that are not over, the newest first."""
        return [it.id for it in reversed(self._sessions.values()) if len(it.tasks) < it.size]

    def _look_at_sessions(self, connection: sqlite3.Connection, ids: list[str] | None) -> None:
        wanted = {"run": self.run, "ids": None if ids is None else json.dumps(ids)}
        self._planned = connection.execute(
            "SELECT count(*) FROM planned WHERE run_id = ?", (self.run,)
        ).fetchone()[0]
        found: dict[str, _Session] = {}
        for session, scenario, epoch, attempt, size in connection.execute(_SESSIONS, wanted):
            last = self._sessions.get((scenario, epoch))
            if last is None or last.attempt < attempt:
                last = self._sessions[scenario, epoch] = _Session(session, attempt, size or 0)
            if last.id == session:
                found[session] = last
        for session, task, ending, erred in connection.execute(_TASKS, wanted):
            if session in found:
                found[session].tasks[task] = names_right(ending, erred)

    def _remember(self, exchange: str, started_at: float) -> None:
        self._counted[exchange] = None
        if len(self._counted) > _REMEMBERED:
            del self._counted[next(iter(self._counted))]
        self._buckets[int(started_at) // BUCKET_S] += 1
        if len(self._buckets) > 2 * BUCKETS:
            for old in sorted(self._buckets)[:-BUCKETS]:
                del self._buckets[old]
