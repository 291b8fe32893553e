"""A Run in figures, counted once and then kept up to date by what is new in the log."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.ui.rows import COUNTED, FAILED, names_right
from proxy.ui.verdicts import BY_NAMES, Verdict

JSON = dict[str, Any]

BUCKET_S = 10
BUCKETS = 60
"""The rate of requests is told by counts of BUCKET_S seconds, the last BUCKETS of them."""
_RECENT = 5_000
"""The last exchanges, which the rate is of."""
_REMEMBERED = 10_000
"""Exchanges that were counted: more than are ever written again at a time."""

_EXCHANGE = f"id, started_at, input_tokens, output_tokens, ({FAILED}) AS failed"
_TOTALS = f"""SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
    count(*) FILTER (WHERE {FAILED})
    FROM exchanges WHERE run_id = ? AND finish_state != 'pending' AND {COUNTED}"""
_LAST = f"""SELECT {_EXCHANGE} FROM exchanges WHERE run_id = ? AND finish_state != 'pending' AND {COUNTED}
    ORDER BY arrival DESC LIMIT {_RECENT}"""
# By the window: the planner cannot know that it is the smaller part.
_NEW = f"""SELECT {_EXCHANGE} FROM exchanges WHERE seq > ? AND seq <= ? AND +run_id = ?
    AND finish_state != 'pending' AND {COUNTED}"""
_OF_RUN = "run_id = :run"
_OF_THESE = "sessions.id IN (SELECT value FROM json_each(:ids)) AND +run_id = :run"
_SESSIONS = """SELECT sessions.id, scenario_id, epoch, attempt, json_array_length(record, '$.tasks') AS size
    FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash WHERE {which} ORDER BY sessions.seq"""
_TASKS = """SELECT session_id, task, ending, EXISTS (SELECT 1 FROM steps
        WHERE steps.session_id = tasks.session_id AND steps.task = tasks.task AND reason IS NOT NULL)
    FROM sessions JOIN tasks ON session_id = sessions.id WHERE {which}"""


@dataclass(slots=True)
class _Session:
    """A Session's last attempt: how many Tasks it has, and what became of those that are over, by names.

    `told` counts these: right, wrong, neither, and right by the released rules.
    """

    id: str
    attempt: int
    size: int
    tasks: dict[int, bool | None] = field(default_factory=dict)
    told: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(slots=True)
class Figures:
    """The figures of one Run. `verdicts` are by (session, Task); names decide where there are none.

    `unjudged` are the Sessions with Tasks that are over and have no verdict.
    """

    run: str
    verdicts: Mapping[tuple[str, int], Verdict]
    unjudged: dict[str, None] = field(default_factory=dict)
    _sessions: dict[tuple[str, int], _Session] = field(default_factory=dict)
    _places: dict[str, tuple[str, int]] = field(default_factory=dict)
    _totals: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    _planned: int = 0
    _buckets: Counter[int] = field(default_factory=Counter)
    _counted: dict[str, None] = field(default_factory=dict)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Counts everything that there is of the Run."""
        self._look_at_sessions(connection, _OF_RUN, {"run": self.run})
        self._totals = list(connection.execute(_TOTALS, (self.run,)).fetchone())
        for row in connection.execute(_LAST, (self.run,)):
            self._remember(row["id"], row["started_at"])

    def go_on(self, connection: sqlite3.Connection, after: int, upto: int, sessions: list[str]) -> None:
        """Counts what was written with `seq` after `after`, up to `upto`; `sessions` are those concerned."""
        if sessions:
            wanted = {"run": self.run, "ids": json.dumps(sessions)}
            self._look_at_sessions(connection, _OF_THESE, wanted)
        for row in connection.execute(_NEW, (after, upto, self.run)):
            if row["id"] in self._counted:
                continue
            self._remember(row["id"], row["started_at"])
            more = (1, row["input_tokens"] or 0, row["output_tokens"] or 0, row["failed"] or 0)
            self._totals = [count + new for count, new in zip(self._totals, more, strict=True)]

    def judged(self, session: str) -> None:
        """There are verdicts on a Session now."""
        self.unjudged.pop(session, None)
        self._count(self._sessions[self._places[session]])

    def document(self) -> JSON:
        """The figures. `rate` has counts of requests by the time at which they were sent."""
        requests, given, made, errors = self._totals
        sessions = self._sessions.values()
        right, wrong, other, released = (sum(it.told[i] for it in sessions) for i in range(4))
        newest = max(self._buckets, default=0)
        return {
            "sessions": {
                "planned": max(self._planned, len(sessions)),
                "begun": len(sessions),
                "over": sum(len(it.tasks) >= it.size for it in sessions),
            },
            "tasks": {"right": right, "wrong": wrong, "other": other, "released_right": released},
            "unjudged_sessions": len(self.unjudged),
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

    def still_open(self) -> list[str]:
        """Sessions that are not over, the newest first."""
        return [it.id for it in reversed(self._sessions.values()) if len(it.tasks) < it.size]

    def _look_at_sessions(self, connection: sqlite3.Connection, which: str, wanted: JSON) -> None:
        planned = "SELECT count(*) FROM planned WHERE run_id = ?"
        self._planned = connection.execute(planned, (self.run,)).fetchone()[0]
        found: dict[str, _Session] = {}
        for session, scenario, epoch, attempt, size in connection.execute(
            _SESSIONS.format(which=which), wanted
        ):
            last = self._sessions.get((scenario, epoch))
            if last is None or last.attempt < attempt:
                last = self._sessions[scenario, epoch] = _Session(session, attempt, size or 0)
                self._places[session] = (scenario, epoch)
            if last.id == session:
                found[session] = last
        for session, task, ending, erred in connection.execute(_TASKS.format(which=which), wanted):
            if session in found:
                found[session].tasks[task] = names_right(ending, erred)
        for it in found.values():
            self._count(it)

    def _count(self, session: _Session) -> None:
        verdicts = [
            self.verdicts.get((session.id, task), BY_NAMES).given(right)
            for task, right in session.tasks.items()
        ]
        told = [verdict.right for verdict in verdicts]
        released = sum(verdict.released is True for verdict in verdicts)
        session.told = (told.count(True), told.count(False), told.count(None), released)
        if any((session.id, task) not in self.verdicts for task in session.tasks):
            self.unjudged[session.id] = None

    def _remember(self, exchange: str, started_at: float) -> None:
        self._counted[exchange] = None
        if len(self._counted) > _REMEMBERED:
            del self._counted[next(iter(self._counted))]
        self._buckets[int(started_at) // BUCKET_S] += 1
        if len(self._buckets) > 2 * BUCKETS:
            for old in sorted(self._buckets)[:-BUCKETS]:
                del self._buckets[old]
