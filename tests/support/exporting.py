"""Logs to export, played or made by hand, and what a result file holds."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from support import logs

from scoring.export_cli import RESULT_FILE, export
from scoring.logs.reader import open_log
from scoring.types import SessionScore
from scoring.verdicts.wildtoolbench import score_session

MODEL = "maker/model-1"
DATE = "Current Date: 2025-01-02 10:00:00 Thursday"
LAMP = ("findPrice", '{"thing": "lamp"}')
CHAIR = ("findPrice", '{"thing": "chair"}')
CLOSED = logs.text_message("It is 3.")


class Quiet:
    def began(self, session: str, tasks: int) -> None: ...

    def moved(self, state: object) -> None: ...

    def failed(self, failure: object) -> None: ...

    def finished(self, played: object) -> None: ...


Play = Callable[..., Awaitable[Path]]


def run_export(*arguments: object) -> Result:
    return CliRunner().invoke(export, [str(argument) for argument in arguments])


def exported(log: Path, *arguments: object, model: str = "m") -> list[dict[str, Any]]:
    """The lines of the only result file that the log gives."""
    folder = log.parent / "results"
    result = run_export(log, "-o", folder, *arguments)
    assert result.exit_code == 0, result.output
    return read_lines(folder / model / RESULT_FILE)


def read_lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def scored(log: Path, epoch: int = 1) -> list[SessionScore]:
    opened = open_log(log)
    (run,) = opened.runs()
    return [score_session(it) for it in opened.trajectories(run.id) if it.epoch == epoch]


def step_rows(task: int, step: int, said: Any, start: dict[str, Any]) -> Iterator[Any]:
    exchange = f"x{task}-{step}"
    calls = said.get("tool_calls") if isinstance(said, dict) else None
    told = [
        logs.call(i, it["function"]["name"], it["function"]["arguments"], '{"price": 3}')
        for i, it in enumerate(calls if isinstance(calls, list) else ())
        if isinstance(it, dict) and isinstance(it["function"]["arguments"], str)
    ]
    asked = {"messages": [{"role": "user", "content": f"request {task}-{step}"}], "started_at": 4.5}
    yield logs.start(exchange, turn=task + 1, **{**asked, **start})
    yield logs.finish(exchange, input_tokens=70 + step, output_tokens=7)
    yield logs.step(step, task, turn=task + 1, exchange_id=exchange, message=said, calls=tuple(told))


def node(name: str, arguments: dict[str, Any], observation: Any, *needs: int, **more: Any) -> dict[str, Any]:
    action = {"name": name, "arguments": arguments}
    return {"action": action, "observation": observation, "dependency_list": list(needs), **more}


def shop(*nodes: dict[str, Any], parameters: Any = None, scenario_id: str = "shop_1") -> dict[str, Any]:
    """A scenario of one Task with these nodes, whose one tool has these parameters."""
    function = logs.RECORD["tools"][0]["function"]
    tool = {"type": "function", "function": {**function, "parameters": parameters or function["parameters"]}}
    record = {**logs.RECORD, "id": scenario_id, "tools": [tool]}
    return {**record, "tasks": ["What is a lamp?"], "answer_list": [list(nodes)]}


def first_task(log: Path) -> dict[str, Any]:
    task: dict[str, Any] = exported(log)[0]["result"][0]
    return task


ONE_CALL = (node("findPrice", {"thing": "lamp"}, 1), node("prepare_to_answer", {}, "3.", 0))
