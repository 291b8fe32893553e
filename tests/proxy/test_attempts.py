"""A Session that is begun anew: the last attempt counts, the others stay in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.driving import scored, verdicts
from support.playing import Answer, Proxy, playing, soon

from proxy.settings import PlayConfig

TOOLS = [scenes.tool("search", words="string")]
ONE = scenes.record(
    "one",
    ("What does a lamp cost?", [scenes.call("getPrice", {"thing": "lamp"}, 3), scenes.close("3.", 0)]),
    ("Thanks!", [scenes.close("Welcome.")]),
)
LAMP = ("getPrice", {"thing": "lamp"})
RIGHT = {("one", 1, 1): ("correct", True), ("one", 1, 2): ("correct", True)}


async def ask(
    proxy: Proxy, words: str, *, system: str = "Be helpful.", path: str = "/s/one", **fields: Any
) -> Answer:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": words}]
    body = {"model": "m", "messages": messages, **fields}
    return await proxy.send("POST", f"{path}/v1/chat/completions", json=body)


def attempts(proxy: Proxy) -> list[int]:
    rows = proxy.rows("SELECT attempt FROM sessions WHERE name = 'one.e1' ORDER BY seq")
    return [row["attempt"] for row in rows]


def play_right(provider: Any) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3.")
    provider.reply("You are welcome.")


# Calls on the side that come first


@pytest.mark.parametrize("number", ["", " 1"])
async def test_a_title_call_that_came_first_is_taken_back_when_the_agent_shows_its_tools(
    provider: Any, tmp_path: Path, number: str
) -> None:
    provider.reply("Lamps and prices")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        title = await ask(proxy, f"Title: [[next-user-turn{number}]]", system="Write a title.")
        assert title.text == "[task over]"
        first = f"[[next-user-turn{number}]]"
        assert (await ask(proxy, first, tools=TOOLS)).text == "It costs 3."
        second = first.replace("1", "2")
        assert (await ask(proxy, second, tools=TOOLS)).text == "You are welcome."
        assert attempts(proxy) == [1, 2]
        steps = proxy.rows(
            "SELECT attempt, decision FROM steps JOIN sessions ON id = session_id ORDER BY steps.seq"
        )
        assert [tuple(step.values()) for step in steps] == [
            (1, "stop"),
            (2, "observe"),
            (2, "close"),
            (2, "close"),
        ]
    assert verdicts(tmp_path / "log.db") == RIGHT


async def test_a_title_call_that_is_still_held_at_the_provider_does_not_hold_the_agent(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("Lamps and prices")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        title = asyncio.create_task(ask(proxy, "Title: [[next-user-turn 1]]", system="Write a title."))
        await soon(provider.arrived(1))
        assert (await soon(ask(proxy, "[[next-user-turn 1]]", tools=TOOLS))).text == "It costs 3."
        release.set()
        assert (await soon(title)).status == 200
        assert (await ask(proxy, "[[next-user-turn 2]]", tools=TOOLS)).text == "You are welcome."
        assert attempts(proxy) == [1, 2]
    assert verdicts(tmp_path / "log.db") == RIGHT


async def test_an_attempt_takes_over_once_and_later_title_calls_are_side_calls(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Lamps and prices")
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3.")
    provider.reply("A title")
    provider.reply("You are welcome.")
    async with playing(tmp_path, provider.url, ONE) as proxy:
        await ask(proxy, "Title: [[next-user-turn 1]]", system="Write a title.")
        answers = [await ask(proxy, "[[next-user-turn 1]]", tools=TOOLS) for _ in range(3)]
        assert {answer.text for answer in answers} == {"It costs 3."}
        assert (await ask(proxy, "Title: [[next-user-turn 1]]", system="Write a title.")).text == "A title"
        assert proxy.exchanges()[-1]["reason"]
        assert (await ask(proxy, "[[next-user-turn 2]]", tools=TOOLS)).text == "You are welcome."
        assert attempts(proxy) == [1, 2]


@pytest.mark.parametrize("number", ["", " 1"])
async def test_a_title_call_is_taken_back_in_the_queue_too(
    provider: Any, tmp_path: Path, number: str
) -> None:
    provider.reply("Lamps and prices")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        await ask(proxy, f"Title: [[next-user-turn{number}]]", system="Write a title.", path="")
        first = f"[[next-user-turn{number}]]"
        assert (await ask(proxy, first, tools=TOOLS, path="")).text == "It costs 3."
        second = await ask(proxy, first.replace("1", "2"), tools=TOOLS, path="")
        assert second.text == "You are welcome."
        assert attempts(proxy) == [1, 2]
    assert verdicts(tmp_path / "log.db") == RIGHT


# On request


async def begin_anew(proxy: Proxy) -> dict[str, Any]:
    answer = await proxy.control("POST", "/sessions", json={"scenario": "one", "again": True})
    assert answer.status == 201
    state: dict[str, Any] = answer.json
    return state


async def test_a_session_that_was_begun_can_be_played_again_and_only_the_last_attempt_is_scored(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("I do not know.")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        assert (await proxy.chat("one.e1", 1)).text == "[task over]"
        state = await begin_anew(proxy)
        assert (state["session"], state["turn"], state["over"]) == ("one.e1", 0, False)
        assert (await proxy.chat("one.e1", 1)).text == "It costs 3."
        assert (await proxy.chat("one.e1", 2)).text == "You are welcome."
        assert attempts(proxy) == [1, 2]
        left = proxy.rows("SELECT decision FROM steps JOIN sessions ON id = session_id WHERE attempt = 1")
        assert left == [{"decision": "stop"}]
    assert verdicts(tmp_path / "log.db") == RIGHT


async def test_a_worse_last_attempt_counts_all_the_same(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3.")
    provider.reply("I do not know.")
    async with playing(tmp_path, provider.url, ONE) as proxy:
        assert (await proxy.chat("one.e1", 1)).text == "It costs 3."
        await begin_anew(proxy)
        assert (await proxy.chat("one.e1", 1)).text == "[task over]"
    [session] = scored(tmp_path / "log.db").sessions
    assert [task.label for task in session.tasks] == ["error", None]


@pytest.mark.parametrize("turns", [0, 2])
async def test_a_session_that_was_not_begun_or_that_its_agent_ended_is_not_played_again(
    provider: Any, tmp_path: Path, turns: int
) -> None:
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "one"})
        for turn in range(1, turns + 1):
            await proxy.chat("one.e1", turn)
        state = await begin_anew(proxy)
        assert (state["turn"], state["over"]) == (turns, turns == 2)
        assert attempts(proxy) == [1]


async def test_a_session_that_the_provider_ended_can_be_played_again(provider: Any, tmp_path: Path) -> None:
    provider.fail(500)
    provider.reply("You are welcome.")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        assert (await proxy.chat("one.e1", 1)).status == 500
        assert (await proxy.chat("one.e1", 2)).text == "You are welcome."
        assert (await begin_anew(proxy))["turn"] == 0
        for turn in (1, 2):
            await proxy.chat("one.e1", turn)
        assert attempts(proxy) == [1, 2]
    assert verdicts(tmp_path / "log.db") == RIGHT


# Agents that an earlier attempt has left behind


async def opened(proxy: Proxy, *, again: bool = False) -> str:
    """The address of the next attempt's agent."""
    answer = await proxy.control("POST", "/sessions", json={"scenario": "one", "again": again})
    return str(answer.json["url"]).removesuffix("/v1")


async def stands(proxy: Proxy) -> dict[str, Any]:
    state: dict[str, Any] = (await proxy.control("GET", "/sessions/one.e1")).json
    return state


@pytest.mark.parametrize("turn", [1, 2, 3])
async def test_the_agent_of_an_earlier_attempt_plays_no_part_in_the_next_one(
    provider: Any, tmp_path: Path, turn: int
) -> None:
    provider.reply(calls=[LAMP])
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE, play=PlayConfig(tools="relay")) as proxy:
        first = await opened(proxy)
        given = await ask(proxy, "[[next-user-turn 1]]", tools=TOOLS, path=first)
        assert given.json["choices"][0]["message"]["tool_calls"]
        second = await opened(proxy, again=True)
        await proxy.control("POST", "/sessions/one.e1/turns", json={"after": 0})
        late = await ask(proxy, f"[[next-user-turn {turn}]]", tools=TOOLS, path=first)
        assert (late.status, late.error["code"]) == (410, "attempt_over")
        assert late.headers["x-should-retry"] == "false"
        # To the driver it is as if nobody had asked yet.
        state = await stands(proxy)
        assert (state["turn"], state["asked"], state["refused_turn"]) == (1, 0, 0)
        assert [row["reason"] for row in proxy.exchanges()] == [None, "refused"]
        calls = await ask(proxy, "[[next-user-turn 1]]", tools=TOOLS, path=second)
        message = calls.json["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "?"}
        prompt = {"role": "user", "content": "[[next-user-turn 1]]"}
        body = {"model": "m", "messages": [prompt, message, result], "tools": TOOLS}
        answer = await proxy.send("POST", f"{second}/v1/chat/completions", json=body)
        assert answer.text == "It costs 3."


async def test_an_unreadable_request_of_an_earlier_attempts_agent_fails_no_turn_of_the_next_one(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("I do not know.")
    async with playing(tmp_path, provider.url, ONE) as proxy:
        first = await opened(proxy)
        await ask(proxy, "[[next-user-turn 1]]", path=first)
        second = await opened(proxy, again=True)
        await proxy.control("POST", "/sessions/one.e1/turns", json={"after": 0})
        for path, refused in ((first, 0), (second, 1)):
            answer = await proxy.send("POST", f"{path}/v1/chat/completions", data=b"{")
            assert (answer.status, (await stands(proxy))["refused_turn"]) == (400, refused)


async def test_attempts_are_told_apart_by_a_proxy_that_was_started_anew(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("I do not know.")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        first = await opened(proxy)
        await ask(proxy, "[[next-user-turn 1]]", path=first)
        second = await opened(proxy, again=True)
        await ask(proxy, "[[next-user-turn 1]]", path=second)
    async with playing(tmp_path, provider.url, ONE, runs="resume") as proxy:
        assert (await ask(proxy, "[[next-user-turn 2]]", path=first)).status == 410
        assert (await ask(proxy, "[[next-user-turn 2]]", path=second)).text == "You are welcome."
        # Over by now, and an address without an attempt means the last one.
        assert (await ask(proxy, "[[next-user-turn 2]]", path=first)).status == 410
        assert (await ask(proxy, "[[next-user-turn 2]]", path="/s/one.e1")).text == "You are welcome."
    assert verdicts(tmp_path / "log.db") == RIGHT


async def test_an_agent_keeps_its_address_when_a_title_call_of_its_own_came_first(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Lamps and prices")
    play_right(provider)
    async with playing(tmp_path, provider.url, ONE) as proxy:
        path = await opened(proxy)
        await ask(proxy, "Title: [[next-user-turn 1]]", system="Write a title.", path=path)
        assert (await ask(proxy, "[[next-user-turn 1]]", tools=TOOLS, path=path)).text == "It costs 3."
        assert attempts(proxy) == [1, 2]
    async with playing(tmp_path, provider.url, ONE, runs="resume") as proxy:
        assert (await ask(proxy, "[[next-user-turn 2]]", tools=TOOLS, path=path)).text == "You are welcome."
    assert verdicts(tmp_path / "log.db") == RIGHT


async def test_the_tools_of_an_earlier_attempt_are_not_served_any_more(provider: Any, tmp_path: Path) -> None:
    provider.reply("I do not know.")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with playing(tmp_path, provider.url, ONE, play=PlayConfig(tools="mcp")) as proxy:
        first = await opened(proxy)
        await ask(proxy, "[[next-user-turn 1]]", path=first)
        second = await opened(proxy, again=True)
        paths = (first, second, "/s/one.e1")
        statuses = [(await proxy.send("POST", f"{path}/mcp", json=listing)).status for path in paths]
        assert statuses == [410, 200, 200]
