from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.answer import AnswerReader, Failure, Reading, one_line, read_answer
from proxy.wire.chat import completion, stream_events

WHOLE = completion(id="c", created=1, model="m", content="hi", usage=(1, 2))
CUT = Failure("provider_abort", "connection_lost", "cut")


def sse(*data: Any) -> bytes:
    texts = [item if isinstance(item, str) else json.dumps(item) for item in data]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def stream(raw: bytes, cut: Failure | None = None) -> Reading:
    reader = AnswerReader(200, "text/event-stream", stream=True)
    reader.feed(raw)
    return reader.finish(cut)


def verdict(result: Reading) -> tuple[str, str | None, str | None]:
    assert (result.response is not None) == (result.finish_state == "complete")
    return result.finish_state, result.error_type, result.error


def test_a_whole_body_is_complete():
    raw = json.dumps(WHOLE).encode()
    assert read_answer(200, "application/json", raw) == Reading("complete", WHOLE)


def test_a_whole_stream_is_complete():
    raw = b"".join(stream_events(WHOLE, True))
    assert read_answer(200, "text/event-stream", raw, stream=True) == Reading("complete", WHOLE)


def test_what_came_counts_not_what_was_asked():
    body, events = json.dumps(WHOLE, indent=1).encode(), b"".join(stream_events(WHOLE, True))
    assert read_answer(200, "application/json", b"\n" + body, stream=True) == Reading("complete", WHOLE)
    assert read_answer(200, "text/event-stream; charset=utf-8", events) == Reading("complete", WHOLE)
    assert read_answer(200, "text/plain", events, stream=True) == Reading("complete", WHOLE)


def test_a_stream_is_complete_with_finish_reason_or_done_and_not_otherwise():
    early = "the stream ended without finish_reason or [DONE]"
    assert verdict(stream(sse(chunk(content="a"), chunk("stop"), "[DONE]"))) == ("complete", None, None)
    assert verdict(stream(sse(chunk(content="a"), chunk("stop")))) == ("complete", None, None)
    assert verdict(stream(sse(chunk(content="a"), "[DONE]"))) == ("complete", None, None)
    assert verdict(stream(sse(chunk(content="a")))) == ("provider_abort", "stream_ended_early", early)
    assert verdict(stream(b"")) == ("provider_abort", "stream_ended_early", early)
    assert verdict(stream(b": ping\n\n")) == ("provider_abort", "stream_ended_early", early)


ENDS = (
    sse("[DONE]"),
    b"event: error\ndata: {}\n\n",
    sse({"error": {"message": "no"}}),
    b'data: {"\\u0065rror": 1}\n\n',
)
GOES_ON = (
    sse(chunk(content="a")),
    b": waiting\n\n",
    b"event: message\n",
    b"data: [DO\n",
    b"data: NE]\n\n",
    b"\n",
    b"\r\n\r\n",
)


@given(st.lists(st.sampled_from([*ENDS, *GOES_ON]), max_size=6), st.lists(st.integers(0, 200)))
def test_a_stream_that_is_said_to_go_on_after_some_bytes_is_not_done_by_them(
    parts: list[bytes], cuts: list[int]
):
    raw = b"".join([sse(chunk(content="the first")), *parts])
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    reader = AnswerReader(200, "text/event-stream", stream=True)
    for begin, end in itertools.pairwise(places):
        goes_on = reader.goes_on_after(raw[begin:end])
        reader.feed(raw[begin:end])
        assert not (goes_on and reader.done)


def test_a_stream_is_said_to_go_on_after_whole_events_that_do_not_end_it():
    reader = AnswerReader(200, "text/event-stream", stream=True)
    reader.feed(sse(chunk(content="a")))
    assert reader.goes_on_after(sse(chunk(content="b"), chunk("stop")))
    assert not reader.goes_on_after(sse(chunk(content="b"), "[DONE]"))
    reader.feed(b"data: [DO")
    assert not reader.goes_on_after(b"NE]\n\n")


def test_a_cut_after_the_end_takes_nothing_away():
    assert verdict(stream(sse(chunk("stop", content="a")), CUT)) == ("complete", None, None)
    assert verdict(stream(sse(chunk(content="a"), "[DONE]"), CUT)) == ("complete", None, None)


def test_a_cut_before_the_end_is_an_abort():
    assert verdict(stream(sse(chunk(content="a")) + b'data: {"cho', CUT)) == (
        "provider_abort",
        "connection_lost",
        "cut",
    )
    reader = AnswerReader(200, stream=False)
    reader.feed(b'{"id":')
    assert verdict(reader.finish(CUT)) == ("provider_abort", "connection_lost", "cut")


def test_the_last_event_may_lack_its_blank_line():
    raw = sse(chunk(content="a")) + b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    assert verdict(stream(raw)) == ("complete", None, None)
    assert verdict(stream(sse(chunk(content="a")) + b"data: [DONE]")) == ("complete", None, None)


def test_a_stream_that_ends_inside_an_event_is_an_abort_not_bad_json():
    assert stream(sse(chunk(content="a")) + b'data: {"cho').error_type == "stream_ended_early"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (sse(chunk(content="a"), {"error": {"message": "overloaded", "type": "x"}}, "[DONE]"), "overloaded"),
        (b'event: error\ndata: {"message": "overloaded"}\n\n', "overloaded"),
        (b"event: error\ndata: overloaded\n\n", "overloaded"),
        (sse({"error": "overloaded"}), "overloaded"),
        (sse({"error": {"code": 7}}), '{"code": 7}'),
    ],
)
def test_an_error_in_the_stream_is_an_error_event(raw: bytes, text: str):
    assert verdict(stream(raw)) == ("error_event", "error_event", f"error in the stream: {text}")


def test_an_error_field_that_is_null_is_no_error():
    raw = sse({**chunk("stop", content="a"), "error": None}, "[DONE]")
    assert verdict(stream(raw)) == ("complete", None, None)
    body = json.dumps({**WHOLE, "error": None}).encode()
    assert verdict(read_answer(200, "", body)) == ("complete", None, None)


def test_a_chunk_that_is_no_json_object_is_a_provider_error():
    assert verdict(stream(sse("<html>", "[DONE]"))) == (
        "provider_error", "not_json", "a chunk is no JSON object: <html>"
    )  # fmt: skip
    assert stream(sse("[1]", "[DONE]")).error_type == "not_an_object"


def test_events_of_other_names_and_empty_ones_are_passed_over():
    raw = b"event: ping\ndata: now\n\nid: 1\ndata:\n\n" + sse(chunk("stop", content="a"), "[DONE]")
    assert verdict(stream(raw)) == ("complete", None, None)


def test_a_stream_without_any_message_is_a_provider_error():
    assert stream(sse("[DONE]")).error_type == "no_message"


@pytest.mark.parametrize(
    ("raw", "error_type", "text"),
    [
        (b"", "not_json", "the answer is not JSON: nothing"),
        (b"<html>\n<b>", "not_json", "the answer is not JSON: <html> <b>"),
        (b"\xff\xfe", "not_json", "the answer is not JSON: \ufffd\ufffd"),
        (b"[" * 100_000, "not_json", "the answer is not JSON: " + "[" * 77 + "..."),
        (b"[1]", "not_an_object", "the answer is JSON, but not an object"),
        (b'{"error": {"message": "no"}}', "error_body", "error in the answer: no"),
        (
            b'{"choices": [{"error": {"code": 502}, "message": {}}]}',
            "error_body",
            'error in the answer: {"code": 502}',
        ),
        (b'{"choices": []}', "no_message", "the answer has no choices[0].message"),
        (b'{"id": "x"}', "no_message", "the answer has no choices[0].message"),
    ],
)
def test_a_body_that_is_no_completion_is_a_provider_error(raw: bytes, error_type: str, text: str):
    assert verdict(read_answer(200, "application/json", raw)) == ("provider_error", error_type, text)


@pytest.mark.parametrize(
    ("status", "raw", "text"),
    [
        (429, b'{"error": {"message": "slow\\ndown", "type": "x"}}', "HTTP 429: slow down"),
        (400, b'{"detail": [{"loc": "body"}]}', 'HTTP 400: [{"loc": "body"}]'),
        (400, b'{"message": "no"}', "HTTP 400: no"),
        (502, b"<html>Bad gateway</html>", "HTTP 502: <html>Bad gateway</html>"),
        (500, b"", "HTTP 500"),
        (
            307,
            b"moved",
            "HTTP 307: a redirect, which is not followed: use the address it leads to as provider URL",
        ),
    ],
)
def test_an_error_status_is_a_provider_error_named_after_it(status: int, raw: bytes, text: str):
    assert verdict(read_answer(status, "", raw, stream=True)) == ("provider_error", str(status), text)


def test_other_endpoints_may_answer_any_object_and_any_stream():
    assert read_answer(200, "", b'{"data": []}', chat=False) == Reading("complete", {"data": []})
    events = b'event: response.completed\ndata: {"type": "response.completed"}\n\n'
    assert read_answer(200, "text/event-stream", events, chat=False).finish_state == "complete"
    reader = AnswerReader(200, "text/event-stream", stream=True, chat=False)
    reader.feed(events)
    assert reader.finish(CUT).finish_state == "provider_abort"


def test_big_integers_and_nan_in_an_answer_survive():
    raw = b'{"choices": [{"message": {"content": "a", "big": 1180591620717411303424}}]}'
    response = read_answer(200, "", raw).response
    assert response is not None
    assert response["choices"][0]["message"]["big"] == 2**70


def test_foreign_text_becomes_one_short_line_without_keys_or_escape_sequences():
    assert one_line("a\r\n\x1b[31mb\u2028c\x9bd") == "a [31mb c d"
    assert (
        one_line("Incorrect key sk-proj-abcdef123456, Bearer abcdefgh12345")
        == "Incorrect key [masked], [masked]"
    )
    assert one_line("x" * 500) == "x" * 397 + "..."
