"""What an agent has been told is in the log, whatever is killed when."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.ports import free_port

from proxy.session import SESSION_OVER
from proxy.simulate.policies import parse_policy
from proxy.simulate.server import running as simulating
from scenarios.load import BUNDLED, read_file
from scoring.logs.reader import open_log
from scoring.types import SessionScore
from scoring.verdicts.wildtoolbench import score_session

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = read_file(BUNDLED).scenarios
EPOCHS = 2
ANSWERS_BETWEEN_KILLS = 20


class Proxy:
    """`serve` as a process of its own, always at the same port, that can be killed and begun again."""

    def __init__(self, provider: str, log: Path) -> None:
        self.port = free_port()
        self.kills = 0
        self._provider = provider
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "run_proxy.py", "serve", "--scenarios", "bundled"),
            *("--provider", self._provider, "--log", str(self._log), "--port", str(self.port)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert b"Listening" in line, line

    async def end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return await self._process.wait()

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)
        self.kills += 1
        await self.start()


class Agents:
    """Agents that re-send a request until it is answered, as SDKs do."""

    def __init__(self, base_url: str) -> None:
        self.told: list[tuple[str, int, str]] = []
        self.news = asyncio.Condition()
        self._base_url = base_url

    async def play(self, http: aiohttp.ClientSession, session: str) -> None:
        turn, text = 0, ""
        while text != SESSION_OVER:
            turn += 1
            text = await self._answer(http, session, turn)
            async with self.news:
                self.told.append((session, turn, text))
                self.news.notify_all()

    async def _answer(self, http: aiohttp.ClientSession, session: str, turn: int) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": f"[[next-user-turn {turn}]]"}]}
        while True:
            try:
                url = f"{self._base_url}/s/{session}/v1/chat/completions"
                async with http.post(url, json=body) as response:
                    assert response.status == 200, await response.text()
                    answer = await response.json()
                    return str(answer["choices"][0]["message"]["content"])
            except aiohttp.ClientConnectionError:
                # Nobody listens while the proxy is begun again.
                await asyncio.sleep(0.02)

    async def wait_for(self, answers: int, playing: asyncio.Future[list[None]]) -> None:
        """Returns when so many answers have come, or all is played."""

        async def enough() -> None:
            async with self.news:
                await self.news.wait_for(lambda: len(self.told) >= answers)

        waiting = asyncio.create_task(enough())
        await asyncio.wait({waiting, playing}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()


@asynccontextmanager
async def proxy_process(log: Path, latency: float) -> AsyncIterator[Proxy]:
    async with simulating(SCENARIOS, parse_policy("oracle"), latency=latency) as provider:
        proxy = Proxy(provider, log)
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.end(signal.SIGKILL)


def scores(log: Path) -> list[SessionScore]:
    opened = open_log(log)
    (run,) = opened.runs()
    return [score_session(trajectory) for trajectory in opened.trajectories(run.id)]


def answers_in_log(log: Path) -> set[tuple[str, int, str]]:
    connection = sqlite3.connect(f"file:{log}?mode=ro", uri=True)
    try:
        return set(
            connection.execute(
                """SELECT sessions.name, turn, json_extract(messages.body, '$.content')
                FROM exchanges JOIN sessions ON sessions.id = session_id
                JOIN messages ON messages.hash = output_message
                WHERE side = 'agent' AND finish_state = 'complete'"""
            )
        )
    finally:
        connection.close()


async def test_a_proxy_killed_again_and_again_under_load_loses_no_answer_and_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    sessions = [f"{scenario.id}.e{epoch}" for scenario in SCENARIOS for epoch in range(1, EPOCHS + 1)]
    async with proxy_process(log, latency=0.01) as proxy, aiohttp.ClientSession() as http:
        agents = Agents(f"http://127.0.0.1:{proxy.port}")
        playing = asyncio.gather(*(agents.play(http, session) for session in sessions))
        while not playing.done():
            await agents.wait_for(len(agents.told) + ANSWERS_BETWEEN_KILLS, playing)
            if not playing.done():
                await proxy.kill()
        await playing
        assert proxy.kills >= 3
        assert set(agents.told) <= answers_in_log(log)
        played = scores(log)
    assert len(played) == len(sessions)
    assert all(session.correct for session in played)
    assert all(task.requests == task.min_steps for session in played for task in session.tasks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_proxy_that_is_told_to_stop_first_answers_what_it_was_asked(
    tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "log.db"
    async with proxy_process(log, latency=0.5) as proxy, aiohttp.ClientSession() as http:
        agents = Agents(f"http://127.0.0.1:{proxy.port}")
        asked = asyncio.create_task(agents._answer(http, f"{SCENARIOS[0].id}.e1", 1))
        while not log.exists() or not _is_asked(log):
            await asyncio.sleep(0)
        assert await proxy.end(number) == 0
        text = await asked
        assert (f"{SCENARIOS[0].id}.e1", 1, text) in answers_in_log(log)
        await proxy.start()


def _is_asked(log: Path) -> bool:
    connection = sqlite3.connect(f"file:{log}?mode=ro", uri=True)
    try:
        return bool(connection.execute("SELECT 1 FROM exchanges WHERE side = 'provider'").fetchone())
    finally:
        connection.close()
