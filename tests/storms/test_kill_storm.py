"""A short storm (`kill_storm.py --kills 1000` is the long one), and that its checks find what is wrong."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from storms import checks, provider
from support.playing import serving, until

pytestmark = pytest.mark.long

STORM = Path(__file__).with_name("kill_storm.py")


def test_nothing_is_lost_or_played_twice_when_everything_is_killed_again_and_again() -> None:
    done = subprocess.run(
        [sys.executable, str(STORM), "--kills", "20", "--at-once", "2", "--at-most", "10", "--seed", "3"],
        capture_output=True,
        text=True,
        cwd=STORM.parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"^(\d+) kills .* (\d+) answers seen by agents.* 0 things wrong$", done.stdout, re.M)
    assert told is not None, done.stdout
    assert int(told[1]) >= 15
    assert int(told[2]) > 50


@dataclass(frozen=True)
class Played:
    """A log, what its agent has seen, and the marks of the provider's answers."""

    log: Path
    seen: list[checks.Note]
    given: set[str]

    def wrong(self) -> list[str]:
        return checks.wrong_with(self.log, self.seen, self.given, [])


@pytest.fixture
async def played(tmp_path: Path, unused_tcp_port: int) -> Played:
    marks = tmp_path / "marks"
    providing = asyncio.create_task(provider.main(unused_tcp_port, "oracle", marks))
    await until(marks.exists)
    url = f"http://127.0.0.1:{unused_tcp_port}/v1"
    async with serving(tmp_path, url, environ={}, scenarios=("bundled",), provider_retries=3) as proxy:
        answer = await proxy.chat("home_6", 1)
    providing.cancel()
    await asyncio.wait({providing})
    [row] = proxy.exchanges()
    note = {
        "session": "home_6.e1",
        "turn": 1,
        "sha256": row["request_sha256"],
        "id": answer.json["id"],
        "message": answer.json["choices"][0]["message"],
    }
    return Played(proxy.log, [note], set(marks.read_text().split()))


def test_there_is_nothing_wrong_with_the_log_of_a_quiet_day(played: Played) -> None:
    assert played.wrong() == []


@pytest.mark.parametrize(
    ("done", "found"),
    [
        ("DELETE FROM exchanges WHERE side = 'agent'", "lost"),
        ("UPDATE messages SET body = replace(body, '.', '!')", "lost"),
        ("UPDATE exchanges SET finish_state = 'pending' WHERE side = 'provider'", "left pending"),
        ("UPDATE exchanges SET parent_id = 'nobody' WHERE side = 'provider'", "foreign key"),
        (
            """INSERT INTO steps SELECT session_id, task, 9, 9999, turn, exchange_id, decided_at, decision,
            reason, nodes, message FROM steps WHERE decision = 'close'""",
            "ended twice",
        ),
        ("UPDATE exchanges SET arrival = 9999 WHERE side = 'provider'", "went on after its end"),
        ('UPDATE exchanges SET response_headers = \'{"x-request-id": "other"}\'', "never given"),
        ("DELETE FROM sessions", "0 runs were played"),
    ],
)
def test_a_log_in_which_something_is_wrong_is_found_out(played: Played, done: str, found: str) -> None:
    with closing(sqlite3.connect(played.log)) as writer:
        writer.execute(done)
        writer.commit()
    assert any(line.startswith(found) for line in played.wrong())
