from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import logs, scored
from support.commands import error_line

from proxy.log.rows import PlannedRow, ScenarioRow
from proxy.log.writer import LogWriter
from scenarios.load import read_file
from scenarios.types import Reply, ToolCall
from scoring.logs.opening import LogError, read
from scoring.logs.reader import NOT_BEGUN, NOT_ENDED, NOT_PLAYED, RunInfo, natural, open_log
from scoring.types import TaskTrajectory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def write(path: Path, *rows: Any) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*rows)


def tasks(path: Path, *rows: Any) -> tuple[TaskTrajectory, ...]:
    """The Tasks of the one session of a log that holds these rows."""
    write(path, *logs.opened(), *rows)
    (trajectory,) = open_log(path).trajectories("r1")
    return trajectory.tasks


def unfinished(reason: str, *replies: Reply, ending: str | None = None) -> TaskTrajectory:
    return TaskTrajectory(replies, ending, finished=False, unfinished_reason=reason)


def test_a_session_becomes_its_scenario_and_the_replies_of_each_task(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.start("x1"),
        logs.step(1, 0, message=logs.text_message("It is 3.")),
        logs.step(0, 0, message=logs.call_message(("findPrice", '{"thing": "lamp"}'))),
        logs.end(0),
        logs.step(0, 1, message={"role": "assistant", "content": ""}),
        logs.end(1, "stopped"),
    )

    (trajectory,) = open_log(path).trajectories("r1")

    assert (trajectory.session, trajectory.epoch) == ("shop_1.e1", 1)
    assert [task.text for task in trajectory.scenario.tasks] == ["What is a lamp?", "And a chair?"]
    assert trajectory.tasks == (
        TaskTrajectory(
            (Reply(None, (ToolCall("call_0", "findPrice", '{"thing": "lamp"}'),)), Reply("It is 3.")),
            "closed",
        ),
        TaskTrajectory((Reply(""),), "stopped"),
    )


@pytest.mark.parametrize("ending", ["closed", "stopped", "agent_stopped"])
def test_a_task_that_the_agent_ended_is_finished_however_it_did(path: Path, ending: str) -> None:
    assert tasks(path, logs.end(0, ending))[0] == TaskTrajectory((), ending)


def test_a_task_that_ended_otherwise_is_not_scored(path: Path) -> None:
    assert tasks(path, logs.end(0, "infrastructure"))[0] == unfinished(
        "infrastructure", ending="infrastructure"
    )


def test_a_task_that_infrastructure_ended_says_what_failed(path: Path) -> None:
    failed = logs.finish("x1", finish_state="provider_error", status=502, error="no route")
    found = tasks(path, logs.turn(), logs.start("x1"), failed, logs.end(0, "infrastructure"))

    assert found[0] == unfinished("provider_error: status 502, no route", ending="infrastructure")


@pytest.mark.parametrize(
    ("error", "told"),
    [("HTTP 500: overloaded", "status 500, overloaded"), ("HTTP 500", "status 500")],
)
def test_a_status_is_told_once(path: Path, error: str, told: str) -> None:
    failed = logs.finish("x1", finish_state="provider_error", status=500, error_type="500", error=error)
    found = tasks(path, logs.turn(), logs.start("x1"), failed, logs.end(0, "infrastructure"))

    assert found[0] == unfinished(f"provider_error: {told}", ending="infrastructure")


def test_tasks_without_an_end_say_how_far_they_came(path: Path) -> None:
    found = tasks(path, logs.turn(), logs.start("x1"), logs.step(message=logs.text_message("Hm.")))

    assert found == (unfinished(NOT_ENDED, Reply("Hm.")), unfinished(NOT_PLAYED))


def test_a_turn_that_was_opened_and_got_no_request_was_not_played_to_its_end(path: Path) -> None:
    assert tasks(path, logs.turn())[0] == unfinished(NOT_ENDED)


def test_a_task_whose_last_exchange_failed_says_how(path: Path) -> None:
    found = tasks(
        path,
        logs.turn(1, 0),
        logs.turn(2, 1),
        logs.start("x1"),
        logs.finish("x1", finish_state="provider_error", status=503, error_type="server", error="try later"),
        logs.start("x2", turn=2),
        logs.finish("x2", finish_state="client_abort", status=None),
        logs.start("side", turn=2, reason="title"),
        logs.finish("side"),
    )

    assert found == (unfinished("provider_error: status 503, server, try later"), unfinished("client_abort"))


def test_a_failure_that_was_made_good_is_forgotten(path: Path) -> None:
    found = tasks(
        path,
        logs.turn(1, 0),
        logs.start("x1"),
        logs.finish("x1", finish_state="provider_error", status=503),
        logs.start("x2"),
        logs.finish("x2"),
    )

    assert found[0] == unfinished(NOT_ENDED)


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ({"tool_calls": "oops"}, Reply(None, (ToolCall(None, "", "oops"),))),
        ({"tool_calls": [{"id": 1}, 7]}, Reply(None, (ToolCall(None, "", None), ToolCall(None, "", 7)))),
        (
            {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]},
            Reply(None, (ToolCall("a", "f", {"x": 1}),)),
        ),
        ({"content": "half \ud83d"}, Reply("half \ud83d")),
        ("not an object", Reply(None)),
    ],
)
def test_malformed_messages_keep_what_is_there(path: Path, message: Any, reply: Reply) -> None:
    assert tasks(path, logs.start("x1"), logs.step(message=message), logs.end())[0].replies == (reply,)


def test_sessions_come_in_natural_order_then_by_epoch_whatever_the_order_of_writing(path: Path) -> None:
    names = ["b_10", "b_2", "a_1", "b_2", "b"]
    rows = [logs.session(f"s{i}", name, epoch=5 - i) for i, name in enumerate(names)]
    write(path, logs.run(), *(logs.scenario(name) for name in names), *rows)

    found = open_log(path).trajectories("r1")

    assert [trajectory.session for trajectory in found] == ["a_1.e3", "b.e1", "b_2.e2", "b_2.e4", "b_10.e5"]
    assert found == open_log(path).trajectories("r1")


def test_natural_order_tells_names_apart_that_differ_in_zeros_only() -> None:
    assert sorted(["a_1", "a_10", "a_01", "a_2", "1", "b"], key=natural) == [
        "1",
        "a_01",
        "a_1",
        "a_2",
        "a_10",
        "b",
    ]


def test_only_the_last_attempt_counts(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.session("s2", attempt=2),
        logs.start("x1", "s1"),
        logs.step(session_id="s1", message=logs.text_message("old")),
        logs.end(session_id="s1"),
        logs.start("x2", "s2"),
        logs.step(session_id="s2", exchange_id="x2", message=logs.text_message("new")),
    )

    (trajectory,) = open_log(path).trajectories("r1")

    assert trajectory.tasks[0] == unfinished(NOT_ENDED, Reply("new"))
    assert open_log(path).runs()[0].sessions == 1


def test_planned_sessions_that_were_never_begun_are_told_in_their_place(path: Path) -> None:
    plan = [
        PlannedRow("r1", name, f"hash-{name}", epoch)
        for epoch in (1, 2)
        for name in ("shop_10", "shop_1", "shop_2")
    ]
    write(
        path,
        logs.run(),
        logs.run("r2"),
        *(logs.scenario(name) for name in ("shop_1", "shop_2", "shop_10")),
        *plan,
        PlannedRow("r2", "shop_2", "hash-shop_2", 3),
        logs.session(),
        logs.session("s2", "shop_2", 2),
        logs.end(session_id="s2"),
    )

    found = open_log(path).trajectories("r1")

    not_begun = (unfinished(NOT_BEGUN),) * 2
    begun = (unfinished(NOT_PLAYED),) * 2
    assert [(it.session, it.epoch, it.scenario.id, it.tasks) for it in found] == [
        ("shop_1.e1", 1, "shop_1", begun),
        ("shop_1.e2", 2, "shop_1", not_begun),
        ("shop_2.e1", 1, "shop_2", not_begun),
        ("shop_2.e2", 2, "shop_2", (TaskTrajectory((), "closed"), unfinished(NOT_PLAYED))),
        ("shop_10.e1", 1, "shop_10", not_begun),
        ("shop_10.e2", 2, "shop_10", not_begun),
    ]


def test_a_planned_session_that_was_begun_again_counts_once(path: Path) -> None:
    write(path, *logs.opened(), PlannedRow("r1", "shop_1", "hash-shop_1", 1), logs.session("s2", attempt=2))

    assert [it.session for it in open_log(path).trajectories("r1")] == ["shop_1.e1"]


def test_runs_are_listed_with_what_they_asked_for(path: Path) -> None:
    write(
        path,
        logs.run("r2", 5.0, history="gold"),
        logs.run("r1", 3.0),
        logs.scenario(),
        logs.session("s1", run_id="r2"),
        logs.session("s2", run_id="r2", epoch=2),
        logs.start("x1", request_model="beta"),
        logs.start("x2", "s2", request_model="alpha"),
        logs.start("side", request_model="small"),
        logs.step(),
        logs.step(session_id="s2", exchange_id="x2"),
    )

    assert open_log(path).runs() == [
        RunInfo("r1", 3.0, {}, 0, None),
        RunInfo("r2", 5.0, {"history": "gold"}, 2, "alpha, beta"),
    ]


def test_real_scenarios_come_back_from_the_log_as_they_were_loaded(
    path: Path, real_session_files: list[Path]
) -> None:
    scenarios = {
        scenario.id: scenario for file in real_session_files for scenario in read_file(file).scenarios
    }
    rows: list[Any] = [logs.run()]
    for name, scenario in scenarios.items():
        rows += [
            ScenarioRow(scenario.hash, name, scenario.record, "real.jsonl", "ab"),
            replace(logs.session(name, name), scenario_hash=scenario.hash),
        ]
    write(path, *rows)

    found = open_log(path).trajectories("r1")

    assert {trajectory.scenario.id: trajectory.scenario for trajectory in found} == scenarios


def test_an_unknown_run_is_answered_with_those_there_are(path: Path) -> None:
    write(path, logs.run("r2", 5.0), logs.run("r1", 3.0))

    with pytest.raises(LogError, match=r"log.db: has no run r9; it has: r1, r2$"):
        open_log(path).trajectories("r9")


def test_a_scenario_in_the_log_that_cannot_be_read_is_one_clear_error(path: Path) -> None:
    write(path, logs.run(), logs.scenario("shop_1", {"id": "shop_1"}), logs.session())

    with pytest.raises(LogError, match=r"log.db: the scenario shop_1 in the log cannot be read: "):
        open_log(path).trajectories("r1")


def test_a_log_can_be_read_while_it_is_written(path: Path) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened())
        log = open_log(path)
        assert len(log.trajectories("r1")) == 1

        writer.commit_blocking(logs.session("s2", epoch=2))
        assert len(log.trajectories("r1")) == 2


def test_reading_makes_no_file(path: Path) -> None:
    write(path, *logs.opened())

    open_log(path).trajectories("r1")

    assert list(path.parent.iterdir()) == [path]


def test_what_is_not_a_log_is_refused_in_one_line(tmp_path: Path) -> None:
    text, foreign, empty = tmp_path / "notes.txt", tmp_path / "other.db", tmp_path / "empty.db"
    text.write_text("these are my notes, not a database at all\n" * 10)
    empty.touch()
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE t (x)")

    for path, words in (
        (tmp_path / "missing.db", "no such log"),
        (tmp_path / "missing" / "log.db", "no such log"),
        (tmp_path, "is a folder"),
        (text, "is not a SQLite database"),
        (foreign, "is a SQLite database, but not a log"),
        (empty, "is a SQLite database, but not a log"),
    ):
        with pytest.raises(LogError, match=words) as caught:
            open_log(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    assert {entry.name for entry in tmp_path.iterdir()} == {"notes.txt", "other.db", "empty.db"}


@pytest.mark.parametrize(
    ("version", "cure"),
    [
        (0, r"older version: run `wildproxy log migrate .*log.db`$"),
        (99, "newer version .*: upgrade wildtoolbench-proxy$"),
    ],
)
def test_a_log_of_another_schema_is_refused_with_the_cure(path: Path, version: int, cure: str) -> None:
    LogWriter.open(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))

    with pytest.raises(LogError, match=cure):
        open_log(path)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_log_that_is_written_to_while_it_is_read_at_rest_is_read_anew(path: Path, goes_on: bool) -> None:
    LogWriter.open(path).close()
    with ExitStack() as stack:

        def runs(connection: sqlite3.Connection) -> int:
            found = int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
            if found == 0:
                writer = stack.enter_context(LogWriter.open(path))
                writer.commit_blocking(logs.run("r1"))
                if not goes_on:
                    stack.close()
            return found

        assert read(path, runs) == (0 if goes_on else 1)


DAMAGE = {
    "a version that is no number": "UPDATE meta SET value = 'five' WHERE key = 'schema_version'",
    "a configuration that is no object": "UPDATE runs SET config = '[1]'",
    "a configuration that is no JSON": "UPDATE runs SET config = '{'",
    "findings that are no list": "UPDATE exchanges SET findings = '{\"turn\": 1}'",
    "a finding without its parts": "UPDATE exchanges SET findings = '[{}]'",
    "a finding that is a number": "UPDATE exchanges SET findings = '[1]'",
    "a huge integer": f"UPDATE messages SET body = '{{\"content\": {'9' * 5000}}}'",
    "a message nested too deep": f"UPDATE messages SET body = '{'[' * 5000}'",
    "a scenario nested too deep": f"UPDATE scenarios SET record = '{'[' * 5000}'",
    "bytes in place of a message": "UPDATE messages SET body = x'ff00'",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("options", [(), ("--format", "json")], ids=["table", "json"])
def test_a_log_that_holds_what_was_never_written_is_damaged_in_one_line(
    path: Path, statement: str, options: tuple[str, ...]
) -> None:
    scored.write_log(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)

    result = scored.run_score(path, *options)

    line = error_line(result, 2)
    assert line.startswith(f"Error: {path}: is damaged (")
    assert line.endswith("): what is stored in it is not what was written")
    assert len(line) < 400 + len(str(path))
    assert result.stdout == ""


def test_what_a_log_error_quotes_cannot_move_the_cursor(path: Path) -> None:
    hostile = "\x1b[2J\u202e\nshop"
    write(
        path,
        logs.run(f"r1{hostile}"),
        logs.scenario(hostile, {"id": hostile}),
        logs.session("s1", hostile, run_id=f"r1{hostile}"),
    )

    with pytest.raises(LogError) as unknown:
        open_log(path).trajectories("r9")
    assert str(unknown.value) == f"{path}: has no run r9; it has: r1\\x1b[2J\\u202e\\nshop"
    with pytest.raises(LogError) as broken:
        open_log(path).trajectories(f"r1{hostile}")
    told = f"{path}: the scenario \\x1b[2J\\u202e\\nshop in the log cannot be read: "
    assert str(broken.value).startswith(told)
    line = error_line(scored.run_score(path), 2)
    assert (line.startswith(f"Error: {told}"), line.isprintable()) == (True, True)
