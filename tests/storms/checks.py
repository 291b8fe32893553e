"""What must be true of a log after a storm, whatever was killed when. Uses the standard library alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Note = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Life:
    """A process that wrote to the log: from when to when, in Unix seconds, and if it was killed."""

    began: float
    ended: float
    killed: bool


def wrong_with(log: Path, seen: Sequence[Note], given: set[str], lives: Sequence[Life]) -> list[str]:
    """One line for each thing that is wrong with the log.

    `seen` are the answers that agents have seen whole, `given` the marks of the provider's answers.
    """
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as reader:
        reader.row_factory = sqlite3.Row
        return [
            *_of_the_file(reader),
            *_lost(reader, seen),
            *_judged_twice(reader, given),
            *_played_twice(reader),
            *_told_otherwise(reader),
            *_left_pending(reader, lives),
        ]


def pending(log: Path) -> int:
    """Exchanges whose process was killed before they were over."""
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as reader:
        [(count,)] = reader.execute("SELECT count(*) FROM exchanges WHERE finish_state = 'pending'")
        return int(count)


def _of_the_file(reader: sqlite3.Connection) -> Iterator[str]:
    for (found,) in reader.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"integrity_check: {found}"
    for found in reader.execute("PRAGMA foreign_key_check"):
        yield f"foreign key: {tuple(found)}"
    played = reader.execute("SELECT count(DISTINCT run_id) FROM sessions").fetchone()[0]
    if played != 1:
        yield f"{played} runs were played, not one"


def _lost(reader: sqlite3.Connection, seen: Sequence[Note]) -> Iterator[str]:
    """Answers that an agent has seen and the log has not, or not as they were."""
    for note in seen:
        logged = reader.execute(
            """SELECT sessions.name, turn, finish_state, body.body AS message
            FROM exchanges JOIN sessions ON sessions.id = session_id
            JOIN messages AS body ON body.hash = output_message
            WHERE side = 'agent' AND request_sha256 = ? AND response_id = ?""",
            (note["sha256"], note["id"]),
        ).fetchall()
        wanted = (note["session"], "complete", note["message"])
        if wanted not in [(row["name"], row["finish_state"], json.loads(row["message"])) for row in logged]:
            yield f"lost: {note}; logged: {[tuple(row) for row in logged]}"


def _judged_twice(reader: sqlite3.Connection, given: set[str]) -> Iterator[str]:
    """Answers of the provider that are in the log twice, or that it never gave."""
    marks = [
        mark
        for (mark,) in reader.execute(
            """SELECT json_extract(response_headers, '$."x-request-id"') FROM exchanges
            WHERE side = 'provider' AND finish_state = 'complete'"""
        )
    ]
    if len(marks) != len(set(marks)):
        yield f"{len(marks) - len(set(marks))} answers of the provider are in the log twice"
    if unknown := set(marks) - given:
        yield f"never given by the provider: {unknown}"
    steps, exchanges = reader.execute(
        """SELECT count(*), count(DISTINCT exchange_id) FROM steps
        JOIN exchanges ON exchanges.id = exchange_id WHERE side = 'provider' AND finish_state = 'complete'"""
    ).fetchone()
    every = reader.execute("SELECT count(*) FROM steps").fetchone()[0]
    if not steps == exchanges == every:
        yield f"{every} steps, {steps} of them of {exchanges} answers of the provider"


def _played_twice(reader: sqlite3.Connection) -> Iterator[str]:
    """Turns that came to an end twice, or went on after it."""
    ends = "SELECT session_id, turn, seq FROM steps WHERE decision IN ('ask', 'close', 'stop')"
    for row in reader.execute(f"SELECT session_id, turn FROM ({ends}) GROUP BY 1, 2 HAVING count(*) > 1"):
        yield f"ended twice: {tuple(row)}"
    for row in reader.execute(
        f"""SELECT later.id, ended.session_id, ended.turn FROM ({ends}) AS ended JOIN exchanges AS later
        ON later.session_id = ended.session_id AND later.turn = ended.turn
        WHERE later.side = 'provider' AND later.arrival > ended.seq"""
    ):
        yield f"went on after its end: {tuple(row)}"


def _told_otherwise(reader: sqlite3.Connection) -> Iterator[str]:
    """Requests that were sent again and got another answer."""
    for row in reader.execute(
        """SELECT session_id, turn, count(*), count(DISTINCT output_message)
        FROM exchanges WHERE side = 'agent' AND finish_state = 'complete' AND reason IS NULL
        AND session_id IS NOT NULL
        GROUP BY session_id, turn, request_sha256 HAVING count(DISTINCT output_message) > 1"""
    ):
        yield f"told otherwise: {tuple(row)}"


def _left_pending(reader: sqlite3.Connection, lives: Sequence[Life]) -> Iterator[str]:
    """Exchanges that are still pending though nobody killed the process that they belonged to."""
    for row in reader.execute("SELECT id, side, started_at FROM exchanges WHERE finish_state = 'pending'"):
        if not any(life.killed and life.began <= row["started_at"] <= life.ended for life in lives):
            yield f"left pending: {tuple(row)}"
