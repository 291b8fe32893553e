"""Titles, routers, guardrails, summaries: what an agent asks beside its conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.driving import verdicts
from support.playing import Answer, Proxy, playing, soon

TOOLS = [scenes.tool("search", words="string")]
CHAT = scenes.chat("chat", 3)
PATH = "/s/chat/v1/chat/completions"


def said(system: str | None, words: Any, **fields: Any) -> dict[str, Any]:
    leading = [] if system is None else [{"role": "system", "content": system}]
    return {"model": "m", "messages": [*leading, {"role": "user", "content": words}], **fields}


async def agent(proxy: Proxy, turn: int | None, **fields: Any) -> Answer:
    """The conversation itself: it has a system prompt and tools."""
    words = "[[next-user-turn]]" if turn is None else f"[[next-user-turn {turn}]]"
    return await proxy.send("POST", PATH, json=said("Be helpful.", words, tools=TOOLS, **fields))


async def aside(proxy: Proxy, body: dict[str, Any] | bytes) -> Answer:
    """A call on the side, given as JSON or as the very bytes."""
    how = {"data": body} if isinstance(body, bytes) else {"json": body}
    return await proxy.send("POST", PATH, **how)


SIDE_CALLS = {
    "a title": b'{ "model":"small", "messages": [ {"role":"user","content":"Title for: %s \\u00fc"} ],'
    b'"max_tokens":5}',
    "a router": b'{"messages":[{"role":"system","content":"Pick: chat or shop"},'
    b'{"role":"user","content":"%s"}],\n "response_format": {"type":"json_object"},"stop":["\\n"], "n": 2,'
    b'"seed": 123456789012345678901234567890}',
    "a guardrail": b'{"messages":[{"role":"user","content":[{"type":"text","text":"Harmful? <%s>"}]}],'
    b'"logprobs":true }',
    "a sub-agent": b'{"tools":[{"type":"function","function":{"name":"own"}}],"tool_choice":"required",'
    b'"messages":[{"role":"developer","content":"Search."},{"role":"user","content":"%s"}]}',
}


@pytest.mark.parametrize(
    "sentinel", [b"[[next-user-turn]]", b"[[next-user-turn 1]]", b"[[next-user-turn  1 ]]"]
)
@pytest.mark.parametrize("kind", SIDE_CALLS)
async def test_a_side_call_passes_byte_for_byte_with_the_users_words_in_it(
    provider: Any, tmp_path: Path, kind: str, sentinel: bytes
) -> None:
    release = provider.hang("chat is told 1")
    provider.json({"choices": [{"message": {"role": "assistant", "content": "aside"}}], "odd": 1e3})
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = asyncio.create_task(agent(proxy, 1))
        await soon(provider.arrived(1))
        sent = SIDE_CALLS[kind] % sentinel
        answer = await soon(aside(proxy, sent))
        assert (answer.status, answer.json["odd"]) == (200, 1000.0)
        assert provider.requests[1].raw == SIDE_CALLS[kind] % b"chat asks 1"
        release.set()
        assert (await soon(asking)).text == "chat is told 1"


@pytest.mark.parametrize("words", [b"What the user wants", b"chat asks 1", b"chat   asks 1", b"chat asks 2"])
@pytest.mark.parametrize("kind", SIDE_CALLS)
async def test_a_side_call_without_the_placeholder_passes_as_it_is(
    provider: Any, tmp_path: Path, kind: str, words: bytes
) -> None:
    provider.reply("chat is told 1")
    provider.reply("aside")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await agent(proxy, 1)
        sent = SIDE_CALLS[kind] % words
        assert (await aside(proxy, sent)).status == 200
        assert provider.requests[1].raw == sent
        assert proxy.exchanges()[1]["reason"]
        assert len(proxy.rows("SELECT * FROM steps")) == 1


async def test_words_with_quotes_and_line_breaks_are_put_into_a_side_call_whole(
    provider: Any, tmp_path: Path
) -> None:
    words = 'Say "hi" \\ to\n世界 🎉\ttwice'
    provider.reply("Said.")
    provider.reply("A title")
    tasks = [(words, [scenes.close("Said.")]), ("Bye.", [scenes.close("Bye.")])]
    async with playing(tmp_path, provider.url, scenes.record("chat", *tasks)) as proxy:
        await agent(proxy, 1)
        before, after = b'{"messages": [{"role":"user", "content":"<', b'>"}]  }'
        await aside(proxy, before + b"[[next-user-turn 1]]" + after)
        raw = provider.requests[1].raw
        assert raw.startswith(before)
        assert raw.endswith(after)
        assert json.loads(raw)["messages"][0]["content"] == f"<{words}>"


async def test_side_calls_are_logged_with_a_reason_and_neither_scored_nor_advancing(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        for turn in (1, 2):
            await agent(proxy, turn)
            await aside(proxy, said("Write a title.", f"For: [[next-user-turn {turn}]]"))
            await aside(proxy, said("Write a title.", "For: the talk"))
            await aside(proxy, said("Summarize.", "It was nice.", tools=TOOLS))
        rows = proxy.exchanges()
        assert [bool(row["reason"]) for row in rows] == [False, True, True, True] * 2
        assert [row["turn"] for row in rows] == [1] * 4 + [2] * 4
        assert {row["session_id"] for row in rows} == {f"{proxy.run_id}/chat.e1"}
        assert {row["finish_state"] for row in rows} == {"complete"}
        assert len(proxy.exchanges("provider")) == 2
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["turn"], state["over"]) == (2, False)
        assert (state["input_tokens"], state["output_tokens"]) == (20, 10)
        await agent(proxy, 3)
    assert verdicts(tmp_path / "log.db") == {("chat", 1, task): ("correct", True) for task in (1, 2, 3)}


@pytest.mark.parametrize("words", ["For: [[next-user-turn]]", "For: [[next-user-turn 1]]", "For: hello"])
async def test_a_side_call_after_the_last_task_opens_no_further_epoch_and_costs_nothing(
    provider: Any, tmp_path: Path, words: str
) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, scenes.chat("chat", 2)) as proxy:
        for turn in (1, 2):
            await agent(proxy, turn)
        assert (await aside(proxy, said("Write a title.", words))).text == "[session over]"
        assert len(provider.requests) == 2
        assert [row["name"] for row in proxy.rows("SELECT name FROM sessions")] == ["chat.e1"]


async def test_what_the_provider_says_to_a_side_call_passes_errors_too(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    provider.fail(429, headers={"Retry-After": "7"})
    async with playing(tmp_path, provider.url, CHAT, provider_retries=3) as proxy:
        await agent(proxy, 1)
        answer = await aside(proxy, said("Write a title.", "Hello"))
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert len(provider.requests) == 2
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["provider_errors"], state["failed_turn"]) == (0, 0)


# Before the conversation


async def test_a_side_call_that_comes_first_opens_the_turn_and_does_not_start_it(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("A route")
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await aside(proxy, said("Pick a route.", "What now?"))
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["turn"], state["asked"], state["answered"]) == (1, 0, 0)
        assert (await agent(proxy, 1)).text == "chat is told 1"
        assert provider.requests[1].body["messages"][-1]["content"] == "chat asks 1"


async def test_a_side_call_before_a_later_turn_gets_that_turns_words_and_does_not_start_it(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("chat is told 1")
    provider.reply("A route")
    provider.reply("chat is told 2")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await agent(proxy, 1)
        await aside(proxy, said("Pick a route.", "For: [[next-user-turn 2]]"))
        assert provider.requests[1].body["messages"][-1]["content"] == "For: chat asks 2"
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["turn"], state["asked"]) == (2, 1)
        assert (await agent(proxy, 2)).text == "chat is told 2"
        assert provider.requests[2].body["messages"][-1]["content"] == "chat asks 2"
        steps = proxy.rows("SELECT task, turn, decision FROM steps ORDER BY seq")
        assert steps == [
            {"task": 0, "turn": 1, "decision": "close"},
            {"task": 1, "turn": 2, "decision": "close"},
        ]


async def test_a_side_call_for_the_next_turn_leaves_the_one_that_is_played_alone(
    provider: Any, tmp_path: Path
) -> None:
    release = provider.hang("chat is told 1")
    provider.reply("A route")
    provider.reply("chat is told 2")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = asyncio.create_task(agent(proxy, 1))
        await soon(provider.arrived(1))
        await soon(aside(proxy, said("Pick a route.", "For: [[next-user-turn 2]]")))
        release.set()
        assert (await soon(asking)).text == "chat is told 1"
        assert (await agent(proxy, 2)).text == "chat is told 2"
    found = verdicts(tmp_path / "log.db")
    assert [found["chat", 1, task] for task in (1, 2)] == [("correct", True)] * 2


# Streams


async def test_a_streaming_side_call_passes_chunk_by_chunk(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    gate = asyncio.Event()
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first, last = (
        {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": end}]}
        for text, end in (("A ", None), ("title", "stop"))
    )
    provider.stream([first, gate, last, provider.DONE])
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await agent(proxy, 1)
        body = said("Write a title.", "For: [[next-user-turn 1]]", stream=True)
        async with proxy.http.post(proxy.url + PATH, json=body) as response:
            line = await soon(response.content.readline())
            assert json.loads(line.removeprefix(b"data: ")) == first
            # Only now does the provider go on.
            gate.set()
            rest = await response.read()
        assert rest.endswith(provider.DONE)
        assert b'"title"' in rest
        assert provider.requests[1].body == said("Write a title.", "For: chat asks 1", stream=True)
        _, row = await proxy.finished(2)
        assert (row["finish_state"], row["stream"]) == ("complete", 1)


# Several placeholders


async def test_a_flattened_history_gets_each_turns_own_words(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    flat = "User: [[next-user-turn 1]]\nBot: Hi.\nUser: [[next-user-turn 2]]"
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await agent(proxy, 1)
        body = said("Be helpful.", flat, tools=TOOLS)
        assert (await proxy.send("POST", PATH, json=body)).text == "Something."
        await aside(proxy, said("Summarize.", flat))
        words = "User: chat asks 1\nBot: Hi.\nUser: chat asks 2"
        _, main, side = provider.requests
        assert main.body["messages"][-1] == {"role": "user", "content": words}
        assert side.body == said("Summarize.", words)


async def test_a_placeholder_anywhere_in_a_side_call_is_replaced(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        for turn in (1, 2):
            await agent(proxy, turn)
        quoted = {"role": "assistant", "content": "You said [[next-user-turn 1]]."}
        body = said("About: [[next-user-turn 2]]", "Sum up.")
        await aside(proxy, {**body, "messages": [*body["messages"], quoted]})
        texts = [message["content"] for message in provider.requests[2].body["messages"]]
        assert texts == ["About: chat asks 2", "Sum up.", "You said chat asks 1."]


# What frameworks ask beside the conversation


def words_of(style: str, turn: int) -> str:
    return f"chat asks {turn}" if style == "words" else f"[[next-user-turn {turn}]]"


async def opened(proxy: Proxy, turn: int) -> None:
    """A driver opens the turn."""
    await proxy.control("POST", "/sessions", json={"scenario": "chat"})
    wanted = {"after": turn - 1} if turn > 1 else {}
    assert (await proxy.control("POST", "/sessions/chat.e1/turns", json=wanted)).json["turn"] == turn


MEMORY = {"type": "json_schema", "json_schema": {"name": "Memory", "schema": {"type": "object"}}}


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_calls_to_a_memory_before_and_after_each_answer_are_no_turns(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        for turn in (1, 2):
            await opened(proxy, turn)
            task = f"\nCurrent Task: {words_of(style, turn)}\n\nBegin!"
            if turn > 1:
                recall = said("What is worth recalling?", task, response_format=MEMORY)
                assert (await aside(proxy, recall)).text == "Something."
            main = said("You are Pat.", task, tools=TOOLS, tool_choice="auto")
            assert (await aside(proxy, main)).text == "Something."
            keep = said("What is worth keeping?", f"{task} Something.", response_format=MEMORY)
            assert (await aside(proxy, keep)).text == "Something."
        sent = [request.body.get("response_format") for request in provider.requests]
        assert sent == [None, MEMORY, MEMORY, None, MEMORY]
        last = provider.requests[-1].body["messages"][-1]["content"]
        assert last == "\nCurrent Task: chat asks 2\n\nBegin! Something."
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True, True, False, True]
        steps = proxy.rows("SELECT turn FROM steps ORDER BY seq")
        assert [step["turn"] for step in steps] == [1, 2]


@pytest.mark.parametrize("style", ["numbered", "words"])
@pytest.mark.parametrize("system", [None, "You are stuck, says the user."])
async def test_a_plan_and_a_last_resort_without_tools_are_no_turns(
    provider: Any, tmp_path: Path, style: str, system: str | None
) -> None:
    provider.script(lambda request: provider.message(request, "1. Do it. <end_plan>"))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await opened(proxy, 1)
        task = words_of(style, 1)
        main = said("Solve the task.", f"New task:\n{task}", tools=TOOLS, tool_choice="required")
        await aside(proxy, main)
        plan = said(system, f"Make a plan for: {task}", stop=["<end_plan>"])
        assert (await aside(proxy, plan)).text == "1. Do it. <end_plan>"
        assert provider.requests[1].body["stop"] == ["<end_plan>"]
        assert provider.requests[1].body["messages"][-1]["content"] == "Make a plan for: chat asks 1"
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True]
        assert len(proxy.rows("SELECT * FROM steps")) == 1


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_a_plan_that_comes_before_the_agent_shows_its_tools_costs_nothing(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.script(lambda request: provider.message(request, "Something."))
    async with playing(tmp_path, provider.url, scenes.chat("chat", 2)) as proxy:
        for turn in (1, 2):
            await opened(proxy, turn)
            await aside(proxy, said(None, f"Make a plan for: {words_of(style, turn)}", stop=["<end_plan>"]))
            await aside(proxy, said("Solve the task.", words_of(style, turn), tools=TOOLS))
        words = [request.body["messages"][-1]["content"] for request in provider.requests]
        assert words == [
            "Make a plan for: chat asks 1",
            "chat asks 1",
            "Make a plan for: chat asks 2",
            "chat asks 2",
        ]
    assert verdicts(tmp_path / "log.db") == {("chat", 1, task): ("correct", True) for task in (1, 2)}


OWN_CALL = {"id": "own", "type": "function", "function": {"name": "search", "arguments": "{}"}}


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_a_forced_last_call_without_tools_is_of_the_conversation_and_is_answered_once(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await opened(proxy, 1)
        body = said("Be helpful.", words_of(style, 1), tools=TOOLS)
        assert (await aside(proxy, body)).text == "chat is told 1"
        forced = [
            *body["messages"],
            {"role": "assistant", "content": None, "tool_calls": [OWN_CALL]},
            {"role": "tool", "tool_call_id": "own", "content": "found"},
            {"role": "user", "content": "Now it's time you MUST give your absolute best final answer."},
        ]
        for messages in (forced, forced[:-1]):
            assert (await aside(proxy, {"model": "m", "messages": messages})).text == "chat is told 1"
        assert [row["reason"] for row in proxy.exchanges()] == [None] * 3
        assert len(provider.requests) == 1


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_an_agent_that_asks_for_text_by_a_system_message_behind_its_history_stays_in_its_turn(
    provider: Any, tmp_path: Path, style: str
) -> None:
    provider.reply("chat is told 1")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await opened(proxy, 1)
        body = said("Be helpful.", words_of(style, 1), tools=TOOLS)
        await aside(proxy, body)
        again = [
            *body["messages"],
            {"role": "assistant", "content": ""},
            {"role": "system", "content": "Please return text or call a tool."},
        ]
        assert (await aside(proxy, {**body, "messages": again})).text == "chat is told 1"
        assert [row["reason"] for row in proxy.exchanges()] == [None] * 2
        assert len(proxy.rows("SELECT * FROM steps")) == len(provider.requests) == 1


async def test_embeddings_are_logged_with_a_reason_and_advance_nothing(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    vectors = {"object": "list", "data": [{"index": 0, "embedding": "AAAA"}], "model": "e"}
    provider.json(vectors)
    provider.reply("chat is told 2")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await agent(proxy, 1)
        wanted = {"model": "text-embedding-3-large", "input": ["chat asks 1"], "encoding_format": "base64"}
        answer = await proxy.send("POST", "/s/chat/v1/embeddings", json=wanted)
        assert answer.json == vectors
        assert (provider.requests[1].path, provider.requests[1].body) == ("/v1/embeddings", wanted)
        assert (await agent(proxy, 2)).text == "chat is told 2"
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True, False]
        steps = proxy.rows("SELECT turn FROM steps ORDER BY seq")
        assert [step["turn"] for step in steps] == [1, 2]


@pytest.mark.parametrize("style", ["numbered", "words"])
async def test_requests_of_one_session_at_the_same_time_are_told_apart(
    provider: Any, tmp_path: Path, style: str
) -> None:
    release = asyncio.Event()

    async def late(request: Any) -> Any:
        await release.wait()
        system = request.body["messages"][0]["content"]
        return provider.message(request, "for " + system.splitlines()[0])

    provider.script(late)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await opened(proxy, 1)
        task = words_of(style, 1)
        own = [{**TOOLS[0], "function": {"name": "own"}}]
        asked = [
            said("the agent", task, tools=TOOLS),
            said("a guardrail", f"Harmful? {task}", response_format={"type": "json_object"}),
            said("a helper", f"Search for: {task}", tools=own),
            said("another helper", "Search for something else", tools=own),
            said("the agent", task, tools=TOOLS),
        ]
        asking = []
        for number, body in enumerate(asked, 1):
            asking.append(asyncio.create_task(aside(proxy, body)))
            await proxy.arrived(number)
        await soon(provider.arrived(4))
        release.set()
        texts = [answer.text for answer in await soon(asyncio.gather(*asking))]
        assert texts == [f"for {body['messages'][0]['content']}" for body in asked]
        assert [bool(row["reason"]) for row in proxy.exchanges()] == [False, True, True, True, False]
        assert (len(provider.requests), len(proxy.rows("SELECT * FROM steps"))) == (4, 1)
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["turn"], state["answered"], state["input_tokens"]) == (1, 1, 10)
