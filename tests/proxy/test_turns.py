"""Getting a Step from a provider that fails: retries, and what is left when they do not help."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import logs, scenes
from support.driving import scored
from support.playing import playing, prompt, rows, soon

from proxy.conversation import provider_body
from proxy.journal import Journal
from proxy.log.writer import LogWriter
from proxy.play import begin, open_turn
from proxy.provider import Answer, Provider
from proxy.session import Session
from proxy.tally import Tally
from proxy.turns import ProviderFailed, Providing

CHAT = scenes.chat("chat", 3)
LAMP = ("getPrice", {"thing": "lamp"})
NOON = 1735732800.0
"""Wed, 01 Jan 2025 12:00:00 GMT, which the proxy's clock shows."""


@dataclass(frozen=True)
class Asked:
    """An agent's request, as a Session hands it on."""

    body: dict[str, Any]
    exchange_id: str = "x1"
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    query: str = ""


class Step:
    """One Step of a Session that stands at its first turn; `waits` are the seconds slept, in order."""

    def __init__(self, log: LogWriter, path: Path, provider: Provider, retries: int) -> None:
        self.waits: list[float] = []
        self.path = path
        self._log = log
        numbers = iter(range(100))
        journal = Journal(log, "r1", lambda: NOON, lambda: f"p{next(numbers)}")
        self._providing = Providing(provider, journal, retries=retries, sleep=self._sleep)
        session = open_turn(Session("chat.e1", scenes.scenario(CHAT)))
        self._session = begin(session, {"role": "user", "content": "chat asks 1"})

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def get(self, *, stream: bool = False) -> Answer:
        asked = Asked({**prompt(1), "stream": stream})
        try:
            sending = provider_body(asked.body, self._session)
            _, answer = await self._providing.step(logs.session(), 1, asked, sending, Tally())
        finally:
            await self._log.commit()
        return answer

    def tries(self) -> list[dict[str, Any]]:
        sql = "SELECT * FROM exchanges WHERE side = 'provider' ORDER BY arrival"
        return rows(self.path, sql)


@asynccontextmanager
async def stepping(folder: Path, provider: Any, retries: int = 3) -> AsyncIterator[Step]:
    path = folder / "log.db"
    with LogWriter.open(path) as log:
        log.put(*logs.opened(), logs.start("x1"))
        async with Provider(provider.url) as client:
            yield Step(log, path, client, retries)


def states(step: Step) -> list[tuple[str, int | None]]:
    return [(row["finish_state"], row["status"]) for row in step.tries()]


# When to try again, and how long to wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "9", "retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "9999"}, 60.0),
        ({"retry-after-ms": "9999999"}, 60.0),
        ({"Retry-After": "Wed, 01 Jan 2025 12:00:10 GMT"}, 10.0),
        ({"Retry-After": "Wed, 01 Jan 2025 13:00:00 GMT"}, 60.0),
        # What cannot be waited for is as good as nothing.
        ({}, 0.5),
        ({"Retry-After": "-1"}, 0.5),
        ({"Retry-After": "nan"}, 0.5),
        ({"Retry-After": "inf"}, 0.5),
        ({"Retry-After": "soon"}, 0.5),
        ({"Retry-After": "Wed, 01 Jan 2025 11:59:59 GMT"}, 0.5),
        ({"retry-after-ms": "soon", "Retry-After": "2"}, 2.0),
    ],
)
async def test_a_provider_that_asks_for_patience_is_given_it_up_to_a_minute(
    provider: Any, tmp_path: Path, headers: dict[str, str], seconds: float
) -> None:
    provider.fail(429, headers=headers)
    provider.reply("Hi.")
    async with stepping(tmp_path, provider) as step:
        answer = await step.get()
        assert answer.response is not None
        assert answer.response["choices"][0]["message"]["content"] == "Hi."
        assert step.waits == [pytest.approx(seconds)]


async def test_without_being_asked_each_wait_is_twice_the_one_before(provider: Any, tmp_path: Path) -> None:
    for _ in range(4):
        provider.fail(500)
    provider.reply("Hi.")
    async with stepping(tmp_path, provider, retries=4) as step:
        await step.get()
        assert step.waits == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_a_failure_that_may_pass_is_tried_again_and_each_try_is_a_row(
    provider: Any, tmp_path: Path, status: int
) -> None:
    provider.fail(status, f"failure {status}")
    provider.reply("Hi.")
    async with stepping(tmp_path, provider) as step:
        await step.get()
        first, second = provider.requests
        assert first.raw == second.raw
        # The last row is ended by the Session, together with what it decides.
        assert states(step) == [("provider_error", status), ("pending", None)]
        failed, answered = step.tries()
        assert f"failure {status}" in failed["error"]
        assert failed["request_sha256"] == answered["request_sha256"]
        assert {row["parent_id"] for row in (failed, answered)} == {"x1"}
        assert {row["turn"] for row in (failed, answered)} == {1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_failure_that_will_come_again_is_not_tried_again(
    provider: Any, tmp_path: Path, status: int
) -> None:
    provider.fail(status, headers={"Retry-After": "1"})
    async with stepping(tmp_path, provider) as step:
        with pytest.raises(ProviderFailed) as caught:
            await step.get()
        assert caught.value.answer.status == status
        assert (len(provider.requests), step.waits) == (1, [])
        assert states(step) == [("provider_error", status)]


async def test_an_answer_that_is_no_completion_is_not_tried_again(provider: Any, tmp_path: Path) -> None:
    provider.body(b"<html>Log in</html>", "text/html")
    async with stepping(tmp_path, provider) as step:
        with pytest.raises(ProviderFailed):
            await step.get()
        assert states(step) == [("provider_error", 200)]


def broken_stream(provider: Any, last: Any) -> list[Any]:
    delta = {"index": 0, "delta": {"content": "Half of "}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [delta]}
    return [chunk, last]


@pytest.mark.parametrize("how", ["no answer", "half a body", "half a stream", "error event"])
async def test_a_broken_answer_is_tried_again_and_nothing_of_it_is_kept(
    provider: Any, tmp_path: Path, how: str
) -> None:
    error = {"error": {"message": "overloaded", "type": "server_error"}}
    match how:
        case "no answer":
            provider.drop()
        case "half a body":
            provider.drop(after=b'{"choices": [{"message": {"content": "Half of ')
        case "half a stream":
            provider.stream(broken_stream(provider, provider.CUT))
        case "error event":
            provider.stream(broken_stream(provider, error))
    provider.reply("Hi.")
    async with stepping(tmp_path, provider) as step:
        answer = await step.get(stream=True)
        assert answer.response is not None
        assert answer.response["choices"][0]["message"]["content"] == "Hi."
        assert step.waits == [0.5]
        failed, _ = step.tries()
        expected = "error_event" if how == "error event" else "provider_abort"
        assert failed["finish_state"] == expected


async def test_what_fails_to_the_last_raises_the_last_failure(provider: Any, tmp_path: Path) -> None:
    provider.fail(503)
    provider.drop()
    provider.fail(429, "the last", headers={"Retry-After": "5"})
    async with stepping(tmp_path, provider, retries=2) as step:
        with pytest.raises(ProviderFailed) as caught:
            await step.get()
        assert caught.value.answer.status == 429
        assert "the last" in str(caught.value)
        # After the last try there is nothing to wait for.
        assert step.waits == [0.5, 1.0]
        assert states(step) == [("provider_error", 503), ("provider_abort", None), ("provider_error", 429)]


async def test_without_retries_a_failure_is_final(provider: Any, tmp_path: Path) -> None:
    provider.fail(503)
    async with stepping(tmp_path, provider, retries=0) as step:
        with pytest.raises(ProviderFailed):
            await step.get()
        assert (len(provider.requests), step.waits) == (1, [])


# What reaches the agent

NOW = {"Retry-After": "0"}


@pytest.mark.parametrize("stream", [False, True])
async def test_what_still_fails_reaches_the_agent_as_it_came_and_is_not_to_be_retried(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    body = {"error": {"message": "zu viel", "type": "t", "param": None, "code": "c"}, "extra": [1]}
    headers = {**NOW, "x-request-id": "req-7", "x-should-retry": "true"}
    for _ in range(3):
        provider.json(body, 429, headers)
    async with playing(tmp_path, provider.url, CHAT, provider_retries=2) as proxy:
        answer = await proxy.chat("chat", 1, stream=stream)
        assert (answer.status, answer.json) == (429, body)
        assert answer.headers["x-request-id"] == "req-7"
        assert answer.headers["Retry-After"] == "0"
        assert answer.headers["x-should-retry"] == "false"
        assert len(provider.requests) == 3
        tries = proxy.exchanges("provider")
        assert [(row["finish_state"], row["status"]) for row in tries] == [("provider_error", 429)] * 3
        [asked] = proxy.exchanges()
        assert (asked["finish_state"], asked["status"]) == ("provider_error", 429)
        assert {row["parent_id"] for row in tries} == {asked["id"]}
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["provider_errors"], state["failed_turn"], state["answered"]) == (1, 1, 0)


async def test_a_task_that_the_provider_failed_ends_as_infrastructure_and_is_not_scored(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(400)
    provider.reply("chat is told 2")
    provider.reply("chat is told 3")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        assert (await proxy.chat("chat", 1)).status == 400
        assert proxy.rows("SELECT ending FROM tasks") == []
        for turn in (2, 3):
            assert (await proxy.chat("chat", turn)).text == f"chat is told {turn}"
        endings = [row["ending"] for row in proxy.rows("SELECT ending FROM tasks ORDER BY task")]
        assert endings == ["infrastructure", "closed", "closed"]
    [session] = scored(tmp_path / "log.db").sessions
    assert [task.label for task in session.tasks] == [None, "correct", "correct"]
    assert not session.scored


async def test_an_agent_that_leaves_a_task_without_a_failure_has_stopped_itself(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(400)
    provider.reply("Which day?")
    provider.reply("You are welcome.")
    asking = [scenes.ask("Which day?", "On Monday."), scenes.close("Booked.", 0)]
    booking = scenes.record("book", ("Book one.", asking), ("Thanks!", [scenes.close("Welcome.")]))
    async with playing(tmp_path, provider.url, booking) as proxy:
        assert (await proxy.chat("book", 1)).status == 400
        # The failure is mended by a Step that was accepted after it.
        assert (await proxy.chat("book", 1)).text == "Which day?"
        # Nobody asks for the turn in which the user replies.
        for _ in range(2):
            await proxy.control("POST", "/sessions/book.e1/turns")
        assert proxy.rows("SELECT ending FROM tasks") == [{"ending": "agent_stopped"}]


async def test_a_success_after_retries_counts_nothing_against_the_agent(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(500, headers=NOW)
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.fail(429, headers=NOW)
    provider.fail(503, headers=NOW)
    provider.reply("It costs 3.", usage=(150, 7))
    async with playing(tmp_path, provider.url, provider_retries=2) as proxy:
        answer = await proxy.chat("shop", 1)
        assert answer.text == "It costs 3."
        assert answer.json["usage"]["total_tokens"] == 277
        tries = [(row["finish_state"], row["status"]) for row in proxy.exchanges("provider")]
        assert tries == [
            ("provider_error", 500),
            ("complete", 200),
            ("provider_error", 429),
            ("provider_error", 503),
            ("complete", 200),
        ]
        steps = proxy.rows("SELECT step, decision FROM steps ORDER BY seq")
        assert steps == [{"step": 0, "decision": "observe"}, {"step": 1, "decision": "close"}]
        state = (await proxy.control("GET", "/sessions/shop.e1")).json
        assert (state["provider_errors"], state["failed_turn"], state["answered"]) == (0, 0, 1)
    [session] = scored(tmp_path / "log.db").sessions
    assert (session.tasks[0].label, session.tasks[0].is_optimal) == ("correct", True)


async def test_an_error_event_that_comes_again_and_again_is_a_bad_gateway(
    provider: Any, tmp_path: Path
) -> None:
    error = {"error": {"message": "overloaded", "type": "server_error"}}
    provider.stream(broken_stream(provider, error))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1, stream=True)
        assert answer.status == 502
        assert "overloaded" in answer.error["message"]
        assert b"Half of" not in answer.raw
        assert answer.headers["x-should-retry"] == "false"
        assert proxy.rows("SELECT * FROM steps") == []


# Behind a sign of life


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_that_could_not_be_told_is_told_once_to_the_request_that_is_sent_again(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    release = asyncio.Event()
    error = {"error": {"message": "sorry", "type": "t", "param": None, "code": "later"}}

    async def fail_late(request: Any) -> Any:
        await release.wait()
        return provider.as_json(error, 418, {"x-request-id": "req-8"})

    provider.script(fail_late)
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.02) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1, stream=stream)) as response:
            assert await soon(response.content.readexactly(1))
            release.set()
            with pytest.raises(aiohttp.ClientError):
                await soon(response.read())
        again = await proxy.chat("chat", 1, stream=stream)
        assert (again.status, again.json) == (418, error)
        assert (again.headers["x-request-id"], again.headers["x-should-retry"]) == ("req-8", "false")
        assert len(provider.requests) == 1
        provider.reply("Hi.")
        assert (await proxy.chat("chat", 1)).text == "Hi."
        assert len(provider.requests) == 2
        rows_ = [(row["finish_state"], row["status"]) for row in proxy.exchanges()]
        assert rows_ == [("provider_error", 418), ("provider_error", 418), ("complete", 200)]


async def test_an_error_of_the_provider_is_never_given_as_a_text(provider: Any, tmp_path: Path) -> None:
    provider.json({"error": {"message": "quota exceeded"}})
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert "choices" not in json.loads(answer.raw)
        assert "quota exceeded" in answer.error["message"]
