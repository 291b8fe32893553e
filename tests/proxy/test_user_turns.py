"""Where the user's words stand in a request, and that each turn is played once however it is asked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Answer, Proxy, playing, soon, until

CHAT = scenes.chat("chat", 3)
PATH = "/s/chat/v1/chat/completions"
TOOLS = [scenes.tool("search", words="string")]
DATE = "Current Date: 2025-03-04 09:30:00 Tuesday"
STYLES = ["numbered", "bare", "words"]
"""How an agent is prompted: with a numbered sentinel, one without number, or the words themselves."""

Message = dict[str, Any]


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


async def ask(proxy: Proxy, *messages: Message, **fields: Any) -> Answer:
    body = {"model": "m", "messages": list(messages), **fields}
    return await proxy.send("POST", PATH, json=body)


async def prompt(proxy: Proxy, style: str, turn: int) -> str:
    """Opens the turn as a driver does, where there is one, and says what the agent is prompted with."""
    if style == "bare":
        return "[[next-user-turn]]"
    wanted = {"after": turn - 1} if turn > 1 else {}
    await proxy.control("POST", "/sessions", json={"scenario": "chat"})
    opened = (await proxy.control("POST", "/sessions/chat.e1/turns", json=wanted)).json
    assert opened["turn"] == turn
    text = opened["prompt" if style == "numbered" else "text"]
    assert isinstance(text, str)
    return text


def steps(proxy: Proxy) -> list[tuple[int, int, str]]:
    """(turn, step, decision) of all Steps in the log."""
    rows = proxy.rows("SELECT turn, step, decision FROM steps ORDER BY seq")
    return [(row["turn"], row["step"], row["decision"]) for row in rows]


def played(*turns: int) -> list[tuple[int, int, str]]:
    """The Steps of turns that were each answered by one text."""
    return [(turn, 0, "close") for turn in turns]


def changes(proxy: Proxy) -> list[str]:
    """What was changed in the last request that went to the provider."""
    listed: list[str] = json.loads(proxy.exchanges("provider")[-1]["changes"])
    return listed


# Where the words stand

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FRAMES = {
    "alone": "%s",
    "in a template": "A customer writes:\n<<%s>>\nAnswer in one line.",
    "twice": "Task: %s\n\nRemember the task: %s",
    "in parts": [{"type": "text", "text": "Look:"}, IMAGE, {"type": "text", "text": "Q: %s", "cache": 1}],
    "in two parts": [{"type": "text", "text": "<%s>"}, {"type": "text", "text": "Again: %s"}],
}


def framed(frame: Any, words: str) -> Any:
    if isinstance(frame, str):
        return frame.replace("%s", words)
    return [{**part, "text": framed(part["text"], words)} if "text" in part else part for part in frame]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("frame", FRAMES)
async def test_the_words_stand_in_the_agents_own_template(
    provider: Any, tmp_path: Path, frame: str, style: str
) -> None:
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        content = framed(FRAMES[frame], await prompt(proxy, style, 1))
        answer = await ask(proxy, {"role": "user", "name": "ann", "content": content})
        assert answer.text == "chat is told 1"
        sent = provider.requests[0].body["messages"]
        said = {"role": "user", "name": "ann", "content": framed(FRAMES[frame], "chat asks 1")}
        assert sent == [{"role": "system", "content": DATE}, said]
        assert "user_message" not in changes(proxy)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("role", ["system", "developer"])
async def test_a_system_prompt_that_quotes_the_prompt_stays_as_it_is(
    provider: Any, tmp_path: Path, role: str, style: str
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        said = await prompt(proxy, style, 1)
        quoting = {"role": role, "content": f"When told [[next-user-turn 2]] or {said}, be brief."}
        await ask(proxy, quoting, user(f"<{said}>"))
        sent = provider.requests[0].body["messages"]
        dated = {"role": role, "content": f"{quoting['content']}\n\n{DATE}"}
        assert sent == [dated, user("<chat asks 1>")]
        assert steps(proxy) == played(1)


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool"])
async def test_what_only_others_than_the_user_say_is_no_prompt(
    provider: Any, tmp_path: Path, role: str
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        quoting = {"role": role, "content": "Say [[next-user-turn 1]] to begin, or chat asks 1.", "name": "x"}
        await ask(proxy, quoting, user("Hello"), tools=TOOLS)
        assert steps(proxy) == []
        [row] = proxy.exchanges()
        assert row["reason"]


@pytest.mark.parametrize("style", STYLES)
async def test_a_user_message_of_the_conversation_without_the_prompt_is_replaced_as_a_whole(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    system = {"role": "system", "content": "Be helpful."}
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await ask(proxy, system, user(await prompt(proxy, style, 1)), tools=TOOLS)
        await prompt(proxy, style, 2)
        parts = [
            {"type": "text", "text": "Somebody asks:"},
            IMAGE,
            {"type": "text", "text": "something in my words"},
        ]
        await ask(proxy, system, {"role": "user", "name": "ann", "content": parts}, tools=TOOLS)
        said = provider.requests[1].body["messages"][-1]
        words = {"type": "text", "text": "chat asks 2"}
        assert said == {"role": "user", "name": "ann", "content": [words, IMAGE]}
        assert "user_message" in changes(proxy)
        assert steps(proxy) == played(1, 2)


# The driver's own words

POEM = 'Write:\n\n  - a poem,\n\t- "with  quotes" \\ and (brackets)?\n世界 🎉'
PLAIN = 'Write: - a poem, - "with quotes" \\ and (brackets)? 世界 🎉'
WORDY = scenes.record(
    "chat",
    (POEM, [scenes.close("Done.")]),
    ("Yes", [scenes.close("Done.")]),
    ("Yes", [scenes.close("Done.")]),
    ("And a lamp", [scenes.close("Done.")]),
)


@pytest.mark.parametrize(
    "changed",
    [PLAIN, PLAIN.replace(" ", "\r\n"), f"  {PLAIN}\n", POEM.replace("\n", "\u2028\u00a0"), POEM],
)
async def test_words_whose_whitespace_was_changed_on_the_way_reach_the_llm_as_they_were(
    provider: Any, tmp_path: Path, changed: str
) -> None:
    provider.reply("Done.")
    async with playing(tmp_path, provider.url, WORDY) as proxy:
        assert await prompt(proxy, "words", 1) == POEM
        await ask(proxy, user(f"They say: <{changed}> Twice: {changed}"))
        said = provider.requests[0].body["messages"][-1]["content"]
        before, after = changed[: len(changed) - len(changed.lstrip())], changed[len(changed.rstrip()) :]
        whole = f"{before}{POEM}{after}"
        assert said == f"They say: <{whole}> Twice: {whole}"
        assert "user_message" not in changes(proxy)


@pytest.mark.parametrize("begin", ["", "Yesterday I said Yes, and now: "])
async def test_the_same_words_in_two_turns_are_two_turns(provider: Any, tmp_path: Path, begin: str) -> None:
    provider.script(lambda request: provider.message(request, "Done."))
    history: list[Message] = []
    async with playing(tmp_path, provider.url, WORDY) as proxy:
        for turn in (1, 2, 3, 4):
            history.append(user(f"{begin}{await prompt(proxy, 'words', turn)}"))
            assert (await ask(proxy, *history)).text == "Done."
            history.append(assistant("Done."))
        assert steps(proxy) == played(1, 2, 3, 4)
        words = [request.body["messages"][-1]["content"] for request in provider.requests]
        assert words == [f"{begin}{said}" for said in (POEM, "Yes", "Yes", "And a lamp")]


async def test_an_earlier_turns_words_in_the_history_or_in_the_message_are_not_the_prompt(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await ask(proxy, user(await prompt(proxy, "words", 1)))
        await prompt(proxy, "words", 2)
        # An agent that puts the whole talk into one message.
        await ask(proxy, user("User: chat asks 1\nYou: Fine.\nUser: chat  asks\n2"))
        said = provider.requests[1].body["messages"][-1]
        assert said == user("User: chat asks 1\nYou: Fine.\nUser: chat asks 2")
        # One that has not heard of the next turn yet gets no other's answer.
        assert steps(proxy) == played(1, 2)


async def test_words_that_are_only_a_part_of_longer_ones_are_not_the_users(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Done."))
    async with playing(tmp_path, provider.url, WORDY) as proxy:
        await ask(proxy, user(await prompt(proxy, "words", 1)))
        await prompt(proxy, "words", 2)
        await ask(proxy, user("Yesterday"))
        assert provider.requests[1].body["messages"][-1] == user("Yes")
        assert "user_message" in changes(proxy)


async def test_a_title_with_the_words_in_it_stays_on_the_side_and_as_it_is(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        words = await prompt(proxy, "words", 1)
        await ask(proxy, user(words), tools=TOOLS)
        title = [{"role": "system", "content": "Write a title."}, user(f"For:  {words}")]
        await ask(proxy, *title)
        assert provider.requests[1].body["messages"] == title
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True]
        assert steps(proxy) == played(1)


# Histories

HISTORIES = {
    "whole": lambda told: told,
    "without answers": lambda told: [message for message in told if message["role"] == "user"],
    "cut off in front": lambda told: told[-1:],
    "cut off in front of the last answer": lambda told: told[-2:],
    "edited": lambda told: [
        {**message, "content": f"{message['content']} (in short)"} if message is not told[-1] else message
        for message in told
    ],
    "edited words": lambda told: [
        {**message, "content": "summary"} if message is not told[-1] else message for message in told
    ],
    "with a tool's result": lambda told: [
        *told[:-1],
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "own", "content": "found"},
        told[-1],
    ],
}
CALL = {"id": "own", "type": "function", "function": {"name": "search", "arguments": "{}"}}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", HISTORIES)
async def test_whatever_an_agent_makes_of_its_history_each_turn_is_one_step_from_the_references(
    provider: Any, tmp_path: Path, kind: str, style: str
) -> None:
    provider.script(lambda request: provider.message(request, "Fine."))
    told: list[Message] = []
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        for turn in (1, 2, 3):
            told.append(user(await prompt(proxy, style, turn)))
            answer = await ask(proxy, *HISTORIES[kind](told), tools=TOOLS)
            told.append(assistant(answer.text))
        assert steps(proxy) == played(1, 2, 3)
        assert provider.requests[2].body["messages"] == [
            {"role": "system", "content": DATE},
            user("chat asks 1"),
            assistant("chat is told 1"),
            user("chat asks 2"),
            assistant("chat is told 2"),
            user("chat asks 3"),
        ]


# Once, however often


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("stream", [False, True])
async def test_requests_for_the_same_turn_at_the_same_time_are_one_step(
    provider: Any, tmp_path: Path, style: str, stream: bool
) -> None:
    release = provider.hang("The one answer.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        said = user(await prompt(proxy, style, 1))
        asking = [asyncio.create_task(ask(proxy, said, stream=stream)) for _ in range(5)]
        await soon(provider.arrived(1))
        await proxy.arrived(5)
        release.set()
        answers = await soon(asyncio.gather(*asking))
        assert len({answer.raw for answer in answers}) == 1
        assert (len(provider.requests), steps(proxy)) == (1, played(1))


@pytest.mark.parametrize("style", STYLES)
async def test_a_client_that_times_out_and_retries_gets_the_one_answer(
    provider: Any, tmp_path: Path, style: str
) -> None:
    release = provider.hang("Patience.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        said = user(await prompt(proxy, style, 1))
        client = proxy.sdk("chat", retries=9, timeout=0.5)
        asking = asyncio.create_task(client.chat.completions.create(model="m", messages=[said]))
        await proxy.arrived(2)
        release.set()
        assert (await soon(asking)).choices[0].message.content == "Patience."
        headers = [json.loads(row["request_headers"]) for row in proxy.exchanges()]
        tries = [int(it["x-stainless-retry-count"]) for it in headers]
        # On a busy machine the SDK may lose patience before its first request is read.
        assert len(tries) >= 2 and tries == sorted(set(tries))
        assert (len(provider.requests), steps(proxy)) == (1, played(1))


@pytest.mark.parametrize("style", STYLES)
async def test_a_request_that_is_sent_again_because_its_answer_was_lost_gets_the_stored_answer(
    provider: Any, tmp_path: Path, style: str
) -> None:
    release = provider.hang("One.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        said = user(await prompt(proxy, style, 1))
        asking = asyncio.create_task(ask(proxy, said))
        await soon(provider.arrived(1))
        asking.cancel()
        await proxy.finished(1)
        release.set()
        await proxy.finished(1, "provider")
        assert (await ask(proxy, said)).text == "One."
        await until(lambda: proxy.exchanges()[1]["delivered_at"] is not None)
        first, again = proxy.exchanges()
        assert (first["finish_state"], again["finish_state"]) == ("client_abort", "complete")
        assert first["delivered_at"] is None
        assert (len(provider.requests), steps(proxy)) == (1, played(1))


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_a_turn_that_was_answered_is_answered_alike_when_it_is_asked_for_again(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.script(lambda request: provider.message(request, f"Answer {len(provider.requests)}."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        told: list[Message] = []
        for turn in (1, 2):
            told.append(user(await prompt(proxy, style, turn)))
            answers = [await ask(proxy, *told) for _ in range(3)]
            assert {answer.raw for answer in answers} == {answers[0].raw}
            assert answers[0].text == f"Answer {turn}."
            told.append(assistant(answers[0].text))
        assert (len(provider.requests), steps(proxy)) == (2, played(1, 2))


async def test_a_failed_turn_is_one_step_when_the_agent_asks_again(provider: Any, tmp_path: Path) -> None:
    provider.fail(400)
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        said = user(await prompt(proxy, "words", 1))
        assert [(await ask(proxy, said)).status for _ in range(3)] == [400, 200, 200]
        assert (len(provider.requests), steps(proxy)) == (2, played(1))
