"""Drives that are stopped: their agents end, their log is closed, their report is printed."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.agent_runs import has_ended
from support.commands import PROGRAM, run

pytestmark = pytest.mark.long

READS_ON = """
import os, sys
print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
for line in sys.stdin:
    pass
"""
WILL_NOT_END = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
while True:
    signal.pause()
"""
TOLD_S = 60

Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """`begin("drive", ...)` starts the command as a process; none is left after the test."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*before, sys.executable, str(PROGRAM), *map(str, arguments)]
        begun.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        )
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def drive(program: str, fifo: Path, log: Path) -> list[object]:
    agent = shlex.join([sys.executable, "-c", program, str(fifo)])
    options = ("--agent", agent, "--provider", "sim:oracle", "--log", log, "--only", "home_6")
    return ["drive", *options]


def told(fifo: Path) -> int:
    """The process that says its number in the fifo."""
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([reader], [], [], TOLD_S)[0], "no agent was started"
        return int(os.read(reader, 100))
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_agents_and_the_drive_reports(
    begin: Begin, fifo: Path, tmp_path: Path, number: int, code: int
) -> None:
    process = begin(*drive(READS_ON, fifo, tmp_path / "log.db"))
    agent = told(fifo)
    process.send_signal(number)
    out, errors = process.communicate(timeout=TOLD_S)
    assert process.returncode == code
    assert has_ended(agent)
    assert "0 of 1 session played" in out
    assert "Interrupted." in out
    assert "Not finished: home_6.e1" in out
    assert f"Log: {tmp_path / 'log.db'}" in out
    assert "Traceback" not in errors
    assert any(" home_6.e1 " in it and it.endswith("  cancelled") for it in errors.splitlines())
    assert run("log", "info", tmp_path / "log.db").exit_code == 0
    # The log was closed, not left.
    assert not (tmp_path / "log.db-wal").exists()


def test_a_second_signal_ends_the_drive_at_once_and_its_agents_too(
    begin: Begin, fifo: Path, tmp_path: Path
) -> None:
    process = begin(*drive(WILL_NOT_END, fifo, tmp_path / "log.db"))
    agent = told(fifo)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=TOLD_S)
    assert process.returncode in (130, 143)
    assert out == errors == ""
    assert has_ended(agent)


def test_a_signal_that_is_ignored_stays_ignored(begin: Begin, fifo: Path, tmp_path: Path) -> None:
    process = begin(*drive(READS_ON, fifo, tmp_path / "log.db"), before=("nohup",))
    told(fifo)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=TOLD_S)
    assert process.returncode == 143
    assert "Interrupted." in out


def test_a_demo_that_is_stopped_says_so_without_a_traceback(begin: Begin, tmp_path: Path) -> None:
    process = begin("demo", "--folder", tmp_path)
    assert process.stderr is not None
    assert re.match(r"\[ ?1/", process.stderr.readline())
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=TOLD_S)
    assert process.returncode == 143
    assert "Traceback" not in errors
