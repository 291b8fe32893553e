"""What reaches the provider and what the agent gets, over real HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from support import scenes
from support.playing import Answer, history, locked, playing, prompt, recording, soon

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


# Whose request is it


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
async def test_an_api_key_can_name_the_session_and_never_reaches_the_provider(
    provider: Any, tmp_path: Path, path: str
) -> None:
    provider.reply("Hi.")
    environ = {"OPENAI_API_KEY": "sk-from-the-environment-1"}
    async with playing(tmp_path, provider.url, CHAT, environ=environ) as proxy:
        headers = {"Authorization": "Bearer sk-eval-chat"}
        answer = await proxy.send("POST", path, json=prompt(1), headers=headers)
        assert answer.text == "Hi."
        assert provider.requests[0].headers.getall("Authorization") == ["Bearer sk-from-the-environment-1"]
        [row] = proxy.exchanges("agent")
        assert (row["correlation"], row["turn"]) == ("api_key", 1)


async def test_a_session_key_without_a_provider_key_is_sent_without_any(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.sdk(api_key="sk-eval-chat").chat.completions.create(**prompt(1))
        assert "Authorization" not in provider.requests[0].headers


async def test_a_session_that_does_not_exist_gets_404_in_one_line(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shoq", 1)
        assert answer.status == 404
        assert "'shoq'" in answer.error["message"]
        assert "/s/SCENARIO_ID/v1" in answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"
        with pytest.raises(openai.NotFoundError, match="shoq"):
            await proxy.sdk("shoq", retries=2).chat.completions.create(**prompt(1))
        assert provider.requests == []


async def test_a_conversation_that_names_no_session_beside_another_is_told_the_ways_to_name_one(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(400)
    async with playing(tmp_path, provider.url) as proxy:
        await proxy.send("POST", "/v1/chat/completions", json=prompt(1))
        second = prompt(1, temperature=1)
        answer = await proxy.send("POST", "/v1/chat/completions", json=second)
        assert answer.status == 400
        for way in ("/s/SCENARIO_ID/v1", "sk-eval-SCENARIO_ID"):
            assert way in answer.error["message"]
        assert len(provider.requests) <= 1


# Requests that cannot be played


@pytest.mark.parametrize("n", [2, 0, "1"])
async def test_more_than_one_choice_is_refused(provider: Any, tmp_path: Path, n: Any) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shop", 1, n=n)
        assert (answer.status, answer.error["param"]) == (400, "n")
        assert provider.requests == []


async def test_one_choice_may_be_asked_for_in_so_many_words(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        assert (await proxy.chat("chat", 1, n=1)).text == "Hi."


@pytest.mark.parametrize("path", ["/messages", "/completions"])
async def test_endpoints_that_would_spend_tokens_unjudged_are_refused_with_the_cure(
    provider: Any, tmp_path: Path, path: str
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.send("POST", f"/s/shop/v1{path}", json=prompt(1))
        assert answer.status == 400
        assert path in answer.error["message"]
        assert "/chat/completions" in answer.error["message"]
        assert provider.requests == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/s/shop/v1/chat/completions"),
        ("POST", "/s/shop/v1/files"),
        ("GET", "/"),
        ("GET", "/s/shop"),
    ],
)
async def test_any_other_endpoint_is_not_found(provider: Any, tmp_path: Path, method: str, path: str) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.send(method, path)
        assert answer.status == 404
        assert answer.error["code"] == "endpoint_not_played"
        assert provider.requests == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "JSON object"),
        (b"{}", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": "hello"}', "messages"),
    ],
)
async def test_a_broken_body_is_refused_and_says_what_is_wrong(
    provider: Any, tmp_path: Path, raw: bytes, said: str
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.send("POST", "/s/shop/v1/chat/completions", data=raw)
        assert answer.status == 400
        assert said in answer.error["message"]
        assert provider.requests == []


async def test_a_compressed_request_is_played_and_a_broken_one_refused(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        whole = gzip.compress(json.dumps(prompt(1)).encode())
        headers = {"Content-Encoding": "gzip"}
        path = "/s/chat/v1/chat/completions"
        assert (await proxy.send("POST", path, data=whole, headers=headers)).text == "Hi."
        answer = await proxy.send("POST", path, data=b"not gzip", headers=headers)
        assert answer.status == 400
        assert answer.error["message"]


async def test_a_turn_that_was_not_opened_is_refused_with_the_prompt_to_use(
    provider: Any, tmp_path: Path
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.chat("shop", 3)
        assert answer.status == 400
        assert "[[next-user-turn 1]]" in answer.error["message"]
        assert provider.requests == []


async def test_a_request_beside_the_conversation_passes_and_advances_nothing(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("A title")
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        title = {"model": "small", "messages": [{"role": "user", "content": "Name this chat."}], "n": 1}
        assert (await proxy.send("POST", "/s/chat/v1/chat/completions", json=title)).text == "A title"
        assert provider.requests[0].body == title
        assert (await proxy.chat("chat", 1)).text == "Hi."
        side, main = proxy.exchanges("agent")
        assert side["reason"]
        assert main["reason"] is None
        assert [step["task"] for step in proxy.rows("SELECT task FROM steps")] == [0]


async def test_models_and_embeddings_are_passed_on(provider: Any, tmp_path: Path) -> None:
    models = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}
    vectors = {
        "object": "list",
        "model": "e",
        "data": [{"index": 0, "embedding": [0.5], "object": "embedding"}],
    }
    vectors["usage"] = {"prompt_tokens": 1, "total_tokens": 1}
    provider.json(models)
    provider.json(vectors)
    async with playing(tmp_path, provider.url) as proxy:
        client = proxy.sdk("shop")
        assert [model.id async for model in client.models.list()] == ["m"]
        made = await client.embeddings.create(model="e", input="x", encoding_format="float")
        assert made.data[0].embedding == [0.5]
        assert [request.path for request in provider.requests] == ["/v1/models", "/v1/embeddings"]
        assert [row["reason"] for row in proxy.exchanges("agent")] == ["recorded", "recorded"]


@pytest.mark.parametrize("mode", [playing, recording])
async def test_the_proxy_says_that_it_is_well(provider: Any, tmp_path: Path, mode: Any) -> None:
    async with mode(tmp_path, provider.url) as proxy:
        answer = await proxy.send("GET", "/healthz")
        assert (answer.status, answer.json["status"]) == (200, "ok")


# When the provider fails


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "error"), [(401, openai.AuthenticationError), (400, openai.BadRequestError)]
)
async def test_an_error_of_the_provider_reaches_the_agent_as_it_came(
    provider: Any, tmp_path: Path, stream: bool, status: int, error: type[openai.APIStatusError]
) -> None:
    headers = {"x-request-id": "req-7", "x-ratelimit-remaining-requests": "0", "x-should-retry": "true"}
    body = {"error": {"message": "überlastet", "type": "t", "param": None, "code": "c"}, "extra": [1]}
    provider.json(body, status, headers)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat", retries=2)
        with pytest.raises(error) as caught:
            await client.chat.completions.create(**prompt(1), stream=stream)
        response = caught.value.response
        assert (response.status_code, response.json()) == (status, body)
        assert response.headers["x-request-id"] == "req-7"
        assert response.headers["x-ratelimit-remaining-requests"] == "0"
        assert response.headers["x-should-retry"] == "false"
        assert len(provider.requests) == 1
        [row] = proxy.exchanges("agent")
        assert (row["finish_state"], row["status"]) == ("provider_error", status)
        assert "überlastet" in row["error"]


async def test_a_provider_that_breaks_off_is_a_bad_gateway(provider: Any, tmp_path: Path) -> None:
    provider.drop(after=b'{"id": "x", "choices": [')
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"
        assert (await proxy.chat("chat", 1)).text == "Hi."
        failed, _ = proxy.exchanges("provider")
        assert failed["finish_state"] == "provider_abort"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>busy</html>", "text/html"),
        (b"{}", "application/json"),
        (b'{"error": {"message": "no"}}', "application/json"),
    ],
)
async def test_an_answer_that_is_no_completion_is_an_error_and_never_a_text(
    provider: Any, tmp_path: Path, body: bytes, content_type: str
) -> None:
    provider.body(body, content_type)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert answer.error["message"]
        [row] = proxy.exchanges("provider")
        assert row["finish_state"] == "provider_error"
        assert proxy.rows("SELECT * FROM steps") == []


async def test_after_a_failure_the_turn_goes_on_behind_the_last_accepted_step(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.fail(400, "hiccup")
    provider.reply("It costs 3.")
    async with playing(tmp_path, provider.url) as proxy:
        assert (await proxy.chat("shop", 1)).status == 400
        assert (await proxy.chat("shop", 1)).text == "It costs 3."
        _, failed, again = provider.requests
        assert again.body == failed.body
        steps = proxy.rows("SELECT step, decision FROM steps ORDER BY seq")
        assert steps == [{"step": 0, "decision": "observe"}, {"step": 1, "decision": "close"}]


async def test_a_provider_that_cannot_be_reached_is_a_bad_gateway(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with playing(tmp_path, f"http://127.0.0.1:{unused_tcp_port}/v1", CHAT) as proxy:
        answer = await proxy.chat("chat", 1)
        assert answer.status == 502
        assert str(unused_tcp_port) in answer.error["message"]
        assert answer.error["code"] == "connect_failure"


# Signs of life


async def test_blanks_before_a_json_answer_keep_the_connection_alive(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("At last.")
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1)) as response:
            first = await response.content.readexactly(3)
            assert (response.status, first) == (200, b"   ")
            release.set()
            rest = await response.read()
        assert json.loads(first + rest)["choices"][0]["message"]["content"] == "At last."


async def test_the_openai_sdk_reads_an_answer_behind_signs_of_life(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        completions = proxy.sdk("chat").chat.completions
        release = provider.hang("At last.")
        # The SDK returns as soon as the head of the answer is there, and that is a sign of life.
        async with completions.with_streaming_response.create(**prompt(1)) as response:
            release.set()
            completion = await response.parse()
        assert completion.choices[0].message.content == "At last."
        release = provider.hang("And again.")
        stream = await completions.create(**prompt(2), stream=True)
        release.set()
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == "And again."


async def test_comments_in_a_stream_keep_the_connection_alive(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("At last.")
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1, stream=True)) as response:
            lines = [await response.content.readline() for _ in range(2)]
            release.set()
            rest = await response.read()
        assert all(line.startswith(b": ") and line.endswith(b"\n") for line in lines)
        decoder = SSEDecoder()
        data = [event.data for event in decoder.feed(b"".join(lines) + rest)]
        assert data.pop() == "[DONE]"
        assert json.loads(data[0])["choices"][0]["delta"]["role"] == "assistant"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_behind_a_sign_of_life_breaks_the_connection_and_the_next_request_goes_on(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    release = asyncio.Event()

    async def fail_late(request: Any) -> Any:
        await release.wait()
        return provider.as_json({"error": {"message": "sorry"}}, 400)

    provider.script(fail_late)
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        url = f"{proxy.base('chat')}/chat/completions"
        async with proxy.http.post(url, json=prompt(1, stream=stream)) as response:
            await response.content.readexactly(1)
            release.set()
            with pytest.raises(aiohttp.ClientError):
                await response.read()
        [row] = proxy.exchanges("agent")
        assert (row["finish_state"], row["delivered_at"]) == ("provider_error", None)
        provider.reply("Hi.")
        answers = [await proxy.chat("chat", 1), await proxy.chat("chat", 1)]
        assert answers[-1].text == "Hi."
        assert answers[0].status in (200, 400)
