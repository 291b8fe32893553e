"""What reaches the provider and what the agent gets, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Answer, history, locked, playing, prompt, soon

from proxy.wire.sse import SSEDecoder

LAMP = ("getPrice", {"thing": "lamp"})
PRICE = ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
CHAT = scenes.chat("chat", 3)


def events(answer: Answer) -> list[Any]:
    """The JSON of a stream's events; the last one must be [DONE]."""
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    data = [event.data for event in SSEDecoder().feed(answer.raw)]
    assert data.pop() == "[DONE]"
    return [json.loads(it) for it in data]


# What reaches the provider


async def test_the_provider_gets_the_agents_request_with_our_messages_and_tools(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Fine.")
    async with playing(tmp_path, provider.url) as proxy:
        system = {"role": "system", "content": "Be brief."}
        user = {"role": "user", "content": [{"type": "text", "text": "Q: [[next-user-turn 1]] Thanks"}]}
        body = {
            "model": "some-model",
            "messages": [system, user],
            "temperature": 0.3,
            "seed": 12345678901234567890123,
            "parallel_tool_calls": False,
            "x_unknown": {"a": [None]},
            "tools": [scenes.tool("search", words="string")],
            "tool_choice": "required",
            "stop": ["END"],
            "response_format": {"type": "json_object"},
        }
        answer = await proxy.send("POST", "/s/shop/v1/chat/completions", json=body)
        assert answer.status == 200
        [request] = provider.requests
        kept = ("model", "temperature", "seed", "parallel_tool_calls", "x_unknown")
        tools = json.loads(json.dumps(scenes.TOOLS).replace('"float"', '"number"'))
        assert request.body == {
            **{key: body[key] for key in kept},
            "messages": [
                {
                    "role": "system",
                    "content": "Be brief.\n\nCurrent Date: 2025-03-04 09:30:00 Tuesday",
                },
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Q: What does a lamp cost? Thanks"}],
                },
            ],
            "tools": tools,
            "tool_choice": "auto",
        }
        [sent], [asked] = proxy.exchanges("provider"), proxy.exchanges("agent")
        assert set(json.loads(sent["changes"])) == {
            "messages",
            "tools",
            "tool_choice",
            "stop",
            "response_format",
        }
        assert sent["parent_id"] == asked["id"]
        assert history(proxy.log, sent["tip"]) == request.body["messages"]
        assert history(proxy.log, asked["tip"]) == body["messages"]


async def test_the_agents_headers_and_key_go_on_to_the_provider(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat", default_headers={"X-Custom": "kept"})
        await client.chat.completions.create(**prompt(1))
        [request] = provider.requests
        assert request.headers["Authorization"] == "Bearer sk-test-agent-key-1"
        assert request.headers["X-Custom"] == "kept"
        assert request.headers["User-Agent"].startswith("AsyncOpenAI/Python")
        assert "x-eval-session" not in request.headers


async def test_a_key_of_the_proxys_own_takes_the_place_of_the_agents(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    environ = {"MY_KEY": "sk-of-the-provider-123"}
    async with playing(tmp_path, provider.url, CHAT, environ=environ, provider_key_env="MY_KEY") as proxy:
        await proxy.sdk("chat").chat.completions.create(**prompt(1))
        assert provider.requests[0].headers.getall("Authorization") == ["Bearer sk-of-the-provider-123"]


async def test_a_configured_model_is_sent_in_place_of_the_agents(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT, model="other-model") as proxy:
        await proxy.chat("chat", 1)
        assert provider.requests[0].body["model"] == "other-model"
        [asked], [sent] = proxy.exchanges("agent"), proxy.exchanges("provider")
        assert (asked["request_model"], sent["request_model"]) == ("some-model", "other-model")
        assert "model" in json.loads(sent["changes"])


async def test_tool_calls_are_answered_here_and_their_results_sent_on(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3.")
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shop", 1)
        assert answer.text == "It costs 3."
        first, second = (request.body["messages"] for request in provider.requests)
        assert second[: len(first)] == first
        assistant, result = second[len(first) :]
        assert assistant["role"] == "assistant"
        assert assistant["tool_calls"][0]["function"]["name"] == "getPrice"
        assert result == {
            "role": "tool",
            "tool_call_id": assistant["tool_calls"][0]["id"],
            "content": '{"price": 3, "unit": "€"}',
        }


# What the agent gets


async def test_the_agent_gets_the_text_alone_and_the_tokens_of_the_whole_turn(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply("It costs 3.", usage=(150, 7), model="reported-model")
    async with playing(tmp_path, provider.url) as proxy:
        client = proxy.sdk("shop")
        completion = await client.chat.completions.create(**prompt(1))
        [choice] = completion.choices
        assert (choice.message.content, choice.message.tool_calls) == ("It costs 3.", None)
        assert choice.finish_reason == "stop"
        assert completion.model == "reported-model"
        assert completion.usage is not None
        assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (250, 27)
        assert completion.usage.total_tokens == 277
        [row] = proxy.exchanges("agent")
        assert (row["input_tokens"], row["output_tokens"]) == (250, 27)
        assert (row["finish_state"], row["status"], row["correlation"]) == ("complete", 200, "path")


@pytest.mark.parametrize("usage", [False, True])
async def test_a_stream_is_well_formed(provider: Any, tmp_path: Path, usage: bool) -> None:
    text = "Grüße, 世界 🎉 " * 40
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply(text, usage=(150, 7))
    options = {"stream_options": {"include_usage": True}} if usage else {}
    async with playing(tmp_path, provider.url) as proxy:
        chunks = events(await proxy.chat("shop", 1, stream=True, **options))
        assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
        assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
        if usage:
            last = chunks.pop()
            assert last["choices"] == []
            assert last["usage"]["total_tokens"] == 277
        assert not any(chunk.get("usage") for chunk in chunks)
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        assert len(choices) == len(chunks)
        assert choices[0]["delta"]["role"] == "assistant"
        assert not choices[0]["delta"]["content"]
        assert choices[-1]["delta"] == {}
        assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
        assert "".join(choice["delta"]["content"] or "" for choice in choices[:-1]) == text
        assert all("tool_calls" not in choice["delta"] for choice in choices)


async def test_a_stream_is_read_by_the_openai_sdk(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3, dear friend.")
    async with playing(tmp_path, provider.url) as proxy:
        client = proxy.sdk("shop")
        async with client.chat.completions.stream(
            **prompt(1), stream_options={"include_usage": True}
        ) as stream:
            completion = await stream.get_final_completion()
        assert completion.choices[0].message.content == "It costs 3, dear friend."
        assert completion.choices[0].finish_reason == "stop"
        assert completion.usage is not None
        assert completion.usage.completion_tokens == 10


async def test_a_streaming_provider_is_streamed_from_with_token_counts(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.", usage=(11, 3))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.chat("chat", 1, stream=True)
        assert provider.requests[0].body["stream_options"] == {"include_usage": True}
        [sent] = proxy.exchanges("provider")
        assert (sent["input_tokens"], sent["output_tokens"], sent["stream"]) == (11, 3, 1)
        assert sent["time_to_first_chunk"] is not None
        assert "stream_options" in json.loads(sent["changes"])


async def test_the_whole_session_is_played_to_its_last_word(provider: Any, tmp_path: Path) -> None:
    for script in (
        {"calls": [LAMP]},
        {"text": "3."},
        {"calls": [STOCK, PRICE]},
        {"text": "7 and 12."},
        {"text": "When?"},
        {"calls": [("book", {"thing": "lamp", "day": "Monday"})]},
        {"text": "Booked."},
        {"text": "Bye."},
    ):
        provider.reply(script.pop("text", None), **script)
    async with playing(tmp_path, provider.url) as proxy:
        client, messages, said = proxy.sdk("shop"), [], []
        for turn in range(1, 6):
            messages.append({"role": "user", "content": f"[[next-user-turn {turn}]]"})
            completion = await client.chat.completions.create(model="m", messages=messages)
            messages.append(completion.choices[0].message.model_dump(exclude_none=True))
            said.append(completion.choices[0].message.content)
        assert said == ["3.", "7 and 12.", "When?", "Booked.", "Bye."]
        last_words = [request.body["messages"][-1]["content"] for request in provider.requests]
        assert [last_words[i] for i in (0, 2, 4, 5, 7)] == [
            "What does a lamp cost?",
            "Price of a chair, and how many lamps are there?",
            "Book one.",
            "On Monday.",
            "Thanks!",
        ]
        state = (await proxy.control("GET", "/sessions/shop.e1")).json
        assert state["over"] is True
        assert [task["end"] for task in state["tasks"]] == ["closed"] * 4


async def test_a_wrong_step_is_kept_from_the_agent_and_ends_the_task(provider: Any, tmp_path: Path) -> None:
    provider.reply("No idea.", usage=(5, 5))
    provider.reply(calls=[PRICE, STOCK])
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shop", 1)
        assert answer.text == "[task over]"
        assert b"No idea" not in answer.raw
        assert answer.json["usage"]["total_tokens"] == 10
        await proxy.chat("shop", 2)
        assert provider.requests[1].body["messages"][-1]["content"].startswith("Price of a chair")
        [step, *_] = proxy.rows("SELECT * FROM steps ORDER BY seq")
        assert step["decision"] == "stop"
        assert "getPrice" in step["reason"]


async def test_a_wrong_call_is_kept_from_a_streaming_agent_too(provider: Any, tmp_path: Path) -> None:
    provider.reply("Let me see.", calls=[STOCK])
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shop", 1, stream=True)
        text = "".join(e["choices"][0]["delta"].get("content") or "" for e in events(answer))
        assert text == "[task over]"
        assert b"countStock" not in answer.raw


@pytest.mark.parametrize("stream", [False, True])
async def test_after_the_last_task_the_provider_is_not_called_any_more(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    provider.reply("Hello.")
    async with playing(tmp_path, provider.url, scenes.chat("one", 1)) as proxy:
        assert (await proxy.chat("one.e1", 1)).text == "Hello."
        for turn in (2, 3, 3, 99):
            answer = await proxy.chat("one.e1", turn, stream=stream)
            assert answer.status == 200
            assert b"[session over]" in answer.raw
        assert len(provider.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_held_back_until_the_log_has_it(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    release = provider.hang("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = asyncio.create_task(proxy.chat("chat", 1, stream=stream))
        await soon(provider.arrived(1))
        await proxy.arrived(1)
        with locked(proxy.log):
            release.set()
            done, _ = await asyncio.wait({asking}, timeout=0.3)
            assert not done
        assert b"Hi." in (await soon(asking)).raw
        [row] = proxy.exchanges("agent")
        assert (row["finish_state"], row["status"]) == ("complete", 200)
        [step] = proxy.rows("SELECT decision FROM steps")
        assert step == {"decision": "close"}
