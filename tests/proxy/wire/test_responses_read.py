from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.answer import AnswerReader, Failure, Reading
from proxy.wire.responses import with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_read import ResponsesReader
from proxy.wire.responses_stream import response_events

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "secret",
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": "{}"}
LOST = Failure("provider_abort", "connection_lost", "gone")


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 10,
    }
    whole = {"id": "resp_1", "object": "response", "created_at": 1700000000.5, "model": "m-2", "error": None}
    return {**whole, "status": "completed", "output": list(output), "usage": usage, **more}


def event(kind: str, **data: Any) -> bytes:
    text = json.dumps({"type": kind, "sequence_number": 0, **data})
    return f"event: {kind}\ndata: {text}\n\n".encode()


def read(*parts: bytes, stream: bool, cut: Failure | None = None, legacy: bool = False) -> Reading:
    kind = "text/event-stream" if stream else "application/json"
    reader = AnswerReader(200, kind, stream=stream, responses=ResponsesReader(legacy=legacy))
    for part in parts:
        reader.feed(part)
    return reader.finish(cut)


def read_whole(stream: bool, *output: dict[str, Any], legacy: bool = False, **more: Any) -> dict[str, Any]:
    whole = response(*output, **more)
    if stream:
        parts = [event("response.created", response=response(status="in_progress"))]
        parts.append(event(f"response.{whole['status']}", response=whole))
    else:
        parts = [json.dumps(whole).encode()]
    reading = read(*parts, stream=stream, legacy=legacy)
    assert reading.finish_state == "complete", reading.error
    assert reading.response is not None
    return reading.response


both = pytest.mark.parametrize("stream", [False, True])


@both
def test_a_text_is_the_message(stream: bool) -> None:
    found = read_whole(stream, said("Hello."))
    [choice] = found.pop("choices")
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hello."},
        "finish_reason": "stop",
    }
    assert found == {
        "id": "resp_1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m-2",
        "usage": {
            "prompt_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 1},
            "completion_tokens": 3,
            "completion_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 10,
        },
    }


@both
def test_calls_reasoning_and_text_are_one_message(stream: bool) -> None:
    other = {**CALL, "id": "fc_2", "call_id": "c2", "arguments": '{"a": 1}'}
    [choice] = read_whole(stream, REASONING, said("See."), CALL, other)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "See.",
        "reasoning_content": "Hm.",
        "reasoning_items": [REASONING],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}},
        ],
    }


@both
def test_reasoning_that_cannot_be_sent_back_is_not_kept(stream: bool) -> None:
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    [choice] = read_whole(stream, bare, said("Hi"))["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hi"}


@both
def test_custom_calls_and_refusals_have_chats_form(stream: bool) -> None:
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sh", "input": "ls"}
    [choice] = read_whole(stream, custom)["choices"]
    assert choice["message"]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    ]
    refusal = {**said(""), "content": [{"type": "refusal", "refusal": "No."}]}
    [choice] = read_whole(stream, refusal)["choices"]
    assert (choice["message"]["content"], choice["message"]["refusal"]) == (None, "No.")


@both
def test_an_answer_to_functions_speaks_their_dialect(stream: bool) -> None:
    [choice] = read_whole(stream, CALL, legacy=True)["choices"]
    assert choice["message"]["function_call"] == {"name": "find", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"


@both
@pytest.mark.parametrize(
    ("details", "finish"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        (None, "length"),
    ],
)
def test_an_incomplete_response_is_an_answer_that_was_cut(stream: bool, details: Any, finish: str) -> None:
    [choice] = read_whole(stream, said("Hel"), status="incomplete", incomplete_details=details)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hel", finish)


@both
def test_a_response_without_output_says_nothing(stream: bool) -> None:
    [choice] = read_whole(stream)["choices"]
    assert choice["message"] == {"role": "assistant", "content": None}


def test_what_the_last_event_leaves_out_is_taken_from_those_before() -> None:
    reading = read(
        event("response.output_item.done", output_index=1, item=CALL),
        event("response.output_item.done", output_index=0, item=said("See.")),
        event("response.completed", response=response()),
        stream=True,
    )
    assert reading.response is not None
    [choice] = reading.response["choices"]
    assert choice["message"]["content"] == "See."
    assert [it["id"] for it in choice["message"]["tool_calls"]] == ["c1"]


def test_our_own_stream_is_read_back_whole() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": "Grüße"}'}}
    message = {"role": "assistant", "content": "Grüße, 世界 " * 50, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    completion = with_call_ids({"created": 5, "model": "m", "choices": [choice]}, "resp_" + "a" * 40)
    reading = read(*response_events(to_response(completion, {})), stream=True)
    assert reading.response is not None
    assert reading.response["choices"] == [choice]


def test_a_stream_is_over_with_its_last_event() -> None:
    reader = AnswerReader(200, "text/event-stream", stream=True, responses=ResponsesReader())
    reader.feed(event("response.created", response=response(status="in_progress")))
    assert (reader.started, reader.done) == (True, False)
    reader.feed(event("response.completed", response=response(said("Hi"))))
    assert reader.done


# What fails

FAILED = {"code": "server_error", "message": "it broke"}


@pytest.mark.parametrize(
    "last",
    [
        event("response.failed", response=response(status="failed", error=FAILED)),
        event("error", **FAILED),
        event("error", error=FAILED),
        b"data: " + json.dumps({"type": "error", **FAILED}).encode() + b"\n\n",
    ],
)
def test_a_failure_in_the_stream_is_an_error_event(last: bytes) -> None:
    first = event("response.created", response=response(status="in_progress"))
    reading = read(first, last, stream=True)
    assert (reading.finish_state, reading.response) == ("error_event", None)
    assert reading.error is not None
    assert "it broke" in reading.error


@pytest.mark.parametrize("cut", [None, LOST])
def test_a_stream_without_its_last_event_is_no_answer(cut: Failure | None) -> None:
    reading = read(
        event("response.created", response=response(status="in_progress")),
        event("response.output_item.done", output_index=0, item=said("Hello.")),
        stream=True,
        cut=cut,
    )
    assert (reading.finish_state, reading.response) == ("provider_abort", None)


def test_a_response_that_failed_is_no_answer() -> None:
    reading = read(json.dumps(response(status="failed", error=FAILED)).encode(), stream=False)
    assert reading.finish_state == "provider_error"
    assert "it broke" in str(reading.error)


def test_a_response_that_is_still_queued_is_no_answer() -> None:
    reading = read(json.dumps(response(status="queued")).encode(), stream=False)
    assert reading.finish_state == "provider_error"
    assert "queued" in str(reading.error)


def test_an_answer_in_json_to_a_request_for_a_stream_is_read_for_what_it_is() -> None:
    raw = json.dumps(response(said("Hi"))).encode()
    reader = AnswerReader(200, "application/json", stream=True, responses=ResponsesReader())
    reader.feed(raw)
    reading = reader.finish()
    assert reading.response is not None
    assert reading.response["choices"][0]["message"]["content"] == "Hi"


ODD = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, float("inf"), "", "text", "completed", "incomplete", "response"])
    | st.sampled_from(["message", "function_call", "custom_tool_call", "reasoning", "response.completed"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "output", "content", "text", "summary", "call_id", "name", "arguments"])
            | st.sampled_from(
                ["status", "object", "usage", "item", "output_index", "response", "error", "id"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(ODD, st.booleans(), st.booleans())
def test_whatever_a_provider_sends_is_read(value: Any, stream: bool, legacy: bool) -> None:
    raw = json.dumps(value).encode()
    parts = [b"data: " + raw + b"\n\n", event("response.completed", response=value)] if stream else [raw]
    reading = read(*parts, stream=stream, legacy=legacy)
    assert (reading.finish_state == "complete") is (reading.response is not None)
