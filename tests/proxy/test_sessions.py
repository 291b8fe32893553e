"""Sessions under many requests at once: each turn is played once, and no Session sees another."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import scenes
from support.playing import Proxy, playing, prompt, soon

LAMP = ("getPrice", {"thing": "lamp"})
CHAT = scenes.chat("chat", 3)


async def leave(proxy: Proxy, session: str, turn: int, provider: Any, count: int, **fields: Any) -> None:
    """Asks for a turn and hangs up when the provider has got its `count`-th request."""
    asking = asyncio.create_task(proxy.chat(session, turn, **fields))
    await soon(provider.arrived(count))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


# The same turn again


@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_turn_asked_for_while_it_is_played_is_played_once(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    release = provider.hang("The one answer.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = [asyncio.create_task(proxy.chat("chat", 1, stream=stream)) for _ in range(5)]
        await soon(provider.arrived(1))
        await proxy.arrived(5)
        release.set()
        answers = await asyncio.gather(*asking)
        assert len({answer.raw for answer in answers}) == 1
        assert b"The one answer." in answers[0].raw
        assert len(provider.requests) == 1
        assert len(proxy.rows("SELECT * FROM steps")) == 1
        assert [row["finish_state"] for row in proxy.exchanges("agent")] == ["complete"] * 5


async def test_a_turn_asked_for_again_later_gets_the_answer_that_was_given(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP], usage=(9, 9))
    provider.reply("It costs 3.", usage=(1, 1))
    async with playing(tmp_path, provider.url) as proxy:
        first = await proxy.chat("shop", 1)
        again = await proxy.chat("shop", 1, temperature=1)
        assert again.raw == first.raw
        streamed = await proxy.chat("shop", 1, stream=True)
        assert b"It costs 3." in streamed.raw
        assert len(provider.requests) == 2
        assert len(proxy.exchanges("agent")) == 3


async def test_a_turn_that_is_over_is_given_again_after_later_turns(provider: Any, tmp_path: Path) -> None:
    provider.reply("One.")
    provider.reply("Two.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        assert (await proxy.chat("chat", 1)).text == "One."
        assert (await proxy.chat("chat", 2)).text == "Two."
        assert (await proxy.chat("chat", 1)).text == "One."
        assert len(provider.requests) == 2


async def test_an_sdk_that_lost_patience_and_retries_gets_the_one_answer(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("Patience.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat", retries=9, timeout=0.5)
        asking = asyncio.create_task(client.chat.completions.create(**prompt(1)))
        await proxy.arrived(2)
        release.set()
        assert (await soon(asking)).choices[0].message.content == "Patience."
        assert len(provider.requests) == 1
        headers = [json.loads(row["request_headers"]) for row in proxy.exchanges()]
        tries = [int(it["x-stainless-retry-count"]) for it in headers]
        # On a busy machine the SDK may lose patience before its first request is read.
        assert len(tries) >= 2 and tries == sorted(set(tries))


async def test_a_prompt_without_number_gets_the_stored_answer_until_it_was_delivered(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("One.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = asyncio.create_task(proxy.chat("chat", None))
        await soon(provider.arrived(1))
        asking.cancel()
        await proxy.finished(1)
        release.set()
        assert (await proxy.chat("chat", None)).text == "One."
        provider.reply("Two.")
        assert (await proxy.chat("chat", None)).text == "Two."
        words = [request.body["messages"][-1]["content"] for request in provider.requests]
        assert words == ["chat asks 1", "chat asks 2"]


# Many Sessions


async def test_sessions_that_play_at_the_same_time_never_mix(provider: Any, tmp_path: Path) -> None:
    """Every request is held until all Sessions have one at the provider, twice a turn."""
    names = [f"room{n}" for n in range(12)]
    records = [
        scenes.record(
            name,
            *(
                (
                    f"{name} wants {task}",
                    [
                        scenes.call("getPrice", {"thing": name}, f"{name} costs {task}"),
                        scenes.close("Told.", 0),
                    ],
                )
                for task in range(1, 4)
            ),
        )
        for name in names
    ]
    meeting = Meeting(len(names))

    async def answer(request: Any) -> Any:
        await meeting.all_here()
        last = request.body["messages"][-1]
        if last["role"] == "user":
            name = last["content"].split()[0]
            return provider.message(request, calls=[("getPrice", {"thing": name}, "call_same_id")])
        return provider.message(request, f"I heard: {last['content']}")

    provider.script(answer)
    async with playing(tmp_path, provider.url, *records) as proxy:

        async def play(name: str) -> list[str]:
            said = []
            messages: list[dict[str, Any]] = []
            for turn in range(1, 4):
                messages = [*messages, {"role": "user", "content": f"[[next-user-turn {turn}]]"}]
                reply = await proxy.chat(name, turn, messages=messages)
                messages.append({"role": "assistant", "content": reply.text})
                said.append(reply.text)
            return said

        async with asyncio.timeout(60):
            told = await asyncio.gather(*(play(name) for name in names))
        assert told == [[f"I heard: {name} costs {task}" for task in range(1, 4)] for name in names]
        assert meeting.held == 2 * 3
        for request in provider.requests:
            text = json.dumps(request.body["messages"])
            assert len(set(re.findall(r"room\d+", text))) == 1
        for row in proxy.rows("SELECT session, arguments, observation FROM tool_call_log"):
            name = row["session"].removesuffix(".e1")
            assert json.loads(row["arguments"]) == {"thing": name}
            assert row["observation"].startswith(f"{name} costs")


class Meeting:
    """Lets a group go on together once all of its members have come, again and again."""

    def __init__(self, size: int) -> None:
        self.held = 0
        self._size = size
        self._waiting = 0
        self._open = asyncio.Event()

    async def all_here(self) -> None:
        self._waiting += 1
        gate = self._open
        if self._waiting == self._size:
            self.held += 1
            self._waiting, self._open = 0, asyncio.Event()
            gate.set()
        await gate.wait()


async def test_requests_of_one_session_are_answered_in_order(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("One.")
    provider.reply("Two.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        first = asyncio.create_task(proxy.chat("chat", 1))
        await soon(provider.arrived(1))
        second = asyncio.create_task(proxy.chat("chat", 2))
        await proxy.arrived(2)
        assert len(provider.requests) == 1
        release.set()
        assert [(await first).text, (await second).text] == ["One.", "Two."]
        words = [request.body["messages"][-1]["content"] for request in provider.requests]
        assert words == ["chat asks 1", "chat asks 2"]


# Epochs


async def test_a_new_conversation_after_the_last_task_opens_the_next_epoch(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("First time.")
    provider.reply("Second time.")
    async with playing(tmp_path, provider.url, scenes.chat("one", 1)) as proxy:
        assert (await proxy.chat("one", 1)).text == "First time."
        assert (await proxy.chat("one", 2)).text == "[session over]"
        assert (await proxy.chat("one", 1)).text == "Second time."
        named = proxy.rows("SELECT name, epoch FROM sessions ORDER BY seq")
        assert named == [{"name": "one.e1", "epoch": 1}, {"name": "one.e2", "epoch": 2}]


async def test_an_epoch_can_be_asked_for_by_name(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, scenes.chat("one", 1)) as proxy:
        assert (await proxy.chat("one.e7", 1)).text == "Hi."
        assert proxy.rows("SELECT epoch FROM sessions") == [{"epoch": 7}]
        assert (await proxy.chat("one.e0", 1)).status == 404
        assert (await proxy.chat("one.ex", 1)).status == 404


# Agents that leave


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_for_an_agent_that_left_is_there_when_it_asks_again(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    provider.reply(calls=[LAMP])
    release = provider.hang("It costs 3.")
    async with playing(tmp_path, provider.url) as proxy:
        await leave(proxy, "shop", 1, provider, 2, stream=stream)
        [gone] = await proxy.finished(1)
        assert (gone["finish_state"], gone["delivered_at"]) == ("client_abort", None)
        assert gone["error_type"] == "client_disconnected"
        release.set()
        assert (await proxy.chat("shop", 1)).text == "It costs 3."
        assert len(provider.requests) == 2
        assert [row["decision"] for row in proxy.rows("SELECT decision FROM steps")] == ["observe", "close"]
        assert [row["finish_state"] for row in proxy.exchanges("agent")] == ["client_abort", "complete"]


async def test_an_agent_that_leaves_while_its_answer_is_written_harms_nobody(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("x" * 30_000_000)
    provider.reply("Two.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        body = json.dumps(prompt(1)).encode()
        host, port = proxy.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        head = "POST /s/chat/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        # The head is there, so the row is committed; the rest does not fit into the socket.
        await soon(reader.readuntil(b"\r\n\r\n"))
        [row] = proxy.exchanges("agent")
        assert row["finish_state"] == "complete"
        writer.transport.abort()
        assert (await proxy.chat("chat", 2)).text == "Two."
        left, _ = proxy.exchanges("agent")
        assert (left["finish_state"], left["delivered_at"]) == ("complete", None)


async def test_agents_that_leave_at_any_moment_do_not_stop_the_log(provider: Any, tmp_path: Path) -> None:
    """Each hangs up a little later in the life of its request than the one before."""
    provider.script(lambda request: provider.message(request, "Hi."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        for epoch in range(1, 81):
            asking = asyncio.create_task(proxy.chat(f"chat.e{epoch}", 1))
            for _ in range(epoch):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        assert (await proxy.chat("chat.e99", 1)).text == "Hi."
        states = {row["finish_state"] for row in proxy.exchanges("agent")}
        assert states <= {"complete", "client_abort", "pending"}


async def test_the_provider_is_let_go_when_an_agent_does_not_come_back(provider: Any, tmp_path: Path) -> None:
    provider.hang()
    async with playing(tmp_path, provider.url, CHAT, abandon_after=0.02) as proxy:
        await leave(proxy, "chat", 1, provider, 1)
        await soon(provider.disconnected.wait())
        [sent] = await proxy.finished(1, "provider")
        assert (sent["finish_state"], sent["error_type"]) == ("client_abort", "client_disconnected")
        provider.reply("Welcome back.")
        assert (await proxy.chat("chat", 1)).text == "Welcome back."
        assert [row["step"] for row in proxy.rows("SELECT step FROM steps")] == [0]


async def test_as_long_as_one_of_several_waits_the_provider_is_kept(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("Here.")
    async with playing(tmp_path, provider.url, CHAT, abandon_after=0.0) as proxy:
        patient = asyncio.create_task(proxy.chat("chat", 1))
        await soon(provider.arrived(1))
        hasty = asyncio.create_task(proxy.chat("chat", 1))
        await proxy.arrived(2)
        hasty.cancel()
        await proxy.finished(1)
        release.set()
        assert (await soon(patient)).text == "Here."
        assert not provider.disconnected.is_set()


async def test_a_turn_is_given_up_when_its_driver_opens_the_next(provider: Any, tmp_path: Path) -> None:
    provider.hang()
    provider.reply("Two.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        await proxy.control("POST", "/sessions/chat.e1/turns")
        asking = asyncio.create_task(proxy.chat("chat.e1", 1))
        await soon(provider.arrived(1))
        opened = (await proxy.control("POST", "/sessions/chat.e1/turns")).json
        assert opened["turn"] == 2
        given_up = await soon(asking)
        assert given_up.status == 409
        assert "turn 1" in given_up.error["message"]
        assert (await proxy.chat("chat.e1", 2)).text == "Two."
        late = await proxy.chat("chat.e1", 1)
        assert late.status == 400
        assert "turn 1 is over" in late.error["message"]
        [end, *_] = proxy.rows("SELECT ending FROM tasks ORDER BY task")
        assert end == {"ending": "agent_stopped"}


async def test_stopping_the_proxy_cuts_off_what_is_still_asked(provider: Any, tmp_path: Path) -> None:
    provider.hang()
    async with playing(tmp_path, provider.url, CHAT, abandon_after=0.0) as proxy:
        asking = asyncio.create_task(proxy.chat("chat", 1))
        await soon(provider.arrived(1))
    outcome = (await asyncio.gather(asking, return_exceptions=True))[0]
    assert isinstance(outcome, aiohttp.ClientError) or outcome.status >= 400
    await soon(provider.disconnected.wait())
    states = [row["finish_state"] for row in proxy.exchanges("agent") + proxy.exchanges("provider")]
    assert "complete" not in states
    assert "pending" not in states
