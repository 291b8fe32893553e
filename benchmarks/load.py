"""A thousand sessions at once through one proxy: is any answer lost or mixed up, and what does it cost?

    python benchmarks/load.py [--sessions 1000] [--rounds 2] [--soft-limit 1024]

Every agent streams, all begin together, and the provider answers after 0.2 to 2 s. Provider and agents are
processes of their own and share the machine's cores with the proxy: what is said to be added to a turn (the
time at the agent less the provider's own) is also what they wait for each other. A round is one session of
each agent. Exits with 1 if anything failed, was mixed up, or if the proxy grew from the first round to the
last.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from http_traffic import (
    Agent,
    Counts,
    Sample,
    allow_many_files,
    cpu_seconds,
    mixed_up_in,
    percentile,
    provider_process,
    sample,
    started,
    write_scenarios,
)

GROWTH = 1.15
"""How much larger the proxy may be at most in the last round than in the first."""


async def main(sessions: int, rounds: int, folder: Path) -> int:
    log, scenarios = folder / "log.db", folder / "scenarios.jsonl"
    write_scenarios(scenarios, sessions)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    provider = await provider_process(port, 0.2, 2.0)
    words = ("--scenarios", str(scenarios), "--provider", f"http://127.0.0.1:{port}/v1")
    proxy, url = await started(*words, log=log)
    allow_many_files()
    counts, errors, samples = Counts(added=[]), list[str](), list[list[Sample]]()
    begin, before = time.perf_counter(), cpu_seconds(proxy.pid)
    try:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            for number in range(1, rounds + 1):
                agent = Agent(http, url, counts)
                playing = asyncio.gather(
                    *(agent.play(f"s{it}.e{number}") for it in range(sessions)), return_exceptions=True
                )
                samples.append([])
                while not playing.done():
                    samples[-1].append(sample(proxy.pid, log, time.perf_counter() - begin))
                    await asyncio.wait({playing}, timeout=0.25)
                errors += [repr(it) for it in await playing if isinstance(it, BaseException)]
        taken, cpu = time.perf_counter() - begin, cpu_seconds(proxy.pid) - before
    finally:
        for process in (proxy, provider):
            if process.returncode is None:
                process.terminate()
            await process.wait()
    errors += mixed_up_in(log)
    return report(sessions, counts, errors, samples, taken, cpu)


def report(
    sessions: int, counts: Counts, errors: list[str], samples: list[list[Sample]], taken: float, cpu: float
) -> int:
    assert counts.added is not None
    added = [1000 * percentile(counts.added, part) for part in (0.5, 0.9, 0.99, 1.0)] if counts.added else []
    print(
        f"{sessions} sessions at once, {counts.sessions} played, {counts.turns} turns in {taken:.1f} s: "
        f"{len(errors)} errors, {counts.mixed_up} answers mixed up\n"
        f"added to a turn, ms: {', '.join(f'{it:.0f}' for it in added)} (p50, p90, p99, most)\n"
        f"the proxy's CPU: {cpu:.1f} s, {1000 * cpu / max(counts.turns, 1):.2f} ms a turn "
        f"({100 * cpu / taken:.0f} % of a core)"
    )
    most = [max(it.rss for it in part) for part in samples]
    for number, part in enumerate(samples, 1):
        print(
            f"round {number}: up to {max(it.rss for it in part):.0f} MB, {max(it.files for it in part)} open "
            f"files, {max(it.threads for it in part)} threads, WAL up to {max(it.wal for it in part):.0f} MB"
        )
    for error in errors[:10]:
        print("error:", error[:300])
    has_grown = most[-1] > most[0] * GROWTH
    if has_grown:
        print(f"the proxy has grown from {most[0]:.0f} to {most[-1]:.0f} MB")
    return 1 if errors or counts.mixed_up or has_grown else 0


if __name__ == "__main__":
    told = argparse.ArgumentParser()
    told.add_argument("--sessions", type=int, default=1000)
    told.add_argument("--rounds", type=int, default=2)
    told.add_argument("--soft-limit", type=int, default=1024, help="Open files that the proxy begins with.")
    options = told.parse_args()
    soft, hard = options.soft_limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard), hard))
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(main(options.sessions, options.rounds, Path(place))))
