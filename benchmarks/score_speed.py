"""How long `score` takes, and how much memory, for a Run of the benchmark's size: 1,024 Tasks, 5 epochs.

Makes a log (256 Scenarios, like the bundled ones but for their ids; one Task in three is played wrong),
then runs the command as a user does, in a process of its own, in every format.

    python benchmarks/score_speed.py [--epochs 5] [--scenarios FILE]

Prints wall seconds and the largest resident set of each, and the seconds for each 10,000 Tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from proxy.log.rows import (
    ExchangeFinish,
    ExchangeStart,
    Row,
    RunRow,
    ScenarioRow,
    SessionRow,
    StepRow,
    TaskEndRow,
    TurnRow,
)
from proxy.log.writer import LogWriter
from scenarios.load import BUNDLED, parse_record, read_file
from scenarios.mutations import mutations, reference_replies
from scenarios.types import Reply, Scenario

SESSIONS = 256
FORMATS = ("table", "json", "csv", "markdown", "junit")
PROGRAM = Path(__file__).resolve().parent.parent / "run_proxy.py"


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--scenarios", type=Path, default=BUNDLED)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.db"
        tasks = write_log(log, scenarios(asked.scenarios), asked.epochs)
        print(f"{tasks} tasks, {log.stat().st_size / 1e6:.0f} MB of log")
        print(f"{'':10}{'seconds':>9}{'MB':>7}{'seconds for 10,000 tasks':>27}")
        for name in FORMATS:
            seconds, megabytes = measure([sys.executable, str(PROGRAM), "score", str(log), "--format", name])
            print(f"{name:10}{seconds:9.2f}{megabytes:7.0f}{10_000 * seconds / tasks:27.2f}")


def scenarios(path: Path) -> list[Scenario]:
    """As many Scenarios as the benchmark has, each with a hash of its own."""
    records = [scenario.record for scenario in read_file(path).scenarios]
    return [
        parse_record({**record, "id": f"{record['id']}_{number}"})
        for number, record in enumerate(islice(cycle(records), SESSIONS))
    ]


def write_log(path: Path, played: Sequence[Scenario], epochs: int) -> int:
    """Returns the number of Tasks."""
    tasks = 0
    with LogWriter.open(path) as writer:
        config = {"history": "gold", "tools": "intercept", "on_mismatch": "stop", "agent": "builtin"}
        writer.commit_blocking(RunRow("run", 1.0, config, "hash", {}))
        for scenario in played:
            source = ScenarioRow(scenario.hash, scenario.id, scenario.record, "many.jsonl", "0" * 64)
            writer.commit_blocking(source)
            for epoch in range(1, epochs + 1):
                writer.commit_blocking(*session_rows(scenario, epoch))
                tasks += len(scenario.tasks)
    return tasks


def session_rows(scenario: Scenario, epoch: int) -> Iterator[Row]:
    session = f"{scenario.id}.e{epoch}"
    yield SessionRow(session, "run", session, scenario.id, scenario.hash, epoch, 1, 1.0)
    for number, task in enumerate(scenario.tasks):
        yield TurnRow(session, number + 1, number, "task", task.text, 2.0)
        wrong = [it.replies for it in mutations(scenario.tools, task.nodes)]
        choice = epoch + number
        replies = wrong[choice % len(wrong)] if choice % 3 == 0 and wrong else reference_replies(task.nodes)
        for step, reply in enumerate(replies):
            yield from step_rows(session, number, step, as_message(reply))
        yield TaskEndRow(session, number, "closed" if replies[-1].content else "stopped", 5.0)


def step_rows(session: str, task: int, step: int, message: dict[str, Any]) -> Iterator[Row]:
    exchange = f"{session}-{task}-{step}"
    yield ExchangeStart(
        id=exchange,
        side="provider",
        parent_id=None,
        session_id=session,
        turn=task + 1,
        correlation="path",
        reason=None,
        method="POST",
        path="/v1/chat/completions",
        started_at=3.0,
        stream=False,
        request_model="model",
        raw=b"",
        key_hash=None,
        headers={},
        messages=[{"role": "user", "content": "hello"}],
        body={"model": "model"},
    )
    yield ExchangeFinish(
        exchange, 4.0, "complete", 200, 0.5, response_model="model", message=message, input_tokens=900
    )
    yield StepRow(session, task, step, task + 1, exchange, 4.0, "observe", message)


def as_message(reply: Reply) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    return message | ({"tool_calls": calls} if calls else {})


def measure(command: Sequence[str]) -> tuple[float, float]:
    """Wall seconds, and megabytes of the largest resident set."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{json.dumps(command)} failed"
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
