"""Agents that speak the Responses API, over real HTTP and with the real openai SDK."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from support import scenes
from support.driving import verdicts
from support.playing import Answer, Proxy, history, playing, recording, soon, until

from proxy.settings import PlayConfig
from proxy.wire.sse import SSEDecoder

PATH = "/s/chat/v1/responses"
LAMP = ("getPrice", {"thing": "lamp"})
CHAT = scenes.chat("chat", 3)
TOOL = {"type": "function", "name": "search", "parameters": {"type": "object", "properties": {}}}


def asked(turn: int | None, **fields: Any) -> dict[str, Any]:
    words = "[[next-user-turn]]" if turn is None else f"[[next-user-turn {turn}]]"
    return {"model": "some-model", "input": words, **fields}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text_of(answer: Answer) -> str:
    assert answer.status == 200, answer.raw
    return Response.model_validate(answer.json).output_text


def events(answer: Answer) -> list[Any]:
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    return [json.loads(event.data) for event in SSEDecoder().feed(answer.raw)]


async def ask(proxy: Proxy, turn: int | None, **fields: Any) -> Answer:
    return await proxy.send("POST", PATH, json=asked(turn, **fields))


def echo(provider: Any) -> None:
    """The LLM repeats what it was asked last."""
    provider.script(lambda request: provider.message(request, request.body["messages"][-1]["content"]))


# A turn


async def test_a_turn_is_played_over_chat_and_given_as_a_response(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP], usage=(100, 20))
    provider.reply("It costs 3.", usage=(150, 7), model="reported-model")
    async with playing(tmp_path, provider.url) as proxy:
        response = await proxy.sdk("shop").responses.create(
            **asked(1), instructions="Be brief.", tools=[TOOL], max_output_tokens=99
        )
        assert response.output_text == "It costs 3."
        assert (response.status, response.model) == ("completed", "reported-model")
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (250, 27)
        first, second = provider.requests
        assert {first.path, second.path} == {"/v1/chat/completions"}
        assert first.body["messages"] == [
            {"role": "system", "content": "Be brief.\n\nCurrent Date: 2025-03-04 09:30:00 Tuesday"},
            {"role": "user", "content": "What does a lamp cost?"},
        ]
        assert first.body["max_completion_tokens"] == 99
        assert "instructions" not in first.body
        assert "input" not in first.body
        assert [tool["function"]["name"] for tool in first.body["tools"]] == [
            tool["function"]["name"] for tool in scenes.TOOLS
        ]
        assert second.body["messages"][-1]["role"] == "tool"


async def test_the_log_has_the_request_as_it_came_and_the_conversation_as_chat_messages(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Hi.")
    tools = [TOOL, {"type": "web_search"}]
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await ask(proxy, 1, instructions="Be brief.", tools=tools, truncation="auto")
        await until(lambda: proxy.exchanges()[0]["delivered_at"] is not None)
        [row] = proxy.exchanges()
        assert (row["path"], row["turn"], row["finish_state"]) == (PATH, 1, "complete")
        assert row["response_id"] == answer.json["id"]
        assert history(proxy.log, row["tip"]) == [
            {"role": "system", "content": "Be brief."},
            said("[[next-user-turn 1]]"),
        ]
        body = json.loads(row["body"])
        assert body == {"model": "some-model", "instructions": "Be brief.", "truncation": "auto"}
        [logged] = proxy.rows("SELECT body FROM tool_lists WHERE hash = ?", row["tools"])
        assert json.loads(logged["body"]) == tools
        assert json.loads(row["changes"]) == ["truncation", "tools[1]: web_search"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_whole_session_is_played(provider: Any, tmp_path: Path, stream: bool) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("It costs 3.")
    provider.reply(calls=[("getPrice", {"thing": "chair"}), ("countStock", {"thing": "lamp"})])
    provider.reply("7, and 12.")
    provider.reply("Which day?")
    provider.reply(calls=[("book", {"thing": "lamp", "day": "Monday"})])
    provider.reply("Booked.")
    provider.reply("You are welcome.")
    async with playing(tmp_path, provider.url) as proxy:
        client, previous, told = proxy.sdk("shop"), None, []
        for turn in range(1, 7):
            request = asked(turn, previous_response_id=previous, tools=[TOOL])
            if stream:
                async with client.responses.stream(**request) as events_:
                    response: Any = await events_.get_final_response()
            else:
                response = await client.responses.create(**request)
            previous = response.id
            told.append(response.output_text)
        assert told == [
            "It costs 3.",
            "7, and 12.",
            "Which day?",
            "Booked.",
            "You are welcome.",
            "[session over]",
        ]
    found = verdicts(tmp_path / "log.db")
    assert {label for label, _ in found.values()} == {"correct"}


async def test_a_stream_can_be_read_event_by_event(provider: Any, tmp_path: Path) -> None:
    text = "Grüße, 世界 🎉 " * 40
    provider.reply(text)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        stream = await proxy.sdk("chat").responses.create(**asked(1), stream=True)
        seen = [event async for event in stream]
        assert seen[0].type == "response.created"
        assert "".join(it.delta for it in seen if it.type == "response.output_text.delta") == text
        last = seen[-1]
        assert last.type == "response.completed"
        assert last.response.output_text == text
        assert last.response.id == seen[0].response.id
        assert provider.requests[0].body["stream"] is True


async def test_a_turn_that_is_asked_for_again_gets_the_same_response(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        first, again = await ask(proxy, 1), await ask(proxy, 1)
        assert again.json == first.json
        streamed = events(await ask(proxy, 1, stream=True))
        assert streamed[-1]["response"]["output"] == first.json["output"]
        assert len(provider.requests) == 1


async def test_requests_at_the_same_time_join_the_same_turn(provider: Any, tmp_path: Path) -> None:
    release = provider.hang("late")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        asking = [asyncio.create_task(ask(proxy, 1)) for _ in range(3)]
        await proxy.arrived(3)
        release.set()
        answers = await soon(asyncio.gather(*asking))
        assert len({answer.raw for answer in answers}) == 1
        assert len(provider.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_signs_of_life_do_not_disturb_a_client(provider: Any, tmp_path: Path, stream: bool) -> None:
    release = provider.hang("late")
    async with playing(tmp_path, provider.url, CHAT, keep_alive=0.01) as proxy:
        async with proxy.http.post(proxy.url + PATH, json=asked(1, stream=stream)) as response:
            first = await soon(response.content.readexactly(1))
            assert first == (b":" if stream else b" ")
            release.set()
            raw = first + await response.read()
        if stream:
            assert json.loads(SSEDecoder().feed(raw)[-1].data)["type"] == "response.completed"
        else:
            assert Response.model_validate(json.loads(raw)).output_text == "late"


async def test_a_failure_of_the_provider_reaches_the_agent_with_its_status(
    provider: Any, tmp_path: Path
) -> None:
    provider.fail(429, "slow down", {"Retry-After": "9"})
    provider.reply("Hi.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat", retries=2)
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.responses.create(**asked(1))
        assert len(provider.requests) == 1
        assert (await client.responses.create(**asked(1))).output_text == "Hi."


async def test_a_wrong_step_ends_the_task_with_a_text(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("launch", {})])
    async with playing(tmp_path, provider.url) as proxy:
        response = await proxy.sdk("shop").responses.create(**asked(1))
        assert response.output_text == "[task over]"
        assert [item.type for item in response.output] == ["message"]


async def test_a_handoff_is_given_as_a_call_and_its_result_goes_on_with_the_turn(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("transfer_to_sales", {}, "call_given")])
    provider.reply("It costs 3.")
    handoff = {"type": "function", "name": "transfer_to_sales", "parameters": {"type": "object"}}
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat")
        response = await client.responses.create(**asked(1), tools=[handoff])
        [call] = response.output
        assert call.type == "function_call"
        assert (call.name, call.status) == ("transfer_to_sales", "completed")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
        response = await client.responses.create(
            model="some-model", input=[result], previous_response_id=response.id, tools=[TOOL]
        )
        assert response.output_text == "It costs 3."
        assert provider.requests[1].body["messages"][-1] == {
            "role": "tool",
            "tool_call_id": "call_given",
            "content": "done",
        }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("remembers", [False, True])
async def test_calls_are_handed_to_the_agent_and_its_results_replaced(
    provider: Any, tmp_path: Path, stream: bool, remembers: bool
) -> None:
    """`remembers`: the agent sends its whole history, else it leaves that to the proxy."""
    provider.reply(calls=[("getPrice", {"thing": "lamp"}, "same")])
    provider.reply("It costs 3.")
    provider.reply(
        calls=[("getPrice", {"thing": "chair"}, "same"), ("countStock", {"thing": "lamp"}, "same")]
    )
    provider.reply("7, and 12.")
    async with playing(tmp_path, provider.url, play=PlayConfig(tools="relay")) as proxy:
        client = proxy.sdk("shop")
        items: list[Any] = []
        response: Any = None
        seen: list[str] = []
        for turn in (1, 2):
            new: list[Any] = [said(f"[[next-user-turn {turn}]]")]
            while new:
                items += new
                known = {"input": items} if remembers else {"input": new}
                if not remembers and response is not None:
                    known["previous_response_id"] = response.id
                request: dict[str, Any] = {"model": "m", "tools": [TOOL], **known}
                if stream:
                    async with client.responses.stream(**request) as events_:
                        response = await events_.get_final_response()
                else:
                    response = await client.responses.create(**request)
                items += [item.model_dump(exclude_none=True) for item in response.output]
                calls = [item for item in response.output if item.type == "function_call"]
                seen += [call.call_id for call in calls]
                new = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": "the agent's own"}
                    for call in calls
                ]
            assert response.output_text == ("It costs 3." if turn == 1 else "7, and 12.")
        assert len(set(seen)) == 3
        told = [
            [it["content"] for it in request.body["messages"] if it["role"] == "tool"]
            for request in provider.requests
        ]
        assert told[1] == ['{"price": 3, "unit": "€"}']
        assert told[3][-2:] == ['{"price": 7}', "12 lamps"]
        assert not any("own" in text for texts in told for text in texts)
    found = verdicts(tmp_path / "log.db")
    assert [found["shop", 1, task] for task in (1, 2)] == [("correct", True)] * 2


@pytest.mark.parametrize(("field", "value"), [("background", True), ("conversation", {"id": "conv_1"})])
async def test_what_only_openai_can_do_is_refused_and_logged(
    provider: Any, tmp_path: Path, field: str, value: Any
) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await ask(proxy, 1, **{field: value})
        assert (answer.status, answer.error["param"]) == (400, field)
        assert provider.requests == []
        [row] = proxy.exchanges()
        assert (row["finish_state"], row["status"]) == ("proxy_error", 400)
        assert json.loads(row["body"])["input"] == "[[next-user-turn 1]]"


# What refers to an earlier response


async def test_a_client_that_repeats_its_message_beside_results_asks_for_no_new_turn(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("transfer_to_sales", {}, "call_given")])
    provider.reply("Sold.")
    handoff = {"type": "function", "name": "transfer_to_sales", "parameters": {"type": "object"}}
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        first = await ask(proxy, None, tools=[handoff], store=True)
        [call] = first.json["output"]
        again = [
            said("[[next-user-turn]]"),
            {"type": "function_call_output", "call_id": call["call_id"], "output": "done"},
        ]
        body = {"model": "m", "input": again, "previous_response_id": first.json["id"], "tools": [handoff]}
        assert text_of(await proxy.send("POST", PATH, json=body)) == "Sold."
        assert [row["turn"] for row in proxy.exchanges()] == [1, 1]
        tip = proxy.exchanges()[-1]["tip"]
        assert [it["role"] for it in history(proxy.log, tip)] == ["user", "assistant", "tool"]


async def test_an_item_reference_stands_for_what_was_said(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        first = await ask(proxy, None)
        [item] = first.json["output"]
        items = [
            said("[[next-user-turn]]"),
            {"type": "item_reference", "id": item["id"]},
            said("[[next-user-turn]]"),
        ]
        body = {"model": "m", "input": items}
        assert text_of(await proxy.send("POST", PATH, json=body)) == "chat asks 2"
        assert history(proxy.log, proxy.exchanges()[-1]["tip"])[1] == {
            "role": "assistant",
            "content": "chat asks 1",
        }


async def test_unknown_ids_are_refused_by_name_and_the_turn_stays_open(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hi.")
    unknown = "resp_" + "0" * 40
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat")
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(**asked(1), previous_response_id=unknown)
        assert raised.value.code == "previous_response_not_found"
        assert unknown in raised.value.message
        item = {"type": "item_reference", "id": "msg_unknown"}
        answer = await proxy.send("POST", PATH, json={"input": [item, said("[[next-user-turn 1]]")]})
        assert (answer.status, answer.error["param"]) == (400, "input")
        assert "msg_unknown" in answer.error["message"]
        assert provider.requests == []
        assert text_of(await ask(proxy, 1)) == "Hi."


@pytest.mark.parametrize("by", ["previous_response_id", "item_reference"])
async def test_a_session_is_found_by_a_response_that_was_given_in_it(
    provider: Any, tmp_path: Path, by: str
) -> None:
    echo(provider)
    records = (CHAT, scenes.chat("other", 2))
    async with playing(tmp_path, provider.url, *records) as proxy:

        async def bare(**fields: Any) -> Answer:
            return await proxy.send("POST", "/v1/responses", json={"model": "m", **fields})

        firsts = [
            await bare(input=f"[[next-user-turn session={name}]]", instructions=name)
            for name in ("other", "chat")
        ]
        for name, first in zip(("other", "chat"), firsts, strict=True):
            if by == "previous_response_id":
                more: dict[str, Any] = {
                    "previous_response_id": first.json["id"],
                    "input": "[[next-user-turn]]",
                }
            else:
                item = {"type": "item_reference", "id": first.json["output"][0]["id"]}
                more = {"input": [said("[[next-user-turn]]"), item, said("[[next-user-turn]]")]}
            assert text_of(await bare(**more, instructions=name)) == f"{name} asks 2"
        rows = proxy.exchanges()
        assert [row["correlation"] for row in rows] == ["sentinel"] * 2 + ["response_id"] * 2
        assert len({row["session_id"] for row in rows}) == 2


async def test_the_queue_plays_scenario_after_scenario(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    records = (scenes.chat("first", 2), scenes.chat("second", 2))
    async with playing(tmp_path, provider.url, *records) as proxy:
        client, told = proxy.sdk(), []
        for _ in records:
            previous = None
            for _ in range(2):
                response = await client.responses.create(**asked(None), previous_response_id=previous)
                previous = response.id
                told.append(response.output_text)
        assert told == ["first asks 1", "first asks 2", "second asks 1", "second asks 2"]


async def test_responses_of_an_earlier_process_are_read_from_the_log(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        first = await ask(proxy, 1, instructions="Old.", tools=[TOOL], temperature=0.5)
    async with playing(tmp_path, provider.url, CHAT, runs="continue") as proxy:
        client = proxy.sdk()
        kept = await client.responses.retrieve(first.json["id"])
        assert kept.output_text == "chat asks 1"
        assert (kept.instructions, kept.temperature) == ("Old.", 0.5)
        assert [it.model_dump()["name"] for it in kept.tools] == ["search"]
        assert kept.usage is not None
        again = await ask(proxy, 1, instructions="Old.", tools=[TOOL], temperature=0.5)
        assert again.json["output"] == first.json["output"]
        request = {**asked(2, tools=[TOOL]), "instructions": "Old.", "previous_response_id": kept.id}
        assert (await client.responses.create(**request)).output_text == "chat asks 2"
        row = proxy.exchanges()[-1]
        assert row["correlation"] == "response_id"
        assert history(proxy.log, row["tip"]) == [
            {"role": "system", "content": "Old."},
            said("[[next-user-turn 1]]"),
            {"role": "assistant", "content": "chat asks 1"},
            said("[[next-user-turn 2]]"),
        ]


# Asking for a response again


async def test_a_response_can_be_had_again_with_its_input(provider: Any, tmp_path: Path) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat")
        first = await client.responses.create(**asked(1), instructions="Be brief.")
        assert (await client.responses.retrieve(first.id)).model_dump() == first.model_dump()
        second = await client.responses.create(**asked(2), previous_response_id=first.id)
        listed = await client.responses.input_items.list(second.id, order="asc")
        found = [it.model_dump(exclude_none=True) for it in listed.data]
        assert [(it["role"], it["content"][0]["text"]) for it in found] == [
            ("user", "[[next-user-turn 1]]"),
            ("assistant", "chat asks 1"),
            ("user", "[[next-user-turn 2]]"),
        ]
        newest_first = await client.responses.input_items.list(second.id)
        assert [it.model_dump(exclude_none=True) for it in newest_first.data] == found[::-1]
        stream = await client.responses.retrieve(first.id, stream=True)
        assert [event async for event in stream][-1].type == "response.completed"


async def test_a_response_that_was_deleted_is_unknown_and_stays_in_the_log(
    provider: Any, tmp_path: Path
) -> None:
    echo(provider)
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        client = proxy.sdk("chat")
        first = await client.responses.create(**asked(1))
        await client.responses.delete(first.id)
        for request in (client.responses.retrieve(first.id), client.responses.delete(first.id)):
            with pytest.raises(openai.NotFoundError):
                await request
        with pytest.raises(openai.BadRequestError, match="not found"):
            await client.responses.create(**asked(2), previous_response_id=first.id)
        assert proxy.exchanges()[0]["response_id"] == first.id


@pytest.mark.parametrize("path", ["resp_gone", "resp_gone/input_items", "msg_1"])
async def test_a_response_that_was_never_given_is_not_found(provider: Any, tmp_path: Path, path: str) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.send("GET", f"{PATH}/{path}")
        assert (answer.status, answer.error["code"]) == (404, "response_not_found")
        assert provider.requests == []


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/resp_1/cancel"), ("POST", "/compact")])
async def test_other_requests_are_not_played(provider: Any, tmp_path: Path, method: str, path: str) -> None:
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        answer = await proxy.send(method, PATH + path)
        assert (answer.status, answer.error["code"]) == (404, "endpoint_not_played")
        assert provider.requests == []


# Calls on the side


@pytest.mark.parametrize("stream", [False, True])
async def test_a_side_call_goes_to_the_provider_and_comes_back_as_a_response(
    provider: Any, tmp_path: Path, stream: bool
) -> None:
    provider.reply("chat is told 1")
    provider.reply("A title", usage=(7, 2), reasoning="Hm.")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await ask(proxy, 1, tools=[TOOL])
        form = {"type": "json_schema", "name": "out", "schema": {"type": "object"}}
        body = {
            "model": "small",
            "instructions": "Write a title.",
            "input": [said("For: [[next-user-turn 1]]")],
            "text": {"format": form},
            "stream": stream,
        }
        answer = await proxy.send("POST", PATH, json=body)
        response = events(answer)[-1]["response"] if stream else answer.json
        assert Response.model_validate(response).output_text == "A title"
        assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
        sent = provider.requests[1]
        assert sent.path == "/v1/chat/completions"
        assert sent.body["messages"] == [
            {"role": "system", "content": "Write a title."},
            said("For: chat asks 1"),
        ]
        assert sent.body["response_format"]["json_schema"]["name"] == "out"
        row = proxy.exchanges()[-1]
        assert row["reason"] is not None
        assert (row["finish_state"], row["response_id"]) == ("complete", response["id"])
        assert (row["input_tokens"], row["output_tokens"]) == (7, 2)
        assert len(proxy.exchanges("provider")) == 1


async def test_a_side_calls_failure_is_passed_on_as_it_is(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    provider.fail(429, headers={"Retry-After": "7"})
    provider.drop()
    async with playing(tmp_path, provider.url, CHAT, provider_retries=3) as proxy:
        await ask(proxy, 1, tools=[TOOL])
        aside = {"model": "small", "instructions": "Write a title.", "input": "Hello"}
        answer = await proxy.send("POST", PATH, json=aside)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert "x-should-retry" not in answer.headers
        assert (await proxy.send("POST", PATH, json=aside)).status == 502
        assert len(provider.requests) == 3
        assert [row["finish_state"] for row in proxy.exchanges()] == [
            "complete",
            "provider_error",
            "provider_abort",
        ]
        state = (await proxy.control("GET", "/sessions/chat.e1")).json
        assert (state["provider_errors"], state["failed_turn"]) == (0, 0)


async def test_a_side_call_that_the_agent_leaves_is_given_up(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    provider.hang("never")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await ask(proxy, 1, tools=[TOOL])
        aside = {"model": "small", "instructions": "Write a title.", "input": "Hello"}
        asking = asyncio.create_task(proxy.send("POST", PATH, json=aside))
        await soon(provider.arrived(2))
        asking.cancel()
        await soon(provider.disconnected.wait())
        row = (await proxy.finished(2))[-1]
        assert (row["finish_state"], row["error_type"]) == ("client_abort", "client_disconnected")


async def test_a_side_call_can_be_gone_on_from(provider: Any, tmp_path: Path) -> None:
    provider.reply("chat is told 1")
    provider.reply("A title")
    provider.reply("A shorter one")
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await ask(proxy, 1, tools=[TOOL])
        client = proxy.sdk("chat")
        first = await client.responses.create(model="m", instructions="Write a title.", input="Hello")
        await client.responses.create(
            model="m", instructions="Write a title.", input="Shorter", previous_response_id=first.id
        )
        assert [it["content"] for it in provider.requests[2].body["messages"]] == [
            "Write a title.",
            "Hello",
            "A title",
            "Shorter",
        ]


# Recording


async def test_without_scenarios_everything_passes_as_it_is(provider: Any, tmp_path: Path) -> None:
    provider.json({"id": "resp_1", "object": "response", "output": []})
    raw = b'{"model": "m",  "input": "Hi", "background": true}'
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send("POST", "/v1/responses", data=raw)
        assert answer.json == {"id": "resp_1", "object": "response", "output": []}
        assert (provider.requests[0].path, provider.requests[0].raw) == ("/v1/responses", raw)
