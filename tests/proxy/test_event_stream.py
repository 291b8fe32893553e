"""The control API's stream of events: what happens in a Run, while it happens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import scenes
from support.described import check_event
from support.playing import Proxy, playing, soon

from proxy.wire.sse import SSEDecoder

LAMP = ("getPrice", {"thing": "lamp"})
PRICE = '{"price": 3, "unit": "€"}'
Event = tuple[str, dict[str, Any]]


class Stream:
    """An answer of `/eval/events`, read event by event."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.raw = b""
        self._decoder = SSEDecoder()
        self._waiting: list[Event] = []

    async def until(self, name: str, count: int = 1) -> list[Event]:
        """The events up to the `count`-th called `name`, which must come."""
        events: list[Event] = []
        while sum(it[0] == name for it in events) < count:
            while not self._waiting:
                assert await self._read(), f"the stream ended before {count} {name}"
            events.append(self._waiting.pop(0))
        return events

    async def rest(self) -> list[Event]:
        """All that comes until the stream ends by itself."""
        while await self._read():
            pass
        return self._waiting

    async def _read(self) -> bool:
        chunk = await soon(self.response.content.readany())
        self.raw += chunk
        for it in self._decoder.feed(chunk):
            data = json.loads(it.data)
            check_event(it.event, data)
            self._waiting.append((it.event, data))
        return bool(chunk)


@asynccontextmanager
async def listening(proxy: Proxy, query: str = "") -> AsyncIterator[Stream]:
    """The client is one of its own, so that it can outlive the proxy."""
    timeout = aiohttp.ClientTimeout(total=None)
    headers = {"Authorization": f"Bearer {proxy.token}"}
    async with (
        aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
        http.get(f"{proxy.url}/eval/events{query}") as response,
    ):
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Stream(response)


def names(events: list[Event]) -> list[str]:
    return [name for name, _ in events]


async def test_what_happens_in_a_session_is_told_in_order_while_it_plays(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply("It costs 3.")
    async with playing(tmp_path, provider.url) as proxy, listening(proxy) as stream:
        await proxy.chat("shop", 1)
        events = await stream.until("task_ended")
        assert [name for name in names(events) if name != "provider_call"] == [
            "run_begun",
            "session_opened",
            "user_turn",
            "tool_called",
            "observed",
            "verdict",
            "assistant_text",
            "verdict",
            "task_ended",
        ]
        told = dict(reversed(events))
        assert told["run_begun"]["place"]["run"] == proxy.run_id
        assert (told["user_turn"]["kind"], told["user_turn"]["text"]) == ("task", "What does a lamp cost?")
        assert told["tool_called"]["name"] == "getPrice"
        assert json.loads(told["tool_called"]["arguments"]) == LAMP[1]
        assert told["observed"]["text"] == PRICE
        assert told["assistant_text"]["text"] == "It costs 3."
        assert told["task_ended"]["ending"] == "closed"
        verdicts = [(data["step"], data["decision"]) for name, data in events if name == "verdict"]
        assert verdicts == [(0, "observe"), (1, "close")]
        calls = [data["call"] for name, data in events if name == "provider_call"]
        assert (calls[0]["input_tokens"], calls[0]["output_tokens"]) == (100, 20)
        # The next turn follows in the same stream.
        provider.reply("No idea.")
        await proxy.chat("shop", 2)
        more = await stream.until("task_ended")
        assert names(more)[0] == "user_turn"
        assert more[-1][1]["ending"] == "stopped"


async def test_who_listens_late_is_told_all_from_the_beginning(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, scenes.chat("chat", 2)) as proxy:
        for turn in (1, 2):
            await proxy.chat("chat", turn)
        async with listening(proxy) as stream:
            events = await stream.until("task_ended", 2)
        words = [data["text"] for name, data in events if name == "user_turn"]
        assert words == ["chat asks 1", "chat asks 2"]


async def test_the_events_of_one_session_can_be_asked_for(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, scenes.chat("red"), scenes.chat("green")) as proxy:
        for turn in (1, 2):
            for name in ("red", "green"):
                await proxy.chat(name, turn)
        async with listening(proxy, "?session=green.e1") as stream:
            events = await stream.until("task_ended", 2)
        assert {data["place"]["session"] for name, data in events if name != "run_begun"} == {"green.e1"}


async def test_the_stream_ends_when_the_proxy_stops(provider: Any, tmp_path: Path) -> None:
    provider.reply("Something.")
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
        async with playing(tmp_path, provider.url, scenes.chat("chat")) as proxy:
            headers = {"Authorization": f"Bearer {proxy.token}"}
            stream = Stream(await http.get(f"{proxy.url}/eval/events", headers=headers))
            await proxy.chat("chat", 1)
            await stream.until("task_ended")
        await stream.rest()
        assert stream.response.content.at_eof()
        stream.response.release()


async def test_a_listener_that_leaves_harms_nobody(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, scenes.chat("chat")) as proxy:
        async with listening(proxy) as stream:
            await proxy.chat("chat", 1)
            await stream.until("user_turn")
        assert (await proxy.chat("chat", 2)).text == "Something."
        async with listening(proxy) as stream:
            await stream.until("task_ended", 2)


async def test_the_stream_never_names_what_the_reference_allows(provider: Any, tmp_path: Path) -> None:
    secret = "the-observation-that-nobody-may-see"
    nodes = [scenes.call("getPrice", {"thing": "argument-of-the-reference"}, secret), scenes.close(secret, 0)]
    spy = scenes.record("spy", ("Words of the user.", nodes), ("More words.", nodes))
    provider.reply("No idea.")
    provider.reply(calls=[("countStock", {"thing": "lamp"})])
    async with playing(tmp_path, provider.url, spy) as proxy, listening(proxy) as stream:
        assert (await proxy.chat("spy", 1)).text == "[task over]"
        # Requests that are refused or fail are events as well.
        await proxy.chat("spy.e1", 1, n=2)
        assert (await proxy.chat("spy", 2)).text == "[task over]"
        events = await stream.until("task_ended", 2)
        verdicts = [data for name, data in events if name == "verdict"]
        assert [data["decision"] for data in verdicts] == ["stop", "stop"]
        assert [data["did"] for data in verdicts] == ["replied in text", "called countStock"]
        assert not any("reason" in data for data in verdicts)
        for word in (secret, "argument-of-the-reference", "getPrice", "prepare_to_answer"):
            assert word.encode() not in stream.raw
        # The log, which is for the owner, does say so.
        assert all("getPrice" in row["reason"] for row in proxy.rows("SELECT reason FROM steps"))


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer "])
async def test_without_the_token_there_are_no_events(
    provider: Any, tmp_path: Path, given: str | None
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        headers = {} if given is None else {"Authorization": given}
        answer = await proxy.send("GET", "/eval/events", headers=headers)
        assert answer.status == 401
        assert answer.error["type"] == "authentication_error"
