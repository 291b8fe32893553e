from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from proxy.wire.responses import is_own_id, item_id, own_id, response_of_item, with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_stream import response_events
from proxy.wire.sse import SSEDecoder

RESPONSE = "resp_" + "0f" * 20
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
LONG = "Grüße, 世界 🎉\u2028 " * 40


def completed(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The completion as an agent is given it."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    choice.update(more.pop("choice", {}))
    whole = {"id": "c1", "object": "chat.completion", "created": 1700000000, "model": "m-2", **more}
    return with_call_ids({**whole, "choices": [choice]}, RESPONSE)


def response_to(message: dict[str, Any], asked: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The Response, which must be one to the openai SDK too."""
    response = to_response(completed(message, **more), asked or {})
    Response.model_validate(response)
    return response


def call(call_id: Any, name: Any = "find", arguments: Any = '{"a": 1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_text_is_a_message_item_with_all_that_clients_need() -> None:
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": 12,
        "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    response = response_to({"content": "Hello."}, usage=usage)
    assert response["output"] == [
        {
            "id": item_id(RESPONSE, "msg", 0),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}],
        }
    ]
    assert {key: response[key] for key in ("id", "object", "status", "model", "created_at")} == {
        "id": RESPONSE,
        "object": "response",
        "status": "completed",
        "model": "m-2",
        "created_at": 1700000000,
    }
    nothing = ("error", "incomplete_details", "previous_response_id", "instructions")
    assert [response[key] for key in nothing] == [None] * 4
    assert response["usage"] == {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 42,
    }


def test_what_was_asked_for_stands_in_the_response() -> None:
    asked = {
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "find", "parameters": {}, "strict": True}],
        "tool_choice": {"type": "function", "name": "find"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "top_p": 0.9,
        "truncation": "auto",
        "metadata": {"a": "b"},
        "previous_response_id": "resp_before",
        "store": False,
        "max_output_tokens": 50,
        "user": "u",
    }
    response = response_to({"content": "Hi"}, {**asked, "text": {"verbosity": "low"}, "reasoning": {}})
    assert {key: response[key] for key in asked} == asked
    assert response["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert response["reasoning"] == {"effort": None, "summary": None}


def test_calls_are_items_that_carry_the_ids_of_the_chat_calls() -> None:
    entries = [call("call_a"), call("call_b", "weigh", "{")]
    response = response_to({"content": "Let me see.", "tool_calls": entries})
    text, *calls = response["output"]
    assert text["content"][0]["text"] == "Let me see."
    assert calls == [
        {
            "id": item_id(RESPONSE, "fc", 1),
            "type": "function_call",
            "status": "completed",
            "call_id": "call_a",
            "name": "find",
            "arguments": '{"a": 1}',
        },
        {
            "id": item_id(RESPONSE, "fc", 2),
            "type": "function_call",
            "status": "completed",
            "call_id": "call_b",
            "name": "weigh",
            "arguments": "{",
        },
    ]


def test_a_custom_call_keeps_its_input() -> None:
    entry = {"id": "call_a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    [item] = response_to({"content": None, "tool_calls": [entry]})["output"]
    assert (item["type"], item["call_id"], item["input"]) == ("custom_tool_call", "call_a", "ls")


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "function_call": {"name": "find", "arguments": "{}"}},
        {"content": None, "tool_calls": [call(None, arguments="{}")]},
        {"content": None, "tool_calls": [call("", arguments={})]},
    ],
)
def test_a_call_without_an_id_gets_one_that_its_message_has_too(message: dict[str, Any]) -> None:
    completion = completed(message)
    [entry] = completion["choices"][0]["message"]["tool_calls"]
    [item] = response_to(message)["output"]
    assert item["call_id"] == entry["id"]
    assert item["call_id"].startswith("call_")
    assert len(item["call_id"]) <= 40
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "find", "{}")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_first(field: str) -> None:
    first, second = response_to({"content": "Hi", field: "Hm."})["output"]
    assert first["id"].startswith("rs_")
    assert first["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert second["type"] == "message"


def test_empty_reasoning_is_none() -> None:
    [item] = response_to({"content": "Hi", "reasoning_content": ""})["output"]
    assert item["type"] == "message"


def test_a_refusal_is_a_part_of_its_own() -> None:
    [item] = response_to({"content": None, "refusal": "I will not."})["output"]
    assert item["content"] == [{"type": "refusal", "refusal": "I will not."}]


@pytest.mark.parametrize("content", [None, "", []])
def test_there_is_always_an_item(content: Any) -> None:
    [item] = response_to({"content": content})["output"]
    assert item["content"][0]["text"] == ""


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_an_answer_that_was_cut_says_so(finish: str, reason: str) -> None:
    response = response_to({"content": "Hel"}, choice={"finish_reason": finish})
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert response["output"][0]["status"] == "incomplete"


# Ids


def test_the_same_completion_has_the_same_id_and_another_turns_has_not() -> None:
    completion = completed({"content": "Hi"}, id="chatcmpl-1")
    completion["id"] = "chatcmpl-1"
    first = own_id("run/shop.e1 1", completion)
    assert is_own_id(first)
    assert own_id("run/shop.e1 1", dict(completion)) == first
    assert own_id("run/shop.e1 2", completion) != first
    assert own_id("anything", {**completion, "id": first}) == first


def test_an_item_tells_whose_it_is() -> None:
    assert response_of_item(item_id(RESPONSE, "msg", 3)) == RESPONSE
    for other in ("msg_1", "", None, 5, RESPONSE, "msg_" + "g" * 44):
        assert response_of_item(other) is None


# Streams


def events(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The stream's events, each of which must be one to the openai SDK."""
    raw = b"".join(response_events(response))
    assert raw.isascii()
    found = SSEDecoder().feed(raw)
    data = [json.loads(event.data) for event in found]
    assert [event.event for event in found] == [it["type"] for it in data]
    assert [it["sequence_number"] for it in data] == list(range(len(data)))
    for it in data:
        EVENT.validate_python(it)
    return data


def test_a_text_streams_in_the_order_of_openai() -> None:
    response = response_to({"content": LONG})
    data = events(response)
    kinds = [it["type"].removeprefix("response.") for it in data]
    deltas = kinds.count("output_text.delta")
    assert deltas > 1
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * deltas,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert "".join(it["delta"] for it in data if it["type"].endswith("delta")) == LONG
    for it in data[:2]:
        assert (it["response"]["status"], it["response"]["output"]) == ("in_progress", [])
    assert data[-1]["response"] == response
    assert data[-2]["item"] == response["output"][0]
    assert data[2]["item"] == {**response["output"][0], "content": [], "status": "in_progress"}


def test_reasoning_text_and_calls_stream_one_after_the_other() -> None:
    message = {"content": "See.", "reasoning_content": "Hm.", "tool_calls": [call("c1"), call("c2")]}
    response = response_to(message)
    data = events(response)
    added = [it["item"] for it in data if it["type"] == "response.output_item.added"]
    done = [it["item"] for it in data if it["type"] == "response.output_item.done"]
    assert [it["type"] for it in added] == ["reasoning", "message", "function_call", "function_call"]
    assert done == response["output"]
    arguments = [it for it in data if it["type"].startswith("response.function_call_arguments")]
    assert [it["item_id"] for it in arguments] == [done[2]["id"]] * 2 + [done[3]["id"]] * 2
    assert [it.get("delta", it.get("arguments")) for it in arguments] == ['{"a": 1}'] * 4
    thoughts = [it for it in data if "summary_index" in it]
    assert [it["type"].rpartition(".")[2] for it in thoughts] == ["added", "delta", "done", "done"]


def test_a_cut_answers_stream_ends_as_incomplete() -> None:
    data = events(response_to({"content": "Hel"}, choice={"finish_reason": "length"}))
    assert data[-1]["type"] == "response.incomplete"
    assert data[0]["response"]["incomplete_details"] is None


ODD = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "text", "length", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "tool_calls",
                    "function_call",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "text",
                    "type",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["content", "tool_calls", "function_call", "refusal", "reasoning"]), ODD),
    st.dictionaries(st.sampled_from(["usage", "created", "model", "service_tier"]), ODD),
    st.dictionaries(
        st.sampled_from(["tools", "text", "reasoning", "metadata", "instructions", "stream"]), ODD
    ),
    ODD,
)
def test_whatever_a_provider_says_becomes_a_response_and_its_stream(
    message: dict[str, Any], more: dict[str, Any], asked: dict[str, Any], finish: Any
) -> None:
    response = to_response(completed(message, choice={"finish_reason": finish}, **more), asked)
    assert response["output"]
    data = [json.loads(it.data) for it in SSEDecoder().feed(b"".join(response_events(response)))]
    assert data[-1]["response"] == json.loads(json.dumps(response))
    ids = [item["id"] for item in response["output"]]
    assert len(set(ids)) == len(ids)
