"""Plays sessions with real client libraries against the proxy, and compares with what is expected of each.

    python .ci/frameworks/play.py [CLIENT ...] [--mode MODE ...] [--short] [--cache DIR] [--scenarios FILE]

Each client is installed from its lock into the cache. A cell is one way to play it: a tool mode, an API,
plain or streamed, a variant of its program. README.md says what is in a client's folder.
Exit code 1 if a cell is not as expected.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients import (
    HERE,
    MODES,
    SERIAL,
    Broken,
    Cell,
    cells,
    client_names,
    install,
    last_line,
    program,
    read_client,
    run,
)

from proxy.drive.environment import DEFAULTS

WILDPROXY = (sys.executable, "-m", "run_proxy")
SCORER = "wildtoolbench"

SHARED = HERE.parent.parent.parent / "shared"
REAL = ("sessions_plain_keys.jsonl", "sessions_english_keys.jsonl")
REAL_IDS = ("wild_tool_bench_83", "wild_tool_bench_3")
BUNDLED_IDS = ("support_4", "warehouse_8")
"""Two sessions with parallel calls, also of one tool, calls in sequence and questions to the user."""

SETUP_URL = "http://127.0.0.1:8787/s/home_6/v1"
SETUP_ANSWER = "The lights in the kitchen and the hallway are off"
"""The address in every client's `setup`, and how the answer to its prompt begins."""

TURN_TIMEOUT_S = {"yes": 90, "no": 45}
"""By what is expected: an agent that stops before its turn is answered is waited for this long."""
CELL_TIMEOUT_S = 600
FAILURE = re.compile(r", turn \d+ (failed|timed out): ")
SAYS_NOTHING = re.compile(r"a fault of the proxy|turn 1 timed out: .* sent the proxy no request")
"""What makes a cell broken: it says nothing of the client, also where a no is expected."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all cells have in common: the options that choose the sessions, where logs go, what is told."""

    scenarios: Sequence[str]
    logs: Path
    verbose: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell: `yes`, `no` or `broken`, how many tasks were right, what went wrong."""

    got: str
    figures: str = ""
    reason: str = ""


def play(cell: Cell, place: Path, task: Task) -> Outcome:
    """Drives the client's program through the sessions and scores the log."""
    log = fresh(task.logs / ("-".join((cell.client.folder.name, *cell.words)) + ".db"))
    command = [*WILDPROXY, "drive", "--agent", shlex.join(program(cell.client, place)), *task.scenarios]
    command += ["--provider", "sim:serial" if cell.variant == SERIAL else "sim:oracle", "--tools", cell.mode]
    command += ["--log", str(log), "--turn-timeout", str(TURN_TIMEOUT_S[cell.expected])]
    with tempfile.TemporaryDirectory() as folder:
        code, output = run(command, Path(folder), CELL_TIMEOUT_S, **cell.environment)
    log.with_suffix(".txt").write_text(output, encoding="utf-8")
    failures = [line for line in output.splitlines() if FAILURE.search(line)]
    said = failures[0] if failures else last_line(output)
    if code not in (0, 3) or SAYS_NOTHING.search(output):
        return Outcome("broken", reason=said)
    outcome = judged(log, done=code == 0, said=said)
    if cell.mode == "mcp" and outcome.got == "yes" and not calls_over_mcp(log):
        return Outcome("broken", outcome.figures, "no call came over MCP")
    return outcome


def calls_over_mcp(log: Path) -> int:
    """How many tools of the session's MCP server the agent called."""
    asked = "json_extract(body, '$.method') = 'tools/call'"
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute(f"SELECT count(*) FROM exchanges WHERE reason = 'mcp' AND {asked}")
        return int(found.fetchone()[0])


def judged(log: Path, done: bool, said: str) -> Outcome:
    """Complete sessions with nothing but correct tasks are a yes, all else is a no."""
    _, text = run(
        [*WILDPROXY, "score", "--scorer", SCORER, "--format", "json", log], log.parent, CELL_TIMEOUT_S
    )
    try:
        score: dict[str, Any] = json.loads(text)
    except ValueError:
        return Outcome("no" if text.startswith("Error: ") and not done else "broken", reason=said)
    verdicts = [(it, it["scores"][SCORER]) for it in score["tasks"]]
    wrong = [(it, verdict) for it, verdict in verdicts if verdict["label"] != "correct"]
    unscored = score["scorers"][SCORER]["unscored"]
    figures = f"{len(verdicts) - len(wrong)}/{unscored['all_tasks']}"
    if done and not wrong and not unscored["tasks"]:
        return Outcome("yes", figures)
    reasons = [
        f"{it['session']}, task {it['task']} {verdict['label']}: {verdict['reason']}" for it, verdict in wrong
    ]
    return Outcome("no", figures, reasons[0] if done and reasons else said)


def try_setup(cell: Cell, place: Path, task: Task) -> Outcome:
    """Runs the program of client.toml as it stands there, but for the port, against a proxy."""
    client = cell.client
    log = fresh(task.logs / f"{client.folder.name}-setup.db")
    with tempfile.TemporaryDirectory() as folder, serving(log) as url:
        # Beside the packages of node, which are looked for from there.
        file = place / "setup.mjs" if client.language == "node" else Path(folder) / "setup.py"
        file.write_text(client.setup.replace(SETUP_URL, url), encoding="utf-8")
        environ = {**DEFAULTS, **client.environment, "NO_PROXY": "127.0.0.1"}
        code, output = run(
            program(client, place, file), Path(folder), TURN_TIMEOUT_S[cell.expected], **environ
        )
    answered = code == 0 and SETUP_ANSWER in output and SETUP_URL in client.setup
    return Outcome("yes" if answered else "no", reason=last_line(output))


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """A proxy with the bundled scenarios on a free port; the address for `home_6`. Raises Broken."""
    command = [*WILDPROXY, "serve", "--scenarios", "bundled", "--provider", "sim:oracle", "--port", "0"]
    quiet, told = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen([*command, "--log", log], stdin=quiet, stdout=told, text=True) as server:
        try:
            first = server.stdout.readline() if server.stdout else ""
            address = re.search(r"http://[\d.]+:\d+", first)
            if address is None:
                raise Broken(f"the proxy does not start: {first.strip() or 'it said nothing'}")
            yield SETUP_URL.replace("http://127.0.0.1:8787", address[0])
        finally:
            server.terminate()


def fresh(log: Path) -> Path:
    """The path of a log, with nothing of an earlier one there."""
    for old in log.parent.glob(f"{log.name}*"):
        old.unlink()
    return log


def sessions(file: str | None, count: int) -> list[str]:
    """The options that choose `count` sessions, real ones where they are, else bundled. Raises Broken."""
    if file is not None:
        name = file if file == "bundled" else str(Path(file).resolve())
        return ["--scenarios", name, "--limit", str(count)]
    if SHARED.is_dir():
        files, ids = [str(SHARED / "wildtoolbench" / name) for name in REAL], REAL_IDS
    elif os.environ.get("CI"):
        raise Broken(f"CI is set, but the real sessions are missing: {SHARED}")
    else:
        files, ids = ["bundled"], BUNDLED_IDS
    chosen = [("--scenarios", name) for name in files] + [("--only", name) for name in ids[:count]]
    return [word for pair in chosen for word in pair]


def is_in_short(cell: Cell) -> bool:
    """Is a cell among the few by which most faults are found?"""
    streamed = cell.client.streaming and cell.api == cell.client.apis[0]
    return cell.mode == "setup" or (cell.variant == "default" and cell.stream == streamed)


def judge_cell(cell: Cell, place: Path, task: Task) -> bool:
    """Plays a cell and prints its line, with what went wrong if it is not as expected; is it?"""
    start = time.monotonic()
    try:
        outcome = (try_setup if cell.mode == "setup" else play)(cell, place, task)
    except (OSError, Broken) as error:
        outcome = Outcome("broken", reason=repr(error))
    fits = outcome.got == cell.expected
    name = f"{cell.client.folder.name:<17}{''.join(f'{word:<10}' for word in cell.words):<41}"
    line = f"{name}{cell.expected:<4}{outcome.figures:>5}{time.monotonic() - start:5.0f} s"
    line += "" if fits else f"  but {outcome.got}"
    if outcome.reason and (not fits or task.verbose):
        line += f"\n    {outcome.reason}"
    print(line, flush=True)
    return fits


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("client", nargs="*", metavar="CLIENT", help=", ".join(client_names()))
    parser.add_argument("--mode", nargs="+", choices=["setup", *MODES], default=["setup", *MODES])
    parser.add_argument("--api", nargs="+", choices=["chat", "responses"], default=["chat", "responses"])
    cache = Path(tempfile.gettempdir()) / "wildproxy-frameworks"
    parser.add_argument("--cache", type=Path, default=cache, help="where clients are installed, and logs are")
    parser.add_argument("--scenarios", metavar="FILE", help="play the first two sessions of this file")
    parser.add_argument(
        "--short",
        action="store_true",
        help="one session a cell; each client's plain program alone, its first API streamed, its other not",
    )
    parser.add_argument("--install", action="store_true", help="install the clients, and play nothing")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time")
    parser.add_argument("--verbose", action="store_true", help="say of each no what went wrong")
    return parser.parse_args()


def main() -> int:
    chosen = options()
    cache: Path = chosen.cache.resolve()
    task = Task(sessions(chosen.scenarios, 1 if chosen.short else 2), cache / "logs", chosen.verbose)
    task.logs.mkdir(parents=True, exist_ok=True)
    played: list[Future[bool]] = []
    missing = 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for name in chosen.client or client_names():
            try:
                client = read_client(name)
                place = install(client, cache)
            except Broken as error:
                missing += 1
                print(error, flush=True)
                continue
            if chosen.install:
                continue
            wanted = [cell for cell in cells(client, chosen.mode) if cell.api in ("", *chosen.api)]
            if chosen.short:
                wanted = [cell for cell in wanted if is_in_short(cell)]
            played += [pool.submit(judge_cell, cell, place, task) for cell in wanted]
    if chosen.install:
        return 1 if missing else 0
    different = sum(not it.result() for it in played)
    print(f"{len(played)} cells, {different} not as expected; {missing} clients that could not be played")
    return 1 if different or missing or not played else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as error:
        sys.exit(f"play.py: {error}")
