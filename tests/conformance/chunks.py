"""Chat completions as a scripted provider writes them, and what an agent reads of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
MODEL = "reported-model"

_LINE_END = re.compile(rb"\r\n|\r|\n")


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {**_whole("chat.completion.chunk"), "choices": [choice], **more}


def usage_chunk() -> Json:
    return {**_whole("chat.completion.chunk"), "choices": [], "usage": USAGE}


def _whole(kind: str) -> Json:
    return {"id": "chatcmpl-conformance", "object": kind, "created": 1700000000, "model": MODEL}


def event(value: Json) -> bytes:
    """A server-sent event with JSON in UTF-8."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def text_stream(*pieces: str) -> list[bytes]:
    """A whole stream that says `pieces`, one event each."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]
    return [*(event(chunk(delta)) for delta in deltas), event(chunk({}, "stop")), DONE]


def completion(message: Json, finish: str = "stop", **more: Any) -> Json:
    """A whole answer; `message` gets the assistant's role."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {**_whole("chat.completion"), "choices": [choice], "usage": USAGE, **more}


def tool_call(name: str, arguments: str, id: str | None = None) -> Json:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if id is None else {"id": id, **call}


def cut_up(data: bytes, size: int = 1) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def events(raw: bytes) -> list[Any]:
    """The data of a stream's events, parsed; `[DONE]` is a text (WHATWG HTML, section 9.2.6)."""
    found: list[Any] = []
    data: list[bytes] = []
    for line in [*_LINE_END.split(raw), b""]:
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and data:
            text = b"\n".join(data).decode("utf-8", "replace")
            found.append(text if text == "[DONE]" else json.loads(text))
            data = []
    return found


def deltas(found: Sequence[Any]) -> list[Json]:
    """The deltas of a stream's chunks, in their order."""
    chunks = [it for it in found if isinstance(it, dict)]
    return [choice.get("delta") or {} for it in chunks for choice in it.get("choices") or ()]


def said(found: Sequence[Any]) -> str:
    """The text of a stream."""
    return "".join(delta.get("content") or "" for delta in deltas(found))


def fragments(found: Sequence[Any]) -> list[tuple[Any, ...]]:
    """(index, id, name, arguments) of each tool-call delta, what is empty as None."""
    calls = [call for delta in deltas(found) for call in delta.get("tool_calls") or ()]
    told = [(call, call.get("function") or {}) for call in calls]
    return [
        (call.get("index"), call.get("id") or None, of.get("name") or None, of.get("arguments") or None)
        for call, of in told
    ]
