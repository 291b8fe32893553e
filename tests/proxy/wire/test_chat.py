from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from proxy.wire.chat import (
    DONE,
    Fold,
    Summary,
    completion,
    dump_json,
    read_message,
    reply_of,
    stream_events,
    summary,
    usage_of,
)
from proxy.wire.sse import SSEDecoder
from scenarios.types import ToolCall

TEXT = st.text(max_size=400)
CALL = st.builds(
    lambda id, name, arguments: {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    },
    st.uuids().map(lambda uuid: f"call_{uuid.hex}"),
    st.text(min_size=1, max_size=20),
    TEXT,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT)}
    for field in ("reasoning_content", "reasoning", "refusal"):
        text = draw(st.none() | st.text(min_size=1, max_size=300))
        if text is not None:
            message[field] = text
    calls = draw(st.lists(CALL, max_size=4))
    if calls:
        message["tool_calls"] = calls
    elif draw(st.booleans()):
        message["function_call"] = {"name": draw(st.text(min_size=1)), "arguments": draw(TEXT)}
    return message


@st.composite
def responses(draw: st.DrawFn) -> dict[str, Any]:
    reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "function_call"])
    bodies = draw(st.lists(messages(), min_size=1, max_size=3))
    choices = [
        {"index": i, "message": message, "finish_reason": draw(reasons)} for i, message in enumerate(bodies)
    ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }


@given(responses(), st.integers(1, 50))
def test_a_rendered_stream_folds_back_to_the_completion_it_came_from(response: dict[str, Any], piece: int):
    wire = b"".join(stream_events(response, include_usage=True))
    decoder, fold = SSEDecoder(), Fold()
    events = [e for at in range(0, len(wire), piece) for e in decoder.feed(wire[at : at + piece])]
    assert events.pop().data == "[DONE]"
    for event in events:
        fold.add(json.loads(event.data))
    assert fold.finished
    assert fold.response() == response


def chunks_of(response: dict[str, Any], include_usage: bool = False) -> list[Any]:
    events = list(stream_events(response, include_usage))
    assert events.pop() == DONE
    return [json.loads(event.removeprefix(b"data: ")) for event in events]


def test_a_stream_has_role_text_call_heads_arguments_finish_usage_in_this_order():
    long = "x" * 150
    response = completion(
        id="c",
        created=1,
        model="m",
        content="é" * 130,
        calls=[ToolCall("call_a", "one", long), ToolCall("call_b", "two", "")],
        usage=(8, 9),
    )
    chunks = chunks_of(response, include_usage=True)
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    assert all({key: chunk[key] for key in head} == head for chunk in chunks)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "é" * 120},
        {"content": "é" * 10},
        {"tool_calls": [
            {"index": 0, "id": "call_a", "type": "function", "function": {"name": "one", "arguments": ""}}
        ]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 120}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 30}}]},
        {"tool_calls": [
            {"index": 1, "id": "call_b", "type": "function", "function": {"name": "two", "arguments": ""}}
        ]},
        {},
    ]  # fmt: skip
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * 7 + ["tool_calls"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 8, "completion_tokens": 9, "total_tokens": 17}


def test_the_usage_chunk_is_sent_only_if_asked_for():
    response = completion(id="c", created=1, model="m", content="hi")
    assert not any("usage" in chunk for chunk in chunks_of(response))


def test_a_rendered_stream_is_ascii_and_survives_splitting_at_unicode_line_ends():
    response = completion(id="c", created=1, model="m", content="a\u2028b\u0085c\ud800你😀")
    wire = b"".join(stream_events(response, False))
    text = wire.decode("ascii")
    assert text.splitlines() == text.split("\n")[:-1]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks_of(response)) == (
        "a\u2028b\u0085c\ud800你😀"
    )


def test_a_completion_without_finish_reason_is_given_one():
    response = completion(id="c", created=1, model="m", content="hi")
    response["choices"][0]["finish_reason"] = None
    assert chunks_of(response)[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "choices",
    [None, [], [None], [{}], [{"message": None}], [{"message": {"tool_calls": [None, {"function": 3}]}}],
     [{"message": {"content": [{"type": "text", "text": "hi"}], "tool_calls": {}}}]],
)  # fmt: skip
def test_malformed_completions_are_rendered_without_raising(choices: Any):
    chunks_of({"choices": choices})


def test_arguments_that_are_an_object_are_rendered_as_text():
    message = {"tool_calls": [{"id": "a", "function": {"name": "one", "arguments": {"x": "é"}}}]}
    deltas = [c["choices"][0]["delta"] for c in chunks_of({"choices": [{"message": message}]})]
    assert deltas[2] == {"tool_calls": [{"index": 0, "function": {"arguments": '{"x": "é"}'}}]}


def test_a_completion_of_our_own_is_whole():
    assert completion(
        id="c", created=1, model="m", calls=[ToolCall("a", "one", None), ToolCall("b", "two", {"x": 1})]
    ) == {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "one", "arguments": ""}},
                        {"id": "b", "type": "function", "function": {"name": "two", "arguments": '{"x": 1}'}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def test_a_message_is_read_as_the_scorer_reads_it():
    call = {"id": "a", "function": {"name": "f", "arguments": "{"}}
    assert reply_of({"content": ["hi"], "tool_calls": [call]}) == ("hi", (ToolCall("a", "f", "{"),))
    assert reply_of({"content": "hi", "tool_calls": {"x": 1}}) == ("hi", (ToolCall(None, "", {"x": 1}),))
    assert reply_of("text") == (None, ())


@pytest.mark.parametrize(
    "response",
    [None, [], {}, {"choices": []}, {"choices": {}}, {"choices": [1]}, {"choices": [{"message": "x"}]}],
)
def test_a_response_without_message_has_none(response: Any):
    assert read_message(response) is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 4)),
        ({"input_tokens": 3, "output_tokens": 4}, (3, 4)),
        ({"prompt_tokens": "3", "completion_tokens": True}, (None, None)),
        (None, (None, None)),
        ([], (None, None)),
    ],
)
def test_usage_is_read_where_it_is_a_count(usage: Any, tokens: Any):
    assert usage_of({"usage": usage}) == tokens


def test_a_summary_has_what_the_log_columns_need():
    response = completion(id="c", created=1, model="m", content="hi", usage=(1, 2))
    assert summary(response) == Summary("c", "m", ("stop",), 1, 2)
    assert summary({"id": 3, "choices": [None, {"finish_reason": None}]}) == Summary()
    assert summary(None) == Summary()


def test_json_keeps_big_integers_nan_and_lone_surrogates():
    value = {"n": 2**70, "x": float("nan"), "s": "\ud800", "t": "é"}
    assert dump_json(value) == b'{"n":1180591620717411303424,"x":NaN,"s":"\\ud800","t":"\\u00e9"}'
    assert dump_json({"t": "é"}) == '{"t":"é"}'.encode()


WHOLE = completion(
    id="chatcmpl-9",
    created=1700000000,
    model="m",
    content="Looking: \u2028 你好 😀 " * 30,
    calls=[ToolCall("call_a", "search", json.dumps({"q": "x" * 500})), ToolCall("call_b", "now", "{}")],
    usage=(11, 22),
)
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def same_as_whole(message: Any) -> bool:
    calls = [(c.id, c.type, c.function.name, c.function.arguments) for c in message.tool_calls]
    expected = WHOLE["choices"][0]["message"]
    return message.content == expected["content"] and calls == [
        (c["id"], c["type"], c["function"]["name"], c["function"]["arguments"])
        for c in expected["tool_calls"]
    ]


async def test_the_openai_sdk_reads_a_rendered_stream(provider: Any):
    provider.stream(list(stream_events(WHOLE, True)))
    async with AsyncOpenAI(base_url=provider.url, api_key="k", max_retries=0) as client:
        stream = await client.chat.completions.create(
            **ASK, stream=True, stream_options={"include_usage": True}
        )
        fold = Fold()
        async for chunk in stream:
            fold.add(chunk.model_dump(exclude_unset=True))
    assert fold.response() == WHOLE


async def test_the_stream_helper_of_the_openai_sdk_reads_a_rendered_stream(provider: Any):
    provider.stream(list(stream_events(WHOLE, True)))
    async with (
        AsyncOpenAI(base_url=provider.url, api_key="k", max_retries=0) as client,
        client.chat.completions.stream(**ASK, stream_options={"include_usage": True}) as stream,
    ):
        final = await stream.get_final_completion()
    assert same_as_whole(final.choices[0].message)
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.usage is not None
    assert (final.usage.prompt_tokens, final.usage.completion_tokens) == (11, 22)


async def test_the_openai_sdk_reads_a_completion_of_our_own(provider: Any):
    provider.json(WHOLE)
    async with AsyncOpenAI(base_url=provider.url, api_key="k", max_retries=0) as client:
        whole = await client.chat.completions.create(**ASK)
    assert same_as_whole(whole.choices[0].message)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"x": float("nan"), "y": None}, b'{"x":NaN,"y":null}'),
        ([float("inf"), -float("inf")], b"[Infinity,-Infinity]"),
        ({"n": -(2**63) - 1, "m": 2**64}, b'{"n":-9223372036854775809,"m":18446744073709551616}'),
        ({"s": "\ud800", "t": "é"}, b'{"s":"\\ud800","t":"\\u00e9"}'),
        ({"a": None, "b": 1.0, "c": -0.0, "d": True}, b'{"a":null,"b":1.0,"c":-0.0,"d":true}'),
    ],
)
def test_json_is_written_without_loss_whatever_is_in_it(value: object, text: bytes) -> None:
    assert dump_json(value) == text


def test_json_that_is_nested_deeply_is_written() -> None:
    value: list[object] = []
    for _ in range(400):
        value = [value]
    assert dump_json(value) == b"[" * 401 + b"]" * 401
