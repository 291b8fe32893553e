"""A Run judged by a later version of its Scenarios."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import logs, scenes, scored
from support.commands import error_line, run

from scenarios.load import parse_record
from scenarios.types import Reply
from scoring.revised import RevisionError, changes, revised
from scoring.types import TaskTrajectory, Trajectory

OLD = parse_record(logs.RECORD)
TASKS = (TaskTrajectory((Reply("It is 3."),), "closed"), TaskTrajectory((Reply("Bye."),), "closed"))


def changed(**changes: Any) -> dict[str, Any]:
    """The record of the log with other values; a copy that shares nothing."""
    return json.loads(json.dumps({**logs.RECORD, **changes}))  # type: ignore[no-any-return]


def corrected() -> dict[str, Any]:
    """The second Task needs no call: what the log has is right. The first one asks for another thing."""
    record = changed()
    record["answer_list"][0][0]["action"]["arguments"]["thing"] = "candle holder"
    record["answer_list"][1] = [scenes.close("It is 3.")]
    return record


def judged(log: Path, *arguments: object) -> list[tuple[str | None, ...]]:
    result = run("score", log, "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    return [
        tuple(score["label"] for score in task["scores"].values())
        for task in json.loads(result.stdout)["tasks"]
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in which the first Task is right, and the second was answered where a call is due."""
    return scored.write_log(tmp_path / "log.db")


def test_a_session_is_the_same_but_for_its_scenario() -> None:
    new = parse_record(corrected())
    played = [Trajectory("shop_1.e1", 1, OLD, TASKS), Trajectory("shop_1.e2", 2, OLD, TASKS)]
    assert list(revised(played, {"shop_1": new, "other": OLD})) == [
        replace(trajectory, scenario=new) for trajectory in played
    ]


def test_a_scenario_that_is_missing_is_named() -> None:
    with pytest.raises(RevisionError, match=r"^scenario shop_1 is in the log and not in the file: add it$"):
        list(revised([Trajectory("shop_1.e1", 1, OLD, TASKS)], {"shop_2": OLD}))


@pytest.mark.parametrize(
    "tasks",
    [("What is a lamp?",), ("What is a lamp?", "And a sofa?"), ("And a chair?", "What is a lamp?")],
)
def test_a_scenario_that_asks_for_other_things_is_refused(tasks: tuple[str, ...]) -> None:
    new = parse_record(changed(tasks=list(tasks), answer_list=logs.RECORD["answer_list"][: len(tasks)]))
    with pytest.raises(RevisionError, match=r"^scenario shop_1 asks for other things now: play it again$"):
        list(revised([Trajectory("shop_1.e1", 1, OLD, TASKS)], {"shop_1": new}))


def test_a_corrected_reference_changes_verdicts(log: Path, tmp_path: Path) -> None:
    new = scenes.write(tmp_path, corrected(), logs.record("another"))
    wrong, right = ("error", "error"), ("correct", "correct")
    assert judged(log) == [right, wrong]
    assert judged(log, "--scenarios", new) == [wrong, right]


def test_a_right_step_that_ended_a_task_under_the_old_reference_is_not_scored(
    log: Path, tmp_path: Path
) -> None:
    """The second Task was ended by a text where a call was due; the new Reference asks a question first."""
    record = changed()
    record["answer_list"][1] = [
        scenes.ask("Which chair?", "The red one."),
        scenes.call("findPrice", {"thing": "chair"}, {"price": 3}, 0),
        scenes.close("It is 3.", 1),
    ]
    new = scenes.write(tmp_path, record)
    scorers = ("--scorer", "wildtoolbench", "--scorer", "strict", "--scorer", "published")
    assert judged(log, *scorers, "--scenarios", new) == [("correct",) * 3, (None,) * 3]
    document = json.loads(run("score", log, *scorers, "--scenarios", new, "--format", "json").stdout)
    for scorer in document["scorers"].values():
        assert scorer["unscored"]["reasons"] == {"ended by the proxy at a step that is allowed": 1}


def test_changes_counts_the_scenarios_that_are_others_now() -> None:
    other, third = (parse_record(logs.record(name)) for name in ("shop_2", "shop_3"))
    played = [
        Trajectory(f"{it.id}.e{epoch}", epoch, it, TASKS) for it in (OLD, other, third) for epoch in (1, 2)
    ]
    same = {it.id: it for it in (OLD, other, third, parse_record(logs.record("not_played")))}
    assert changes(played, same) == "later scenarios: 0 of 3 changed since the log"
    later = same | {"shop_1": parse_record(corrected())}
    assert changes(played, later) == "later scenarios: 1 of 3 changed since the log"


def test_the_document_says_by_which_scenarios_it_was_judged(log: Path, tmp_path: Path) -> None:
    def judged_by(*options: object) -> object:
        return json.loads(run("score", log, "--format", "json", *options).stdout)["judged_by"]

    assert judged_by() is None
    new = scenes.write(tmp_path, corrected())
    assert judged_by("--scenarios", new) == "later scenarios: 1 of 1 changed since the log"


def test_the_same_scenarios_give_the_same_table_but_for_what_it_was_judged_by(
    log: Path, tmp_path: Path
) -> None:
    same = scenes.write(tmp_path, logs.RECORD)
    plain, again = (run("score", log, *options) for options in ((), ("--scenarios", same)))
    assert (plain.exit_code, again.exit_code) == (0, 0)
    told = [line for line in again.stdout.splitlines() if line not in plain.stdout.splitlines()]
    assert told == ["Judged by  later scenarios: 0 of 1 changed since the log"]
    assert again.stdout.replace(f"{told[0]}\n", "") == plain.stdout


def test_a_missing_or_changed_scenario_is_one_line(log: Path, tmp_path: Path) -> None:
    missing = scenes.write(tmp_path, logs.record("shop_2"), name="missing.jsonl")
    other = scenes.write(tmp_path, changed(tasks=["What is a lamp?", "And a sofa?"]), name="other.jsonl")
    for file, reason in (
        (missing, "scenario shop_1 is in the log and not in the file: add it"),
        (other, "scenario shop_1 asks for other things now: play it again"),
    ):
        result = run("score", log, "--scenarios", file)
        assert error_line(result, 2) == f"Error: {log}: {reason}"
        assert result.stdout == ""


def test_a_scenario_file_that_is_missing_or_broken_is_one_line(log: Path, tmp_path: Path) -> None:
    broken = scenes.write(tmp_path, changed(tasks=[]), name="broken.jsonl")
    for file, said in ((tmp_path / "none.jsonl", "none.jsonl"), (broken, "broken.jsonl:1")):
        result = run("score", log, "--scenarios", file)
        assert said in error_line(result, 2)
        assert len(result.stderr.splitlines()) == 1


def test_the_log_is_not_touched(log: Path, tmp_path: Path) -> None:
    before = log.read_bytes()
    judged(log, "--scenarios", scenes.write(tmp_path, corrected()))
    assert log.read_bytes() == before
