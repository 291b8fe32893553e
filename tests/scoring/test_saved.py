from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import scored
from support.commands import error_line
from support.logs import query
from support.scored import HOSTILE, rate, right, session, unscored, wrong

from scoring.logs.saved import SavedError, save, scores_path
from scoring.metrics.figures import Figure
from scoring.output.moved import moved_lines
from scoring.report import RunReport
from scoring.types import TaskScore

VERDICTS = "SELECT run, session, task, scorer, scorer_version, label FROM verdicts"


def run_of(
    *scores: TaskScore,
    scorers: Sequence[str] = ("strict",),
    version: str = "1",
    name: str = "rooms",
    **of: Any,
) -> RunReport:
    played = session(
        *scores, scenario=scored.scenario(name, ["Single-Tool", "Chat", "Clarify"][: len(scores)])
    )
    by_scorer = (scored.scored(played, scorer=scorer, version=version) for scorer in scorers)
    return scored.report(*by_scorer, **of)


def columns_of(path: Path) -> list[str]:
    return [name for _, name, *_ in query(path, "PRAGMA table_info(verdicts)")]


def refusal(log: Path, report: RunReport) -> str:
    with pytest.raises(SavedError) as refused:
        save(log, report)
    assert str(refused.value).isprintable()
    return str(refused.value)


@pytest.mark.parametrize(
    ("log", "beside"),
    [("agent.db", "agent.scores.db"), ("agent", "agent.scores.db"), ("a.sqlite", "a.sqlite.scores.db")],
)
def test_scores_are_saved_beside_the_log_under_its_name(log: str, beside: str) -> None:
    assert scores_path(Path("logs") / log) == Path("logs") / beside


def test_each_verdict_is_saved_with_what_made_it(tmp_path: Path) -> None:
    saved = save(
        tmp_path / "agent.db", run_of(right(), wrong(), unscored("provider: 503"), config={"b": 1, "a": 2})
    )
    assert saved.path == tmp_path / "agent.scores.db"
    columns = "run, session, scenario, scenario_hash, epoch, task, scorer, scorer_version"
    same = ("r1", "rooms.e1", "rooms", "hash-rooms", 1)
    assert query(saved.path, f"SELECT {columns} FROM verdicts") == [
        (*same, task, "strict", "1") for task in (1, 2, 3)
    ]
    assert query(saved.path, "SELECT label, rule, reason, error_class, is_optimal FROM verdicts") == [
        ("correct", None, None, None, 1),
        ("error", "args.value", "expected blue, got red", "param_value", 0),
        (None, None, "provider: 503", None, 0),
    ]
    # sha256 of {"a": 2, "b": 1}, by sha256sum.
    assert query(saved.path, "SELECT DISTINCT config_hash FROM verdicts") == [
        ("21501dbaf73f5223934d22283f01caff4132bc1de4a9550c1ed0dffeb397a323",)
    ]
    assert columns_of(saved.path)[9:12] == ["label", "verdict", "rule"]
    assert query(saved.path, "SELECT DISTINCT verdict FROM verdicts") == [(None,)]
    assert query(saved.path, "SELECT * FROM meta") == [
        ("application", "wildtoolbench-proxy scores"),
        ("schema_version", 1),
    ]


def test_each_figure_is_saved_with_its_scorer_or_none(tmp_path: Path) -> None:
    report = scored.report(
        scored.scored(
            figures=[rate("task_accuracy", 1, 4, low=0.01, high=0.7), rate("accuracy_by_label", 0, 0, "Chat")]
        ),
        figures=(Figure("steps_per_task", None, 2.5, 4),),
    )
    assert query(save(tmp_path / "a.db", report).path, "SELECT * FROM figures") == [
        ("r1", "", "steps_per_task", 2.5, 4, None, None, None),
        ("r1", "wildtoolbench", "accuracy_by_label[Chat]", None, 0, 0, None, None),
        ("r1", "wildtoolbench", "task_accuracy", 0.25, 4, 1, 0.01, 0.7),
    ]


def test_the_same_scores_leave_the_same_bytes_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "a.db"
    log.write_bytes(b"never opened")
    first = save(log, run_of(right(), wrong())).path.read_bytes()
    again = save(log, run_of(right(), wrong()))
    assert again.path.read_bytes() == first
    assert sorted(it.name for it in tmp_path.iterdir()) == ["a.db", "a.scores.db"]
    assert log.read_bytes() == b"never opened"


def test_the_bytes_do_not_depend_on_the_order_in_which_runs_are_saved(tmp_path: Path) -> None:
    runs = [run_of(right(), run="r1"), run_of(wrong(), run="r2", scorers=("wildtoolbench", "strict"))]
    for report in runs:
        save(tmp_path / "a.db", report)
    for report in [*reversed(runs), runs[1]]:
        save(tmp_path / "b.db", report)
    assert (tmp_path / "a.scores.db").read_bytes() == (tmp_path / "b.scores.db").read_bytes()
    assert query(tmp_path / "a.scores.db", VERDICTS) == [
        ("r1", "rooms.e1", 1, "strict", "1", "correct"),
        ("r2", "rooms.e1", 1, "strict", "1", "error"),
        ("r2", "rooms.e1", 1, "wildtoolbench", "1", "error"),
    ]


def test_verdicts_of_other_scorers_stay(tmp_path: Path) -> None:
    log = tmp_path / "a.db"
    save(log, run_of(wrong(), scorers=("wildtoolbench", "strict")))
    saved = save(log, run_of(right(), scorers=("strict",)))
    assert [(it.before.label, it.after.label) for it in saved.moved] == [("error", "correct")]
    assert (saved.compared, saved.new, saved.gone) == (1, (), ())
    assert query(saved.path, "SELECT scorer, label FROM verdicts") == [
        ("strict", "correct"),
        ("wildtoolbench", "error"),
    ]


def test_the_first_time_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    saved = save(tmp_path / "a.db", run_of(right(), wrong()))
    assert moved_lines(saved) == ["2 verdicts saved, none was there before"]


def test_the_same_verdicts_do_not_move(tmp_path: Path) -> None:
    save(tmp_path / "a.db", run_of(right(), wrong()))
    assert moved_lines(save(tmp_path / "a.db", run_of(right(), wrong(), version="2"))) == [
        "0 of 2 verdicts moved"
    ]


def test_what_moved_is_told_with_its_cause(tmp_path: Path) -> None:
    """Two runs in one file: r1 gets a later scorer, r2 a later scenario, and then both at once."""
    log = tmp_path / "a.db"
    save(log, run_of(right(), wrong(), run="r1"))
    moved = save(log, run_of(wrong("got red"), right(is_optimal=False), run="r1", version="2"))
    assert moved_lines(moved) == [
        "rooms.e1, task 1, strict: correct -> error (args.value, param_value); strict 1 -> 2: got red",
        "rooms.e1, task 2, strict: error (args.value, param_value) -> correct (not optimal); strict 1 -> 2",
        "2 of 2 verdicts moved: strict 1 -> 2 (2)",
    ]
    changed = run_of(right(), right(), unscored("provider: 503"), run="r1", version="2")
    [by_scorer] = changed.scored
    [played] = by_scorer.sessions
    changed = replace(
        changed,
        scored=(
            replace(
                by_scorer, sessions=(replace(played, scenario=replace(played.scenario, hash="another")),)
            ),
        ),
    )
    saved = save(log, changed)
    assert [it.scenario_changed for it in saved.moved] == [True, True]
    assert moved_lines(saved) == [
        "rooms.e1, task 1, strict: error (args.value, param_value) -> correct; scenario changed",
        "rooms.e1, task 2, strict: correct (not optimal) -> correct; scenario changed",
        "rooms.e1, task 3, strict: new, not scored: provider: 503",
        "2 of 2 verdicts moved: scenario changed (2); 1 new",
    ]
    assert moved_lines(save(log, run_of(wrong("got red"), run="r1", version="3"))) == [
        "rooms.e1, task 1, strict: correct -> error (args.value, param_value); "
        "strict 2 -> 3 and scenario changed: got red",
        "rooms.e1, task 2, strict: gone, was correct",
        "rooms.e1, task 3, strict: gone, was not scored",
        "1 of 1 verdict moved: strict 2 -> 3 and scenario changed (1); 2 gone",
    ]


def test_a_verdict_that_moved_for_no_other_reason_did_so_with_the_log(tmp_path: Path) -> None:
    save(tmp_path / "a.db", run_of(unscored(), wrong(), right()))
    saved = save(tmp_path / "a.db", run_of(right(), wrong("too late", "args.time"), right()))
    assert moved_lines(saved) == [
        "rooms.e1, task 1, strict: not scored -> correct; log changed",
        "rooms.e1, task 2, strict: error (args.value, param_value) -> error (args.time, param_value); "
        "log changed: too late",
        "2 of 3 verdicts moved: log changed (2)",
    ]


def test_a_live_verdict_that_moves_is_told_though_its_label_is_the_same(tmp_path: Path) -> None:
    log, evidence = tmp_path / "a.db", {"evidence": None, "reason": "too late"}
    before = (wrong(verdict="wrong", **evidence), right(verdict="correct"))
    after = (wrong(verdict="correct_after_errors", **evidence), right(verdict="correct"))
    assert query(save(log, run_of(*before)).path, "SELECT label, verdict FROM verdicts") == [
        ("error", "wrong"),
        ("correct", "correct"),
    ]
    assert moved_lines(save(log, run_of(*after))) == [
        "rooms.e1, task 1, strict: error, wrong (param_value) -> error, correct_after_errors (param_value); "
        "log changed: too late",
        "1 of 2 verdicts moved: log changed (1)",
    ]
    assert moved_lines(save(log, run_of(*after))) == ["0 of 2 verdicts moved"]


def test_hostile_text_is_saved_once_and_told_in_one_line(tmp_path: Path) -> None:
    def report(score: TaskScore) -> RunReport:
        played = session(score, name=HOSTILE, scenario=scored.scenario(HOSTILE, [HOSTILE]))
        figures = [rate("accuracy_by_label", 0, 1, HOSTILE)]
        return scored.report(scored.scored(played, figures=figures), run=HOSTILE, config={"model": HOSTILE})

    save(tmp_path / "a.db", report(right()))
    lines = moved_lines(save(tmp_path / "a.db", report(wrong(HOSTILE, HOSTILE))))
    assert [line.isprintable() for line in lines] == [True, True]
    assert lines[1] == "1 of 1 verdict moved: log changed (1)"
    assert moved_lines(save(tmp_path / "a.db", report(wrong(HOSTILE, HOSTILE)))) == ["0 of 1 verdict moved"]


def test_two_sessions_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = scored.report(scored.scored(session(right()), session(right(), epoch=2)))
    assert (
        refusal(tmp_path / "a.db", twice)
        == "run r1 has two sessions named rooms.e1, so its scores were not saved"
    )
    assert list(tmp_path.iterdir()) == []


def make_database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE TABLE mine (x)"], "is no file of saved scores"),
        (["PRAGMA journal_mode = WAL", "CREATE TABLE mine (x)"], "is no file of saved scores"),
        (
            [
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value)",
                "INSERT INTO meta VALUES ('application', 'other')",
            ],
            "is no file of saved scores",
        ),
        (
            [
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value)",
                "INSERT INTO meta VALUES ('application', 'wildtoolbench-proxy scores')",
                "INSERT INTO meta VALUES ('schema_version', 2)",
            ],
            "is from a newer version (schema 2, this one writes 1)",
        ),
        (
            [
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value)",
                "INSERT INTO meta VALUES ('application', 'wildtoolbench-proxy scores')",
                "INSERT INTO meta VALUES ('schema_version', 1)",
            ],
            "cannot be read as saved scores (no such table: verdicts)",
        ),
    ],
)
def test_a_database_that_is_not_ours_is_left_alone(tmp_path: Path, statements: list[str], why: str) -> None:
    there = tmp_path / "a.scores.db"
    make_database(there, *statements)
    before = there.read_bytes()
    assert refusal(tmp_path / "a.db", run_of(right())).startswith(f"{there}: {why}, so nothing was saved: ")
    assert there.read_bytes() == before
    assert [it.name for it in tmp_path.iterdir()] == ["a.scores.db"]


def test_a_file_that_is_no_database_and_a_folder_are_left_alone(tmp_path: Path) -> None:
    there = tmp_path / "a.scores.db"
    there.write_bytes(b"my notes, which are long enough to have a header" * 10)
    assert refusal(tmp_path / "a.db", run_of(right())).endswith(
        "(file is not a database), so nothing was saved: move it away"
    )
    assert there.read_bytes().startswith(b"my notes")
    (tmp_path / "b.scores.db").mkdir()
    assert "is no file, so nothing was saved" in refusal(tmp_path / "b.db", run_of(right()))


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    target = tmp_path / "file" / "a.scores.db"
    assert refusal(tmp_path / "file" / "a.db", run_of(right())) == (
        f"{target}: cannot be written (Not a directory), so the scores were not saved"
    )


def test_the_command_saves_and_tells_what_moved(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    before = log.read_bytes()
    plain, saved = scored.run_score(log), scored.run_score(log, "--save")
    beside = tmp_path / "a.scores.db"
    assert (saved.exit_code, saved.stderr) == (0, "")
    assert saved.stdout == plain.stdout + f"{beside}, run r1:\n4 verdicts saved, none was there before\n"
    assert query(beside, "SELECT task, scorer, label FROM verdicts") == [
        (1, "strict", "correct"),
        (1, "wildtoolbench", "correct"),
        (2, "strict", "error"),
        (2, "wildtoolbench", "error"),
    ]
    content = beside.read_bytes()
    assert scored.run_score(log, "--save").stdout.splitlines()[-1] == "0 of 4 verdicts moved"
    assert (beside.read_bytes(), log.read_bytes()) == (content, before)


@pytest.mark.parametrize("output_format", ["json", "csv", "markdown", "junit"])
def test_what_moved_is_not_among_what_programs_read(tmp_path: Path, output_format: str) -> None:
    log = scored.write_log(tmp_path / "a.db")
    plain = scored.run_score(log, "--format", output_format)
    saved = scored.run_score(log, "--format", output_format, "--save")
    assert saved.stdout == plain.stdout
    assert saved.stderr.splitlines()[-1] == "4 verdicts saved, none was there before"


def test_logs_of_one_name_are_each_saved_beside_themselves(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "a.db" for folder in ("x", "y", "z")]
    for path, run in zip(paths[:2], ("r1", "r2"), strict=True):
        path.parent.mkdir()
        scored.write_log(path, run)
    paths[2].parent.mkdir()
    shutil.copy(paths[0], paths[2])
    result = scored.run_score(*paths, "--save", "--format", "json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["runs"]) == 3
    found = [query(scores_path(path), "SELECT DISTINCT run FROM verdicts") for path in paths]
    assert found == [[("r1",)], [("r2",)], [("r1",)]]


def test_the_command_refuses_a_file_that_is_not_ours(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    make_database(tmp_path / "a.scores.db", "CREATE TABLE mine (x)")
    line = error_line(scored.run_score(log, "--save"), 2)
    there = tmp_path / "a.scores.db"
    assert line == f"Error: {there}: is no file of saved scores, so nothing was saved: move it away"
