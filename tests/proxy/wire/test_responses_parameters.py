"""What of a Responses request cannot be played, its parameters, and whatever else comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.items import RESPONSE, USER, asked, chat_call, fields, stored

from proxy.wire.errors import ApiError
from proxy.wire.responses import item_id
from proxy.wire.responses_request import parse_request, references, to_chat

# What cannot be played


def refused(request: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        to_chat(request, {})
    assert "\n" not in raised.value.message
    return raised.value


def test_an_unknown_item_is_refused_by_name() -> None:
    error = refused(asked(USER, {"type": "item_reference", "id": "msg_gone"}))
    assert (error.status, error.param) == (400, "input")
    assert "msg_gone" in error.message


def test_an_unknown_previous_response_is_refused_as_openai_does() -> None:
    error = refused({"input": "Hi", "previous_response_id": "resp_gone"})
    assert error.status == 400
    assert error.body["error"] == {
        "message": "Previous response with id 'resp_gone' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"input": []},
        {"input": {"role": "user"}},
        {"input": 5},
        asked("Hi"),
        asked({"role": "tool", "content": "x"}),
        asked({"type": "message", "content": "x"}),
        asked({"role": "user", "content": 5}),
        asked({"role": "user", "content": ["x"]}),
        asked({"role": "assistant", "content": {}}),
        asked({"type": "function_call", "name": "find", "arguments": "{}", "id": "fc_1"}),
        asked({"type": "function_call", "call_id": "c1", "arguments": "{}"}),
        asked({"type": "function_call_output", "output": "x", "id": "fc_1"}),
        {"input": "Hi", "instructions": 5},
        {"input": "Hi", "previous_response_id": ["resp_1"]},
    ],
)
def test_what_makes_no_sense_is_refused_with_a_word_about_where(request_: dict[str, Any]) -> None:
    error = refused(request_)
    assert error.status == 400
    assert error.param in ("input", "instructions", "previous_response_id")


@pytest.mark.parametrize(
    ("field", "value", "cure"),
    [("background", True, "leave background out"), ("conversation", "conv_1", "previous_response_id")],
)
def test_what_only_openai_can_do_is_refused_with_the_cure(field: str, value: Any, cure: str) -> None:
    with pytest.raises(ApiError) as raised:
        parse_request(json.dumps({"input": "Hi", field: value}).encode())
    assert (raised.value.status, raised.value.param) == (400, field)
    assert cure in raised.value.message


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"x"', b"null", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        parse_request(raw)
    assert raised.value.status == 400


def test_false_and_null_say_nothing() -> None:
    body = {"input": "Hi", "background": False, "conversation": None, "previous_response_id": None}
    assert to_chat(parse_request(json.dumps(body).encode()), {}).body == {"messages": [USER]}


# Parameters


def test_parameters_that_chat_has_go_through() -> None:
    same = {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.9,
        "user": "u",
        "seed": 7,
        "service_tier": "flex",
        "store": True,
        "stream": False,
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "metadata": {"a": "b"},
        "x_unknown": {"a": [None]},
    }
    assert fields(**same) == same


def test_a_stream_is_asked_to_tell_its_tokens() -> None:
    assert fields(stream=True) == {"stream": True, "stream_options": {"include_usage": True}}


def test_parameters_with_another_name_in_chat_are_renamed() -> None:
    schema = {"type": "object", "properties": {}}
    form = {"type": "json_schema", "name": "out", "schema": schema, "strict": True}
    found = fields(
        max_output_tokens=99,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": form, "verbosity": "low"},
    )
    assert found == {
        "max_completion_tokens": 99,
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "out", "schema": schema, "strict": True},
        },
    }
    assert fields(text={"format": {"type": "json_object"}}) == {"response_format": {"type": "json_object"}}
    assert fields(text={"format": {"type": "text"}}, reasoning={}) == {}


def test_what_chat_knows_nothing_of_is_left_out_and_named_where_it_matters() -> None:
    chat = to_chat(
        {
            "input": "Hi",
            "include": ["reasoning.encrypted_content"],
            "stream_options": {"include_obfuscation": False},
            "truncation": "auto",
            "max_tool_calls": 3,
            "prompt": {"id": "pmpt_1"},
            "metadata": {"a": "b"},
            "temperature": None,
            "messages": [],
            "functions": [],
        },
        {},
    )
    assert chat.body == {"messages": [USER]}
    named = ("functions", "max_tool_calls", "messages", "metadata", "prompt", "truncation")
    assert sorted(chat.dropped) == list(named)
    assert to_chat({"input": "Hi", "truncation": "disabled", "metadata": {}}, {}).dropped == ()


def test_tools_are_nested_and_those_that_only_openai_has_are_left_out() -> None:
    parameters = {"type": "object", "properties": {}}
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    chat = to_chat(
        {
            "input": "Hi",
            "tools": [
                {
                    "type": "function",
                    "name": "find",
                    "description": "Finds.",
                    "parameters": parameters,
                    "strict": True,
                },
                {"type": "web_search"},
                {"type": "function", "name": "bare", "parameters": None, "strict": None},
                {"type": "mcp", "server_label": "x"},
                {"type": "custom", "name": "sh", "format": grammar},
                "odd",
            ],
            "parallel_tool_calls": False,
        },
        {},
    )
    function = {"name": "find", "description": "Finds.", "parameters": parameters, "strict": True}
    assert chat.body["tools"] == [
        {"type": "function", "function": function},
        {"type": "function", "function": {"name": "bare"}},
        {
            "type": "custom",
            "custom": {
                "name": "sh",
                "format": {
                    "type": "grammar",
                    "grammar": {"syntax": "lark", "definition": "start: WORD"},
                },
            },
        },
    ]
    assert chat.body["parallel_tool_calls"] is False
    assert chat.dropped == ("tools[1]: web_search", "tools[3]: mcp", "tools[5]: str")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ({"type": "function", "name": "find"}, {"type": "function", "function": {"name": "find"}}),
        ({"type": "custom", "name": "sh"}, {"type": "custom", "custom": {"name": "sh"}}),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "find"}, {"type": "mcp", "server_label": "x"}],
            },
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "find"}}],
                },
            },
        ),
    ],
)
def test_a_tool_choice_has_chats_form(choice: Any, expected: Any) -> None:
    tools = [{"type": "function", "name": "find"}]
    assert fields(tools=tools, tool_choice=choice)["tool_choice"] == expected


def test_without_a_tool_there_is_no_choice_and_no_empty_list() -> None:
    assert fields(tools=[], tool_choice="auto", parallel_tool_calls=True) == {}
    chat = to_chat(
        {"input": "Hi", "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, {}
    )
    assert chat.body == {"messages": [USER]}


# Whatever comes

KEYS = [
    "type",
    "role",
    "content",
    "id",
    "call_id",
    "name",
    "arguments",
    "input",
    "output",
    "text",
    "refusal",
    "image_url",
    "summary",
    "format",
    "effort",
    "mode",
    "function",
]
WORDS = [
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "item_reference",
    "reasoning",
    "user",
    "assistant",
    "system",
    "input_text",
    "input_image",
    "refusal",
    "function",
    "custom",
    "allowed_tools",
    "json_schema",
    "grammar",
]
FIELDS = [
    "input",
    "instructions",
    "previous_response_id",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "metadata",
    "store",
    "stream",
    "max_output_tokens",
    "truncation",
]
ODD = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "\n", RESPONSE, item_id(RESPONSE, "msg", 0), *WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
REQUESTS = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=4)


@given(REQUESTS)
def test_whatever_comes_is_a_chat_request_or_refused(request: dict[str, Any]) -> None:
    known = stored(USER, answer={"content": "Hello.", "tool_calls": [chat_call("c1")]})
    try:
        references(request)
        body = to_chat(request, known).body
    except ApiError as error:
        assert (error.status, "\n" in error.message) == (400, False)
        return
    assert body["messages"]
    for message in body["messages"]:
        assert message["role"] in ("user", "assistant", "system", "developer", "tool")
        assert "content" in message
