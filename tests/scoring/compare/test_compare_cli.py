from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import logs

from proxy.log.rows import Row
from proxy.log.writer import LogWriter
from run_proxy import main

THINGS = ("lamp", "chair")
ANSWER = logs.text_message("It is 3.")


def session_rows(run: str, scenario: str, epoch: int, outcomes: str) -> Iterator[Row]:
    """A Session whose Tasks are right (R), wrong (W: an answer where a call is due) or not played (-)."""
    session = f"{run}-{scenario}-{epoch}"
    yield logs.session(session, scenario, epoch, run_id=run)
    for task, outcome in enumerate(outcomes):
        if outcome == "-":
            continue
        yield logs.turn(task + 1, task, session)
        call = logs.call_message(("findPrice", json.dumps({"thing": THINGS[task]})))
        for number, message in enumerate([call, ANSWER] if outcome == "R" else [ANSWER]):
            exchange = f"{session}-{task}-{number}"
            yield logs.start(exchange, session, turn=task + 1)
            yield logs.finish(exchange)
            yield logs.step(number, task, session, turn=task + 1, exchange_id=exchange, message=message)
        yield logs.end(task, "closed" if outcome == "R" else "stopped", session)


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """`log("a.db", r1=["RR", "RW"])`: run r1 plays shop_1 and shop_2, with the outcomes of their tasks."""

    def write(
        name: str, config: dict[str, Any] | None = None, question: str | None = None, **runs: list[str]
    ) -> Path:
        path = tmp_path / name
        record = logs.RECORD if question is None else {**logs.RECORD, "tasks": [question, "And a chair?"]}
        with LogWriter.open(path) as writer:
            for run, sessions in runs.items():
                writer.commit_blocking(logs.run(run, **(config or {"history": "gold"})))
                for number, outcomes in enumerate(sessions, start=1):
                    scenario = f"shop_{number}"
                    writer.commit_blocking(logs.scenario(scenario, {**record, "id": scenario}))
                    for epoch, tasks in enumerate(outcomes.split(), start=1):
                        writer.commit_blocking(*session_rows(run, scenario, epoch, tasks))
        return path

    return write


def run_compare(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def one_line(result: Result, exit_code: int) -> str:
    assert result.exit_code == exit_code, result.output
    [line] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert result.stderr.splitlines()[-1] == line
    return line


def test_a_regression_fails_the_gate(log: Callable[..., Path]) -> None:
    a, b = log("a.db", r1=["RR"] * 8), log("b.db", r2=["WR"] * 7 + ["RR"])
    result = run_compare(a, b, "--gate")
    assert result.exit_code == 1, result.output
    assert "B is worse on task accuracy: -43.8 points." in result.stdout
    assert result.stderr == ""
    assert run_compare(a, b).exit_code == 0
    assert run_compare(b, a, "--gate").exit_code == 0
    assert run_compare(a, b, "--gate", "--metric", "session").exit_code == 1


def test_a_flip_is_told_with_the_reason_of_the_wrong_side(log: Callable[..., Path]) -> None:
    a, b = log("a.db", r1=["RR", "RW"]), log("b.db", r2=["RR", "RR"])
    [flip] = json.loads(run_compare(a, b, "--format", "json").stdout)["flips"]
    assert (flip["scenario"], flip["task"], flip["change"]) == ("shop_2", 2, "gained")
    assert flip["a"]["reason"]
    assert flip["b"] == {"right": 1, "scored": 1, "reason": None}
    [line] = [line for line in run_compare(a, b).stdout.splitlines() if line.startswith("  shop_2/2")]
    assert line.split()[:3] == ["shop_2/2", "wrong", "right"]


def test_identical_runs_are_inconclusive_unless_the_margin_is_wide_enough(log: Callable[..., Path]) -> None:
    a, b = log("a.db", r1=["RW"] * 8), log("b.db", r2=["RW"] * 8)
    assert run_compare(a, b, "--gate").exit_code == 4
    # Eight equal scenarios leave z^2 / (8 + z^2) = 32.4 points open.
    assert run_compare(a, b, "--gate", "--margin", 0.32).exit_code == 4
    result = run_compare(a, b, "--gate", "--margin", 0.33)
    assert result.exit_code == 0
    assert "Not worse by more than 33 points." in " ".join(result.stdout.split())


def test_three_sessions_are_too_few_for_any_verdict(log: Callable[..., Path]) -> None:
    result = run_compare(log("a.db", r1=["RR"] * 3), log("b.db", r2=["WW"] * 3), "--gate")
    assert result.exit_code == 4
    assert "Too few for any verdict: 3 scenarios" in result.stdout


def test_two_runs_of_one_log_are_compared(log: Callable[..., Path]) -> None:
    path = log("a.db", r1=["RR"] * 8, r2=["WR"] * 8)
    found = json.loads(run_compare(path, "--run-a", "r2", "--run-b", "r1", "--format", "json").stdout)
    assert (found["a"]["run"], found["b"]["run"], found["verdict"]) == ("r2", "r1", "better")
    assert run_compare(path, path, "--run-a", "r1", "--run-b", "r2", "--gate").exit_code == 1


def test_several_runs_ask_which_one(log: Callable[..., Path]) -> None:
    path, other = log("a.db", r1=["RR"], r2=["WR"]), log("b.db", r3=["RR"])
    assert "a.db holds 2 runs; choose with --run-a: r1, r2" in one_line(run_compare(path, other), 2)
    assert "choose with --run-b: r1, r2" in one_line(run_compare(path, "--run-a", "r1"), 2)
    result = run_compare(path, other, "--run-a", "r9")
    assert result.exit_code == 2
    assert "unknown run 'r9'" in result.stderr


def test_epochs_are_told_with_their_noise_floor(log: Callable[..., Path]) -> None:
    a, b = log("a.db", r1=["RR RW RR", "RR RR RR"]), log("b.db", r2=["RR RR RR RR", "RR RR RR RR"])
    result = run_compare(a, b)
    assert (
        "Noise floor, the tasks that flip between epochs of one run: A 25.0 % (1/4), B 0.0 % (0/4)."
        in " ".join(result.stdout.split())
    )
    assert "Session epochs left out so that both sides have as many: 0 in A, 2 in B." in result.stdout
    assert "2/3 right" in result.stdout


def test_runs_of_different_modes_are_compared_but_not_gated(log: Callable[..., Path]) -> None:
    a, b = log("a.db", r1=["RR"] * 8), log("b.db", {"history": "live"}, r2=["WR"] * 8)
    assert run_compare(a, b).exit_code == 0
    result = run_compare(a, b, "--gate")
    assert result.stdout.startswith("Not comparable: ")
    assert "--gate: the runs are not comparable" in one_line(result, 2)


def test_nothing_scored_on_both_sides_is_not_scorable(log: Callable[..., Path]) -> None:
    whole, never, none = log("a.db", r1=["RR"]), log("b.db", r2=["--"]), log("c.db")
    other = log("d.db", question="What is a desk?", r4=["RR"])
    assert "no task is scored on both sides" in one_line(run_compare(whole, never), 3)
    assert "no run" in one_line(run_compare(whole, none), 3)
    assert "the same ids, but other content" in one_line(run_compare(whole, other), 3)
    partly = log("e.db", r5=["R-"])
    assert run_compare(whole, partly).exit_code == 0
    assert "no session is scored" in one_line(run_compare(whole, partly, "--metric", "session"), 3)


@pytest.mark.parametrize("output_format", ["table", "json", "markdown"])
def test_the_same_logs_and_seed_give_the_same_bytes(log: Callable[..., Path], output_format: str) -> None:
    a, b = log("a.db", r1=["RR", "RW", "WW", "WR"]), log("b.db", r2=["RW", "RR", "WR", "WW"])
    first, second, third = (
        run_compare(a, b, "--format", output_format, "--seed", seed).stdout_bytes for seed in (1, 1, 2)
    )
    assert first
    assert first == second
    assert (first == third) is (output_format != "json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--alpha", "0"),
        ("--alpha", "nan"),
        ("--alpha", "1e-17"),
        ("--alpha", "0.51"),
        ("--margin", "2"),
        ("--margin", "nan"),
        ("--seed", "-1"),
        ("--metric", "x"),
        ("more.db", "most.db"),
    ],
)
def test_wrong_usage_is_one_line(log: Callable[..., Path], arguments: tuple[str, ...]) -> None:
    path = log("a.db", r1=["RR"])
    one_line(run_compare(path, *arguments), 2)


def test_a_log_that_is_missing_or_broken_is_one_line(log: Callable[..., Path], tmp_path: Path) -> None:
    path, broken = log("a.db", r1=["RR"]), tmp_path / "x.db"
    assert "x.db: no such log" in one_line(run_compare(path, broken), 2)
    broken.write_bytes(b"this is not a database, but a text of some length")
    assert "x.db: is not a SQLite database" in one_line(run_compare(broken, path), 2)


@pytest.mark.parametrize("scorer", ["wildtoolbench", "strict"])
def test_the_scorer_asked_for_is_the_one_that_judges(log: Callable[..., Path], scorer: str) -> None:
    a, b = log("a.db", r1=["RR"] * 6), log("b.db", r2=["WR"] * 6)
    found = json.loads(run_compare(a, b, "--scorer", scorer, "--format", "json").stdout)
    assert (found["scorer"]["name"], found["verdict"]) == (scorer, "worse")
