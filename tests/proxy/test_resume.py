"""A run that is killed in the middle and gone on with scores as one that was not."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.commands import run_in
from support.ports import free_port

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "run_proxy.py"]
PLAIN = f"{shlex.quote(sys.executable)} tests/support/agents/plain.py"


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """A command that nobody kills."""
    return run_in(ROOT, *arguments, env=env)


def drive(log: Path, *arguments: str, agent: str = PLAIN) -> list[str]:
    return ["drive", "--agent", agent, "--log", str(log), "--concurrency", "2", *arguments]


def verdicts(log: Path) -> list[dict[str, Any]]:
    done = run("score", str(log), "--format", "json")
    assert done.exit_code == 0, done.stderr
    tasks: list[dict[str, Any]] = json.loads(done.stdout)["tasks"]
    return tasks


def label_of(task: dict[str, Any]) -> str | None:
    """The label on which all scorers agree."""
    [label] = {score["label"] for score in task["scores"].values()}
    assert label is None or isinstance(label, str)
    return label


@contextmanager
def begun(*arguments: str, watch: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """A command as a process of its own, and the lines of its output called `watch`."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, watch: subprocess.PIPE}
    environ = {**os.environ, "EVAL_TOKEN": "token-of-a-test"}
    with subprocess.Popen([*PROGRAM, *arguments], cwd=ROOT, env=environ, text=True, **streams) as process:
        try:
            lines = getattr(process, watch)
            assert lines is not None
            yield process, lines
        finally:
            process.kill()


def test_a_drive_that_is_killed_and_resumed_scores_as_one_that_was_not(tmp_path: Path) -> None:
    options = ["--provider", "sim:noisy:0.3:4"]
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    assert run(*drive(whole, *options)).exit_code == 0
    with begun(*drive(killed, *options), watch="stderr") as (process, lines):
        for line in lines:
            if re.match(r"\[ ?2/", line):
                process.kill()
    assert any(label_of(task) is None for task in verdicts(killed))
    assert run(*drive(killed, *options, "--resume")).exit_code == 0
    assert verdicts(killed) == verdicts(whole)


@pytest.mark.parametrize("when", ["in a turn", "between two"])
def test_a_session_whose_agent_is_killed_is_played_again_on_resume(tmp_path: Path, when: str) -> None:
    log, mark = tmp_path / "log.db", tmp_path / "mark"
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import os, pathlib, signal, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'tests/support/agents')!r})\n"
        "import plain\n"
        f"mark = pathlib.Path({str(mark)!r})\n"
        "def die():\n"
        "    if not mark.exists():\n"
        "        mark.touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "for number, prompt in enumerate(plain.prompts()):\n"
        f"    if number == 1 and {when == 'in a turn'}: die()\n"
        "    plain.ask([plain.SYSTEM, plain.user(prompt)], tools=[plain.TOOL])\n"
        f"    if number == 1 and {when == 'between two'}: die()\n"
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(agent))}"
    options = ["--provider", "sim:oracle", "--concurrency", "1"]
    first = run(*drive(log, *options, agent=command))
    assert first.exit_code == 3
    assert "was ended by SIGKILL" in first.stderr
    labels = [label_of(task) for task in verdicts(log)]
    assert (labels.count("correct"), labels.count("error")) == (len(labels) - labels.count(None), 0)
    assert None in labels
    assert run(*drive(log, *options, "--resume", agent=command)).exit_code == 0
    assert {label_of(task) for task in verdicts(log)} == {"correct"}


def test_resuming_under_another_configuration_is_refused_in_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    assert run(*drive(log, "--provider", "sim:oracle", "--limit", "1")).exit_code == 0
    other = run(*drive(log, "--provider", "sim:serial", "--limit", "1", "--resume"))
    assert other.exit_code == 2
    assert other.stderr.startswith(f"Error: {log}: run ")
    assert 'provider was "sim:oracle", is "sim:serial"' in other.stderr


def test_resuming_a_log_without_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    done = run(*drive(tmp_path / "none.db", "--provider", "sim:oracle", "--resume"))
    assert done.exit_code == 2
    assert "no run to resume" in done.stderr


def runs(log: Path) -> list[tuple[str, int]]:
    """The ids of a log's runs, and how many sessions each has."""
    with closing(sqlite3.connect(log)) as reader:
        return reader.execute(
            "SELECT id, (SELECT count(*) FROM sessions WHERE run_id = runs.id) FROM runs ORDER BY rowid"
        ).fetchall()


def test_the_run_to_resume_can_be_named_and_is_the_newest_that_fits_otherwise(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    for policy in ("oracle", "oracle", "serial"):
        assert run(*drive(log, "--provider", f"sim:{policy}", "--limit", "1")).exit_code == 0
    first = runs(log)[0][0]
    again = drive(log, "--provider", "sim:oracle", "--resume")
    assert run(*again, "--limit", "2").exit_code == 0
    assert run(*again, "--limit", "3", "--run", first).exit_code == 0
    assert [sessions for _, sessions in runs(log)] == [3, 2, 1]
    assert "no-such-run" in run(*again, "--run", "no-such-run").stderr


@pytest.fixture
def port() -> int:
    return free_port()


def test_a_drive_goes_on_when_its_proxy_is_killed_and_started_anew(tmp_path: Path, port: int) -> None:
    log = tmp_path / "log.db"
    serve = ["serve", "--scenarios", "bundled", "--provider", "sim:oracle", "--log", str(log)]
    driving = ["drive", "--agent", PLAIN, "--proxy", f"http://127.0.0.1:{port}", "--concurrency", "2"]
    with ExitStack() as stack:

        def started() -> subprocess.Popen[str]:
            proxy, lines = stack.enter_context(begun(*serve, "--port", str(port), watch="stdout"))
            assert "Listening" in next(lines)
            return proxy

        proxy = started()
        process, lines = stack.enter_context(begun(*driving, watch="stderr"))
        for line in lines:
            if re.match(r"\[ ?[13]/", line):
                proxy.kill()
                proxy.wait()
                proxy = started()
        process.wait()
        tasks = verdicts(log)
    assert {label_of(task) for task in tasks} == {"correct"}
    assert len(tasks) >= 24


TOKEN = {"EVAL_TOKEN": "token-of-a-test"}


def test_a_drive_that_is_stopped_and_run_again_with_the_same_proxy_costs_no_task(
    tmp_path: Path, port: int
) -> None:
    log = tmp_path / "log.db"
    serve = ["serve", "--scenarios", "bundled", "--provider", "sim:oracle", "--log", str(log)]
    driving = ["drive", "--proxy", f"http://127.0.0.1:{port}", "--concurrency", "2"]
    os.mkfifo(tmp_path / "silent")
    slow = [sys.executable, "tests/support/agents/stays_silent.py", str(tmp_path / "silent")]
    with begun(*serve, "--port", str(port), watch="stdout") as (_, lines):
        assert "Listening" in next(lines)
        with begun(*driving, "--agent", shlex.join(slow), watch="stderr") as (first, told):
            with (tmp_path / "silent").open() as silent:
                silent.readline()
            first.send_signal(signal.SIGTERM)
            assert first.wait() == 143
            assert "Traceback" not in told.read()
        assert run(*driving, "--agent", PLAIN, env=TOKEN).exit_code == 0
        assert {label_of(task) for task in verdicts(log)} == {"correct"}


def test_what_infrastructure_ended_is_played_again_by_a_proxy_that_runs_only_on_resume(
    tmp_path: Path, port: int, unused_tcp_port: int
) -> None:
    log = tmp_path / "log.db"
    provider = ["--provider", f"http://127.0.0.1:{unused_tcp_port}/v1", "--provider-retries", "0"]
    serve = ["serve", "--scenarios", "bundled", *provider, "--log", str(log), "--port", str(port)]
    driving = ["drive", "--proxy", f"http://127.0.0.1:{port}", "--agent", "builtin", "--limit", "2"]
    simulate = ["simulate", "--scenarios", "bundled", "--policy", "oracle", "--port", str(unused_tcp_port)]
    with begun(*serve, watch="stdout") as (_, lines):
        assert "Listening" in next(lines)
        assert run(*driving, env=TOKEN).exit_code == 3
        with begun(*simulate, watch="stdout") as (_, simulated):
            assert str(unused_tcp_port) in next(simulated)
            again = run(*driving, env=TOKEN)
            assert again.exit_code == 0
            assert "2 sessions were already over." in again.stdout
            resumed = run(*driving, "--resume", env=TOKEN)
            assert resumed.exit_code == 0, resumed.stdout + resumed.stderr
    assert {label_of(task) for task in verdicts(log) if label_of(task) is not None} == {"correct"}
    assert sum(label_of(task) == "correct" for task in verdicts(log)) == 8
