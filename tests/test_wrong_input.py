"""What a user gets wrong is one clear line and the right exit code."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import scenes
from support.commands import PROGRAM, error_line, process, run
from support.playing import prompt

PLAY = ("--provider", "sim:oracle")
NO_RETRIES = ("--provider-retries", "0") if "--provider-retries" in run("serve", "--help").output else ()


def broken(folder: Path) -> Path:
    path = folder / "broken.jsonl"
    path.write_text(json.dumps(scenes.SHOP) + '\n{"id": "x",\n', "utf-8")
    return path


def cyclic(folder: Path) -> Path:
    nodes = [
        scenes.call("getPrice", {"thing": "a"}, 1, 1),
        scenes.call("getPrice", {"thing": "b"}, 2, 0),
        scenes.close("Done.", 0, 1),
    ]
    return scenes.write(folder, scenes.record("round", ("Go.", nodes)), name="cyclic.jsonl")


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def commands(file: Path, log: Path) -> list[tuple[Any, ...]]:
    """Every command that reads a scenario file."""
    return [
        ("drive", "--agent", "builtin", *PLAY, "--log", log, "--scenarios", file),
        ("serve", *PLAY, "--log", log, "--scenarios", file, "--port", 0),
        ("simulate", "--policy", "oracle", "--scenarios", file, "--port", 0),
        ("scenarios", "list", file),
    ]


@pytest.mark.parametrize("command", range(4))
def test_a_scenario_file_that_is_not_json_is_named_with_its_line(tmp_path: Path, command: int) -> None:
    log = tmp_path / "log.db"
    line = error_line(run(*commands(broken(tmp_path), log)[command]), 2)
    assert "broken.jsonl:2" in line
    assert "JSON" in line
    assert not log.exists()


@pytest.mark.parametrize("command", range(4))
def test_nothing_that_a_scenario_file_says_is_obeyed_by_the_terminal(tmp_path: Path, command: int) -> None:
    odd = {**scenes.SHOP, "task_types": [{"a\u2028b\x9b2J\u202e": None}, None, None, None]}
    line = error_line(run(*commands(scenes.write(tmp_path, odd), tmp_path / "log.db")[command]), 2)
    assert r"a\u2028b\x9b2J\u202e" in line


@pytest.mark.parametrize("command", range(4))
def test_a_cyclic_dependency_is_named_with_its_place(tmp_path: Path, command: int) -> None:
    line = error_line(run(*commands(cyclic(tmp_path), tmp_path / "log.db")[command]), 2)
    assert "cyclic.jsonl:1" in line
    assert "answer_list[0]" in line
    assert "cyclic dependency" in line


@pytest.mark.parametrize("command", range(4))
def test_a_scenario_file_that_is_missing_is_named(tmp_path: Path, command: int) -> None:
    line = error_line(run(*commands(tmp_path / "none.jsonl", tmp_path / "log.db")[command]), 2)
    assert "none.jsonl" in line


def test_a_missing_log_is_named_and_not_made(tmp_path: Path) -> None:
    log = tmp_path / "none.db"
    assert f"{log}: no such log" in error_line(run("score", log), 2)
    assert not log.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("score",),
        ("drive", "--agent", "builtin", *PLAY, "--log"),
        ("serve", *PLAY, "--port", "0", "--log"),
    ],
)
def test_a_log_that_is_not_sqlite_is_refused_and_left_alone(tmp_path: Path, arguments: Any) -> None:
    log = tmp_path / "notes.txt"
    log.write_text("These are my notes.\n" * 100, "utf-8")
    before = log.read_bytes()
    line = error_line(run(*arguments, log), 2)
    assert "notes.txt" in line
    assert "not a SQLite database" in line
    assert log.read_bytes() == before


def test_a_log_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "no" / "log.db"
    line = error_line(run("drive", "--agent", "builtin", *PLAY, "--log", log), 2)
    assert "does not exist" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("drive", "--agent", "builtin", "--provider", "sim:oracel", "--log"),
        ("serve", "--provider", "sim:oracel", "--scenarios", "bundled", "--log"),
        ("simulate", "--scenarios", "bundled", "--policy", "oracel"),
    ],
)
def test_an_unknown_policy_is_answered_with_those_there_are(tmp_path: Path, arguments: Any) -> None:
    log = () if arguments[0] == "simulate" else (tmp_path / "log.db",)
    line = error_line(run(*arguments, *log), 2)
    assert "oracel" in line
    for policy in ("oracle", "serial", "noisy", "text-only", "always-call", "empty"):
        assert policy in line


def test_an_unknown_scenario_to_play_is_answered_with_a_near_one(tmp_path: Path) -> None:
    file = scenes.write(tmp_path, scenes.SHOP)
    arguments = commands(file, tmp_path / "log.db")[0]
    line = error_line(run(*arguments, "--only", "shoq"), 2)
    assert "'shoq'" in line
    assert "'shop'" in line


def test_a_key_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    result = run(
        *("serve", "--log", tmp_path / "log.db", "--port", 0),
        *("--provider", "http://127.0.0.1:9/v1", "--provider-key-env", "NO_SUCH_KEY"),
        env={"NO_SUCH_KEY": ""},
    )
    assert "NO_SUCH_KEY is not set" in error_line(result, 2)


@pytest.mark.parametrize("url", ["127.0.0.1:9/v1", "ftp://x/v1", "http:///v1", "http://a b/v1"])
def test_a_provider_address_of_no_use_is_refused_with_an_example(tmp_path: Path, url: str) -> None:
    line = error_line(run("serve", "--provider", url, "--log", tmp_path / "log.db", "--port", "0"), 2)
    assert "http://127.0.0.1:8000/v1" in line


def test_a_port_that_is_taken_is_named_with_a_way_out(tmp_path: Path, busy_port: int) -> None:
    serve = ("serve", *PLAY, "--scenarios", "bundled", "--log", tmp_path / "log.db")
    for arguments in (serve, ("simulate", "--scenarios", "bundled", "--policy", "oracle")):
        line = error_line(run(*arguments, "--port", busy_port), 2)
        assert str(busy_port) in line
        assert "--port" in line


def test_a_drive_whose_provider_refuses_connections_ends_at_once(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    file = scenes.write(tmp_path, scenes.SHOP)
    url = f"http://user:pass-word-1@127.0.0.1:{unused_tcp_port}/v1"
    result = run(
        *("drive", "--agent", "builtin", "--scenarios", file, "--log", tmp_path / "log.db"),
        *("--provider", url),
    )
    line = error_line(result, 3)
    assert f"127.0.0.1:{unused_tcp_port}" in line
    assert "pass-word-1" not in result.output
    assert "shop.e1" not in result.output


async def test_an_agent_of_a_served_session_is_told_what_is_wrong(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    file = scenes.write(tmp_path, scenes.SHOP)
    provider = ("--provider", f"http://127.0.0.1:{unused_tcp_port}/v1", *NO_RETRIES)
    arguments = ("serve", "--scenarios", file, "--log", tmp_path / "log.db", "--port", 0)
    async with process(*arguments, *provider) as serving, aiohttp.ClientSession() as http:
        for session, status in (("shop", 502), ("shoq", 404)):
            url = f"{serving.url}/s/{session}/v1/chat/completions"
            async with http.post(url, json=prompt(1)) as response:
                error = (await response.json())["error"]
            assert response.status == status
            assert "\n" not in error["message"]
        assert await serving.stop() == 0
    assert b"Traceback" not in serving.said


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_command_whose_output_was_closed_does_its_work(tmp_path: Path, closed: str) -> None:
    drive = ("drive", "--agent", "builtin", *PLAY, "--only", "home_6", "--log", "run.db")
    command = f"exec {shlex.join([sys.executable, str(PROGRAM), *drive])} {closed}"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("judge - <&-", 3, "Error: standard input: no cases"),
        ('judge "$(printf "a\\nb.jsonl")"', 2, r"Error: a\nb.jsonl: No such file or directory"),
        ('log vacuum ""', 2, "Error: .: no such log"),
        ("--help >/dev/full", 3, "Error: cannot go on: No space left on device"),
        ("score --help >/dev/full", 3, "Error: cannot go on: No space left on device"),
    ],
)
def test_streams_and_names_that_cannot_be_used_are_told_in_one_line(
    tmp_path: Path, words: str, code: int, said: str
) -> None:
    program = shlex.join([sys.executable, str(PROGRAM)])
    done = subprocess.run(["sh", "-c", f"{program} {words}"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (code, said)


def test_a_log_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    log = os.fsencode(tmp_path) + b"/\xff.db"
    for words in (["drive", "--agent", "builtin", *PLAY, "--only", "home_6", "--log"], ["score"]):
        done = subprocess.run([sys.executable, PROGRAM, *words, log], cwd=tmp_path, capture_output=True)
        assert (done.returncode, done.stderr.count(b"Error")) == (0, 0)


def test_a_character_that_the_encoding_of_the_output_lacks_is_spelt_out() -> None:
    command = [sys.executable, str(PROGRAM), "scenarios", "show", "zh", "zh_1"]
    done = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Date: 2025-05-23 18:05:12 \\u661f\\u671f\\u4e94\n" in done.stdout


@pytest.mark.parametrize("token", ["a\nb", "schlüssel", "a\x7fb"])
def test_a_token_that_no_header_carries_is_refused_and_not_told(tmp_path: Path, token: str) -> None:
    line = error_line(
        run("serve", *PLAY, "--log", tmp_path / "log.db", "--port", 0, env={"EVAL_TOKEN": token}), 2
    )
    assert line == (
        "Error: EVAL_TOKEN has characters in it that no HTTP header carries: "
        "use letters, digits and ASCII signs"
    )
