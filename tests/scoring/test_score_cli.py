from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import logs

from proxy.log.rows import (
    ExchangeFinish,
    ExchangeStart,
    PlannedRow,
    Row,
    RunRow,
    ScenarioRow,
    SessionRow,
    StepRow,
    TaskEndRow,
    TurnRow,
)
from proxy.log.writer import LogWriter
from scenarios.load import parse_record
from scoring.cli import FORMATS, score
from scoring.options_cli import DEFAULT_SCORERS, SCORER_NAMES
from scoring.verdicts.scorers import DEFAULT, SCORERS

TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room.",
        "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    },
}
CALL_NODE = {
    "action": {"name": "book", "arguments": {"room": "blue"}},
    "observation": {"ok": True},
    "dependency_list": [],
}
CLOSE_NODE = {
    "action": {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}},
    "observation": "Booked.",
    "dependency_list": [0],
}
RECORD = {
    "id": "rooms",
    "env_info": "2024-07-11 22:11:58 Thursday",
    "tools": [TOOL],
    "tasks": ["Book the blue room.", "Thanks!"],
    "answer_list": [[CALL_NODE, CLOSE_NODE], [CLOSE_NODE | {"dependency_list": []}]],
    "task_types": ["Single-Tool", "Chat"],
    "turn_subtypes": ["Coreferential Reference"],
}
RELEASED_SECTIONS = [
    "total_info",
    "task_type_info",
    "layer_info",
    "turn_subtype_info",
    "optimal_info",
    "progress_info",
]
TEXT = {"role": "assistant", "content": "Done."}
VERSIONS = (SCORERS["wildtoolbench"].version, SCORERS["strict"].version)


def calling(arguments: str = '{"room": "blue"}') -> dict[str, Any]:
    function = {"name": "book", "arguments": arguments}
    call = {"id": "c0", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


RIGHT = [[calling(), TEXT], [TEXT]]
WRONG = [[calling('{"room": "red"}')], [TEXT]]


def run_rows(run: str, config: dict[str, Any] | None = None) -> list[Row]:
    return [RunRow(run, 1_700_000_000.0, config or {"history": "gold", "model": "m-1"}, "hash", {})]


def session_rows(run: str, epoch: int, tasks: Sequence[Sequence[dict[str, Any]]]) -> list[Row]:
    """A Session of `rooms` that was played to its end."""
    scenario = parse_record(RECORD)
    session = f"{run}-{epoch}"
    found: list[Row] = [
        ScenarioRow(scenario.hash, scenario.id, scenario.record, "rooms.jsonl", "0" * 64),
        SessionRow(session, run, f"rooms.{epoch}", scenario.id, scenario.hash, epoch, 1, 1.0),
    ]
    for task, replies in enumerate(tasks):
        found.append(TurnRow(session, task + 1, task, "task", RECORD["tasks"][task], 2.0))
        for step, message in enumerate(replies):
            found += step_rows(session, task, step, message)
        found.append(TaskEndRow(session, task, "closed" if replies[-1] == TEXT else "stopped", 5.0))
    return found


def step_rows(session: str, task: int, step: int, message: dict[str, Any]) -> list[Row]:
    agent, provider = f"{session}-{task}-{step}-a", f"{session}-{task}-{step}-p"
    decision = "close" if message == TEXT else "observe"

    def start(name: str, side: str, parent: str | None) -> ExchangeStart:
        return ExchangeStart(
            id=name,
            side=side,
            parent_id=parent,
            session_id=session,
            turn=task + 1,
            correlation="path",
            reason=None,
            method="POST",
            path="/v1/chat/completions",
            started_at=3.0,
            stream=False,
            request_model="m-1",
            raw=b"",
            key_hash=None,
            headers={},
            messages=[{"role": "user", "content": "x"}],
            body={"model": "m-1"},
        )

    def finish(name: str) -> ExchangeFinish:
        return ExchangeFinish(name, 4.0, "complete", 200, 0.5, response_model="m-1", message=message)

    return [
        start(agent, "agent", None),
        start(provider, "provider", agent),
        finish(provider),
        StepRow(session, task, step, task + 1, provider, 4.0, decision, message),
        finish(agent),
    ]


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Writes a log: `log("a.db", r1=[RIGHT, WRONG])` has run r1 with two epochs of `rooms`."""

    def write(name: str = "run.db", **runs: Sequence[Sequence[Sequence[dict[str, Any]]]]) -> Path:
        path = tmp_path / name
        with LogWriter.open(path) as writer:
            for run, sessions in runs.items():
                writer.commit_blocking(*run_rows(run))
                for epoch, tasks in enumerate(sessions, start=1):
                    writer.commit_blocking(*session_rows(run, epoch, tasks))
        return path

    return write


def labels(entry: dict[str, Any]) -> tuple[str | None, ...]:
    """The label that each scorer gives a task."""
    return tuple(score["label"] for score in entry["scores"].values())


def released_of(document: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = document["scorers"]["wildtoolbench"]
    return told


def run_score(*arguments: object) -> Result:
    return CliRunner().invoke(score, [str(argument) for argument in arguments])


def test_the_table_is_the_default(log: Callable[..., Path]) -> None:
    result = run_score(log(r1=[RIGHT, WRONG]))
    assert result.exit_code == 0, result.output
    # Two sessions of one scenario are one cluster, so there is no interval.
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["Log", "run.db"] in lines
    assert ["Run", "r1"] in lines
    assert ["History", "gold"] in lines
    assert ["Session", "accuracy", *["50.0", "1/2", "-"] * 2] in lines
    assert ["Task", "accuracy", *["75.0", "3/4", "-"] * 2] in lines
    assert ["Scorers", *f"wildtoolbench {VERSIONS[0]}, strict {VERSIONS[1]}".split()] in lines


def test_the_document_has_the_figures_of_each_scorer_and_its_verdict_on_each_task(
    log: Callable[..., Path],
) -> None:
    document = json.loads(run_score(log(r1=[RIGHT, WRONG]), "--format", "json").stdout)
    assert list(document) == [
        *("log", "run", "model", "config"),
        *("scorers", "figures", "currency", "notes", "judged_by", "null_agents"),
        *("findings", "writes", "disagreements", "tasks"),
    ]
    assert (document["log"], document["run"], document["model"]) == ("run.db", "r1", "m-1")
    assert document["config"] == {"history": "gold", "model": "m-1"}
    released, strict = document["scorers"].values()
    assert list(document["scorers"]) == ["wildtoolbench", "strict"]
    assert list(released) == ["version", "metrics", "figures", "unscored"]
    assert list(strict) == ["version", "figures", "unscored"]
    assert (released["version"], strict["version"]) == VERSIONS
    assert list(released["metrics"]) == RELEASED_SECTIONS
    assert released["metrics"]["total_info"]["task"] == {
        "accuracy": 0.75,
        "correct_count": 3,
        "total_count": 4,
    }
    assert released["metrics"]["progress_info"]["Total"]["rate"] is None
    nothing = {"low": None, "high": None}
    for scorer in (released, strict):
        assert scorer["figures"]["session_accuracy"] == {"value": 0.5, "n": 2, "successes": 1, **nothing}
        assert scorer["figures"]["accuracy_by_label[Clarify]"] == {
            "value": None,
            "n": 0,
            "successes": 0,
            **nothing,
        }
        assert scorer["unscored"]["tasks"] == 0
    assert document["disagreements"] == []
    assert [(entry["epoch"], entry["task"], labels(entry)) for entry in document["tasks"]] == [
        (1, 1, ("correct", "correct")),
        (1, 2, ("correct", "correct")),
        (2, 1, ("error", "error")),
        (2, 2, ("correct", "correct")),
    ]


def test_only_the_scorers_asked_for_are_told_in_the_order_asked(log: Callable[..., Path]) -> None:
    path = log(r1=[RIGHT, WRONG])
    strict, all_three = (
        json.loads(run_score(path, "--format", "json", *chosen).stdout)
        for chosen in (
            ("--scorer", "strict", "--scorer", "strict"),
            ("--scorer", "published", "--scorer", "strict", "--scorer", "wildtoolbench"),
        )
    )
    assert list(strict["scorers"]) == list(strict["tasks"][0]["scores"]) == ["strict"]
    assert list(all_three["scorers"]) == ["published", "strict", "wildtoolbench"]
    assert ["metrics" in entry for entry in all_three["scorers"].values()] == [False, False, True]


def test_the_tasks_on_which_scorers_disagree_are_listed_with_both_reasons(log: Callable[..., Path]) -> None:
    """A full stop more is similar enough for the released rules, and another text for the strict ones."""
    similar = [[calling('{"room": "blue."}'), TEXT], [TEXT]]
    document = json.loads(run_score(log(r1=[similar]), "--format", "json").stdout)
    [entry] = document["disagreements"]
    reasons = {name: score["reason"] for name, score in document["tasks"][0]["scores"].items()}
    assert entry == {
        "session": "rooms.1",
        "epoch": 1,
        "scenario": "rooms",
        "task": 1,
        "labels": {"wildtoolbench": "correct", "strict": "error"},
        "reasons": reasons,
    }
    assert reasons["wildtoolbench"] is None
    assert '"blue."' in str(reasons["strict"])


def test_what_correct_tasks_took_is_over_the_tasks_that_each_scorer_finds_correct(
    log: Callable[..., Path],
) -> None:
    """A full stop more: correct by the released rules alone."""
    path = log(r1=[[[calling('{"room": "blue."}'), TEXT], [TEXT]]])
    document = json.loads(run_score(path, "--format", "json").stdout)
    assert "steps_over_optimal" not in document["figures"]
    found = [it["figures"]["steps_over_optimal"] for it in document["scorers"].values()]
    assert [(it["value"], it["n"]) for it in found] == [(1.0, 2), (1.0, 1)]
    rows = [line.split() for line in run_score(path).stdout.splitlines()]
    assert ["Steps", "over", "optimal", "path", "1.00", "n", "=", "2", "1.00", "n", "=", "1"] in rows


def test_a_wrong_task_comes_with_its_evidence(log: Callable[..., Path]) -> None:
    [first, second] = json.loads(run_score(log(r1=[WRONG]), "--format", "json").stdout)["tasks"]
    assert first["scenario"] == "rooms"
    assert (first["task_type"], first["subtype"]) == ("Single-Tool", None)
    assert (second["task_type"], second["subtype"]) == ("Chat", "Coreferential Reference")
    for scorer, rule in (("wildtoolbench", "released.args.text_similarity"), ("strict", "args.text")):
        score = first["scores"][scorer]
        assert (score["label"], score["action_name_label"], score["action_arguments_label"]) == (
            *("error", "correct", "error"),
        )
        assert (score["is_optimal"], score["min_steps"]) == (False, 2)
        assert score["error_class"]["name"] == "param_value"
        evidence = score["evidence"]
        assert (evidence["step"], evidence["call"], evidence["tool"]) == (0, 0, "book")
        assert evidence["rule"] == rule
        assert evidence["allowed"] == [["book"]]
        assert evidence["nearest"] == {
            "action": "call",
            "node": 0,
            "name": "book",
            "arguments": {"room": "blue"},
        }
        [fault] = evidence["faults"]
        assert (fault["rule"], fault["path"], fault["expected"], fault["actual"]) == (
            *(rule, "$.room", "blue", "red"),
        )
        assert second["scores"][scorer]["evidence"] is None
        assert second["scores"][scorer]["error_class"] is None
    released = first["scores"]["wildtoolbench"]
    assert released["steps"][0]["verdict"] == "argument_error"
    assert released["steps"][0]["checks"][0] in released["reason"]


def test_the_same_log_gives_the_same_bytes_wherever_it_lies(log: Callable[..., Path], tmp_path: Path) -> None:
    path = log(r1=[RIGHT, WRONG])
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "run.db"
    copy.write_bytes(path.read_bytes())
    for output_format in FORMATS:
        first, second = (run_score(each, "--format", output_format) for each in (path, copy))
        assert first.exit_code == 0, first.output
        assert first.stdout_bytes == second.stdout_bytes
        assert str(tmp_path) not in first.stdout


def test_a_log_with_several_runs_asks_which_one_and_lists_them(log: Callable[..., Path]) -> None:
    result = run_score(log(r1=[RIGHT], r2=[WRONG, WRONG]))
    assert result.exit_code == 2
    assert result.stdout == ""
    first, *listed = result.stderr.splitlines()
    assert "holds 2 runs; choose with --run" in first
    assert [line.split()[0] for line in listed] == ["r1", "r2"]
    assert "1 session" in listed[0]
    assert "2 sessions" in listed[1]


def test_the_run_asked_for_is_scored(log: Callable[..., Path]) -> None:
    path = log(r1=[RIGHT], r2=[WRONG])
    document = json.loads(run_score(path, "--run", "r2", "--format", "json").stdout)
    assert document["run"] == "r2"
    assert released_of(document)["metrics"]["total_info"]["session"]["correct_count"] == 0


def test_an_unknown_run_is_refused_with_a_list_of_the_runs(log: Callable[..., Path]) -> None:
    result = run_score(log(r1=[RIGHT]), "--run", "r9")
    assert result.exit_code == 2
    assert "unknown run 'r9'" in result.stderr
    assert "r1" in result.stderr


def test_several_logs_give_an_entry_for_each_run(log: Callable[..., Path]) -> None:
    paths = log("a.db", r1=[RIGHT]), log("b.db", r2=[WRONG], r3=[RIGHT])
    result = run_score(*paths, "--run", "r2", "--format", "json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [(entry["log"], entry["run"]) for entry in runs] == [("a.db", "r1"), ("b.db", "r2")]
    table = run_score(*paths, "--run", "r2", "--run", "r3").stdout
    assert [line.split()[1] for line in table.splitlines() if line.startswith("Run ")] == ["r1", "r2", "r3"]


def test_a_run_without_sessions_is_not_scorable(log: Callable[..., Path]) -> None:
    result = run_score(log(r1=[]), "--format", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert released_of(document)["metrics"]["total_info"]["session"]["accuracy"] is None
    told = [figure for it in document["scorers"].values() for figure in it["figures"].values()]
    assert {(it["value"], it["n"]) for it in [*told, *document["figures"].values()]} == {(None, 0)}
    assert result.stderr.startswith("Error: run.db, run r1: nothing to score, as it has no sessions; ")


@pytest.mark.parametrize("folder", [".", "my runs"])
def test_a_log_that_was_only_recorded_has_one_line_that_says_where_to_look(
    tmp_path: Path, folder: str
) -> None:
    path = tmp_path / folder / "record.db"
    path.parent.mkdir(exist_ok=True)
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(mode="record"))
    for result in (run_score(path), run_score(path, "-v")):
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr == (
            "Error: record.db, run r1: nothing to score, as it was only recorded, without scenarios; "
            f"look at it with: wildproxy tail {shlex.quote(str(path))}\n"
        )


def test_beside_a_run_that_was_only_recorded_another_has_its_table(
    tmp_path: Path, log: Callable[..., Path]
) -> None:
    with LogWriter.open(tmp_path / "record.db") as writer:
        writer.commit_blocking(logs.run(mode="record"))
    result = run_score(tmp_path / "record.db", log(r2=[RIGHT]))
    assert result.exit_code == 3
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("Run ")] == ["r2"]


def test_tasks_that_were_not_played_are_null_and_not_wrong(log: Callable[..., Path]) -> None:
    partly, never = log("a.db", r1=[RIGHT, RIGHT[:1]]), log("b.db", r1=[[]])
    document = json.loads(run_score(partly, "--format", "json").stdout)
    right, missing = ("correct", "correct"), (None, None)
    assert [labels(entry) for entry in document["tasks"]] == [right, right, right, missing]
    for scorer, told in document["scorers"].items():
        assert told["unscored"] == {
            "tasks": 1,
            "all_tasks": 4,
            "sessions": 1,
            "all_sessions": 2,
            "reasons": {"not played": 1},
        }
        assert document["tasks"][3]["scores"][scorer]["reason"] == "not played"
    result = run_score(never)
    assert result.exit_code == 3
    assert "Not scored: 2 of 2 tasks, so 1 of 1 sessions" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_run_that_was_stopped_says_how_much_of_its_plan_is_missing(log: Callable[..., Path]) -> None:
    path, scenario = log(r1=[RIGHT]), parse_record(RECORD)
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*(PlannedRow("r1", scenario.id, scenario.hash, epoch) for epoch in (1, 2, 3)))
    document = json.loads(run_score(path, "--format", "json").stdout)
    for told in document["scorers"].values():
        assert told["unscored"] == {
            "tasks": 4,
            "all_tasks": 6,
            "sessions": 2,
            "all_sessions": 3,
            "reasons": {"not begun": 4},
        }
    assert released_of(document)["metrics"]["total_info"]["session"]["total_count"] == 1
    assert "Not scored: 4 of 6 tasks, so 2 of 3 sessions: not begun (4)\n" in run_score(path).stdout


def test_a_log_without_runs_is_not_scorable(log: Callable[..., Path]) -> None:
    result = run_score(log(), "--format", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"runs": []}
    assert "no run" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [None, b"this is not a database, but a text of some length"])
def test_a_log_that_is_missing_or_not_sqlite_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    result = run_score(path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "x.db" in result.stderr


def test_every_scorer_that_can_be_chosen_exists() -> None:
    assert list(SCORER_NAMES) == list(SCORERS)
    assert DEFAULT_SCORERS == DEFAULT


# --- A baseline beside the run -----------------------------------------------


def beside(path: Path, *arguments: object) -> str:
    """What is printed below the table of the run."""
    result, table = run_score(path, *arguments), run_score(path, *scorers_of(arguments)).stdout
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{table}\n")
    return result.stdout.removeprefix(table)


def scorers_of(arguments: Sequence[object]) -> list[object]:
    return [it for pair in pairwise(arguments) if pair[0] == "--scorer" for it in pair]


def test_a_baseline_is_a_by_the_first_scorer_and_the_run_is_b(log: Callable[..., Path]) -> None:
    mine, base = log("mine.db", r1=[RIGHT]), log("base.db", r2=[WRONG])
    lines = [line.split() for line in beside(mine, "--baseline", base).splitlines()]
    assert ["Log", "base.db", "mine.db"] in lines
    assert ["Run", "r2", "r1"] in lines
    assert ["Scorer", "wildtoolbench", VERSIONS[0]] in lines
    [accuracy] = [line for line in lines if line[:2] == ["Task", "accuracy"]]
    assert (accuracy[2], accuracy[4]) == ("50.0", "100.0")


def test_the_run_of_a_baseline_can_be_chosen_and_must_be_where_there_are_several(
    log: Callable[..., Path],
) -> None:
    mine, base = log("mine.db", r1=[RIGHT]), log("base.db", r2=[WRONG], r3=[RIGHT])
    for run in ("r2", "r3"):
        told = beside(mine, "--baseline", base, "--baseline-run", run)
        assert ["Run", run, "r1"] in [line.split() for line in told.splitlines()]
    unchosen = run_score(mine, "--baseline", base)
    assert unchosen.exit_code == 2
    assert unchosen.stderr == f"Error: {base} holds 2 runs; choose with --baseline-run: r2, r3\n"
    unknown = run_score(mine, "--baseline", base, "--baseline-run", "r9")
    assert unknown.exit_code == 2
    assert "unknown run 'r9'" in unknown.stderr


def test_nothing_is_compared_by_an_experimental_scorer(log: Callable[..., Path]) -> None:
    path = log(r1=[RIGHT])
    alone = run_score(path, "--scorer", "published", "--baseline", path)
    assert alone.exit_code == 2
    assert alone.stderr == (
        "Error: --baseline: nothing is compared by an experimental scorer: name another --scorer\n"
    )
    told = beside(path, "--scorer", "published", "--scorer", "strict", "--baseline", path)
    assert ["Scorer", "strict", VERSIONS[1]] in [line.split() for line in told.splitlines()]


def test_a_baseline_goes_with_the_table_alone(log: Callable[..., Path]) -> None:
    path = log(r1=[RIGHT])
    for option in (["--baseline", path], ["--leaderboard"]):
        result = run_score(path, "--format", "json", *option)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith("--leaderboard and --baseline go with --format table\n")
