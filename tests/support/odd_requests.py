"""Strategies for what agents may ask over both APIs: sound, changed, or anything."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from support import scenes
from support.anything import changed, damaged, json_values

KEYS = st.sampled_from(
    [
        *("model", "messages", "stream", "stream_options", "include_usage", "tools", "tool_choice"),
        *("functions", "function_call", "response_format", "stop", "n", "metadata", "parallel_tool_calls"),
        *("user", "store", "role", "content", "tool_calls", "tool_call_id", "name", "function", "arguments"),
        *("id", "type", "text", "input", "instructions", "previous_response_id", "call_id", "output"),
        *("item_reference", "reasoning", "encrypted_content", "conversation", "background", "include"),
        *("prompt", "truncation", "summary", "custom", "json_schema", "schema", "image_url", "input_text"),
        *("output_text", "parts", "annotations"),
    ]
)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "system", "developer", "tool", "function", "auto", "required", "none"),
        *("[[next-user-turn]]", "[[next-user-turn 1]]", "[[next-user-turn 2]]", "[[next-user-turn 0]]"),
        *("x [[next-user-turn 1]] y", "[[next-user-turn 99999999999999999999]]", "[session over]"),
        *("call_1", "getPrice", "message", "function_call", "function_call_output", "reasoning"),
        *("custom_tool_call", "web_search", "resp_1", "final_answer", "transfer_to_x", "resp_" + "ab" * 20),
    ]
)
VALUES = json_values(KEYS) | WORDS

SENTINEL = {"role": "user", "content": "[[next-user-turn 1]]"}
FUNCTION = {"name": "getPrice", "arguments": '{"thing": "lamp"}'}
CALL = {"id": "call_1", "type": "function", "function": FUNCTION}
CHATS: list[Any] = [
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": [{"type": "text", "text": "Now: [[next-user-turn 1]]"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"price": 3}'},
        ],
        "tools": [scenes.TOOLS[0], scenes.tool("transfer_to_sales")],
        "tool_choice": "auto",
    },
    {"model": "m", "messages": [SENTINEL], "stream": True, "stream_options": {"include_usage": True}},
    {
        "messages": [
            SENTINEL,
            {"role": "assistant", "content": "Hi.", "function_call": FUNCTION},
            {"role": "function", "name": "getPrice", "content": "3"},
            {"role": "user", "content": "[[next-user-turn 2]]"},
        ],
        "functions": [scenes.TOOLS[0]["function"]],
        "n": 1,
    },
    {"messages": [{"role": "user", "content": "Give this a title."}], "response_format": {"type": "text"}},
]
ITEMS: list[Any] = [
    {
        "model": "m",
        "instructions": "You help.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "[[next-user-turn 1]]"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "getPrice",
                "arguments": '{"thing": "lamp"}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": '{"price": 3}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3."}]},
        ],
        "tools": [{"type": "function", **scenes.TOOLS[0]["function"]}],
        "text": {"format": {"type": "text"}},
    },
    {"model": "m", "input": "[[next-user-turn 1]]", "stream": True, "store": False},
    {"input": [{"role": "user", "content": "And: [[next-user-turn]]"}], "previous_response_id": "resp_1"},
]
BYTES = st.sampled_from(
    [b"{", b"}", b'"', b",", b"\xff", b"\x00", b"NaN", b"\\ud800", b"[" * 2000, b"9" * 5000]
)


def bodies(sound: list[Any]) -> st.SearchStrategy[bytes]:
    """The bytes of a request: mostly one of the sound ones with some of its values changed."""
    whole = st.sampled_from(sound)
    values = whole.flatmap(lambda it: changed(it, VALUES, KEYS)) | whole | VALUES
    texts = values.map(lambda value: json.dumps(value).encode())
    return (
        texts
        | texts
        | texts
        | whole.flatmap(lambda it: damaged(json.dumps(it).encode(), BYTES))
        | st.binary()
    )
