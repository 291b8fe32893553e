"""Kills proxy, driver, agents and provider at random moments, again and again, and looks at what is left.

    python tests/storms/kill_storm.py --kills 1000 [--seed N] [--at-once 2] [--keep FOLDER]

Each round plays sessions of the bundled scenarios, several at a time, with one of the ways in which they are
driven, `--tools`, `--history` and streaming; what is killed is started again as its owner would: `serve`
with the same log, `drive` with `--resume`, an agent where its notes end. When all is played the log is
checked (`checks.py`), and its scores must be those of a round in which nothing was killed. What is
wrong is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import checks
from arena import Arena, Budget, Kind
from click.testing import CliRunner

from run_proxy import main


class Storm:
    """All rounds together."""

    def __init__(self, kills: int, at_most: int, seed: int, folder: Path) -> None:
        self.kills: Counter[str] = Counter()
        self.by_itself: Counter[str] = Counter()
        self.rounds = self.answers = self.pending = 0
        self.wrong: list[str] = []
        self._budget = Budget(kills)
        self._at_most = at_most
        self._seed = seed
        self._folder = folder
        self._lock = threading.Lock()
        self._calm: dict[Kind, list[dict[str, Any]]] = {}
        self._numbers = count(1)

    def blow(self, kinds: list[Kind]) -> None:
        """Plays round after round until there is no kill left. Runs in several threads at once."""
        for kind in cycle(kinds):
            if self._budget.left <= 0:
                return
            with self._lock:
                number = next(self._numbers)
            self._round(number, kind)

    def _round(self, number: int, kind: Kind) -> None:
        begin = time.monotonic()
        expected = self._scores_of_a_calm_round(kind)
        folder = self._folder / f"round-{number}"
        arena = Arena(folder, kind, random.Random(f"{self._seed}/{number}"), self._budget)
        wrong = arena.run(self._at_most)
        if not wrong:
            found = self._scores(arena.log)
            wrong = [f"scores {b} and not {a}" for a, b in zip(expected, found, strict=False) if a != b]
            wrong += [] if len(found) == len(expected) else [f"{len(found)} tasks, not {len(expected)}"]
        with self._lock:
            self.rounds += 1
            self.kills += arena.kills
            self.by_itself += arena.ended_by_itself
            self.answers += sum(len(file.read_bytes().splitlines()) for file in (folder / "notes").iterdir())
            self.pending += checks.pending(arena.log)
            self.wrong += [f"round {number} ({kind.name}): {line}" for line in wrong]
            killed = ", ".join(f"{who} {times}" for who, times in sorted(arena.kills.items()))
            taken = time.monotonic() - begin
            print(f"round {number:3} {kind.name:48} {taken:5.0f} s  {killed}", flush=True)
            for line in wrong:
                print(f"  WRONG {line[:1000]}", flush=True)
        if not wrong:
            shutil.rmtree(folder)

    def _scores(self, log: Path) -> list[dict[str, Any]]:
        """What each scorer says of each Task."""
        with self._lock:
            done = CliRunner().invoke(main, ["score", str(log), "--format", "json"])
        assert done.exit_code == 0, done.output
        tasks: list[dict[str, Any]] = json.loads(done.stdout)["tasks"]
        return sorted(tasks, key=lambda task: (task["session"], task["task"]))

    def _scores_of_a_calm_round(self, kind: Kind) -> list[dict[str, Any]]:
        if kind not in self._calm:
            folder = self._folder / f"calm-{'-'.join(kind.name.split())}"
            arena = Arena(folder, kind, random.Random(0), Budget(0))
            self.wrong += [f"without any kill ({kind.name}): {line}" for line in arena.run(0)]
            self._calm[kind] = self._scores(arena.log)
            shutil.rmtree(folder)
        return self._calm[kind]


def kinds(seed: int) -> list[Kind]:
    """Every way of driving with every tool mode and history, in an order drawn by the seed."""
    every = [
        Kind(who, tools, history, mode, f"noisy:0.25:{seed}", 10 if who == "serve" else 6)
        for who, mode in (("serve", "mixed"), ("drive", "stream"), ("alone", "plain"), ("serve", "stream"))
        for tools in ("intercept", "relay")
        for history in ("gold", "live")
    ]
    random.Random(seed).shuffle(every)
    return every


def run() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--at-once", type=int, default=2, help="Rounds at the same time.")
    options.add_argument("--at-most", type=int, default=40, help="Kills of a round; the rest is peace.")
    options.add_argument("--keep", type=Path, help="Folder for logs in which something was wrong.")
    told = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(told.kills, told.at_most, told.seed, told.keep or Path(folder))
        order = kinds(told.seed)
        with ThreadPoolExecutor(told.at_once) as threads:
            parts = [list(islice(order, at, None, told.at_once)) for at in range(told.at_once)]
            for done in [threads.submit(storm.blow, part) for part in parts]:
                done.result()
    killed = ", ".join(f"{who} {times}" for who, times in sorted(storm.kills.items()))
    print(
        f"{storm.kills.total()} kills ({killed}) in {storm.rounds} rounds, {time.monotonic() - begin:.0f} s: "
        f"{storm.answers} answers seen by agents, {storm.pending} exchanges left pending by killed "
        f"processes, {len(storm.wrong)} things wrong"
    )
    if storm.by_itself:
        print("ended by themselves:", ", ".join(f"{it} {n}" for it, n in sorted(storm.by_itself.items())))
    return 1 if storm.wrong else 0


if __name__ == "__main__":
    sys.exit(run())
