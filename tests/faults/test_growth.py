"""What a stream of very many pieces costs grows with its length, and no faster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from proxy.wire.answer import AnswerReader

FEW, MANY = 2_000, 32_000


def text(number: int) -> dict[str, Any]:
    return {"content": "a piece of text " * 4}


def arguments(number: int) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"arguments": "a piece of text " * 4}}]}


def calls(number: int) -> dict[str, Any]:
    return {
        "tool_calls": [{"index": number, "id": f"c{number}", "function": {"name": "f", "arguments": "{}"}}]
    }


def named(number: int) -> dict[str, Any]:
    """As some servers do it: the name again with each piece, and no index."""
    return {
        "tool_calls": [{"function": {"name": "f", "arguments": '{"a": "' if number == 0 else "piece " * 10}}]
    }


def listed(number: int) -> dict[str, Any]:
    return {"reasoning_details": [{"text": "x"}] * 4}


def spent(delta: Callable[[int], dict[str, Any]], count: int) -> float:
    """Seconds of CPU that reading a stream of so many pieces takes."""
    wire = [
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta(number)}]}).encode() + b"\n\n"
        for number in range(count)
    ]
    began = time.thread_time()
    reader = AnswerReader(200, "text/event-stream", stream=True)
    for data in wire:
        reader.feed(data)
    reader.feed(b"data: [DONE]\n\n")
    assert reader.finish().finish_state == "complete"
    return time.thread_time() - began


@pytest.mark.parametrize("delta", [text, arguments, calls, named, listed])
def test_sixteen_times_as_many_pieces_take_not_much_more_than_sixteen_times_as_long(
    delta: Callable[[int], dict[str, Any]],
) -> None:
    few = min(spent(delta, FEW) for _ in range(2))
    assert spent(delta, MANY) < 48 * few
