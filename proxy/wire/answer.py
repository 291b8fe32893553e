"""Judge a provider's answer: is it whole, and what does it say?

Used for answers that are read to their end at once and for those that are passed on
chunk by chunk. `finish_state` is one of `proxy.log.rows.FINISH_STATES`:

- `complete`: a 2xx answer that came to its end.
- `provider_abort`: the connection broke, fell silent, or the stream ended too early.
- `error_event`: the stream reported an error.
- `provider_error`: an error status, or a body that is no answer.

`error_type` is the status as text (`"429"`), or one of the constants below.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from proxy.wire.chat import read_message
from proxy.wire.fold import Fold
from proxy.wire.responses_read import ResponsesReader
from proxy.wire.sse import Event, SSEDecoder
from scenarios.text import clip

CONNECT_FAILURE = "connect_failure"
CONNECT_TIMEOUT = "connect_timeout"
DNS_FAILURE = "dns_failure"
TLS_FAILURE = "tls_failure"
READ_TIMEOUT = "read_timeout"
CONNECTION_LOST = "connection_lost"
PROTOCOL_ERROR = "protocol_error"
"""The bytes are not HTTP, or are compressed in a way we cannot read."""
ANSWER_TOO_LONG = "answer_too_long"
STREAM_ENDED_EARLY = "stream_ended_early"
NOT_JSON = "not_json"
NOT_AN_OBJECT = "not_an_object"
NO_MESSAGE = "no_message"
"""JSON, but without `choices[0].message`."""
ERROR_BODY = "error_body"
"""Status 200 with an `error` inside."""
ERROR_EVENT = "error_event"

_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")
_KEY = re.compile(r"\b(sk|pk|rk|gsk|xai|key)-[\w-]{8,}|\bAIza[\w-]{20,}|(?i:\bbearer\s+)[\w.~+/=-]{8,}")
_MAX_ERROR = 400
_ENDS = re.compile(rb"\[DONE\]|error|\\u00")
"""What there is in every chat stream's event that ends it; an escape may hide the second."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no whole answer. `text` is one line without secrets."""

    finish_state: str
    error_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer comes to. `response` is the whole completion, None unless `complete`."""

    finish_state: str
    response: dict[str, Any] | None = None
    error_type: str | None = None
    error: str | None = None


class AnswerReader:
    """Takes an answer's bytes as they come; `finish()` says what they amount to.

    `stream`: the request asked for a stream. What came is what counts, though: plain
    JSON is read for what it is, and so is a stream that nobody asked for. `chat=False`
    is for other endpoints: any JSON, any stream, any other kind of content and none at all are
    then whole answers. `responses` reads a Response as the chat completion that says the same.
    """

    def __init__(
        self,
        status: int,
        content_type: str = "",
        *,
        stream: bool,
        chat: bool = True,
        responses: ResponsesReader | None = None,
    ) -> None:
        self.status = status
        self.raw = bytearray()
        self.started = False
        """An event with data has come (streams only)."""
        self.done = False
        """The stream has said so itself: `[DONE]` or an error event."""
        self._chat = chat
        self._responses = responses
        self._opaque = not chat and bool(content_type) and "json" not in content_type.lower()
        self._events = 200 <= status < 300 and (
            stream or content_type.lower().startswith("text/event-stream")
        )
        self._decoder = SSEDecoder()
        self._fold = Fold()
        self._failure: Failure | None = None
        self._begins: bytes = b""

    def feed(self, data: bytes) -> None:
        self.raw += data
        self._begins = self._begins or data.lstrip()[:1]
        if self._events:
            for event in self._decoder.feed(data):
                self._take(event)

    def goes_on_after(self, data: bytes) -> bool:
        """Is it plain, without reading these bytes as events, that with them the stream is not `done`?"""
        chat = self.started and not self.done and self._responses is None
        return chat and self._decoder.is_between_events and _ENDS.search(data) is None

    def finish(self, cut: Failure | None = None) -> Reading:
        """The verdict. `cut` says how the connection failed, if it did."""
        body = None if self.is_stream else self._body()
        failure = self._fault(cut, body)
        if failure is not None:
            return Reading(failure.finish_state, None, failure.error_type, failure.text)
        response = self._fold.response() if self.is_stream else body
        return Reading("complete", response if isinstance(response, dict) else None)

    @property
    def is_stream(self) -> bool:
        """What has come so far is a stream, whatever it is called."""
        return self._events and (self.started or self._begins != b"{")

    def _body(self) -> Any:
        body = parse_json(self.raw)
        return body if self._responses is None else self._responses.body(body)

    def _fault(self, cut: Failure | None, body: Any) -> Failure | None:
        if not 200 <= self.status < 300:
            return _status_failure(self.status, bytes(self.raw))
        if self.is_stream:
            return self._stream_fault(cut)
        if cut is None and not self._chat and (self._opaque or not self.raw):
            return None
        return cut or _body_fault(bytes(self.raw), body, self._chat)

    def _stream_fault(self, cut: Failure | None) -> Failure | None:
        for event in self._decoder.flush():
            # The tail of a stream that was cut inside an event is no fault of its own.
            if event.data.strip() == "[DONE]" or parse_json(event.data) is not None:
                self._take(event)
        if self._failure is not None:
            return self._failure
        if not self._chat:
            return None if self.done else cut
        if not (self.done or self._fold.finished):
            return cut or Failure(
                "provider_abort", STREAM_ENDED_EARLY, "the stream ended without finish_reason or [DONE]"
            )
        if read_message(self._fold.response()) is None:
            return Failure("provider_error", NO_MESSAGE, "the stream held no message")
        return None

    def _take(self, event: Event) -> None:
        data = event.data.strip()
        if not data or self.done:
            return
        self.started = True
        if data == "[DONE]":
            self.done = True
            return
        chunk = parse_json(data)
        if self._responses is not None:
            chunk = self._responses.chunk(chunk)
        is_error = event.event == "error"
        if is_error or (isinstance(chunk, dict) and chunk.get("error")):
            text = _error_text(chunk) or one_line(data) or "no reason given"
            self._failure = Failure("error_event", ERROR_EVENT, f"error in the stream: {text}")
            self.done = True
        elif self._chat and not isinstance(chunk, dict) and event.event in ("", "message"):
            kind = NOT_JSON if chunk is None else NOT_AN_OBJECT
            self._failure = Failure(
                "provider_error", kind, f"a chunk is no JSON object: {one_line(data, 80)}"
            )
        else:
            self._fold.add(chunk)
            self.done = self._responses is not None and self._responses.done


def read_answer(
    status: int, content_type: str, raw: bytes, *, stream: bool = False, chat: bool = True
) -> Reading:
    """Judge an answer of which all bytes are at hand."""
    reader = AnswerReader(status, content_type, stream=stream, chat=chat)
    reader.feed(raw)
    return reader.finish()


def parse_json(data: bytes | bytearray | str) -> Any:
    """The JSON value, or None for what is not JSON (and for null)."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def one_line(text: str, limit: int = _MAX_ERROR) -> str:
    """Foreign text fit for a log line: no control characters, nothing like a key, not long."""
    return clip(_KEY.sub("[masked]", _CONTROL.sub(" ", text).strip()), limit)


def _body_fault(raw: bytes, body: Any, chat: bool) -> Failure | None:
    if body is None:
        shown = one_line(raw[:200].decode("utf-8", "replace"), 80) or "nothing"
        return Failure("provider_error", NOT_JSON, f"the answer is not JSON: {shown}")
    if not isinstance(body, dict) and not chat:
        return None
    if not isinstance(body, dict):
        return Failure("provider_error", NOT_AN_OBJECT, "the answer is JSON, but not an object")
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for part in (body, first):
        if isinstance(part, dict) and part.get("error"):
            return Failure("provider_error", ERROR_BODY, f"error in the answer: {_error_text(part)}")
    if chat and read_message(body) is None:
        return Failure("provider_error", NO_MESSAGE, "the answer has no choices[0].message")
    return None


def _status_failure(status: int, raw: bytes) -> Failure:
    text = _error_text(parse_json(raw)) or one_line(raw[:1000].decode("utf-8", "replace"), 200)
    if 300 <= status < 400:
        text = "a redirect, which is not followed: use the address it leads to as provider URL"
    return Failure("provider_error", str(status), f"HTTP {status}: {text}" if text else f"HTTP {status}")


def _error_text(body: object) -> str:
    """The message of an error body, wherever a provider puts it."""
    for key in ("error", "message", "detail", "msg"):
        if isinstance(body, dict) and body.get(key):
            body = body[key]
    if isinstance(body, str):
        return one_line(body)
    return one_line(json.dumps(body, ensure_ascii=False)) if body else ""
