"""Verdicts on Tasks that are over, by the scorers that were lent; each Task is judged once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.tail.summary import Judge, PlayedTask
from proxy.ui.lent import Lent
from scenarios.load import ScenarioError

JSON = dict[str, Any]

_SESSION = """SELECT record, config FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash
    JOIN runs ON runs.id = run_id WHERE sessions.id = ?"""
_TASKS = "SELECT task, ending FROM tasks WHERE session_id = ?"
_LENGTH = """SELECT coalesce(sum(length(body)), 0) FROM steps JOIN messages ON messages.hash = message
    WHERE session_id = ?"""
_MESSAGES = """SELECT task, body FROM steps JOIN messages ON messages.hash = message
    WHERE session_id = ? ORDER BY task, step"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `strict` says of a Task, and the released rules; None where a Task is not scored.

    `judged` is False where no scorer was asked, and names alone tell right from wrong.
    """

    right: bool | None
    released: bool | None = None
    judged: bool = True

    def given(self, names: bool | None) -> Verdict:
        """This, or what names tell."""
        return self if self.judged else Verdict(names, names, judged=False)


BY_NAMES = Verdict(None, judged=False)
MOST_CHARS = 300_000
"""Of a Session's replies: scorers compare texts, and what takes them long must not be done while playing."""


@dataclass(frozen=True, slots=True)
class Played:
    """What is judged of a Session attempt: its Scenario's record, its Run's configuration, its Tasks."""

    record: Mapping[str, Any]
    config: Mapping[str, Any]
    tasks: tuple[PlayedTask, ...]


@dataclass(slots=True)
class Verdicts:
    """`found` has what was judged, by (session, Task)."""

    lent: Lent
    found: dict[tuple[str, int], Verdict] = field(default_factory=dict)

    @property
    def judges(self) -> bool:
        """Else names alone tell right from wrong, as while playing."""
        return self.lent.judge is not None

    def judge(self, connection: sqlite3.Connection, session: str) -> None:
        """Judges the Tasks of a Session that are over and were not judged before."""
        if self.lent.judge is None:
            return
        over = [task for task, _ in connection.execute(_TASKS, (session,))]
        if all((session, task) in self.found for task in over):
            return
        played = read_played(connection, session)
        told = [BY_NAMES] * (max(over) + 1) if played is None else self._judge(self.lent.judge, played)
        for task in over:
            self.found[session, task] = told[task]

    def _judge(self, judge: Judge, played: Played) -> list[Verdict]:
        try:
            opinions = judge(played.record, played.config, played.tasks)
        except ScenarioError:
            return [BY_NAMES] * len(played.tasks)
        return [Verdict(opinion.right, opinion.released) for opinion in opinions]

    def put_into(self, row: JSON) -> JSON:
        """The row of a Session, with verdicts in place of what was told while it was played."""
        tasks = []
        for number, task in enumerate(row["tasks"]):
            found = self.found.get((row["id"], number), BY_NAMES).given(task["right"])
            tasks.append({**task, "right": found.right, "released": found.released, "judged": found.judged})
        return {**row, "tasks": tasks}


def read_played(connection: sqlite3.Connection, session: str) -> Played | None:
    """What is judged of a Session attempt; None if there is none with this id, or it is too long."""
    found = connection.execute(_SESSION, (session,)).fetchone()
    if found is None or connection.execute(_LENGTH, (session,)).fetchone()[0] > MOST_CHARS:
        return None
    record, config = (json.loads(text) for text in found)
    ends = dict(tuple(row) for row in connection.execute(_TASKS, (session,)))
    messages: dict[int, list[Any]] = {}
    for task, body in connection.execute(_MESSAGES, (session,)):
        messages.setdefault(task, []).append(json.loads(body))
    tasks = (
        PlayedTask(tuple(messages.get(task, ())), ends.get(task)) for task in range(len(record["tasks"]))
    )
    return Played(record, config, tuple(tasks))
