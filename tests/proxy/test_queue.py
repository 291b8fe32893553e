"""Requests that name no Session, and all the ways to name one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Answer, Proxy, playing, soon

PATH = "/v1/chat/completions"
BARE = "[[next-user-turn]]"


class Talk:
    """An agent that remembers what was said. `fields` tell its requests from those of others."""

    def __init__(self, proxy: Proxy, system: str | None = None, **fields: Any) -> None:
        self.messages: list[dict[str, Any]] = (
            [] if system is None else [{"role": "system", "content": system}]
        )
        self._proxy = proxy
        self._fields = fields

    def body(self, words: str) -> dict[str, Any]:
        return {
            "model": "m",
            "messages": [*self.messages, {"role": "user", "content": words}],
            **self._fields,
        }

    async def say(self, words: str = BARE) -> Answer:
        """The user's next turn; its answer joins the history."""
        body = self.body(words)
        answer = await self._proxy.send("POST", PATH, json=body)
        if answer.status == 200:
            self.messages = [*body["messages"], {"role": "assistant", "content": answer.text}]
        return answer


def echo(provider: Any) -> None:
    """The LLM repeats what it was asked last."""
    provider.script(lambda request: provider.message(request, request.body["messages"][-1]["content"]))


def sessions(proxy: Proxy) -> list[str]:
    return [row["name"] for row in proxy.rows("SELECT name FROM sessions ORDER BY seq")]


# One conversation after the other


async def test_each_next_conversation_plays_the_next_scenario(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    records = [scenes.chat(name, 2) for name in ("red", "green", "blue")]
    async with playing(tmp_path, provider.url, *records) as proxy:
        said = []
        for seed in range(3):
            talk = Talk(proxy, seed=seed)
            said.append([(await talk.say()).text for _ in range(2)])
        assert said == [[f"{name} asks 1", f"{name} asks 2"] for name in ("red", "green", "blue")]
        assert sessions(proxy) == ["red.e1", "green.e1", "blue.e1"]
        assert {row["correlation"] for row in proxy.exchanges()} == {"queue"}


async def test_after_all_scenarios_the_first_is_played_once_more(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red", 1), scenes.chat("green", 1)) as proxy:
        said = [(await Talk(proxy, seed=seed).say()).text for seed in range(5)]
        assert said == ["red asks 1", "green asks 1", "red asks 1", "green asks 1", "red asks 1"]
        assert sessions(proxy) == ["red.e1", "green.e1", "red.e2", "green.e2", "red.e3"]


async def test_a_scenario_that_was_asked_for_by_name_waits_its_turn_in_the_queue(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red", 1), scenes.chat("green", 1)) as proxy:
        await proxy.chat("red", 1)
        assert [(await Talk(proxy, seed=seed).say()).text for seed in range(2)] == [
            "green asks 1",
            "red asks 1",
        ]
        assert sessions(proxy) == ["red.e1", "green.e1", "red.e2"]


async def test_a_conversation_of_the_very_same_bytes_opens_the_next_scenario_too(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red", 2), scenes.chat("green", 2)) as proxy:
        said = []
        for _ in range(2):
            talk = Talk(proxy)
            said.append([(await talk.say(f"[[next-user-turn {turn}]]")).text for turn in (1, 2)])
        assert said == [["red asks 1", "red asks 2"], ["green asks 1", "green asks 2"]]


async def test_an_agent_with_a_clock_in_its_system_prompt_gets_the_next_scenario_too(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    tools = [scenes.tool("search", words="string")]
    async with playing(tmp_path, provider.url, scenes.chat("red", 1), scenes.chat("green", 1)) as proxy:
        said = [(await Talk(proxy, f"It is {hour} h.", tools=tools).say()).text for hour in (1, 2)]
        assert said == ["red asks 1", "green asks 1"]
        assert sessions(proxy) == ["red.e1", "green.e1"]


async def test_after_its_last_task_a_conversation_is_told_so_and_the_provider_is_not_asked(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red", 2), scenes.chat("green", 2)) as proxy:
        talk = Talk(proxy)
        said = [(await talk.say()).text for _ in range(5)]
        assert said == ["red asks 1", "red asks 2", *["[session over]"] * 3]
        assert len(provider.requests) == 2
        assert sessions(proxy) == ["red.e1"]


# Two at a time


async def test_a_second_conversation_is_told_all_ways_to_name_a_session_and_disturbs_nobody(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red", 2), scenes.chat("green", 2)) as proxy:
        first = Talk(proxy)
        await first.say()
        for words in (BARE, "[[next-user-turn 1]]"):
            second = await Talk(proxy, seed=1).say(words)
            assert (second.status, second.error["code"]) == (400, "session_is_open")
            ways = ("/s/", "sk-eval-", "x-eval-session", "[[next-user-turn session=")
            assert all(way in second.error["message"] for way in ways)
            assert "red.e1" in second.error["message"]
        assert (await first.say()).text == "red asks 2"
        assert sessions(proxy) == ["red.e1"]
        assert len(provider.requests) == 2


async def test_a_conversation_without_the_placeholder_is_told_to_use_it(
    provider: Any, tmp_path: Path
) -> None:
    async with playing(tmp_path, provider.url, scenes.chat("red")) as proxy:
        answer = await Talk(proxy).say("Hello")
        assert (answer.status, answer.error["code"]) == (400, "no_session")
        assert "[[next-user-turn]]" in answer.error["message"]
        assert provider.requests == []
        assert sessions(proxy) == []


async def test_the_first_request_sent_again_joins_the_first(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("The one answer.")
    async with playing(tmp_path, provider.url, scenes.chat("red"), scenes.chat("green")) as proxy:
        asking = [asyncio.create_task(Talk(proxy).say()) for _ in range(3)]
        await soon(provider.arrived(1))
        await proxy.arrived(3)
        release.set()
        assert {answer.text for answer in await asyncio.gather(*asking)} == {"The one answer."}
        assert len(provider.requests) == 1
        assert sessions(proxy) == ["red.e1"]


async def test_a_call_on_the_side_is_no_second_conversation(provider: Any, tmp_path: Path) -> None:
    provider.reply("red is told 1")
    provider.reply("A title")
    provider.reply("Another title")
    provider.reply("red is told 2")
    async with playing(tmp_path, provider.url, scenes.chat("red", 2), scenes.chat("green")) as proxy:
        agent = Talk(proxy, "Be helpful.")
        assert (await agent.say()).text == "red is told 1"
        assert (await Talk(proxy, "Write a title.").say(f"Talk: {BARE}")).text == "A title"
        assert (await Talk(proxy, "Write a title.").say("Talk: hello")).text == "Another title"
        assert (await agent.say()).text == "red is told 2"
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True, True, False]
        assert sessions(proxy) == ["red.e1"]


# The placeholder without a number


async def test_a_prompt_without_number_means_the_next_turn_once_the_last_was_delivered(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("red is told 1")
    provider.reply("red is told 2")
    async with playing(tmp_path, provider.url, scenes.chat("red", 2)) as proxy:
        talk = Talk(proxy)
        hasty = asyncio.create_task(proxy.send("POST", PATH, json=talk.body(BARE)))
        await soon(provider.arrived(1))
        hasty.cancel()
        await proxy.finished(1)
        release.set()
        assert (await talk.say()).text == "red is told 1"
        assert (await talk.say()).text == "red is told 2"
        assert [row["turn"] for row in proxy.exchanges()] == [1, 1, 2]
        assert [request.body["messages"][-1]["content"] for request in provider.requests] == [
            "red asks 1",
            "red asks 2",
        ]


async def test_the_last_turns_answer_is_given_again_to_who_has_not_got_it(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("red is told 1")
    async with playing(tmp_path, provider.url, scenes.chat("red", 1), scenes.chat("green", 1)) as proxy:
        talk = Talk(proxy)
        hasty = asyncio.create_task(proxy.send("POST", PATH, json=talk.body(BARE)))
        await soon(provider.arrived(1))
        hasty.cancel()
        await proxy.finished(1)
        release.set()
        await proxy.finished(1, "provider")
        assert (await talk.say()).text == "red is told 1"
        assert sessions(proxy) == ["red.e1"]
        assert len(provider.requests) == 1


async def test_the_last_turns_answer_is_given_again_under_a_scenarios_address_too(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("red is told 1")
    async with playing(tmp_path, provider.url, scenes.chat("red", 1)) as proxy:
        hasty = asyncio.create_task(proxy.chat("red", 1))
        await soon(provider.arrived(1))
        hasty.cancel()
        await proxy.finished(1)
        release.set()
        await proxy.finished(1, "provider")
        assert (await proxy.chat("red", 1)).text == "red is told 1"
        assert sessions(proxy) == ["red.e1"]


# Naming a session

NAMED = [
    ("path", "/s/green/v1/chat/completions", {}, BARE),
    ("api_key", PATH, {"Authorization": "Bearer sk-eval-green"}, BARE),
    ("header", PATH, {"x-eval-session": "green"}, BARE),
    ("sentinel", PATH, {}, "[[next-user-turn session=green]]"),
    ("sentinel", PATH, {}, "[[next-user-turn 1 session=green.e1]]"),
]


@pytest.mark.parametrize(("correlation", "path", "headers", "words"), NAMED)
async def test_every_way_to_name_a_session_binds_and_the_row_says_which(
    provider: Any, tmp_path: Path, correlation: str, path: str, headers: dict[str, str], words: str
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, scenes.chat("red"), scenes.chat("green")) as proxy:
        await Talk(proxy, seed=1).say()
        body = {"model": "m", "messages": [{"role": "user", "content": words}]}
        answer = await proxy.send("POST", path, json=body, headers=headers)
        assert answer.text == "green asks 1"
        _, row = proxy.exchanges()
        assert (row["correlation"], row["turn"]) == (correlation, 1)
        assert sessions(proxy) == ["red.e1", "green.e1"]
        seen = provider.requests[1]
        assert b"green.e1" not in seen.raw
        assert b"next-user-turn" not in seen.raw
        assert "x-eval-session" not in seen.headers
        assert "Authorization" not in seen.headers


async def test_the_path_goes_before_the_key_the_key_before_the_header_the_header_before_the_prompt(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    names = ("one", "two", "three", "four")
    async with playing(tmp_path, provider.url, *(scenes.chat(name) for name in names)) as proxy:
        words = {"model": "m", "messages": [{"role": "user", "content": "[[next-user-turn session=four]]"}]}
        header, key = {"x-eval-session": "three"}, {"Authorization": "Bearer sk-eval-two"}
        asked = [
            ("/s/one/v1/chat/completions", {**header, **key}),
            (PATH, {**header, **key}),
            (PATH, header),
            (PATH, {}),
        ]
        said = [(await proxy.send("POST", path, json=words, headers=it)).text for path, it in asked]
        assert said == [f"{name} asks 1" for name in names]
        assert [row["correlation"] for row in proxy.exchanges()] == ["path", "api_key", "header", "sentinel"]


@pytest.mark.parametrize(
    ("path", "headers", "words"),
    [
        (PATH, {"Authorization": "Bearer sk-eval-gren"}, BARE),
        (PATH, {"x-eval-session": "gren"}, BARE),
        (PATH, {}, "[[next-user-turn session=gren]]"),
    ],
)
async def test_a_name_that_fits_no_session_is_refused_however_it_is_given(
    provider: Any, tmp_path: Path, path: str, headers: dict[str, str], words: str
) -> None:
    async with playing(tmp_path, provider.url, scenes.chat("green")) as proxy:
        body = {"model": "m", "messages": [{"role": "user", "content": words}]}
        answer = await proxy.send("POST", path, json=body, headers=headers)
        assert (answer.status, answer.error["code"]) == (404, "session_not_found")
        assert "'gren'" in answer.error["message"]
        assert provider.requests == []
