"""What a log holds of tokens, seconds and tries, of the attempts of a Run that count.

Cached and reasoning tokens are left out: the log has them only inside the compressed answers.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from scoring.logs.reader import LAST_ATTEMPTS
from scoring.metrics.usage import ModelCall, StepUsage, TaskKey, Usage

_NO_CALLS = "('mcp', 'refused')"
"""Reasons of exchanges beside the conversation that no LLM has seen."""

_SESSIONS = f"{LAST_ATTEMPTS} SELECT count(*) FROM last WHERE place = 1"
_EXCHANGES = f"""{LAST_ATTEMPTS} SELECT scenario_id, last.epoch, coalesce(steps.task, turns.task), steps.step,
        handovers.exchange_id IS NOT NULL, request_model, input_tokens, output_tokens,
        round(max(0, finished_at - started_at), 6), time_to_first_chunk
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    LEFT JOIN turns ON turns.session_id = last.id AND turns.turn = exchanges.turn
    LEFT JOIN steps ON steps.session_id = last.id AND steps.exchange_id = exchanges.id
    LEFT JOIN handovers ON handovers.session_id = last.id AND handovers.exchange_id = exchanges.id
    WHERE place = 1 AND (steps.step IS NOT NULL OR (side = 'provider' AND finish_state != 'pending'))
    ORDER BY scenario_id, last.epoch, arrival, steps.task, steps.step"""
_SIDE_CALLS = f"""{LAST_ATTEMPTS} SELECT request_model, input_tokens, output_tokens
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    WHERE place = 1 AND side = 'agent' AND reason NOT IN {_NO_CALLS} AND finish_state != 'pending'
    ORDER BY scenario_id, last.epoch, arrival"""
_SECONDS = f"""{LAST_ATTEMPTS} SELECT scenario_id, last.epoch, tasks.task,
        round(max(0, ended_at - min(turns.opened_at)), 6)
    FROM last JOIN tasks ON tasks.session_id = last.id
    JOIN turns ON turns.session_id = last.id AND turns.task = tasks.task
    WHERE place = 1 GROUP BY scenario_id, last.epoch, tasks.task
    ORDER BY scenario_id, last.epoch, tasks.task"""


class _Found:
    """The calls of the conversations, while they are sorted by what came of them."""

    def __init__(self) -> None:
        self.steps: dict[TaskKey, dict[int, StepUsage]] = defaultdict(dict)
        self.control_calls: list[ModelCall] = []
        self.failed: list[ModelCall] = []
        self._tries: dict[tuple[Any, ...], int] = defaultdict(int)

    def take(self, row: tuple[Any, ...]) -> None:
        """A row of `_EXCHANGES`. The failures before a Step, in its Task, were tries of it."""
        scenario, epoch, task, step, control, model, given, made, latency, first = row
        self._tries[scenario, epoch, task] += 1
        if step is None and not control:
            self.failed.append(ModelCall(model, given, made))
            return
        tries = self._tries.pop((scenario, epoch, task))
        if step is None:
            self.control_calls.append(ModelCall(model, given, made))
        else:
            self.steps[scenario, epoch, task][step] = StepUsage(model, given, made, latency, first, tries)


def read_usage(connection: sqlite3.Connection, run_id: str) -> Usage:
    """What the last attempt of every Session of a Run took; for `Log.ask`, beside the Trajectories.

    What is still pending is not in it, so that an exchange whose proxy was killed is not either.
    """
    run = {"run": run_id}
    found = _Found()
    for row in connection.execute(_EXCHANGES, run):
        if not all(it is None or isinstance(it, int | float) for it in row[-4:]):
            raise TypeError("tokens or times of an exchange are no numbers")
        found.take(row)
    (sessions,) = connection.execute(_SESSIONS, run).fetchone()
    return Usage(
        sessions=sessions,
        steps=_in_order(found.steps),
        seconds={(name, epoch, task): it for name, epoch, task, it in connection.execute(_SECONDS, run)},
        side_calls=tuple(ModelCall(*row) for row in connection.execute(_SIDE_CALLS, run)),
        control_calls=tuple(found.control_calls),
        failed=tuple(found.failed),
    )


def _in_order(steps: Mapping[TaskKey, Mapping[int, StepUsage]]) -> dict[TaskKey, tuple[StepUsage, ...]]:
    return {key: tuple(found for _, found in sorted(steps[key].items())) for key in sorted(steps)}
