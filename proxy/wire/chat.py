"""Chat completions: read them, make our own, and render a whole one as a stream.

Reading never raises: providers and agents send any JSON. `Fold`, the way back from a
stream to a whole completion, is in `proxy.wire.fold` and given here too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from proxy.wire.fold import TEXT_FIELDS, Fold
from scenarios.replies import join_text, read_call, read_reply
from scenarios.types import ToolCall

__all__ = [
    "DONE",
    "Fold",
    "Summary",
    "completion",
    "dump_json",
    "read_message",
    "reply_of",
    "stream_events",
    "summary",
    "usage_of",
]

DONE = b"data: [DONE]\n\n"
_PIECE = 120
"""Characters of text or arguments in one chunk of a rendered stream."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What the log's columns say about a completion; None or () where it does not tell."""

    response_id: str | None = None
    response_model: str | None = None
    finish_reasons: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None


def dump_json(value: object) -> bytes:
    """JSON in UTF-8 that loses nothing: big integers, NaN and lone surrogates survive.

    By orjson, at a third of the cost, where what it wrote says the same: of NaN, without a word, it makes
    `null`; all else that it cannot write it refuses.
    """
    with suppress(TypeError):
        text = orjson.dumps(value)
        if b"null" not in text or orjson.loads(text) == value:
            return text
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


# Reading


def read_message(response: object) -> dict[str, Any] | None:
    """`choices[0].message`, or None where there is none."""
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def reply_of(message: object) -> tuple[str | None, tuple[ToolCall, ...]]:
    """Text and tool calls of an assistant message, as `scenarios.replies.read_reply` reads it."""
    reply = read_reply(message)
    return reply.content, reply.calls


def usage_of(response: object) -> tuple[int | None, int | None]:
    """Input and output tokens as the provider counted them."""
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return None, None
    return (
        _count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        _count(usage.get("completion_tokens", usage.get("output_tokens"))),
    )


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        return None
    return value


def summary(response: object) -> Summary:
    """What the log's columns say about a completion (or any answer; most is then None)."""
    if not isinstance(response, dict):
        return Summary()
    choices = response.get("choices")
    entries = choices if isinstance(choices, list) else []
    reasons = [choice.get("finish_reason") for choice in entries if isinstance(choice, dict)]
    id, model = response.get("id"), response.get("model")
    input_tokens, output_tokens = usage_of(response)
    return Summary(
        response_id=id if isinstance(id, str) and id else None,
        response_model=model if isinstance(model, str) and model else None,
        finish_reasons=tuple(reason for reason in reasons if isinstance(reason, str)),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


# Making


def completion(
    *,
    id: str,
    created: int,
    model: str,
    content: str | None = None,
    calls: Sequence[ToolCall] = (),
    finish_reason: str | None = None,
    usage: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """A whole `chat.completion` of our own with one choice.

    `created` is in Unix seconds; `usage` is (input, output) tokens, always sent because
    some clients cannot do without. `finish_reason` follows from the calls if not given.
    """
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _argument_text(call.arguments)},
            }
            for call in calls
        ]
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": finish_reason or ("tool_calls" if calls else "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        },
    }


def _argument_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


# Rendering


def stream_events(response: dict[str, Any], include_usage: bool) -> Iterator[bytes]:
    """A whole completion as server-sent events, in the order every client is known to read.

    Role chunk, text in pieces, for each call a head (index, id, type, name) and its
    arguments in pieces, finish chunk, usage chunk if asked for, `[DONE]`. Each item is
    one whole event, in ASCII, so that no client can cut a character or split a line.
    """
    base = {"id": "", "created": 0, "model": "", **_scalars(response)}
    base["object"] = "chat.completion.chunk"
    choices = response.get("choices")
    for position, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, dict):
            continue
        index = choice.get("index", position)
        for delta in _deltas(choice.get("message")):
            yield _event({**base, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        yield _event({**base, "choices": [{"index": index, "delta": {}, **_ending(choice)}]})
    if include_usage and isinstance(response.get("usage"), dict):
        yield _event({**base, "choices": [], "usage": response["usage"]})
    yield DONE


def _scalars(value: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if v is not None and not isinstance(v, (dict, list))}


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode("ascii") + b"\n\n"


def _ending(choice: dict[str, Any]) -> dict[str, Any]:
    ending = {key: value for key, value in choice.items() if key not in ("index", "message")}
    _, calls = reply_of(choice.get("message"))
    ending["finish_reason"] = choice.get("finish_reason") or ("tool_calls" if calls else "stop")
    return ending


def _deltas(message: object) -> Iterator[dict[str, Any]]:
    message = message if isinstance(message, dict) else {}
    content = message.get("content")
    texts = {**message, "content": join_text(content) if isinstance(content, list) else content}
    apart = {"tool_calls", "function_call", *TEXT_FIELDS}
    head = {key: value for key, value in message.items() if key not in apart and value is not None}
    has_text = isinstance(texts["content"], str)
    yield {**head, "role": message.get("role") or "assistant", "content": "" if has_text else None}
    for field in sorted(TEXT_FIELDS, key=lambda field: not field.startswith(("reasoning", "thinking"))):
        if isinstance(texts.get(field), str):
            yield from ({field: piece} for piece in _pieces(texts[field]))
    entries = message.get("tool_calls")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        yield from ({"tool_calls": [part]} for part in _call_parts(index, entry))
    if isinstance(message.get("function_call"), dict):
        for part in _call_parts(0, {"function": message["function_call"]}):
            yield {"function_call": part["function"]}


def _call_parts(index: int, entry: object) -> Iterator[dict[str, Any]]:
    call = read_call(entry)
    entry = entry if isinstance(entry, dict) else {}
    function = entry.get("function")
    named = {**(function if isinstance(function, dict) else {}), "name": call.name, "arguments": ""}
    head = {"type": "function", **entry, "index": index, "function": named}
    yield head
    for piece in _pieces(_argument_text(call.arguments)):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
