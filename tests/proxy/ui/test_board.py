"""What a page is told of a run while it plays, and of sessions that are over."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import playing, recording, until
from support.watching import LENT, asked, data, watching

from proxy.settings import PlayConfig
from proxy.ui.lent import Lent

LAMP = ("getPrice", {"thing": "lamp"})
CAR = ("getPrice", {"thing": "car"})


def threads() -> list[str]:
    return [it.name for it in threading.enumerate() if it.name.startswith("live-page")]


async def test_a_page_is_told_of_a_session_as_it_plays(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply("It costs 3.", usage=(130, 10))
    async with playing(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        await board.once(lambda it: it.first)
        assert (board.first["sessions"], board.first["run"]) == ([], proxy.run_id)
        await proxy.chat("shop", 1)
        await board.once(lambda it: it.sessions and it.session("shop.e1")["tasks"][0].get("judged"))
        row = board.session("shop.e1")
        told = ("name", "state", "task", "turn", "steps", "input_tokens", "output_tokens", "errors")
        assert {name: row[name] for name in told} == {
            "name": "shop.e1",
            "state": "playing",
            "task": 1,
            "turn": 1,
            "steps": 2,
            "input_tokens": 230,
            "output_tokens": 30,
            "errors": 0,
        }
        open_task = {"ending": None, "right": None, "released": None, "judged": False}
        right = {"ending": "closed", "right": True, "released": True, "judged": True}
        assert row["tasks"] == [right, open_task, open_task, open_task]
        figures = {name: board.figures[name] for name in ("sessions", "tasks", "requests", "errors")}
        assert figures == {
            "sessions": {"planned": 1, "begun": 1, "over": 0},
            "tasks": {"right": 1, "wrong": 0, "other": 0, "released_right": 1},
            "requests": 2,
            "errors": 0,
        }
        assert (board.figures["input_tokens"], board.figures["output_tokens"]) == (230, 30)
        assert sum(board.figures["rate"]["counts"]) == 2
        assert set(board.names[1:]) == {"changed"}


async def test_a_call_of_the_right_name_with_wrong_arguments_is_wrong_once_it_is_judged(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[CAR])
    provider.reply("It costs 3.")
    async with playing(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        await proxy.chat("shop", 1)
        await board.once(lambda it: it.sessions and it.session("shop.e1")["tasks"][0].get("judged"))
        assert board.session("shop.e1")["tasks"][0]["right"] is False
        tasks = board.figures["tasks"]
        assert (tasks["right"], tasks["wrong"]) == (0, 1)


async def test_without_scorers_names_alone_tell_right_from_wrong(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[CAR])
    provider.reply("It costs 3.")
    provider.reply("No idea.")
    async with (
        playing(tmp_path, provider.url, lent=Lent("", "")) as proxy,
        watching(proxy) as board,
    ):
        await proxy.chat("shop", 1)
        await proxy.chat("shop", 2)
        await board.once(lambda it: it.sessions and it.session("shop.e1")["tasks"][1]["ending"])
        assert board.first["judged"] is False
        assert [task["right"] for task in board.session("shop.e1")["tasks"]] == [True, False, None, None]


async def test_who_asks_the_provider_is_said_while_the_answer_is_awaited(
    provider: Any, tmp_path: Path
) -> None:
    held = provider.hang("No idea.")
    async with playing(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        asking = asyncio.create_task(proxy.chat("shop", 1))
        await provider.arrived(1)
        await board.once(lambda it: it.sessions and it.session("shop.e1")["asking_since"])
        held.set()
        await asking
        await board.once(lambda it: it.session("shop.e1")["asking_since"] is None)


async def test_an_opened_session_is_told_task_by_task_as_it_grows(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply("It costs 3.")
    provider.reply("No idea.")
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        await proxy.chat("shop", 1)
        [row] = (await data(proxy, "sessions"))["sessions"]
        whole = await data(proxy, "session", id=row["id"])
        about = {name: whole[name] for name in ("session", "scenario", "epoch", "attempt", "state", "size")}
        assert about == {
            "session": "shop.e1",
            "scenario": "shop",
            "epoch": 1,
            "attempt": 1,
            "state": "playing",
            "size": 4,
        }
        assert [tool["name"] for tool in whole["tools"]] == ["getPrice", "countStock", "book", "weigh"]
        task, *later = whole["tasks"]
        # What nobody has asked yet is not told.
        assert [(it["user"], it["turns"], it["steps"]) for it in later] == [("", [], [])] * 3
        assert (task["user"], task["ending"]) == ("What does a lamp cost?", "closed")
        assert {name: it["label"] for name, it in task["verdicts"].items()} == {
            "wildtoolbench": "correct",
            "strict": "correct",
        }
        calls, text = task["steps"]
        [call] = calls["calls"]
        assert (call["name"], call["arguments"]) == ("getPrice", '{"thing": "lamp"}')
        assert (call["verdict"], call["node"]) == ("right", 0)
        assert call["observation"] == '{"price": 3, "unit": "€"}'
        assert (calls["input_tokens"], calls["output_tokens"]) == (100, 20)
        assert (text["kind"], text["verdict"], text["text"]) == ("close", "right", "It costs 3.")
        await proxy.chat("shop", 2)
        more = await data(proxy, "session", id=row["id"], after=whole["seq"])
        [second] = more["tasks"]
        assert (second["number"], second["ending"]) == (2, "stopped")
        assert second["verdicts"]["strict"]["evidence"]["rule"] == "step.text_instead_of_call"
        assert "tools" not in more
        assert (await data(proxy, "session", id=row["id"], after=more["seq"]))["tasks"] == []


async def test_what_providers_failed_and_what_was_refused_is_listed(provider: Any, tmp_path: Path) -> None:
    provider.fail(503, "overloaded")
    async with playing(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        await proxy.chat("shop", 1)
        await proxy.send("POST", "/s/shop.e1/v1/completions", json={})
        await board.once(lambda it: len(it.errors) == 2)
        told = [(it["side"], it["status"], it["session"]) for it in board.errors.values()]
        assert sorted(told) == [("agent", 400, "shop.e1"), ("provider", 503, "shop.e1")]
        failed = next(it for it in board.errors.values() if it["side"] == "provider")
        assert "overloaded" in failed["error"]
        assert (await board.once(lambda it: True))["errors"] == 2
        assert (await data(proxy, "errors"))["errors"] == sorted(
            board.errors.values(), key=lambda it: -it["arrival"]
        )


async def test_a_proxy_that_only_records_lists_exchanges_with_their_conversation(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Hello.", usage=(7, 2), model="that-model")
    provider.fail(500, "broken")
    async with recording(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Good day!"}]
        body = {"model": "this-model", "messages": messages}
        for _ in range(2):
            await proxy.send("POST", "/v1/chat/completions", json=body)
        await board.once(lambda it: it.figures["requests"] == 2)
        assert (board.first["records"], board.sessions) == (True, {})
        good, bad = sorted(board.exchanges.values(), key=lambda it: it["arrival"])
        told = ("model", "status", "finish_state", "input_tokens", "output_tokens", "asked")
        assert [good[name] for name in told] == ["that-model", 200, "complete", 7, 2, "Good day!"]
        assert (bad["status"], list(board.errors)) == (500, [bad["id"]])
        assert (board.figures["input_tokens"], board.figures["errors"]) == (7, 1)
        opened = await data(proxy, "exchange", id=good["id"])
        assert opened["messages"] == [
            {"role": "system", "text": "Be kind.", "calls": []},
            {"role": "user", "text": "Good day!", "calls": []},
            {"role": "assistant", "text": "Hello.", "calls": []},
        ]
        raw = await data(proxy, "raw", id=good["id"])
        assert (raw["exchanges"][0]["messages"], raw["exchanges"][0]["message"]) == ([0, 1], 2)
        assert '"content": "Hello."' in raw["exchanges"][0]["answer"]


async def test_sessions_of_earlier_runs_are_there_and_not_taken_for_playing(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    chat = scenes.chat("chat")
    async with playing(tmp_path, provider.url, chat) as proxy:
        earlier = proxy.run_id
        await proxy.chat("chat", 1)
    async with playing(tmp_path, provider.url, chat, lent=LENT, model="another") as proxy:
        async with watching(proxy) as board:
            await board.once(lambda it: it.first)
            assert [run["id"] for run in board.first["runs"]] == [proxy.run_id, earlier]
            assert board.sessions == {}
        async with watching(proxy, run=earlier) as board:
            await board.once(lambda it: it.sessions)
            assert board.session("chat.e1")["state"] == "unfinished"
        assert (await asked(proxy, "sessions", run="nothing")).status == 404


async def test_another_attempt_takes_the_place_of_the_first_in_the_figures(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, scenes.chat("chat"), lent=LENT) as proxy:
        await proxy.chat("chat.e1", 1)
        wanted = {"scenario": "chat", "again": True}
        await proxy.control("POST", "/sessions", json=wanted)
        async with watching(proxy) as board:
            await board.once(lambda it: len(it.sessions) == 2)
            states = [(it["attempt"], it["state"]) for it in board.sessions.values()]
            assert states == [(2, "playing"), (1, "replaced")]
            assert board.figures["sessions"]["begun"] == 1
            assert sum(board.figures["tasks"].values()) == 0


async def test_a_restarted_proxy_goes_on_with_the_same_page(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    settings = {"lent": LENT, "token": "kept-token", "runs": "continue"}
    for turn in (1, 2):
        async with playing(tmp_path, provider.url, scenes.chat("chat"), **settings) as proxy:
            await proxy.chat("chat.e1", turn)
            async with watching(proxy) as board:
                await board.once(lambda it: it.sessions)
                assert board.session("chat.e1")["turn"] == turn
    assert board.session("chat.e1")["state"] == "over"


@pytest.mark.parametrize("play", [PlayConfig(history="live", on_mismatch="continue")])
async def test_a_task_that_went_on_after_a_wrong_step_is_not_right(
    provider: Any, tmp_path: Path, play: PlayConfig
) -> None:
    provider.reply(calls=[CAR])
    provider.reply("No idea.")
    async with playing(tmp_path, provider.url, lent=LENT, play=play) as proxy, watching(proxy) as board:
        await proxy.chat("shop", 1)
        await board.once(lambda it: it.sessions and it.session("shop.e1")["tasks"][0].get("judged"))
        assert board.session("shop.e1")["tasks"][0]["right"] is False


async def test_nothing_runs_while_nobody_looks(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, scenes.chat("chat"), lent=LENT) as proxy:
        await proxy.chat("chat", 1)
        idle = asyncio.all_tasks()
        assert threads() == []
        async with watching(proxy) as board:
            await board.once(lambda it: it.sessions)
            assert threads() == ["live-page_0"]
        await until(lambda: threads() == [])
        await until(lambda: asyncio.all_tasks() <= idle)


async def test_the_stream_ends_when_the_proxy_stops(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        watched = watching(proxy)
        board = await watched.__aenter__()
        await board.once(lambda it: it.first)
    with pytest.raises(AssertionError, match="the stream ended"):
        await board.once(lambda it: False)
    await watched.__aexit__(None, None, None)
    await until(lambda: threads() == [])
