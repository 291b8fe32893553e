"""What `serve` and `drive` say to a user, and what they let be seen of an error."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support.commands import error_line, process, run
from support.playing import rows

from proxy import commands
from scenarios.load import BUNDLED, read_file

SCENARIO = read_file(BUNDLED).scenarios[0].id
PLAY = ("--provider", "sim:oracle", "--log")


def drive(log: Path, *arguments: object) -> Any:
    return run("drive", "--agent", "builtin", *PLAY, log, *arguments)


@pytest.mark.parametrize("wrong", [("--only", "none-such"), ("--agent-body", "{}")])
def test_an_error_is_told_by_its_traceback_where_that_is_wanted(tmp_path: Path, wrong: Any) -> None:
    drive = ("drive", "--agent", "builtin", *PLAY, tmp_path / "log.db", *wrong)
    line = error_line(run(*drive), 2)
    told = run("--debug", *drive)
    assert told.exit_code == 2
    assert told.stderr.startswith("Traceback (most recent call last):")
    assert line.removeprefix("Error: ") in told.stderr
    assert "Error: " not in [line[:7] for line in told.stderr.splitlines()]


def test_wrong_usage_is_one_line_in_any_case(tmp_path: Path) -> None:
    told = run("--debug", "drive", "--agent", "builtin", *PLAY, tmp_path / "log.db", "--run", "x")
    assert told.exit_code == 2
    assert "give --resume too" in told.stderr
    assert "Traceback" not in told.stderr


def test_an_error_of_the_system_without_a_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(settings: Any, **options: Any) -> Any:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    monkeypatch.setattr(commands, "running", full)
    assert error_line(drive(tmp_path / "log.db"), 3).startswith(f"Error: {os.strerror(errno.ENFILE)}")


def test_an_error_of_our_own_is_not_taken_for_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(settings: Any, **options: Any) -> Any:
        raise ValueError("nobody expects it")

    monkeypatch.setattr(commands, "running", broken)
    assert isinstance(drive(tmp_path / "log.db").exception, ValueError)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://[::1/v1", f"http://{'a' * 64}.b/v1"])
def test_an_address_that_cannot_be_taken_apart_or_looked_up_is_one_line(tmp_path: Path, url: str) -> None:
    result = run("drive", "--agent", "builtin", "--provider", url, "--log", tmp_path / "log.db")
    assert "provider" in error_line(result, 3 if "aaa" in url else 2)


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (
            "",
            "Control API and live page: they need a token, which is told to a terminal alone: "
            "start again with EVAL_TOKEN set to one of your choice",
        ),
        ("my-own-token", "Control API and live page: their token is the one in EVAL_TOKEN"),
    ],
)
async def test_a_proxy_without_a_terminal_says_how_to_come_by_a_token_and_not_the_token(
    tmp_path: Path, token: str, said: str
) -> None:
    options = ("--scenarios", "bundled", *PLAY, tmp_path / "log.db", "--port", 0)
    async with process("serve", *options, env={"EVAL_TOKEN": token}) as serving:
        assert await serving.stop() == 0
    assert said in serving.said.decode().splitlines()
    assert "my-own-token" not in serving.said.decode()


def test_a_drive_without_the_token_of_its_proxy_is_told_how_to_choose_one() -> None:
    driving = ("drive", "--agent", "builtin", "--proxy", "http://127.0.0.1:9")
    line = error_line(run(*driving, env={"EVAL_TOKEN": ""}), 2)
    assert "start the proxy with that variable set" in line


async def test_a_drive_of_a_proxy_that_runs_already_names_its_run(tmp_path: Path) -> None:
    token = {"EVAL_TOKEN": "token-of-a-test"}
    options = ("--scenarios", "bundled", *PLAY, tmp_path / "log.db", "--port", 0)
    async with process("serve", *options, env=token) as serving:
        words = ("drive", "--agent", "builtin", "--proxy", serving.url, "--only", SCENARIO)
        driven = await asyncio.to_thread(run, *words, env=token)
        assert await serving.stop() == 0
    [row] = rows(tmp_path / "log.db", "SELECT id FROM runs")
    *_, log, score, look = driven.stdout.splitlines()
    assert log == f"Log: that of the proxy at {serving.url}, which its serve names; run {row['id']}"
    assert [line.split()[-4:] for line in (score, look)] == [
        [command, "LOG.db", "--run", row["id"]] for command in ("score", "report")
    ]


def test_where_a_log_holds_several_runs_the_command_that_scores_it_names_the_one(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    for _ in range(2):
        *_, score, look = drive(log, "--only", SCENARIO).stdout.splitlines()
    newest = rows(log, "SELECT id FROM runs ORDER BY rowid")[-1]["id"]
    assert [line.split()[-2:] for line in (score, look)] == [["--run", newest]] * 2
    assert run(*score.split()[-4:]).exit_code == 0


def test_a_session_that_was_played_before_is_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    assert drive(log, "--only", SCENARIO).exit_code == 0
    again = drive(log, "--only", SCENARIO, "--resume")
    assert again.exit_code == 0
    [line] = again.stderr.splitlines()
    assert f" {SCENARIO}.e1 " in line and line.endswith("  already over")
    assert "1 session was already over." in again.stdout


def test_the_run_to_resume_is_found_by_its_name_and_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    for _ in range(2):
        assert drive(log, "--only", SCENARIO).exit_code == 0
    first, second = (row["id"] for row in rows(log, "SELECT id FROM runs ORDER BY rowid"))
    assert run("log", "runs", "rename", log, first, "the first one").exit_code == 0
    for wanted in ("the first one", first, second):
        resumed = drive(log, "--only", SCENARIO, "--resume", "--run", wanted)
        assert "1 session was already over." in resumed.stdout, resumed.output
    assert len(rows(log, "SELECT id FROM runs")) == 2
    assert "'no such name'" in error_line(drive(log, "--resume", "--run", "no such name"), 2)


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("json:lauds", "no 'lauds' in module 'json'"),
        ("sys:maxsize", "sys:maxsize cannot be used: TypeError"),
        ("sh -c no-such-program-here", "no-such-program-here"),
        ("http://127.0.0.1:9", "cannot be reached at http://127.0.0.1:9/"),
    ],
)
def test_an_agent_that_there_is_none_of_is_one_line_and_costs_no_task(
    tmp_path: Path, agent: str, says: str
) -> None:
    log = tmp_path / "log.db"
    line = error_line(run("drive", "--agent", agent, *PLAY, log, "--concurrency", 1), 2)
    assert says in line
    if log.exists():
        assert rows(log, "SELECT * FROM tasks") == []
