"""Verdicts on Tasks that are over, by the scorers that were lent; each Task is judged once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.tail.summary import PlayedTask
from proxy.ui.lent import Lent
from scenarios.load import ScenarioError

JSON = dict[str, Any]

_SESSION = """SELECT record, config FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash
    JOIN runs ON runs.id = run_id WHERE sessions.id = ?"""
_TASKS = "SELECT task, ending FROM tasks WHERE session_id = ?"
_MESSAGES = """SELECT task, body FROM steps JOIN messages ON messages.hash = message
    WHERE session_id = ? ORDER BY task, step"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `strict` says of a Task, and the released rules; None where a Task is not scored."""

    right: bool | None
    released: bool | None = None


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
        played = read_played(connection, session)
        over = [number for number, task in enumerate(played.tasks) if task.ending] if played else []
        if played is None or all((session, number) in self.found for number in over):
            return
        try:
            opinions = self.lent.judge(played.record, played.config, played.tasks)
            told = [Verdict(opinion.right, opinion.released) for opinion in opinions]
        except ScenarioError:
            told = [Verdict(None)] * len(played.tasks)
        for number in over:
            self.found[session, number] = told[number]

    def put_into(self, row: JSON) -> JSON:
        """The row of a Session, with verdicts in place of what was told while it was played."""
        tasks = []
        for number, task in enumerate(row["tasks"]):
            found = self.found.get((row["id"], number))
            told = {} if found is None else {"right": found.right, "released": found.released}
            tasks.append({**task, **told, "judged": found is not None})
        return {**row, "tasks": tasks}


def read_played(connection: sqlite3.Connection, session: str) -> Played | None:
    """What is judged of a Session attempt; None if there is none with this id."""
    found = connection.execute(_SESSION, (session,)).fetchone()
    if found is None:
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
