"""Whatever a provider answers, in whatever pieces: it is read and judged, and nothing is raised."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.anything import changed, damaged, json_values
from support.examples import examples

from proxy.log.rows import FINISH_STATES
from proxy.wire.answer import AnswerReader, Reading
from proxy.wire.chat import (
    DONE,
    completion,
    dump_json,
    read_message,
    reply_of,
    stream_events,
    summary,
    usage_of,
)
from proxy.wire.responses import own_id, with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_read import ResponsesReader
from proxy.wire.responses_stream import response_events
from proxy.wire.sse import Event, SSEDecoder
from scenarios.types import ToolCall

KEYS = st.sampled_from(
    [
        *(
            "id",
            "object",
            "created",
            "model",
            "choices",
            "usage",
            "error",
            "index",
            "delta",
            "message",
            "role",
        ),
        *("finish_reason", "logprobs", "content", "refusal", "reasoning_content", "reasoning", "thinking"),
        *("tool_calls", "function_call", "function", "custom", "name", "arguments", "input", "type", "text"),
        *("prompt_tokens", "completion_tokens", "detail", "output", "output_index", "item", "response"),
        *("status", "call_id", "summary", "code", "stop", "tool_calls", "completed", "response.completed"),
        *("response.output_item.done", "function_call", "custom_tool_call"),
    ]
)
VALUES = json_values(KEYS)

LEAVES = st.sampled_from(
    [None, 0, 1, "", "a", "stop", [], ["a"], {}, {"a": 1}, {"a": ["b"]}, {"text": "t"}, True]
)


def shaped(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object that may have these keys, or now and then something else altogether."""
    whole = st.fixed_dictionaries({}, optional=parts)
    return st.integers(0, 9).flatmap(lambda it: whole if it else LEAVES)


FUNCTION = shaped(name=LEAVES, arguments=LEAVES)
CALL = shaped(
    index=LEAVES, id=LEAVES, type=LEAVES, function=FUNCTION, custom=shaped(name=LEAVES, input=LEAVES)
)
MESSAGE = shaped(
    role=LEAVES,
    content=LEAVES,
    reasoning_content=LEAVES,
    refusal=LEAVES,
    tool_calls=st.lists(CALL, max_size=3) | CALL,
    function_call=FUNCTION,
)
CHOICE = shaped(
    index=LEAVES,
    finish_reason=LEAVES,
    delta=MESSAGE,
    message=MESSAGE,
    logprobs=shaped(content=LEAVES, refusal=LEAVES),
    error=LEAVES,
)
COMPLETION = shaped(id=LEAVES, model=LEAVES, choices=st.lists(CHOICE, max_size=3) | CHOICE, usage=LEAVES)
"""Keys at their places, with values of the wrong kind, which come together more often than by chance."""

CALLS = [ToolCall("call_a", "find", '{"q": "\u2028 é"}'), ToolCall("call_b", "now", "")]
WHOLE = completion(id="c", created=1, model="m", content="Hi:\n\u2028 你好", calls=CALLS, usage=(8, 9))
CHUNKS = [json.loads(it.removeprefix(b"data: ")) for it in stream_events(WHOLE, True) if it != DONE]
RESPONSE = to_response(with_call_ids(WHOLE, "resp_1"), {})
EVENTS = [json.loads(it.split(b"data: ")[1]) for it in response_events(RESPONSE)]
KINDS = st.sampled_from(["chat", "responses", "other"])


def reader_of(kind: str, *, stream: bool, status: int = 200, content_type: str = "") -> AnswerReader:
    responses = ResponsesReader() if kind == "responses" else None
    return AnswerReader(status, content_type, stream=stream, chat=kind == "chat", responses=responses)


def check(reading: Reading, kind: str) -> None:
    """The verdict is one that the log knows, and what is whole can be read and written by all who follow."""
    assert reading.finish_state in FINISH_STATES
    whole = reading.finish_state == "complete"
    assert (reading.error_type is None, reading.error is None) == (whole, whole)
    assert whole or (reading.response is None and len(str(reading.error).splitlines()) == 1)
    summary(reading.response)
    usage_of(reading.response)
    message = read_message(reading.response)
    reply_of(message)
    if reading.response is None or kind != "chat":
        return
    assert message is not None
    dump_json(reading.response)
    b"".join(stream_events(reading.response, include_usage=True))
    response_id = own_id("scope", reading.response)
    response = to_response(with_call_ids({**reading.response, "id": response_id}, response_id), {})
    b"".join(response_events(response))


# Server-sent events

ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@st.composite
def events(draw: st.DrawFn) -> tuple[list[Event], list[str], bytes]:
    """Events, comments, and one of the ways to write them (WHATWG HTML, section 9.2.6)."""
    text = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=6)
    told: list[Event] = []
    comments: list[str] = []
    last_id, wire = "", draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    for _ in range(draw(st.integers(0, 4))):
        data = draw(st.lists(text, max_size=3))
        name = draw(st.sampled_from(["", "error", "message"]))
        lines = [draw(st.sampled_from(["data: ", "data:"])) + line if line else "data" for line in data]
        if name:
            lines.insert(draw(st.integers(0, len(lines))), f"event: {name}")
        if draw(st.booleans()):
            last_id = draw(text.filter(lambda it: "\0" not in it and not it.startswith(" ")))
            lines.insert(draw(st.integers(0, len(lines))), f"id: {last_id}")
        if draw(st.booleans()):
            comments.append(draw(text.filter(lambda it: not it.startswith(" "))))
            lines.insert(draw(st.integers(0, len(lines))), f": {comments[-1]}")
        if draw(st.booleans()):
            lines.insert(
                draw(st.integers(0, len(lines))), draw(st.sampled_from(["retry: 5", "other", "x: y"]))
            )
        for line in (*lines, ""):
            # CR and LF with nothing between them would be one end of line.
            ends = ENDS if line or not wire.endswith(b"\r") else st.sampled_from([b"\r", b"\r\n"])
            wire += line.encode() + draw(ends)
        if data:
            told.append(Event("\n".join(_read(line) for line in lines if _is_data(line)), name, last_id))
    return told, comments, wire


def _is_data(line: str) -> bool:
    return line == "data" or line.startswith("data:")


def _read(line: str) -> str:
    return line.removeprefix("data").removeprefix(":").removeprefix(" ")


@examples(30)
@given(events(), st.data())
def test_events_are_read_by_the_standard_however_their_bytes_are_cut(
    written: tuple[list[Event], list[str], bytes], data: st.DataObject
) -> None:
    told, comments, wire = written
    for pieces in (*cuts_in_two(wire), cut(wire, data)):
        decoder = SSEDecoder()
        found = [event for piece in pieces for event in decoder.feed(piece)]
        assert (found + decoder.flush(), decoder.comments) == (told, comments)


def cuts_in_two(wire: bytes) -> list[list[bytes]]:
    return [[wire[:at], wire[at:]] for at in range(len(wire) + 1)]


def cut(wire: bytes, data: st.DataObject) -> list[bytes]:
    places = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    return [wire[a:b] for a, b in zip([0, *places], [*places, len(wire)], strict=True)]


# Streams


@st.composite
def written(draw: st.DrawFn, values: list[Any]) -> bytes:
    """A stream of these JSON values, each in one of the ways in which it can be written."""
    wire = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b": hello\r\n\r\n"]))
    for value in values:
        end = draw(ENDS)
        layout = draw(st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}]))
        text = value if isinstance(value, str) else json.dumps(value, **layout)
        lines = [b"data: " + line.encode("utf-8", "surrogatepass") for line in text.split("\n")]
        if isinstance(value, dict) and isinstance(value.get("type"), str) and draw(st.booleans()):
            lines.insert(0, b"event: " + value["type"].encode("utf-8", "replace"))
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from([b": ping", b"id: 7", b"retry: 1", b"foo"])))
        wire += end.join((*lines, b"", b""))
    return wire


@examples(30)
@given(written([*CHUNKS, "[DONE]"]), st.data())
def test_a_stream_says_the_same_however_its_bytes_are_cut(wire: bytes, data: st.DataObject) -> None:
    reader = reader_of("chat", stream=True)
    for piece in cut(wire, data):
        reader.feed(piece)
    assert reader.finish() == Reading("complete", WHOLE)


@examples(30)
@given(written(EVENTS), st.data())
def test_a_stream_of_the_responses_api_says_the_same_however_its_bytes_are_cut(
    wire: bytes, data: st.DataObject
) -> None:
    whole = reader_of("responses", stream=False)
    whole.feed(json.dumps(RESPONSE).encode())
    reader = reader_of("responses", stream=True)
    for piece in cut(wire, data):
        reader.feed(piece)
    found, expected = reader.finish(), whole.finish()
    assert found.finish_state == expected.finish_state == "complete"
    assert read_message(found.response) == read_message(expected.response)


FRAGMENTS = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\n\n",
        b"data: ",
        b"event: error\n",
        b"[DONE]",
        b"\xff",
        b"\x00",
        b"{",
        b"}",
        b"null",
        b"NaN",
    ]
)
STREAMS = (
    st.lists(st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2)}), max_size=6).flatmap(written)
    | st.lists(COMPLETION, max_size=5).flatmap(written)
    | st.lists(VALUES, max_size=3).flatmap(written)
    | changed(CHUNKS, VALUES, KEYS).map(lambda it: it if isinstance(it, list) else [it]).flatmap(written)
    | changed(EVENTS, VALUES, KEYS).map(lambda it: it if isinstance(it, list) else [it]).flatmap(written)
    | damaged(b"".join(stream_events(WHOLE, True)), FRAGMENTS)
    | damaged(b"".join(response_events(RESPONSE)), FRAGMENTS)
    | st.binary()
)


@examples(80, large=True)
@given(STREAMS, KINDS, st.data())
def test_any_stream_is_an_answer_or_a_named_failure(wire: bytes, kind: str, data: st.DataObject) -> None:
    reader, other = (reader_of(kind, stream=True) for _ in "ab")
    reader.feed(wire)
    for piece in cut(wire, data):
        other.feed(piece)
    reading = reader.finish()
    check(reading, kind)
    # NaN equals nothing, itself included.
    assert repr(other.finish()) == repr(reading)


BODIES = (
    (COMPLETION | VALUES | changed(WHOLE, VALUES, KEYS) | changed(RESPONSE, VALUES, KEYS)).map(
        lambda it: json.dumps(it).encode()
    )
    | damaged(dump_json(WHOLE), FRAGMENTS)
    | st.binary()
)
TYPES = st.sampled_from(["", "application/json", "text/event-stream", "text/html; charset=latin-1", "\udcff"])


@examples(80, large=True)
@given(BODIES, KINDS, st.booleans(), st.sampled_from([200, 201, 204, 302, 400, 429, 500, 999]), TYPES)
def test_any_body_is_an_answer_or_a_named_failure(
    raw: bytes, kind: str, stream: bool, status: int, content_type: str
) -> None:
    reader = reader_of(kind, stream=stream, status=status, content_type=content_type)
    reader.feed(raw)
    check(reader.finish(), kind)
