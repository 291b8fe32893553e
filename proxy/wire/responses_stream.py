"""A whole Response as server-sent events, in the order that OpenAI sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from proxy.wire.responses import Body

_PIECE = 120
"""Characters of text or arguments in one event."""


def response_events(response: Body) -> Iterator[bytes]:
    """Each item is one whole event, in ASCII, so that no client can cut a character or split a line.

    Half of the clients read what comes bit by bit and half only the last event: that one has
    the whole Response again.
    """
    for number, (kind, fields) in enumerate(_events(response)):
        data = {"type": kind, "sequence_number": number, **fields}
        text = json.dumps(data, separators=(",", ":"))
        yield f"event: {kind}\ndata: {text}\n\n".encode("ascii")


Event = tuple[str, dict[str, Any]]


def _events(response: Body) -> Iterator[Event]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    begun = {**begun, "completed_at": None, "incomplete_details": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        yield "response.output_item.added", {"output_index": index, "item": _empty(item)}
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            for place, part in enumerate(item["content"]):
                yield from _part(part, {**at, "content_index": place})
        elif item["type"] == "reasoning":
            for place, part in enumerate(item["summary"]):
                yield from _summary(part, {**at, "summary_index": place})
        else:
            yield from _call(item, at)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{response['status']}", {"response": response}


def _empty(item: Body) -> Body:
    """An item as it is before anything of it has come."""
    nothing = {"content": [], "summary": [], "arguments": "", "input": ""}
    return {**item, **{key: nothing[key] for key in nothing if key in item}, "status": "in_progress"}


def _part(part: Body, at: Body) -> Iterator[Event]:
    field = "text" if part["type"] == "output_text" else "refusal"
    kind = "output_text" if part["type"] == "output_text" else "refusal"
    # Of text the log probabilities stand beside it, here as well as in the part.
    beside: Body = {"logprobs": []} if kind == "output_text" else {}
    yield "response.content_part.added", {**at, "part": {**part, field: ""}}
    for piece in _pieces(part[field]):
        yield f"response.{kind}.delta", {**at, "delta": piece, **beside}
    yield f"response.{kind}.done", {**at, field: part[field], **beside}
    yield "response.content_part.done", {**at, "part": part}


def _summary(part: Body, at: Body) -> Iterator[Event]:
    yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**at, "part": part}


def _call(item: Body, at: Body) -> Iterator[Event]:
    is_function = item["type"] == "function_call"
    field = "arguments" if is_function else "input"
    kind = "response.function_call_arguments" if is_function else "response.custom_tool_call_input"
    named = {"name": item["name"]} if is_function else {}
    for piece in _pieces(item[field]):
        yield f"{kind}.delta", {**at, "delta": piece}
    yield f"{kind}.done", {**at, field: item[field], **named}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
