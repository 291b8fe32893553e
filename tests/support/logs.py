"""Rows for logs, with every value that a test does not care about filled in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from proxy.log.answers import OWN_DICTIONARY, unpack
from proxy.log.rows import (
    ExchangeFinish,
    ExchangeStart,
    RunRow,
    ScenarioRow,
    SessionRow,
    StepRow,
    TaskEndRow,
    ToolCallRow,
    TurnRow,
)

RECORD: dict[str, Any] = {
    "id": "shop_1",
    "env_info": "2025-01-02 10:00:00 Thursday",
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "findPrice",
                "description": "The price of a thing.",
                "parameters": {
                    "type": "object",
                    "properties": {"thing": {"type": "string", "description": "Its name."}},
                    "required": ["thing"],
                },
            },
        }
    ],
    "tasks": ["What is a lamp?", "And a chair?"],
    "answer_list": [
        [
            {
                "action": {"name": "findPrice", "arguments": {"thing": thing}},
                "observation": {"price": 3},
                "dependency_list": [],
                "idx": 0,
            },
            {
                "action": {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}},
                "observation": "It is 3.",
                "dependency_list": [0],
                "idx": 1,
            },
        ]
        for thing in ("lamp", "chair")
    ],
}


def record(scenario_id: str) -> dict[str, Any]:
    return {**RECORD, "id": scenario_id}


def run(run_id: str = "r1", created_at: float = 1.0, **config: Any) -> RunRow:
    return RunRow(run_id, created_at, config, "confighash", {"wildproxy": "0"})


def scenario(scenario_id: str = "shop_1", record_: dict[str, Any] | None = None) -> ScenarioRow:
    return ScenarioRow(f"hash-{scenario_id}", scenario_id, record_ or record(scenario_id), "shop.jsonl", "ab")


def session(
    session_id: str = "s1", scenario_id: str = "shop_1", epoch: int = 1, attempt: int = 1, run_id: str = "r1"
) -> SessionRow:
    name = f"{scenario_id}.e{epoch}"
    return SessionRow(session_id, run_id, name, scenario_id, f"hash-{scenario_id}", epoch, attempt, 2.0)


def turn(number: int = 1, task: int = 0, session_id: str = "s1", kind: str = "task") -> TurnRow:
    return TurnRow(session_id, number, task, kind, f"words of turn {number}", 3.0)


def start(exchange_id: str = "x1", session_id: str | None = "s1", **values: Any) -> ExchangeStart:
    given: dict[str, Any] = {
        "side": "agent",
        "parent_id": None,
        "turn": 1,
        "correlation": "path",
        "reason": None,
        "method": "POST",
        "path": "/v1/chat/completions",
        "started_at": 4.0,
        "stream": False,
        "request_model": "m",
        "raw": b"cd",
        "key_hash": None,
        "headers": {},
        "messages": [{"role": "user", "content": "hello"}],
        "body": {"model": "m"},
    }
    return ExchangeStart(id=exchange_id, session_id=session_id, **{**given, **values})


def finish(exchange_id: str = "x1", **values: Any) -> ExchangeFinish:
    given: dict[str, Any] = {
        "finished_at": 5.0,
        "finish_state": "complete",
        "status": 200,
        "time_to_first_chunk": 0.5,
    }
    return ExchangeFinish(id=exchange_id, **{**given, **values})


def text_message(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def call_message(*calls: tuple[str, str]) -> dict[str, Any]:
    entries = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def step(number: int = 0, task: int = 0, session_id: str = "s1", **values: Any) -> StepRow:
    given: dict[str, Any] = {
        "turn": 1,
        "exchange_id": "x1",
        "decided_at": 6.0,
        "decision": "close",
        "message": text_message("It is 3."),
    }
    return StepRow(session_id=session_id, task=task, step=number, **{**given, **values})


def call(position: int, name: str, arguments: str, observation: str | None) -> ToolCallRow:
    return ToolCallRow(position, f"call_{position}", name, arguments, observation, position)


def end(task: int = 0, how: str = "closed", session_id: str = "s1") -> TaskEndRow:
    return TaskEndRow(session_id, task, how, 7.0)


def opened(session_id: str = "s1", scenario_id: str = "shop_1") -> tuple[Any, ...]:
    """A run with one open session: what every other row needs."""
    return run(), scenario(scenario_id), session(session_id, scenario_id)


def answer(path: Path, exchange_id: str = "x1") -> bytes:
    """The answer's bytes as they came."""
    sql = f"SELECT raw, {OWN_DICTIONARY} FROM exchanges WHERE id = ?"
    [(packed, dictionary)] = query(path, sql, exchange_id)
    return unpack(packed, dictionary)


def query(path: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Ask the log from another connection, which cannot write."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, values).fetchall()
