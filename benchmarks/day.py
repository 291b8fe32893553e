"""A day of traffic in minutes: does a proxy that runs on and on grow, in memory, open files or threads?

    python benchmarks/day.py [--exchanges 300000] [--minutes 15] [--agents 32]

Agents play session after session, streaming or not, against a provider that answers at once. One request in a
hundred is given up by its agent and sent again, the provider fails one in two hundred, and now and then
somebody asks in a session that is long over, which must say so. In the second and third quarter the log is
followed by `tail --follow` and the live page is open. A day's volume is what counts, not its hours: one
agent whose LLM takes 3 s makes 50,000 exchanges in 24 h with its proxy and provider, so 300,000 are
the day of six. Provider and agents are processes that share the cores with the proxy.

Give it 100,000 or more: what the log has is remembered, up to 50,000 hashes (some 7 MB), and the latest
sessions are, and until so many are there a proxy does grow.

Exits with 1 if anything was mixed up, or if the proxy grew from the second quarter to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import aiohttp
from http_traffic import (
    OVER,
    PROGRAM,
    TOKEN,
    TURNS,
    Agent,
    Counts,
    Sample,
    allow_many_files,
    cpu_seconds,
    mixed_up_in,
    provider_process,
    sample,
    started,
    write_scenarios,
)

SCENARIOS = 8
LEAVES, FAILURES = 0.01, 0.005
A_TURN = 2.75
"""Exchanges of a turn: the agent's, and one or two with the provider."""
GROWTH, GROWTH_MB, GROWTH_FILES, WAL_MB = 1.03, 6.0, 16, 128.0
"""How much more the proxy may have in the last quarter than in the second: resident memory (factor and MB),
open files; and how long the write-ahead log may be, of which 67 MB are kept once a reader that stayed in one
state of the log, as `tail` does when it begins, has made it so long."""


class Day:
    """The agents of one day, who play until so many exchanges are made or the time is over."""

    def __init__(self, http: aiohttp.ClientSession, url: str, exchanges: int, seconds: float) -> None:
        self.counts = Counts()
        self.errors: list[str] = []
        self.late = 0
        self._http = http
        self._url = url
        self._exchanges = exchanges
        self._end = time.monotonic() + seconds
        self._begin = time.monotonic()
        self._sessions = self._names()

    @property
    def part(self) -> float:
        """How much of the day is over, from 0 to 1."""
        played = self.counts.turns * A_TURN / self._exchanges
        return min(1.0, max(played, (time.monotonic() - self._begin) / (self._end - self._begin)))

    async def play(self, number: int) -> None:
        agent = Agent(self._http, self._url, self.counts, leaves=LEAVES)
        for count in itertools.count():
            if self.part >= 1.0 or self.errors:
                return
            try:
                await agent.play(next(self._sessions), stream=(number + count) % 2 == 0)
                if count % 20 == 10:
                    await self._ask_late()
            except Exception as error:
                self.errors.append(repr(error))

    async def _ask_late(self) -> None:
        """A request in one of the day's first sessions."""
        name = f"s{random.randrange(SCENARIOS)}.e1"
        body = {"model": "m", "messages": [{"role": "user", "content": f"[[next-user-turn {TURNS + 1}]]"}]}
        async with self._http.post(f"{self._url}/s/{name}/v1/chat/completions", json=body) as response:
            text = (await response.json())["choices"][0]["message"]["content"]
        if text != OVER:
            self.errors.append(f"{name}, long over, says {text!r}")
        self.late += 1

    @staticmethod
    def _names() -> Iterator[str]:
        for epoch in itertools.count(1):
            yield from (f"s{number}.e{epoch}" for number in range(SCENARIOS))


@asynccontextmanager
async def watched(http: aiohttp.ClientSession, url: str, log: Path) -> AsyncIterator[None]:
    """The log followed, and the live page open."""

    async def look() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with http.get(f"{url}/ui/api/events", headers=headers) as response:
            response.raise_for_status()
            async for _ in response.content.iter_any():
                pass

    words = (sys.executable, str(PROGRAM), "tail", "--follow", "--format", "json", str(log))
    tail = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)
    page = asyncio.create_task(look())
    try:
        yield
        if page.done():
            page.result()
        assert tail.returncode is None, "tail --follow ended by itself"
    finally:
        page.cancel()
        with suppress(asyncio.CancelledError):
            await page
        if tail.returncode is None:
            tail.terminate()
        await tail.wait()


async def sampled(day: Day, take: Callable[[], Sample], until: float, samples: list[Sample]) -> None:
    """Until so much of the day is over."""
    while day.part < until and not day.errors:
        samples.append(take())
        await asyncio.sleep(1.0)


async def main(told: argparse.Namespace, folder: Path) -> int:
    log, scenarios = folder / "log.db", folder / "scenarios.jsonl"
    write_scenarios(scenarios, SCENARIOS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    provider = await provider_process(port, 0.0, 0.005, FAILURES)
    words = ("--scenarios", str(scenarios), "--provider", f"http://127.0.0.1:{port}/v1")
    proxy, url = await started(*words, "--provider-retries", "0", log=log)
    begin, before = time.monotonic(), cpu_seconds(proxy.pid)
    quarters: list[list[Sample]] = [[], [], [], []]
    timeout = aiohttp.ClientTimeout(total=None)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:
            day = Day(http, url, told.exchanges, told.minutes * 60)

            def take() -> Sample:
                return sample(proxy.pid, log, time.monotonic() - begin)

            playing = asyncio.gather(*(day.play(number) for number in range(told.agents)))
            await sampled(day, take, 0.25, quarters[0])
            async with watched(http, url, log):
                await sampled(day, take, 0.5, quarters[1])
                await sampled(day, take, 0.75, quarters[2])
            await sampled(day, take, 1.0, quarters[3])
            await playing
        taken, cpu = time.monotonic() - begin, cpu_seconds(proxy.pid) - before
    finally:
        for process in (proxy, provider):
            if process.returncode is None:
                process.terminate()
            await process.wait()
    return report(day, log, quarters, taken, cpu)


def report(day: Day, log: Path, quarters: Sequence[Sequence[Sample]], taken: float, cpu: float) -> int:
    with closing(sqlite3.connect(f"{log.resolve().as_uri()}?mode=ro", uri=True)) as reader:
        [(exchanges,)] = reader.execute("SELECT count(*) FROM exchanges")
        [(pending,)] = reader.execute("SELECT count(*) FROM exchanges WHERE finish_state = 'pending'")
    counts, errors = day.counts, [*day.errors, *mixed_up_in(log)]
    errors += [f"{pending} exchanges were left pending"] if pending else []
    print(
        f"{exchanges:,} exchanges, {counts.sessions:,} sessions in {taken:.0f} s ({exchanges / taken:.0f} a "
        f"second, the proxy's CPU {1e3 * cpu / exchanges:.2f} ms each): {counts.left} given up by agents, "
        f"{counts.failed} failures of the provider, {day.late} late requests, {len(errors)} errors"
    )
    print(f"{'quarter':8}{'MB':>7}{'most':>7}{'files':>7}{'threads':>9}{'WAL MB':>8}{'log MB':>8}")
    for number, part in enumerate(quarters, 1):
        print(
            f"{number:<8}{statistics.median(it.rss for it in part):7.1f}{max(it.rss for it in part):7.1f}"
            f"{max(it.files for it in part):7}{max(it.threads for it in part):9}"
            f"{max(it.wal for it in part):8.1f}{part[-1].log:8.0f}"
        )
    errors += grown(quarters[1], quarters[3])
    for error in errors[:10]:
        print("error:", error[:300])
    return 1 if errors else 0


def grown(early: Sequence[Sample], late: Sequence[Sample]) -> list[str]:
    """What there is more of in the last quarter than in the second."""
    found = []
    before, after = (statistics.median(it.rss for it in part) for part in (early, late))
    if after > before * GROWTH + GROWTH_MB:
        found.append(f"memory has grown from {before:.1f} to {after:.1f} MB")
    for name, allowed in (("files", GROWTH_FILES), ("threads", 1)):
        most = [max(getattr(it, name) for it in part) for part in (early, late)]
        if most[1] > most[0] + allowed:
            found.append(f"{name} have grown from {most[0]} to {most[1]}")
    longest = max(it.wal for it in (*early, *late))
    return found + ([f"the write-ahead log was {longest:.0f} MB long"] if longest > WAL_MB else [])


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--exchanges", type=int, default=300_000)
    options.add_argument("--minutes", type=float, default=15.0, help="At most.")
    options.add_argument("--agents", type=int, default=32)
    allow_many_files()
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(main(options.parse_args(), Path(place))))
