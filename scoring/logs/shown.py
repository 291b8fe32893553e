"""What a log holds of a Run for a page to show: turns, Steps, and the exchanges behind them."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.logs.played import Played, played_from
from scoring.logs.reader import LAST_ATTEMPTS, Log
from scoring.page.shown import (
    ShownCall,
    ShownExchange,
    ShownRun,
    ShownSession,
    ShownStep,
    ShownTask,
    ShownTurn,
)
from scoring.types import Trajectory

_TaskKey = tuple[str, int]
"""(session's id, Task from 0)"""

LARGEST = 1 << 28
"""Bytes of an answer that are read, as `proxy.log.answers` has it."""

_TEXTS = (
    "id",
    "side",
    "parent_id",
    "reason",
    "correlation",
    "method",
    "path",
    "finish_state",
    "request_model",
    "response_model",
    "error_type",
    "error",
)
_NUMBERS = (
    "turn",
    "started_at",
    "finished_at",
    "time_to_first_chunk",
    "status",
    "stream",
    "input_tokens",
    "output_tokens",
)
_JSON = ("changes", "findings", "request_headers", "response_headers")

_RUN = "SELECT name, created_at, versions FROM runs WHERE id = :run"
_SESSIONS = f"""{LAST_ATTEMPTS} SELECT id, scenario_id, epoch, attempt, opened_at FROM last WHERE place = 1"""
_TURNS = f"""{LAST_ATTEMPTS} SELECT session_id, task, turn, kind, text, turns.opened_at
    FROM last JOIN turns ON session_id = last.id WHERE place = 1 ORDER BY session_id, turn"""
_STEPS = f"""{LAST_ATTEMPTS} SELECT session_id, task, step, turn, decision, exchange_id, body
    FROM last JOIN steps ON session_id = last.id JOIN messages ON messages.hash = message
    WHERE place = 1 ORDER BY session_id, task, step"""
_CALLS = f"""{LAST_ATTEMPTS} SELECT session_id, task, step, observation, outcome
    FROM last JOIN tool_calls ON session_id = last.id
    WHERE place = 1 ORDER BY session_id, task, step, position"""
_TRIES = f"""{LAST_ATTEMPTS} SELECT exchanges.session_id, turns.task, exchanges.id
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    JOIN turns ON turns.session_id = last.id AND turns.turn = exchanges.turn
    WHERE place = 1 AND side = 'provider' ORDER BY exchanges.session_id, arrival"""
_OF_RUN = f"{LAST_ATTEMPTS}, own AS (SELECT exchanges.* FROM last JOIN exchanges ON session_id = last.id"
_OWN = f"{_OF_RUN} WHERE place = 1)"
_EXCHANGES = f"""{_OWN} SELECT session_id, {", ".join((*_TEXTS, *_NUMBERS, *_JSON))},
        tip, tools, body, output_message, message_count, raw,
        (SELECT value FROM meta WHERE key = 'answer_dictionary')
        || coalesce((SELECT messages.body FROM messages WHERE hash = output_message), '')
        FROM own ORDER BY session_id, arrival"""
_LINKS = f"""{_OWN}, links AS (
        SELECT hash, parent, message FROM chains WHERE hash IN (SELECT tip FROM own)
        UNION SELECT chains.hash, chains.parent, chains.message
        FROM chains JOIN links ON chains.hash = links.parent)"""
_HISTORIES = f"{_LINKS} SELECT hash, parent, message FROM links"
_MESSAGES = f"""{_LINKS} SELECT hash, body FROM messages
    WHERE hash IN (SELECT message FROM links UNION SELECT output_message FROM own)"""
_TOOLS = f"{_OWN} SELECT hash, body FROM tool_lists WHERE hash IN (SELECT tools FROM own)"


def read_shown(log: Log, run_id: str, *, raw: bool) -> tuple[Played, ShownRun]:
    """A Run as it is scored and as it is shown, of one state of the log; `raw`: with its exchanges.

    Raises LogError.
    """

    def read(connection: sqlite3.Connection) -> tuple[Played, ShownRun]:
        played = played_from(connection, log.path, run_id)
        return played, _shown(connection, run_id, played, raw)

    return log.ask(read)


def _shown(connection: sqlite3.Connection, run_id: str, played: Played, raw: bool) -> ShownRun:
    run = {"run": run_id}
    name, created_at, versions = connection.execute(_RUN, run).fetchone()
    found = _found(connection, run)
    texts: dict[str, str] = {}
    if raw:
        for query in (_MESSAGES, _TOOLS):
            texts.update({_text(key): _text(body) for key, body in connection.execute(query, run)})
        for session, exchange in _exchanges(connection, run):
            for key in (*(exchange.messages or ()), exchange.message, exchange.tools):
                if key is not None and key not in texts:
                    raise ValueError("an exchange has a message or tools that are not there")
            found.exchanges[session].append(exchange)
    begun = {
        (scenario, epoch): (session, attempt, opened_at)
        for session, scenario, epoch, attempt, opened_at in connection.execute(_SESSIONS, run)
    }
    return ShownRun(
        name=_text_or_none(name),
        created_at=_number(created_at),
        versions=_object(versions),
        usage=played.usage,
        sessions=tuple(
            found.session(it, *begun.get((it.scenario.id, it.epoch), (None, None, None)))
            for it in played.trajectories
        ),
        texts=texts,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What is read of all Sessions, by Session and Task."""

    turns: dict[_TaskKey, list[ShownTurn]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[_TaskKey, list[ShownStep]] = field(default_factory=lambda: defaultdict(list))
    exchanges: dict[str, list[ShownExchange]] = field(default_factory=lambda: defaultdict(list))

    def session(
        self, trajectory: Trajectory, session: str | None, attempt: int | None, opened_at: float | None
    ) -> ShownSession:
        numbers = range(len(trajectory.scenario.tasks))
        if session is None:
            return ShownSession(None, None, tuple(ShownTask() for _ in numbers))
        tasks = tuple(
            ShownTask(tuple(self.turns.get(key, ())), tuple(self.steps.get(key, ())))
            for key in ((session, number) for number in numbers)
        )
        exchanges = tuple(self.exchanges.get(session, ()))
        return ShownSession(_whole(attempt), _number(opened_at), tasks, exchanges)


def _found(connection: sqlite3.Connection, run: Mapping[str, str]) -> _Found:
    found = _Found()
    for session, task, number, kind, text, opened_at in connection.execute(_TURNS, run):
        turn = ShownTurn(_whole(number), _text(kind), _text(text), _number(opened_at))
        found.turns[session, task].append(turn)
    calls: dict[tuple[Any, ...], list[ShownCall]] = defaultdict(list)
    for *key, observation, outcome in connection.execute(_CALLS, run):
        calls[tuple(key)].append(ShownCall(_text_or_none(observation), _text_or_none(outcome)))
    tries = _tries(connection, run)
    for session, task, number, turn, decision, exchange, body in connection.execute(_STEPS, run):
        step = ShownStep(
            turn=_whole(turn),
            decision=_text(decision),
            reasoning=_reasoning(json.loads(body)),
            calls=tuple(calls.get((session, task, number), ())),
            exchanges=tries.get(exchange, (exchange,)),
        )
        found.steps[session, task].append(step)
    return found


def _tries(connection: sqlite3.Connection, run: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By the exchange that a Step came of, all that it took: the failures before it in its Task, and itself.

    As `scoring.logs.usage` counts them.
    """
    final = {exchange for _, _, _, _, _, exchange, _ in connection.execute(_STEPS, run)}
    failed: dict[_TaskKey, list[str]] = defaultdict(list)
    found: dict[str, tuple[str, ...]] = {}
    for session, task, exchange in connection.execute(_TRIES, run):
        failed[session, task].append(_text(exchange))
        if exchange in final:
            found[exchange] = tuple(failed.pop((session, task)))
    return found


def _exchanges(connection: sqlite3.Connection, run: Mapping[str, str]) -> Iterator[tuple[str, ShownExchange]]:
    links = {link: (parent, message) for link, parent, message in connection.execute(_HISTORIES, run)}
    size = len(_TEXTS), len(_NUMBERS), len(_JSON)
    for session, *row in connection.execute(_EXCHANGES, run):
        texts, numbers, values = row[: size[0]], row[size[0] : sum(size[:2])], row[sum(size[:2]) : sum(size)]
        tip, tools, body, message, count, answer, dictionary = row[sum(size) :]
        about: dict[str, Any] = dict(zip(_TEXTS, map(_text_or_none, texts), strict=True))
        about["parent"] = about.pop("parent_id")
        about |= zip(_NUMBERS, map(_number_or_none, numbers), strict=True)
        about |= (
            (name, None if it is None else json.loads(it)) for name, it in zip(_JSON, values, strict=True)
        )
        yield (
            session,
            ShownExchange(
                about=about,
                messages=None if count is None else _history(links, tip),
                tools=_text_or_none(tools),
                body=_text_or_none(body),
                message=_text_or_none(message),
                answer=None if answer is None else _unpacked(answer, dictionary),
            ),
        )


def _history(links: Mapping[str, tuple[str | None, str]], tip: str | None) -> tuple[str, ...]:
    found = []
    while tip is not None:
        tip, message = links[tip]
        found.append(message)
        if len(found) > len(links):
            raise ValueError("a history goes round in a circle")
    return tuple(reversed(found))


def _unpacked(answer: bytes, dictionary: str) -> bytes:
    """As `proxy.log.answers` has it."""
    unpacker = zlib.decompressobj(zdict=dictionary.encode())
    try:
        found = unpacker.decompress(answer, LARGEST)
    except zlib.error as error:
        raise ValueError("an answer cannot be decompressed") from error
    if not unpacker.eof:
        raise ValueError("an answer is incomplete, or too large")
    return found


def _reasoning(message: Any) -> str | None:
    """What the LLM thought, where the provider tells it: under the names that providers use for it."""
    fields = message if isinstance(message, Mapping) else {}
    said = (fields.get(name) for name in ("reasoning_content", "reasoning"))
    return next((it for it in said if isinstance(it, str) and it), None)


def _object(text: Any) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("the versions of a run are no JSON object")
    return value


def _text_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError("what must be text is none")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("what must be text is none")


def _number_or_none(value: Any) -> float | None:
    return None if value is None else _number(value)


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return value
    raise TypeError("what must be a number is none")


def _whole(value: Any) -> int:
    if isinstance(value, int):
        return value
    raise TypeError("what must be a whole number is none")
