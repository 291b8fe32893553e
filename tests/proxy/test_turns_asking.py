"""What of an agent's request reaches the provider with each Step, and a provider that names a date."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from support import logs, scenes
from support.playing import prompt, rows

from proxy.conversation import provider_body
from proxy.journal import Journal
from proxy.log.writer import LogWriter
from proxy.play import begin, open_turn
from proxy.provider import Answer, Provider
from proxy.session import Session
from proxy.tally import Tally
from proxy.turns import Providing, wait_before

NOW = datetime(2015, 10, 21, 7, 28, 0, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Asked:
    body: dict[str, Any] = field(default_factory=lambda: prompt(1))
    exchange_id: str = "x1"
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    query: str = ""


@dataclass
class Steps:
    providing: Providing
    log: LogWriter
    path: Path
    waits: list[float]

    async def get(self, asked: Asked, **more: Any) -> list[Any]:
        """Gets the first Step; gives the changes that the provider rows list."""
        session = open_turn(Session("chat.e1", scenes.scenario(scenes.chat("chat", 1))))
        session = begin(session, {"role": "user", "content": "chat asks 1"})
        await self.providing.step(
            logs.session(), 1, asked, provider_body(asked.body, session, **more), Tally()
        )
        await self.log.commit()
        return [
            json.loads(row["changes"])
            for row in rows(self.path, "SELECT changes FROM exchanges WHERE side = 'provider'")
        ]


@pytest.fixture
async def steps(provider: Any, tmp_path: Path) -> AsyncIterator[Steps]:
    path, waits = tmp_path / "log.db", []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    numbers = iter(range(100))
    with LogWriter.open(path) as log:
        log.put(*logs.opened(), logs.start("x1"))
        journal = Journal(log, "r1", lambda: NOW, lambda: f"p{next(numbers)}")
        async with Provider(provider.url) as client:
            yield Steps(Providing(client, journal, sleep=sleep), log, path, waits)


@pytest.mark.parametrize("query", ["", "api-version=2024-10-21", "a=1&b=2%263&a=2"])
async def test_the_agents_query_goes_to_the_provider(provider: Any, steps: Steps, query: str) -> None:
    provider.fail(500)
    provider.reply("Hi.")
    await steps.get(Asked(query=query))
    assert [it.query for it in provider.requests] == [query, query]
    assert {it.path for it in provider.requests} == {"/v1/chat/completions"}


async def test_the_providers_own_query_comes_before_the_agents(provider: Any) -> None:
    provider.reply("Hi.")
    async with Provider(f"{provider.url}?tenant=7") as client:
        answer = await client.complete(prompt(1), query="api-version=1")
    assert answer.status == 200
    assert provider.requests[0].query == "tenant=7&api-version=1"


@pytest.mark.parametrize(("replaced", "listed"), [(True, ["user_message"]), (False, [])])
async def test_the_row_says_that_a_user_message_was_replaced_as_a_whole(
    provider: Any, steps: Steps, replaced: bool, listed: list[str]
) -> None:
    provider.reply("Hi.")
    assert await steps.get(Asked(), replaced_user=replaced) == [["messages", *listed, "tools"]]


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Wed, 21 Oct 2015 07:28:07 GMT", 7.0),
        # The two older forms of RFC 9110, section 5.6.7.
        ("Wednesday, 21-Oct-15 07:28:07 GMT", 7.0),
        ("Wed Oct 21 07:28:07 2015", 7.0),
        ("Wed, 21 Oct 2015 09:28:07 +0200", 7.0),
        ("Wed, 21 Oct 2015 07:28:07 -0000", 7.0),
        ("Thu, 22 Oct 2015 07:28:00 GMT", 60.0),
        # What is over, or no date, says nothing.
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.5),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.5),
        ("Wed, 41 Oct 2015 07:28:07 GMT", 0.5),
        ("Wed, 21 Oct 99999999999999999999 07:28:07 GMT", 0.5),
        ("tomorrow", 0.5),
    ],
)
def test_a_provider_may_name_the_date_until_which_it_is_waited_for(date: str, seconds: float) -> None:
    answer = Answer("error", 0.0, 0.0, status=429, headers={"retry-after": date})
    assert wait_before(0, answer, NOW) == pytest.approx(seconds)


async def test_the_date_is_compared_with_the_proxys_clock(provider: Any, steps: Steps) -> None:
    until = format_datetime(datetime.fromtimestamp(NOW + 9, UTC), usegmt=True)
    provider.fail(503, headers={"Retry-After": until})
    provider.reply("Hi.")
    await steps.get(Asked())
    assert steps.waits == [pytest.approx(9.0)]
