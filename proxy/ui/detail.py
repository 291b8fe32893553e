"""A Session opened: its conversation so far, and of Tasks that are over what they should have been.

The shape is that of the report's, which has the same parts of a page.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.tail.messages import said, text_of
from proxy.ui.board import Live
from proxy.ui.recorded import bounded
from proxy.ui.room import TEXT_CHARS, Room
from proxy.ui.rows import FAILED, session_rows
from proxy.ui.verdicts import Verdicts, read_played
from scenarios.load import ScenarioError

JSON = dict[str, Any]
Rows = Mapping[int, Sequence[sqlite3.Row]]

_SESSION = """SELECT sessions.*, record FROM sessions JOIN scenarios ON scenarios.hash = scenario_hash
    WHERE sessions.id = ?"""
_ENDS = "SELECT task, seq, ending, ended_at FROM tasks WHERE session_id = ?"
_TURNS = f"""SELECT task, turn, seq, kind, opened_at, length(text) AS length,
    substr(text, 1, {TEXT_CHARS}) AS text FROM turns WHERE session_id = ? ORDER BY turn"""
_STEPS = f"""SELECT task, step, steps.seq, steps.turn, decision, steps.reason, steps.nodes, exchange_id,
    max(0, finished_at - started_at) AS seconds, time_to_first_chunk, input_tokens, output_tokens,
    coalesce(response_model, request_model) AS model, {bounded("messages.body")}
    FROM steps JOIN messages ON messages.hash = message JOIN exchanges ON exchanges.id = exchange_id
    WHERE steps.session_id = ? ORDER BY task, step"""
_CALLS = f"""SELECT task, step, name, node, outcome, length(arguments) AS arguments_length,
    substr(arguments, 1, {TEXT_CHARS}) AS arguments, length(observation) AS observation_length,
    substr(observation, 1, {TEXT_CHARS}) AS observation
    FROM tool_calls WHERE session_id = ? ORDER BY task, step, position"""
_FAILURES = f"""SELECT turns.task, exchanges.seq, finish_state, status, error_type,
    substr(error, 1, 600) AS error FROM exchanges JOIN turns USING (session_id, turn)
    WHERE session_id = ? AND side = 'agent' AND reason IS NULL AND ({FAILED}) ORDER BY arrival"""
_OTHERS = """SELECT exchanges.id, reason, status, finish_state, turn, started_at FROM exchanges
    WHERE session_id = ? AND side = 'agent' AND reason IS NOT NULL ORDER BY arrival DESC LIMIT 20"""

_COSTS = ("model", "input_tokens", "output_tokens", "seconds", "time_to_first_chunk")


@dataclass(frozen=True, slots=True)
class _Read:
    """What the log has of a Session, by Task; `calls` by Task and Step."""

    record: JSON
    ends: Mapping[int, sqlite3.Row]
    turns: Rows
    steps: Rows
    calls: Mapping[tuple[int, int], Sequence[sqlite3.Row]]
    failures: Rows


def session_detail(
    connection: sqlite3.Connection, session: str, live: Live, verdicts: Verdicts, after: int = 0
) -> JSON | None:
    """A Session attempt, by its id; None if there is none.

    Of its Tasks those in which something was written with a `seq` after `after`: a page that has the
    others keeps them. `seq` in the answer is what to ask from the next time. A Reference is only
    told of a Task that is over.
    """
    row = connection.execute(_SESSION, (session,)).fetchone()
    if row is None:
        return None
    seq = int(connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0])
    [listed] = session_rows(connection, [session], live_run=live.run, since=live.since)
    read = _read(connection, row)
    room = Room()
    changed = [task for task in range(len(read.record["tasks"])) if _changed(read, task) > after]
    over = [task for task in changed if task in read.ends]
    judged = _judged(connection, session, verdicts) if over else {}
    return {
        **_about(row, read.record, room, first=after == 0),
        "seq": seq,
        "row": verdicts.put_into(listed),
        **({"too_long": verdicts.judges and not judged} if over else {}),
        "state": listed["state"],
        "tasks": [_task(read, task, judged.get(task, {}), room) for task in changed],
        "others": [dict(it) for it in connection.execute(_OTHERS, (session,))],
    }


def _read(connection: sqlite3.Connection, session: sqlite3.Row) -> _Read:
    def by_task(sql: str) -> dict[int, list[sqlite3.Row]]:
        found: dict[int, list[sqlite3.Row]] = defaultdict(list)
        for row in connection.execute(sql, (session["id"],)):
            found[row["task"]].append(row)
        return found

    calls: dict[tuple[int, int], list[sqlite3.Row]] = defaultdict(list)
    for row in connection.execute(_CALLS, (session["id"],)):
        calls[row["task"], row["step"]].append(row)
    ends = {row["task"]: row for row in connection.execute(_ENDS, (session["id"],))}
    record = json.loads(session["record"])
    return _Read(record, ends, by_task(_TURNS), by_task(_STEPS), calls, by_task(_FAILURES))


def _changed(read: _Read, task: int) -> int:
    """The `seq` of the last that was written in a Task; 1 at the least, so that each is told once."""
    ends = [int(read.ends[task]["seq"])] if task in read.ends else []
    rows = [*read.turns.get(task, ()), *read.steps.get(task, ()), *read.failures.get(task, ())]
    return max([1, *ends, *(int(row["seq"]) for row in rows)])


def _judged(connection: sqlite3.Connection, session: str, verdicts: Verdicts) -> Mapping[int, JSON]:
    played = read_played(connection, session)
    if played is None or verdicts.lent.read is None:
        return {}
    verdicts.judge(connection, session)
    try:
        told = verdicts.lent.read(played.record, played.config, played.tasks)
    except ScenarioError:
        return {}
    return {number: told[number] for number, task in enumerate(played.tasks) if task.ending is not None}


def _about(row: sqlite3.Row, record: JSON, room: Room, *, first: bool) -> JSON:
    about: JSON = {
        "key": row["id"],
        "session": row["name"],
        "scenario": row["scenario_id"],
        "epoch": row["epoch"],
        "attempt": row["attempt"],
        "date": room.text(str(record.get("env_info", ""))),
        "opened_at": row["opened_at"],
        "size": len(record["tasks"]),
    }
    return {**about, "tools": list(_tools(record, room))} if first else about


def _tools(record: JSON, room: Room) -> Iterator[JSON]:
    for tool in record["tools"]:
        function = tool.get("function", tool)
        yield {
            "name": room.text(text_of(function.get("name"))),
            "description": room.text(text_of(function.get("description"))),
            "parameters": room.value(function.get("parameters")),
        }


def _task(read: _Read, task: int, judged: JSON, room: Room) -> JSON:
    """`judged` is what a scorer says of it: nothing while the Task is played."""
    end, turns, failures = read.ends.get(task), read.turns.get(task, ()), read.failures.get(task, ())
    begun = bool(turns) or end is not None
    steps = [_step(read, row, room) for row in read.steps.get(task, ())]
    for step, reading in zip(steps, judged.get("steps", ()), strict=False):
        step.update(_reading(step, reading, room))
    return {
        "number": task + 1,
        "label": _item(read.record, "task_types", task) if begun else None,
        "subtype": _item(read.record, "turn_subtypes", task - 1) if begun and task else None,
        "user": room.text(read.record["tasks"][task]) if begun else "",
        "ending": None if end is None else end["ending"],
        "failure": None if not failures else _failure(failures[-1]),
        "opened_at": turns[0]["opened_at"] if turns else None,
        "seconds": max(0.0, end["ended_at"] - turns[0]["opened_at"]) if end is not None and turns else None,
        "verdicts": room.value(judged.get("verdicts", {})),
        "judged_by": judged.get("judged_by"),
        "error_class": judged.get("error_class"),
        "reference": room.value(judged["reference"]) if judged.get("reference") else None,
        "turns": [_turn(row, room) for row in turns],
        "steps": steps,
        "closing": steps[-1]["text"] if steps and end is not None and end["ending"] == "closed" else None,
    }


def _turn(row: sqlite3.Row, room: Room) -> JSON:
    return {
        "turn": row["turn"],
        "user": room.text(row["text"], row["length"]),
        "origin": "task" if row["kind"] == "task" else "scripted reply",
        "opened_at": row["opened_at"],
    }


def _step(read: _Read, row: sqlite3.Row, room: Room) -> JSON:
    """A Step as the proxy decided it, which only says of what it refuses if it is right."""
    message = None if row["body"] is None else json.loads(row["body"])
    if message is None:
        text = room.text(row["begins"] if isinstance(row["begins"], str) else "", row["length"])
    else:
        text = room.text(said(message))
    thought = isinstance(message, dict) and (message.get("reasoning_content") or message.get("reasoning"))
    calls = [_call(it, room) for it in read.calls.get((row["task"], row["step"]), ())]
    return {
        "number": row["step"] + 1,
        "turn": row["turn"],
        "decision": row["decision"],
        "kind": _kind(row["decision"], calls, text),
        "verdict": None if row["reason"] is None else "wrong",
        "text": text or None,
        "reasoning": room.text(text_of(thought)) if thought else None,
        "node": None,
        "calls": calls,
        **{name: row[name] for name in _COSTS},
        "exchanges": [row["exchange_id"]],
    }


def _kind(decision: str, calls: list[JSON], text: str) -> str:
    if calls:
        return "calls"
    return decision if decision in ("ask", "close") else "text" if text else "nothing"


def _call(row: sqlite3.Row, room: Room) -> JSON:
    told_again = "redundant" if row["outcome"] == "redundant" else None
    refused = row["outcome"] not in ("served", "redundant", None)
    return {
        "name": room.text(row["name"]),
        "arguments": _cut(row, "arguments", room),
        "observation": _cut(row, "observation", room),
        "outcome": row["outcome"],
        "verdict": "wrong" if refused else told_again,
        "node": None,
        "expected": None,
        "faults": [],
        "message": None,
    }


def _cut(row: sqlite3.Row, name: str, room: Room) -> str | None:
    return None if row[name] is None else room.text(row[name], row[f"{name}_length"])


_READ_OF_STEPS = ("kind", "verdict", "node")
_READ_OF_CALLS = ("verdict", "node", "expected", "faults", "message", "also")


def _reading(step: JSON, reading: JSON, room: Room) -> JSON:
    """What a scorer reads in a Step, in place of what the proxy said."""
    calls = [
        {**call, **{name: room.value(read[name]) for name in _READ_OF_CALLS if name in read}}
        for call, read in zip(step["calls"], reading["calls"], strict=False)
    ]
    told = {name: reading[name] for name in _READ_OF_STEPS}
    return {**told, "calls": calls} if len(calls) == len(step["calls"]) else told


def _item(record: JSON, name: str, position: int) -> str | None:
    values = record.get(name)
    found = values[position] if isinstance(values, list) and position < len(values) else None
    return found if isinstance(found, str) else None


def _failure(row: sqlite3.Row) -> str:
    what = row["finish_state"] if row["finish_state"] != "complete" else f"status {row['status']}"
    return ": ".join(part for part in (what, row["error_type"], row["error"]) if part)
