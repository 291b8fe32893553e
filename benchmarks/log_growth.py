"""How a log grows where agents send their whole history with every call, and what that costs its writer.

    python benchmarks/log_growth.py [--wal-calls 200000]

For sessions of 4 turns of 5 steps and of 40 turns of 20, recorded and relayed, each session with a system
prompt and tools of its own (12 KB): bytes of the log to bytes of the bodies that went over the wire; bytes
of log for a step in the second and in the last quarter of a session, which are the same where growth is
linear; the processor's microseconds that the writer takes for a call. Other work on the machine slows the
writer down: so the best tenth is told, and beside it that over the best tenth of what a `json.dumps` of
12 KB took, times the 53 us that this takes on the idle machine for which the targets were set.

Then how long the write-ahead log becomes while `tail --follow` reads it, and how long commits take.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from log_traffic import Session, Shape, run_row, scenario_row

from proxy.log.database import open_for_writing
from proxy.log.rows import Row
from proxy.log.store import Store
from proxy.log.writer import LogWriter

BATCH = 30
"""Groups of rows in a transaction: what comes in while the last one is written, under load."""
AT_ONCE = 16
"""Calls that are under way at a time."""
PAGE = 4096
DUMPED, IDLE_DUMPS = 12_250, 53e-6
"""Bytes, and seconds of the processor that `json.dumps` takes for them on the idle machine."""
SECRETS = ("sk-of-an-agent-0123456789",)
PROGRAM = Path(__file__).resolve().parent.parent / "run_proxy.py"
SHAPES = (
    (Shape(4, 5, relayed=False, shared=True), 200),
    (Shape(4, 5, relayed=False), 200),
    (Shape(4, 5, relayed=True), 200),
    (Shape(40, 20, relayed=False), 2),
    (Shape(40, 20, relayed=True), 2),
)


@dataclass(frozen=True, slots=True)
class Grown:
    """What a log came to. Bytes, and seconds of the processor."""

    calls: int
    wire: int
    log: int
    early: float
    late: float
    seconds: list[float]
    dumps: list[float]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--wal-calls", type=int, default=200_000)
    asked = options.parse_args()
    print(f"{'':20}{'calls':>7}{'KB sent':>9}{'log':>8}{'KB a step':>16}{'us a call':>11}{'idle':>6}")
    print(f"{'(* one prompt)':20}{'':>7}{'a call':>9}{'':>8}{'early':>9}{'late':>7}{'':>11}")
    for shape, sessions in SHAPES:
        with tempfile.TemporaryDirectory() as name:
            print(line(shape, grown(Path(name) / "log.db", shape, sessions)))
    with tempfile.TemporaryDirectory() as name:
        print(followed(Path(name) / "log.db", asked.wal_calls))


def line(shape: Shape, it: Grown) -> str:
    name = f"{shape.turns} x {shape.steps} {'relayed' if shape.relayed else 'recorded'}{' *' * shape.shared}"
    best, dumps = (statistics.quantiles(found, n=10)[0] for found in (it.seconds, it.dumps))
    idle = best / dumps * IDLE_DUMPS
    return (
        f"{name:20}{it.calls:7,}{it.wire / it.calls / 1e3:9.1f}{'1/%.1f' % (it.wire / it.log):>8}"
        f"{it.early / 1e3:9.2f}{it.late / 1e3:7.2f}{best * 1e6:11.0f}{idle * 1e6:6.0f}"
    )


def grown(path: Path, shape: Shape, sessions: int) -> Grown:
    """Writes the sessions, one after another, with the writer's own means."""
    connection = open_for_writing(path, now=time.time)
    store = Store(connection, path)
    scenarios = [scenario_row(0 if shape.shared else number, shape) for number in range(sessions)]
    store.transact([((run_row(0, 1.0), *(scenarios if shape.relayed else ())), ())])
    before, wire = pages(connection), 0
    quarters, seconds, dumps = [0, 0, 0, 0], [], []
    sample = scenarios[0].record["tools"]
    steps = shape.turns * shape.steps
    for number, scenario in enumerate(scenarios):
        session = Session(shape, "run-0000", number, scenario, 1000.0 + number)
        store.transact([(session.rows(), ())])
        calls = session.calls()
        for quarter in range(4):
            some = list(islice(calls, steps // 4))
            wire += sum(call.wire_bytes for call in some)
            held = pages(connection)
            seconds.append(written(store, [group for call in some for group in call.groups]) / len(some))
            quarters[quarter] += pages(connection) - held
            dumps.append(dumped(sample))
    log = (pages(connection) - before) * PAGE
    store.close()
    early, late = (quarters[quarter] * PAGE / (sessions * steps / 4) for quarter in (1, 3))
    return Grown(sessions * steps, wire, log, early, late, seconds, dumps)


def written(store: Store, groups: list[tuple[Row, ...]]) -> float:
    """Seconds of the processor."""
    begin = time.thread_time()
    for at in range(0, len(groups), BATCH):
        store.transact([(group, SECRETS) for group in groups[at : at + BATCH]])
    return time.thread_time() - begin


def dumped(sample: object) -> float:
    begin = time.thread_time()
    for _ in range(4):
        json.dumps(sample)
    return (time.thread_time() - begin) / 4 * DUMPED / len(json.dumps(sample))


def pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_count").fetchone()[0])


def followed(path: Path, calls: int) -> str:
    """Writes as a busy proxy does, while another process follows the log."""
    writer = LogWriter.open(path)
    shape = Shape(4, 5, relayed=False)
    writer.commit_blocking(run_row(0, time.time()))
    command = [sys.executable, str(PROGRAM), "tail", "--follow", "--format", "json", str(path)]
    tail = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    scenarios = [scenario_row(number, shape) for number in range(20)]
    traffic = (
        call
        for number in count()
        for call in Session(shape, "run-0000", number, scenarios[number % 20], time.time()).calls()
    )
    waits, longest, begin = [], 0, time.monotonic()
    wal = path.with_name(path.name + "-wal")
    for number, call in enumerate(islice(traffic, calls)):
        *others, last = call.groups
        for group in others:
            writer.put(*group)
        if number % AT_ONCE:
            writer.put(*last)
            continue
        asked = time.monotonic()
        writer.commit_blocking(*last)
        waits.append(time.monotonic() - asked)
        longest = max(longest, wal.stat().st_size)
    taken, reads = time.monotonic() - begin, tail.poll() is None
    tail.terminate()
    tail.wait()
    writer.close()
    waits.sort()
    return (
        f"{calls:,} calls in {taken:.0f} s{'' if reads else ', and the reader died'}: "
        f"write-ahead log up to {longest / 1e6:.1f} MB, log {path.stat().st_size / 1e6:.0f} MB, "
        f"{AT_ONCE} calls committed in {waits[len(waits) // 2] * 1e3:.1f} ms (p50), "
        f"{waits[int(len(waits) * 0.99)] * 1e3:.1f} ms (p99), {waits[-1] * 1e3:.1f} ms (at most)"
    )


if __name__ == "__main__":
    main()
