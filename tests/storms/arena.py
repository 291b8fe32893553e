"""One log, the processes around it, and their deaths."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Literal

import checks
import starting

from scenarios.load import BUNDLED, read_file

AGENT = Path(__file__).resolve().with_name("agent.py")
TOKEN = "token-of-a-storm"
PATIENCE_S = 600.0
"""For all that is still to be played once nothing is killed any more."""
GAP_S = 0.5
"""Between two kills, at most."""
UNREADY = 0.2
"""How many of the kills do not wait until what was killed before is up again."""

SESSIONS = [scenario.id for scenario in read_file(BUNDLED).scenarios]

Who = Literal["serve", "drive", "alone"]
"""`serve` and agents that prompt themselves; `drive` beside a `serve`; `drive` with its own proxy."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is played. `sessions` are the first so many of the bundled Scenarios."""

    who: Who
    tools: Literal["intercept", "relay"]
    history: Literal["gold", "live"]
    mode: Literal["plain", "stream", "mixed"]
    policy: str
    sessions: int = 10

    @property
    def name(self) -> str:
        return f"{self.who} {self.tools} {self.history} {self.mode} {self.policy}"


class Budget:
    """The kills that are left, of all arenas together."""

    def __init__(self, kills: int) -> None:
        self.left = kills
        self._lock = threading.Lock()

    def spend(self) -> None:
        with self._lock:
            self.left -= 1


@dataclass
class Arena:
    """The processes of one log."""

    folder: Path
    kind: Kind
    chance: random.Random
    budget: Budget
    kills: Counter[str] = field(default_factory=Counter)
    lives: list[checks.Life] = field(default_factory=list)
    ended_by_itself: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name in ("notes", "agents", "output"):
            (self.folder / name).mkdir(parents=True)
        self.log = self.folder / "log.db"
        self._ports = {"provider": free_port(), "proxy": free_port()}
        self._running: dict[str, ForkServerProcess] = {}
        self._began: dict[str, float] = {}
        self._over: set[str] = set()
        self._resumed = False

    def run(self, at_most: int) -> list[str]:
        """Plays all Sessions, with so many kills at most; what is wrong afterwards."""
        try:
            end: float | None = None
            while True:
                self._start_what_is_missing()
                if self._is_over():
                    break
                if end is None and (self.kills.total() >= at_most or self.budget.left <= 0):
                    end = time.monotonic() + PATIENCE_S
                if end is None:
                    self._kill_one()
                elif time.monotonic() > end:
                    return [f"not over {PATIENCE_S:g} s after the last kill: {sorted(self._running)}"]
                else:
                    time.sleep(0.02)
            wrong = self._stop_the_proxy()
        finally:
            for name in list(self._running):
                self._end(name, signal.SIGKILL)
            for mark in list((self.folder / "agents").iterdir()):
                self._kill_driven(mark.name)
        return wrong + self._wrong()

    # What runs

    def _start_what_is_missing(self) -> None:
        self._reap()
        kind, ports = self.kind, self._ports
        self._start(
            "provider", starting.simulated, ports["provider"], kind.policy, str(self.folder / "given")
        )
        if kind.who == "serve":
            for session in SESSIONS[: kind.sessions]:
                self._start(
                    f"agent {session}", starting.own_agent, str(self.folder), kind.mode, f"{session}.e1"
                )
        if kind.who != "alone":
            serve = ["serve", *self._playing(), "--port", str(ports["proxy"])]
            self._start("proxy", starting.program, serve)
        if kind.who == "drive" or (kind.who == "alone" and is_open(ports["provider"])):
            self._start("driver", starting.program, self._drive())

    def _reap(self) -> None:
        """Notices what has ended by itself: an agent or a driver that is done, or has failed."""
        for name, process in list(self._running.items()):
            code = starting.code_of(process)
            if code is None:
                continue
            self._forget(name, killed=False)
            if code == 0 and name.split()[0] in ("agent", "driver"):
                self._over.add(name)
            else:
                self.ended_by_itself[f"{name.split()[0]}: code {code}"] += 1
            if name == "driver":
                self._resumed = code != 2

    def _start(self, name: str, work: Callable[..., None], *arguments: Any) -> None:
        if name in self._running or name in self._over:
            return
        environ = {"EVAL_TOKEN": TOKEN}
        if work is starting.own_agent:
            environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{self._ports['proxy']}/s/{arguments[2]}/v1"
        self._began[name] = time.time()
        self._running[name] = starting.start(work, arguments, self.folder / "output" / name, environ)

    def _playing(self) -> list[str]:
        kind, provider = self.kind, f"http://127.0.0.1:{self._ports['provider']}/v1"
        played = ("--scenarios", "bundled", "--provider", provider, "--log", str(self.log))
        return [*played, "--tools", kind.tools, "--history", kind.history, "--provider-retries", "2"]

    def _drive(self) -> list[str]:
        # Without the packages that it has no use for, and which take longer than all else.
        agent = [sys.executable, "-S", str(AGENT), str(self.folder), self.kind.mode]
        command = ["drive", "--agent", shlex.join(agent), "--limit", str(self.kind.sessions)]
        if self.kind.who == "alone":
            command += self._playing()
        else:
            command += ["--proxy", f"http://127.0.0.1:{self._ports['proxy']}"]
        return [*command, "--resume"] if self._resumed else command

    def _is_over(self) -> bool:
        if self.kind.who == "serve":
            return len(self._over) == self.kind.sessions
        return "driver" in self._over

    # What is killed

    def _kill_one(self) -> None:
        if self.chance.random() >= UNREADY:
            self._wait_until_up()
        time.sleep(self.chance.uniform(0, GAP_S))
        self._reap()
        if self._is_over():
            return
        who = {"serve": "proxy", "drive": "proxy driver", "alone": "driver"}[self.kind.who]
        victim = self.chance.choice([*who.split(), "agent", "provider"])
        if victim == "agent":
            victim = self._one_agent()
        if victim.isdigit():
            if self._kill_driven(victim):
                self._count("agent")
        elif victim in self._running:
            self._end(victim, signal.SIGKILL)
            self._count(victim.split()[0])
        if victim == "driver":
            self._resumed = True

    def _kill_driven(self, pid: str) -> bool:
        """Was it an agent of a driver that still ran?"""
        (self.folder / "agents" / pid).unlink(missing_ok=True)
        with suppress(ProcessLookupError, FileNotFoundError):
            # Not one that has got the number of an agent that has ended since.
            if b"agent.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
                return True
        return False

    def _count(self, victim: str) -> None:
        self.kills[victim] += 1
        self.budget.spend()

    def _one_agent(self) -> str:
        mine = [name for name in self._running if name.startswith("agent")]
        driven = sorted(
            it.name for it in (self.folder / "agents").iterdir() if Path("/proc", it.name).exists()
        )
        return self.chance.choice([*mine, *driven] or [""])

    def _wait_until_up(self) -> None:
        """Until proxy and provider can be asked and an agent is about, or there is nothing more to ask."""
        ports = [self._ports["provider"]] if self.kind.who == "alone" else list(self._ports.values())
        while not (self._one_agent() and all(map(is_open, ports))):
            self._start_what_is_missing()
            if self._is_over():
                return
            time.sleep(0.02)
        self._start_what_is_missing()

    def _end(self, name: str, number: signal.Signals) -> int:
        code = starting.end(self._running[name], number)
        self._forget(name, killed=code == -signal.SIGKILL)
        return code

    def _forget(self, name: str, *, killed: bool) -> None:
        self._running.pop(name)
        if name == "proxy" or (name == "driver" and self.kind.who == "alone"):
            self.lives.append(checks.Life(self._began[name], time.time(), killed))

    # What came of it

    def _stop_the_proxy(self) -> list[str]:
        if "proxy" not in self._running:
            return []
        is_up = is_open(self._ports["proxy"])
        code = self._end("proxy", signal.SIGTERM)
        # One that has just been started anew may not have come to where it hears the signal.
        is_right = code == 0 or (code == -signal.SIGTERM and not is_up)
        return [] if is_right else [f"the proxy ended with code {code}"]

    def _wrong(self) -> list[str]:
        seen = [
            json.loads(line)
            for file in (self.folder / "notes").iterdir()
            for line in file.read_text("utf-8").split("\n")[:-1]
        ]
        given = set((self.folder / "given").read_text().split())
        refused = self.folder / "refused"
        told = refused.read_text().splitlines() if refused.exists() else []
        if self.kind.who != "serve":
            # A driver goes on when the provider has failed a turn and its agent takes long to ask again. An
            # agent whose driver was killed still asks when the next driver has begun its Session anew.
            rightly = ('"turn_over"', '"attempt_over"')
            told = [line for line in told if not any(code in line for code in rightly)]
        faults = [
            f"{file.name} printed: {line}"
            for file in (self.folder / "output").iterdir()
            if file.name != "provider"
            for line in file.read_text("utf-8", "replace").splitlines()
            if "Traceback" in line or "Task exception" in line or "fault of the proxy" in line
        ]
        return [
            *checks.wrong_with(self.log, seen, given, self.lives),
            *map("refused: {}".format, told),
            *faults,
        ]


def free_port() -> int:
    """A port that no outgoing connection takes while nobody listens on it."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
