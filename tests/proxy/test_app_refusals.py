"""Whose request it is, and which cannot be played, over real HTTP."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from support import scenes
from support.playing import playing, prompt, recording

CHAT = scenes.chat("chat", 3)


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
        assert "'shoq' (did you mean 'shop'?)" in answer.error["message"]
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
