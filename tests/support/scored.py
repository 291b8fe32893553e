"""Scored Runs made by hand, with every value that a test does not care about filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from support import logs

from proxy.log.rows import Row
from proxy.log.writer import LogWriter
from scenarios.strict.faults import Fault
from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.cli import score
from scoring.metrics.figures import Figure
from scoring.report import RunReport, Scored
from scoring.types import CORRECT, ERROR, Evidence, SessionScore, TaskScore
from scoring.verdicts.error_classes import ErrorClass
from scoring.verdicts.scorers import SCORERS

HOSTILE = "=`|<b>&\n\x00\x1b[31m\ud800\uffff\u202e[x](y) @all #1 www.a.b http://a.b ]]> ' \""
"""What Markdown, HTML, XML, a spreadsheet or a terminal would take for its own."""

CLOSING = Node(CLOSE, {"answer_type": "tool"}, "Done.")


def scenario(name: str = "rooms", labels: Sequence[str] = ("Single-Tool", "Chat")) -> Scenario:
    tasks = tuple(Task(f"words of task {i}", label, None, (CLOSING,)) for i, label in enumerate(labels))
    return Scenario(name, "2025-01-02", (), tasks, f"hash-{name}", {})


def right(**changes: Any) -> TaskScore:
    return replace(TaskScore(CORRECT, CORRECT, CORRECT, True, 1, 1, 1), **changes)


def wrong(message: str = "expected blue, got red", rule: str = "args.value", **changes: Any) -> TaskScore:
    """Wrong at its first Step for an argument."""
    fault = Fault(rule, "$.room", message, "blue", "red")
    evidence = Evidence(0, rule, message, call=0, tool="book", faults=(fault,))
    return replace(TaskScore(ERROR, CORRECT, ERROR, False, 1, 0, 1, message, evidence=evidence), **changes)


def unscored(reason: str = "provider_error: status 503") -> TaskScore:
    return TaskScore(None, None, None, False, 0, 0, 1, reason)


def session(*scores: TaskScore, name: str = "rooms.e1", epoch: int = 1, **of: Any) -> SessionScore:
    played = of.get("scenario") or scenario(labels=["Single-Tool", "Chat", "Clarify"][: len(scores)])
    return SessionScore(name, epoch, played, scores)


def scored(
    *sessions: SessionScore, scorer: str = "wildtoolbench", version: str = "1", figures: Sequence[Figure] = ()
) -> Scored:
    """What a scorer says; every wrong Task is a wrong value."""
    classes = tuple(
        tuple(ErrorClass("param_value") if score.label == ERROR else None for score in it.tasks)
        for it in sessions
    )
    return Scored(replace(SCORERS[scorer], version=version), sessions, classes, tuple(figures))


def report(*by_scorer: Scored, **changes: Any) -> RunReport:
    fields: dict[str, Any] = {
        "log": "agent.db",
        "run": "r1",
        "model": "m-1",
        "config": {"history": "gold"},
        "trajectories": (),
        "scored": by_scorer or (scored(session(right(), right())),),
    }
    return RunReport(**(fields | changes))


def rate(name: str, successes: int, n: int, group: str | None = None, **bounds: float) -> Figure:
    return Figure(name, group, successes / n if n else None, n, successes, **bounds)


def write_log(path: Path, *runs: str) -> Path:
    """A log of Runs with one Session each: one Task is right, one answered where a call is due."""
    with LogWriter.open(path) as writer:
        for run in runs or ("r1",):
            writer.commit_blocking(*_rows(run))
    return path


def run_score(*arguments: object) -> Result:
    return CliRunner().invoke(score, [str(argument) for argument in arguments])


def _rows(run: str) -> list[Row]:
    call = logs.call_message(("findPrice", '{"thing": "lamp"}'))
    rows: list[Row] = [logs.run(run, history="gold"), logs.scenario(), logs.session(run, run_id=run)]
    answer = logs.text_message("It is 3.")
    for task, messages in enumerate([[call, answer], [answer]]):
        rows.append(logs.turn(task + 1, task, run))
        for number, message in enumerate(messages):
            exchange = f"{run}-{task}-{number}"
            rows += [
                logs.start(exchange, run, turn=task + 1),
                logs.finish(exchange, message=message),
                logs.step(number, task, run, turn=task + 1, exchange_id=exchange, message=message),
            ]
        rows.append(logs.end(task, "closed" if len(messages) > 1 else "stopped", run))
    return rows
