"""What a Task or a Session came to, looked up in its log when it is over."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.tail.events import Place, TaskEnded
from proxy.tail.summary import (
    Judge,
    Opinion,
    PlayedTask,
    SessionSummary,
    Spent,
    TaskSummary,
    released_of,
    verdict_of,
)
from scenarios.load import ScenarioError, parse_record
from scenarios.reference import depth
from scenarios.types import Scenario

_ATTEMPT = re.compile(r"(?P<name>.*\.e\d+)#(?P<attempt>\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Task:
    """A Task as the log has it. Times are Unix seconds."""

    ending: str | None
    began_at: float
    ended_at: float
    messages: tuple[Any, ...]
    tokens: tuple[int, int]

    @property
    def spent(self) -> Spent:
        return Spent(*self.tokens, max(0.0, self.ended_at - self.began_at))


@dataclass(frozen=True, slots=True)
class _Session:
    """A Session as the log has it, as far as it was played."""

    id: str
    record: Mapping[str, Any]
    scenario: Scenario
    config: Mapping[str, Any]
    tasks: tuple[_Task, ...]

    @property
    def over(self) -> int:
        return sum(task.ending is not None for task in self.tasks)


class Summaries:
    """Sums up what is over. Without a `judge` nothing is said of right and wrong."""

    def __init__(self, judge: Judge | None) -> None:
        self._judge = judge
        self._scenarios: dict[str, tuple[Mapping[str, Any], Scenario]] = {}
        self._last: tuple[_Session, Sequence[Opinion | None]] | None = None

    def of(self, event: TaskEnded, connection: sqlite3.Connection) -> Iterator[TaskSummary | SessionSummary]:
        """The summary of a Task, and after the last one that of its Session.

        Of a Task whose Scenario cannot be read it says how it ended, and no more.
        """
        number = event.place.task
        found = None if number is None else self._judged(event.place, connection, number)
        if found is None or number is None:
            yield TaskSummary(event.place, event.at, event.ending, "", 0, None, None)
            return
        session, opinions = found
        yield _task_summary(event, number, session, opinions[number])
        if number == len(session.tasks) - 1:
            yield _session_summary(event, session, opinions)

    def _judged(
        self, place: Place, connection: sqlite3.Connection, number: int
    ) -> tuple[_Session, Sequence[Opinion | None]] | None:
        """The Session, read anew only if it has gone on since."""
        row = _session_row(place, connection)
        if row is None:
            return None
        last = self._last
        if last is None or last[0].id != row["id"] or last[0].over <= number:
            session = self._session(row, connection)
            if session is None or number >= len(session.tasks):
                return None
            self._last = last = (session, self._opinions(session))
        return last

    def _opinions(self, session: _Session) -> Sequence[Opinion | None]:
        if self._judge is None:
            return [None] * len(session.tasks)
        played = [PlayedTask(task.messages, task.ending) for task in session.tasks]
        return self._judge(session.record, session.config, played)

    def _session(self, row: sqlite3.Row, connection: sqlite3.Connection) -> _Session | None:
        digest = row["scenario_hash"]
        if digest not in self._scenarios:
            record = json.loads(row["record"])
            try:
                self._scenarios[digest] = (record, parse_record(record))
            except ScenarioError:
                return None
        record, scenario = self._scenarios[digest]
        tasks = tuple(_task(connection, row["id"], number) for number in range(len(scenario.tasks)))
        return _Session(row["id"], record, scenario, json.loads(row["config"]), tasks)


_SESSION = """SELECT sessions.id, scenario_hash, record, config
    FROM sessions JOIN scenarios ON hash = scenario_hash JOIN runs ON runs.id = run_id
    WHERE run_id = ? AND sessions.name = ? AND attempt = ?"""
_TASK = """SELECT
    (SELECT ending FROM tasks WHERE session_id = :id AND task = :task),
    (SELECT ended_at FROM tasks WHERE session_id = :id AND task = :task),
    (SELECT min(opened_at) FROM turns WHERE session_id = :id AND task = :task)"""
_MESSAGES = """SELECT body FROM steps JOIN messages ON hash = message
    WHERE session_id = ? AND task = ? ORDER BY step"""
_TOKENS = """SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)
    FROM exchanges JOIN turns USING (session_id, turn)
    WHERE session_id = ? AND task = ? AND side = 'provider'"""


def _session_row(place: Place, connection: sqlite3.Connection) -> sqlite3.Row | None:
    again = _ATTEMPT.fullmatch(place.session or "")
    name, attempt = (again["name"], int(again["attempt"])) if again else (place.session, 1)
    row: sqlite3.Row | None = connection.execute(_SESSION, (place.run, name, attempt)).fetchone()
    return row


def _task(connection: sqlite3.Connection, session: str, task: int) -> _Task:
    ending, ended_at, began_at = connection.execute(_TASK, {"id": session, "task": task}).fetchone()
    tokens = connection.execute(_TOKENS, (session, task)).fetchone()
    messages = tuple(json.loads(body) for (body,) in connection.execute(_MESSAGES, (session, task)))
    ended_at = ended_at or began_at or 0.0
    return _Task(ending, began_at or ended_at, ended_at, messages, (tokens[0], tokens[1]))


def _task_summary(event: TaskEnded, number: int, session: _Session, opinion: Opinion | None) -> TaskSummary:
    task, played = session.scenario.tasks[number], session.tasks[number]
    wrong = None if opinion is None or opinion.right else opinion
    return TaskSummary(
        place=event.place,
        at=event.at,
        ending=event.ending,
        label=task.label,
        steps=len(played.messages),
        optimal=depth(task.nodes),
        spent=played.spent,
        verdict=None if opinion is None else verdict_of(opinion),
        after_errors=opinion is not None and opinion.after_errors,
        released=None if opinion is None else released_of(opinion),
        why=None if wrong is None else wrong.why,
        step=None if wrong is None else wrong.step,
    )


def _session_summary(
    event: TaskEnded, session: _Session, opinions: Sequence[Opinion | None]
) -> SessionSummary:
    tasks = session.tasks
    return SessionSummary(
        place=Place(event.place.run, event.place.session),
        at=event.at,
        tasks=tuple(None if it is None else verdict_of(it) for it in opinions),
        spent=Spent(
            sum(task.tokens[0] for task in tasks),
            sum(task.tokens[1] for task in tasks),
            max(0.0, max(it.ended_at for it in tasks) - min(it.began_at for it in tasks if it.began_at)),
        ),
        after_errors=tuple(i for i, it in enumerate(opinions) if it and it.right and it.after_errors),
    )
