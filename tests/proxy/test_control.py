"""The control API that drivers use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Proxy, playing

from proxy.settings import PlayConfig

REQUESTS = [
    ("GET", "/eval/run"),
    ("POST", "/eval/sessions"),
    ("GET", "/eval/sessions"),
    ("GET", "/eval/sessions/shop.e1"),
    ("POST", "/eval/sessions/shop.e1/turns"),
]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer ", "Bearer schlüssel"])
async def test_without_its_token_nothing_is_told_or_done(
    provider: Any, tmp_path: Path, method: str, path: str, given: str | None
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "shop"})
        headers = {} if given is None else {"Authorization": given}
        answer = await proxy.send(method, path, headers=headers)
        assert answer.status == 401
        assert answer.error["type"] == "authentication_error"
        assert proxy.token not in answer.raw.decode()
        assert (await proxy.control("GET", "/sessions/shop.e1")).json["turn"] == 0


async def test_the_run_says_what_can_be_played(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, scenes.SHOP, scenes.TWINS) as proxy:
        run = (await proxy.control("GET", "/run")).json
        assert run["run"] == proxy.run_id
        assert run["config"]["history"] == "gold"
        hashes = [scenes.scenario(record).hash for record in (scenes.SHOP, scenes.TWINS)]
        assert run["scenarios"] == [
            {"id": "shop", "hash": hashes[0], "tasks": 4},
            {"id": "twins", "hash": hashes[1], "tasks": 2},
        ]


async def waiting(proxy: Proxy) -> list[tuple[Any, ...]]:
    """Of the sessions that are being played: (name, steps, what it waits for, requests sent again)."""
    sessions = (await proxy.control("GET", "/sessions")).json["sessions"]
    assert all(0 <= it["waited"] < 60 for it in sessions)
    return [(it["session"], it["steps"], it["waits_for"], it["provider_retries"]) for it in sessions]


async def test_a_session_that_is_played_says_whom_it_waits_for(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("getPrice", {"thing": "lamp"})])
    late = provider.hang("A lamp costs 3.")
    async with playing(tmp_path, provider.url, scenes.SHOP, scenes.TWINS) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "shop"})
        # One that nobody has begun is not played.
        await proxy.control("POST", "/sessions", json={"scenario": "twins"})
        await proxy.control("POST", "/sessions/shop.e1/turns", json={})
        assert await waiting(proxy) == [("shop.e1", 0, "agent", 0)]
        asking = asyncio.create_task(proxy.chat("shop.e1", 1))
        await provider.arrived(2)
        assert await waiting(proxy) == [("shop.e1", 1, "provider", 0)]
        late.set()
        assert (await asking).status == 200
        assert await waiting(proxy) == [("shop.e1", 0, "agent", 0)]


async def test_a_session_whose_agent_has_calls_to_carry_out_waits_for_its_tools(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("getPrice", {"thing": "lamp"})])
    async with playing(tmp_path, provider.url, play=PlayConfig(tools="relay")) as proxy:
        await proxy.chat("shop", 1)
        assert await waiting(proxy) == [("shop.e1", 1, "tools", 0)]


async def test_a_session_whose_provider_is_to_be_asked_again_waits_for_that(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(503, headers={"retry-after": "3600"})
    async with playing(tmp_path, provider.url, provider_retries=1, abandon_after=0.0) as proxy:
        asking = asyncio.create_task(proxy.chat("shop", 1))
        await proxy.finished(1, "provider")
        assert await waiting(proxy) == [("shop.e1", 0, "retry", 1)]
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_session_is_opened_once_and_found_again(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answers = [
            await proxy.control("POST", "/sessions", json={"scenario": "shop", "epoch": 2}) for _ in range(2)
        ]
        assert [answer.status for answer in answers] == [201, 201]
        first, second = (answer.json for answer in answers)
        assert first == second
        process = first.pop("process")
        assert process
        assert first == {
            "session": "shop.e2",
            "url": "/s/shop.e2/attempt/1/v1",
            "mcp_url": None,
            "over": False,
            "turn": 0,
        }
        assert len(proxy.rows("SELECT * FROM sessions")) == 1


@pytest.mark.parametrize(
    ("wanted", "status", "param"),
    [
        ({"scenario": "shoq"}, 404, "scenario"),
        ({}, 404, "scenario"),
        ({"scenario": "shop", "epoch": 0}, 400, "epoch"),
        ({"scenario": "shop", "epoch": "1"}, 400, "epoch"),
        ({"scenario": "shop", "epoch": True}, 400, "epoch"),
        ([], 400, None),
    ],
)
async def test_a_session_that_cannot_be_is_refused(
    provider: Any, tmp_path: Path, wanted: Any, status: int, param: str | None
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.control("POST", "/sessions", json=wanted)
        assert (answer.status, answer.error["param"]) == (status, param)


async def test_a_scenario_that_is_no_text_is_refused(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.control("POST", "/sessions", json={"scenario": ["shop"]})
        assert answer.status in (400, 404)
        assert answer.error["param"] == "scenario"


async def test_a_body_that_is_not_json_is_refused(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.control("POST", "/sessions", data=b"{")
        assert answer.status == 400
        assert "not JSON" in answer.error["message"]


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/turns")])
async def test_a_session_that_was_not_opened_is_not_found(
    provider: Any, tmp_path: Path, method: str, path: str
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.control(method, f"/sessions/shop.e1{path}")
        assert answer.status == 404
        assert "shop.e1" in answer.error["message"]


async def test_turns_are_opened_one_by_one_until_the_session_is_over(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, scenes.chat("chat", 2)) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        opened = []
        for turn in (1, 2):
            opened.append((await proxy.control("POST", "/sessions/chat.e1/turns")).json)
            await proxy.chat("chat.e1", turn)
        opened.append((await proxy.control("POST", "/sessions/chat.e1/turns")).json)
        assert opened == [
            {"turn": 1, "prompt": "[[next-user-turn 1]]", "text": "chat asks 1", "over": False},
            {"turn": 2, "prompt": "[[next-user-turn 2]]", "text": "chat asks 2", "over": False},
            {"turn": None, "prompt": None, "text": None, "over": True},
        ]


async def test_a_session_whose_turns_are_opened_and_never_asked_for_is_over_too(
    provider: Any, tmp_path: Path
) -> None:
    async with playing(tmp_path, provider.url, scenes.chat("chat", 2)) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        opened = [(await proxy.control("POST", "/sessions/chat.e1/turns")).json["turn"] for _ in range(4)]
        assert opened == [1, 2, None, None]
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert state["over"] is True
        assert [task["end"] for task in state["tasks"]] == ["agent_stopped"] * 2
        assert provider.requests == []


async def test_the_state_says_how_each_task_stands_and_what_was_spent(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("getPrice", {"thing": "lamp"})], usage=(10, 1))
    provider.reply("3.", usage=(20, 2))
    provider.reply("I do not know.", usage=(30, 3))
    provider.fail(400)
    async with playing(tmp_path, provider.url) as proxy:
        for turn in (1, 2, 3):
            await proxy.chat("shop", turn)
        state = (await proxy.control("GET", "/sessions/shop.e1")).json
        expected = {
            "session": "shop.e1",
            "scenario": "shop",
            "epoch": 1,
            "turn": 3,
            "over": False,
            "tasks": [
                {"task": 1, "end": "closed", "names_right": True},
                {"task": 2, "end": "stopped", "names_right": False},
                {"task": 3, "end": None, "names_right": None},
                {"task": 4, "end": None, "names_right": None},
            ],
            "input_tokens": 60,
            "output_tokens": 6,
            "provider_errors": 1,
        }
        assert {name: state[name] for name in expected} == expected


async def test_no_word_of_a_reference_is_ever_given_away(provider: Any, tmp_path: Path) -> None:
    secret = "the-observation-that-nobody-may-see"
    nodes = [scenes.call("getPrice", {"thing": "argument-of-the-reference"}, secret), scenes.close(secret, 0)]
    spy = scenes.record("spy", ("Words of the user.", nodes), ("More words.", nodes))
    provider.fail(400)
    async with playing(tmp_path, provider.url, spy) as proxy:
        told = [
            await proxy.control("GET", "/run"),
            await proxy.control("POST", "/sessions", json={"scenario": "spy"}),
            await proxy.control("POST", "/sessions/spy.e1/turns"),
            await proxy.chat("spy.e1", 1),
            await proxy.control("GET", "/sessions/spy.e1"),
            await proxy.send("GET", "/eval/sessions/spy.e1"),
            await proxy.chat("nothing", 1),
        ]
        for answer in told:
            text = json.dumps(dict(answer.headers)) + answer.raw.decode()
            assert secret not in text
            assert "argument-of-the-reference" not in text
            assert "getPrice" not in text


async def test_a_task_that_was_closed_after_a_wrong_step_is_not_said_to_have_had_its_names_right(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("I do not know.")
    play = PlayConfig(history="live", on_mismatch="continue")
    async with playing(tmp_path, provider.url, scenes.SHOP, play=play) as proxy:
        await proxy.chat("shop", 1)
        state = (await proxy.control("GET", "/sessions/shop.e1")).json
        assert state["tasks"][0] == {"task": 1, "end": "closed", "names_right": False}
