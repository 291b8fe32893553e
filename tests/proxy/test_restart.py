"""A proxy that is started anew on the log of an earlier one goes on where that one stood."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.driving import scored, verdicts
from support.playing import Answer, Proxy, playing, prompt, soon

LAMP = ("getPrice", {"thing": "lamp"})
TOOLS = [scenes.tool("search", words="string")]
CHAT = scenes.chat("chat", 3)


def started(folder: Path, provider: Any, *records: scenes.Record, **settings: Any) -> Any:
    """A proxy at the folder's log, which goes on with its last Run if it can."""
    return playing(folder, provider.url, *records, **{"runs": "continue", **settings})


async def state_of(proxy: Proxy, session: str) -> dict[str, Any]:
    answer = await proxy.control("GET", f"/sessions/{session}")
    assert answer.status == 200
    state: dict[str, Any] = answer.json
    return state


async def bare(proxy: Proxy, *messages: str, **fields: Any) -> Answer:
    """A request that names no session; `messages` are user and assistant in turn."""
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": text} for i, text in enumerate(messages)]
    return await proxy.send("POST", "/v1/chat/completions", json={"model": "m", "messages": said, **fields})


def echo(provider: Any) -> None:
    """The LLM repeats what it was asked last."""
    provider.script(lambda request: provider.message(request, request.body["messages"][-1]["content"]))


# What is taken over


async def test_a_session_stands_where_it_stood(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP], usage=(10, 1))
    provider.reply("It costs 3.", usage=(20, 2))
    provider.reply("No idea.", usage=(30, 3))
    provider.reply("Which day?", usage=(40, 4))
    provider.reply(calls=[("book", {"thing": "lamp", "day": "Monday"})])
    provider.reply("Booked.")
    provider.reply("You are welcome.")
    async with started(tmp_path, provider) as proxy:
        for turn in (1, 2, 3):
            await proxy.chat("shop", turn)
        before = await state_of(proxy, "shop.e1")
    async with started(tmp_path, provider) as again:
        assert again.run_id == proxy.run_id
        after = await state_of(again, "shop.e1")
        assert after.pop("process") != before.pop("process")
        # It waits anew, as seen by the new process.
        assert after.pop("waited") <= before.pop("waited")
        assert after == before
        assert (after["turn"], after["answered"], after["input_tokens"], after["output_tokens"]) == (
            3,
            3,
            100,
            10,
        )
        # The scripted reply to the ask is still to come, and then the last Task.
        said = [(await again.chat("shop", turn)).text for turn in (4, 5, 6)]
        assert said == ["Booked.", "You are welcome.", "[session over]"]
        words = [message["content"] for message in provider.requests[4].body["messages"][-3:]]
        assert words == ["Book one.", "Which day?", "On Monday."]
        assert len(again.rows("SELECT * FROM sessions")) == 1
    found = verdicts(tmp_path / "log.db")
    assert [found["shop", 1, task][0] for task in (1, 2, 3, 4)] == ["correct", "error", "correct", "correct"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_was_answered_is_given_again_from_the_log(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply('It costs "3" €.')
    provider.reply("No idea.")
    async with started(tmp_path, provider) as proxy:
        for turn in (1, 2):
            await proxy.chat("shop", turn)
    async with started(tmp_path, provider) as again:
        completions = again.sdk("shop").chat.completions
        for turn, text in ((1, 'It costs "3" €.'), (2, "[task over]")):
            if stream:
                async with completions.stream(**prompt(turn)) as events:
                    answer: Any = await events.get_final_completion()
            else:
                answer = await completions.create(**prompt(turn))
            message = answer.choices[0].message
            assert (message.content, message.tool_calls) == (text, None)
        assert len(provider.requests) == 3
        assert len(again.rows("SELECT * FROM steps")) == 3


async def test_an_open_turn_goes_on_behind_the_last_accepted_step(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.hang()
    async with started(tmp_path, provider, abandon_after=0.0) as proxy:
        asking = asyncio.create_task(proxy.chat("shop", 1))
        await soon(provider.arrived(2))
    await asyncio.gather(asking, return_exceptions=True)
    provider.reply("It costs 3.")
    async with started(tmp_path, provider) as again:
        state = await state_of(again, "shop.e1")
        assert (state["turn"], state["asked"], state["answered"]) == (1, 1, 0)
        assert (await again.chat("shop", 1)).text == "It costs 3."
        _, cut, goes_on = provider.requests
        assert goes_on.body == cut.body
        steps = again.rows("SELECT task, step, turn, decision FROM steps ORDER BY seq")
        assert [tuple(step.values()) for step in steps] == [(0, 0, 1, "observe"), (0, 1, 1, "close")]
        assert len(again.rows("SELECT * FROM turns")) == 1
    [session] = scored(tmp_path / "log.db").sessions
    assert (session.tasks[0].label, session.tasks[0].is_optimal) == ("correct", True)


async def test_a_turn_that_was_opened_and_not_asked_for_keeps_its_words(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("chat is told 1")
    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        await proxy.control("POST", "/sessions/chat.e1/turns")
    async with started(tmp_path, provider, CHAT) as again:
        state = await state_of(again, "chat.e1")
        assert (state["turn"], state["asked"]) == (1, 0)
        opened = await again.control("POST", "/sessions/chat.e1/turns", json={"after": 0})
        assert opened.json["turn"] == 1
        await again.chat("chat.e1", 1)
        assert provider.requests[0].body["messages"][-1]["content"] == "chat asks 1"


async def test_a_delivered_turn_is_followed_by_the_next_and_an_undelivered_one_is_given_again(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("chat is told 1")
    async with started(tmp_path, provider, CHAT) as proxy:
        hasty = asyncio.create_task(proxy.chat("chat", None))
        await soon(provider.arrived(1))
        hasty.cancel()
        await proxy.finished(1)
        release.set()
        await proxy.finished(1, "provider")
    async with started(tmp_path, provider, CHAT) as second:
        assert (await second.chat("chat", None)).text == "chat is told 1"
        assert len(provider.requests) == 1
    provider.reply("chat is told 2")
    async with started(tmp_path, provider, CHAT) as third:
        assert (await third.chat("chat", None)).text == "chat is told 2"
        assert provider.requests[1].body["messages"][-1]["content"] == "chat asks 2"


async def test_a_driver_does_not_wait_for_an_answer_that_was_written_out_when_the_proxy_was_killed(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("chat is told 1")
    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat"})
        await proxy.control("POST", "/sessions/chat.e1/turns", json={"after": 0})
        await proxy.chat("chat.e1", 1)
    with closing(sqlite3.connect(tmp_path / "log.db")) as log:
        # As it is left by a kill between an answer's last byte and the row that says so.
        log.execute("UPDATE exchanges SET delivered_at = NULL WHERE side = 'agent'")
        log.commit()
    async with started(tmp_path, provider, CHAT) as again:
        waited = await again.control("GET", "/sessions/chat.e1?answered=1&wait=1")
        assert waited.json["answered"] == 1
        # Its agent may not have got it all the same.
        opened = await again.control("POST", "/sessions/chat.e1/turns", json={"after": 1})
        assert opened.json["turn"] == 2
        assert (await again.chat("chat.e1", 1)).text == "chat is told 1"
        assert len(provider.requests) == 1


async def test_the_words_of_earlier_turns_are_known(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with started(tmp_path, provider, CHAT) as proxy:
        for turn in (1, 2):
            await proxy.chat("chat", turn)
    async with started(tmp_path, provider, CHAT) as again:
        flat = " / ".join(f"[[next-user-turn {turn}]]" for turn in (1, 2, 3))
        answer = await again.chat("chat", 3, messages=[{"role": "user", "content": flat}])
        assert answer.text == "chat asks 1 / chat asks 2 / chat asks 3"


async def test_a_session_that_is_over_stays_over(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with started(tmp_path, provider, scenes.chat("chat", 2)) as proxy:
        await proxy.chat("chat", 1)
        # The last Task is left behind: no turn is opened after it.
        for _ in range(2):
            await proxy.control("POST", "/sessions/chat.e1/turns")
        before = await state_of(proxy, "chat.e1")
    async with started(tmp_path, provider, scenes.chat("chat", 2)) as again:
        after = await state_of(again, "chat.e1")
        assert (after["over"], after["tasks"]) == (True, before["tasks"])
        assert [task["end"] for task in after["tasks"]] == ["closed", "agent_stopped"]
        assert (await again.chat("chat.e1", 3)).text == "[session over]"
        assert len(provider.requests) == 1


async def test_the_last_attempt_is_the_one_that_goes_on(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    provider.reply("chat is told 1 again")
    provider.reply("chat is told 2")
    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.chat("chat.e1", 1)
        await proxy.control("POST", "/sessions", json={"scenario": "chat", "again": True})
        await proxy.chat("chat.e1", 1)
    async with started(tmp_path, provider, CHAT) as again:
        assert (await again.chat("chat.e1", 1)).text == "chat is told 1 again"
        assert (await again.chat("chat.e1", 2)).text == "chat is told 2"
        turns = again.rows(
            "SELECT attempt, turn FROM turns JOIN sessions ON id = session_id ORDER BY turns.seq"
        )
        assert [tuple(turn.values()) for turn in turns] == [(1, 1), (2, 1), (2, 2)]


async def test_a_task_that_the_provider_failed_before_still_ends_as_infrastructure(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(400)
    provider.reply("chat is told 2")
    async with started(tmp_path, provider, CHAT) as proxy:
        assert (await proxy.chat("chat", 1)).status == 400
    async with started(tmp_path, provider, CHAT) as again:
        assert (await again.chat("chat", 2)).text == "chat is told 2"
        endings = [row["ending"] for row in again.rows("SELECT ending FROM tasks ORDER BY task")]
        assert endings == ["infrastructure", "closed"]


async def test_the_conversation_is_still_told_from_calls_on_the_side(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    path = "/s/chat/v1/chat/completions"

    def said(system: str, turn: int, **fields: Any) -> dict[str, Any]:
        words = {"role": "user", "content": f"[[next-user-turn {turn}]]"}
        return {"model": "m", "messages": [{"role": "system", "content": system}, words], **fields}

    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.send("POST", path, json=said("Be helpful.", 1, tools=TOOLS))
    async with started(tmp_path, provider, CHAT) as again:
        assert (await again.send("POST", path, json=said("Write a title.", 2))).status == 200
        assert (
            await again.send("POST", path, json=said("Be helpful.", 2, tools=TOOLS))
        ).text == "chat asks 2"
        assert [bool(row["reason"]) for row in again.exchanges()] == [False, True, False]


# The queue


async def test_the_queue_goes_on_with_its_open_session_and_then_the_next(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    records = [scenes.chat(name, 2) for name in ("red", "green", "blue")]
    words = "[[next-user-turn]]"
    async with started(tmp_path, provider, *records) as proxy:
        await bare(proxy, words)
        await bare(proxy, words, "red asks 1", words)
        assert (await bare(proxy, words, seed=1)).text == "green asks 1"
    async with started(tmp_path, provider, *records) as again:
        second = await bare(again, words, seed=2)
        assert (second.status, second.error["code"]) == (400, "session_is_open")
        assert (await bare(again, words, "green asks 1", words, seed=1)).text == "green asks 2"
        assert (await bare(again, words, seed=2)).text == "blue asks 1"
        names = [row["name"] for row in again.rows("SELECT name FROM sessions ORDER BY seq")]
        assert names == ["red.e1", "green.e1", "blue.e1"]


async def test_the_first_request_of_the_queues_open_session_may_be_sent_again(
    provider: Any, tmp_path: Path
) -> None:
    provider.hang()
    async with started(tmp_path, provider, CHAT, abandon_after=0.0) as proxy:
        asking = asyncio.create_task(bare(proxy, "[[next-user-turn]]"))
        await soon(provider.arrived(1))
    await asyncio.gather(asking, return_exceptions=True)
    provider.reply("chat is told 1")
    async with started(tmp_path, provider, CHAT) as again:
        assert (await bare(again, "[[next-user-turn]]")).text == "chat is told 1"


# Which Run


async def test_another_configuration_begins_a_new_run(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.chat("chat", 1)
    async with started(tmp_path, provider, CHAT, model="other-model") as other:
        assert other.run_id != proxy.run_id
        assert (await other.chat("chat", 1)).text == "chat asks 1"
        assert len(provider.requests) == 2
    # Now the newest Run is that one, and nothing of the older one is touched.
    async with started(tmp_path, provider, CHAT, model="other-model") as again:
        assert again.run_id == other.run_id
        assert (await again.chat("chat", 2)).text == "chat asks 2"
        runs = again.rows(
            "SELECT run_id, count(*) AS n FROM turns JOIN sessions ON id = session_id GROUP BY run_id"
        )
        assert {run["run_id"]: run["n"] for run in runs} == {proxy.run_id: 1, other.run_id: 2}


async def test_other_scenarios_begin_a_new_run(provider: Any, tmp_path: Path) -> None:
    async with started(tmp_path, provider, CHAT) as proxy:
        pass
    async with started(tmp_path, provider, CHAT, scenes.SHOP) as other:
        assert other.run_id != proxy.run_id


async def test_a_new_run_is_begun_whenever_one_is_asked_for(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with started(tmp_path, provider, CHAT) as proxy:
        await proxy.chat("chat", 1)
    async with started(tmp_path, provider, CHAT, runs="new") as other:
        assert other.run_id != proxy.run_id
        assert (await other.control("GET", "/sessions/chat.e1")).status == 404


async def test_what_does_not_decide_how_a_session_is_played_may_change(provider: Any, tmp_path: Path) -> None:
    async with started(tmp_path, provider, CHAT) as proxy:
        pass
    async with started(tmp_path, provider, CHAT, keep_alive=1.0, provider_retries=1, token="t") as again:
        assert (again.run_id, again.token) == (proxy.run_id, "t")
