"""How long commands take on a log of a million exchanges, and how much memory.

    python benchmarks/log_million.py [--exchanges 1000000] [--log LOG.db]

The log is written by the proxy's own writer: 100 runs of sessions of four tasks of five steps, relayed, over
the same scenarios. With `--log` it is kept, and used again if it is there. Prints for each command the
better of two times: seconds by the clock, the processor's seconds, and the most memory it had (MB).
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

from log_traffic import Session, Shape, run_row, scenario_row

from proxy.log.writer import LogWriter

Taken = tuple[float, float, int]
"""Seconds by the clock and of the processor, bytes."""

SHAPE = Shape(4, 5, relayed=True, shared=True)
RUNS = 100
EXCHANGES_OF_SESSION = 2 * SHAPE.turns * SHAPE.steps
AT_ONCE = 32
TOKEN = "of-the-benchmark"
EVENTS = f"/ui/api/events?run=run-{RUNS // 2:04}"
PROGRAM = Path(__file__).resolve().parent.parent / "run_proxy.py"


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--exchanges", type=int, default=1_000_000)
    options.add_argument("--log", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = asked.log or Path(name) / "million.db"
        if not path.exists():
            write(path, asked.exchanges)
        measure(path)


def write(path: Path, exchanges: int) -> None:
    begin = time.monotonic()
    sessions = max(1, exchanges // EXCHANGES_OF_SESSION // RUNS)
    scenarios = [scenario_row(number, SHAPE) for number in range(sessions)]
    with LogWriter.open(path) as writer:
        writer.hide("sk-of-an-agent-0123456789")
        writer.commit_blocking(*scenarios)
        for run in range(RUNS):
            row = run_row(run, 1_700_000_000.0 + 3600 * run)
            writer.commit_blocking(row)
            for number, scenario in enumerate(scenarios):
                session = Session(SHAPE, row.id, number, scenario, row.created_at + 10 * number)
                writer.put(*session.rows())
                for at, call in enumerate(session.calls()):
                    for group in call.groups:
                        writer.put(*group)
                    if at % AT_ONCE == 0:
                        writer.commit_blocking()
    took = time.monotonic() - begin
    size = path.stat().st_size
    print(f"written in {took:.0f} s: {size / 1e9:.2f} GB, {size / exchanges:.0f} bytes for an exchange")


def measure(path: Path) -> None:
    log, run = str(path), f"run-{RUNS // 2:04}"
    print(f"{'':34}{'seconds':>9}{'of CPU':>8}{'MB':>6}")
    for name, words in (
        ("log info", ["log", "info", log]),
        ("log runs list", ["log", "runs", "list", log]),
        ("log show, one exchange", ["log", "show", log, exchange_of(path)]),
        ("tail --run, one run", ["tail", log, "--run", run]),
        ("score --run, one run", ["score", log, "--run", run]),
    ):
        print(line(name, min(whole(words) for _ in range(2))))
    print(
        line(
            "tail --follow, the first line",
            min(until_line(["tail", "-f", log, "--run", run]) for _ in range(2)),
        )
    )
    for name, place in (("serve, until it answers", "/ui"), ("serve, until /ui has its data", EVENTS)):
        print(line(name, min(until_answer(path, place) for _ in range(2))))


def line(name: str, taken: Taken) -> str:
    clock, cpu, memory = taken
    return f"{name:34}{clock:9.2f}{cpu:8.2f}{memory / 1e6:6.0f}"


def exchange_of(path: Path) -> str:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return str(
            connection.execute("SELECT id FROM exchanges WHERE run_id IS NOT NULL LIMIT 1").fetchone()[0]
        )


def whole(words: list[str]) -> Taken:
    return until(words, lambda out: out.read())


def until_line(words: list[str]) -> Taken:
    return until(words, lambda out: out.readline())


def until_answer(path: Path, place: str) -> Taken:
    """Of a proxy with a new run in the log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}{place}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})

    def ask(out: IO[bytes]) -> None:
        out.readline()  # It is said when it listens.
        with urllib.request.urlopen(request) as answer:
            while answer.readline().strip():
                pass

    serve = ["serve", "--provider", "http://127.0.0.1:9/v1", "--log", str(path), "--new-run"]
    return until([*serve, "--port", str(port)], ask)


def until(words: list[str], read: Callable[[IO[bytes]], object]) -> Taken:
    begin = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, str(PROGRAM), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "EVAL_TOKEN": TOKEN},
    )
    assert child.stdout is not None
    read(child.stdout)
    taken = time.monotonic() - begin
    os.kill(child.pid, signal.SIGTERM)  # `terminate` would reap it, and with it what it has used
    child.stdout.close()
    usage = os.wait4(child.pid, 0)[2]
    child.returncode = 0
    return taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
