from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.responses_ask import to_responses

USER = {"role": "user", "content": "Hi"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}


def sent(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return to_responses({"model": "m", "messages": list(messages), **fields})


def said(role: str, text: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def call(call_id: str | None, name: str = "find", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_request_needs_nothing_that_the_provider_has_stored() -> None:
    assert sent(USER) == {"model": "m", "input": [said("user", "Hi")], "store": False}
    assert sent(USER, store=True)["store"] is False


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    "content",
    ["Be brief.\n\nToday", [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Today"}]],
)
def test_the_first_system_text_becomes_the_instructions(role: str, content: Any) -> None:
    body = sent({"role": role, "content": content}, {"role": "system", "content": "More."}, USER)
    assert body["instructions"] == "Be brief.\n\nToday"
    assert body["input"] == [said("system", "More."), said("user", "Hi")]


def test_a_conversation_becomes_items_in_its_order() -> None:
    body = sent(
        USER,
        {
            "role": "assistant",
            "content": "See.",
            "tool_calls": [call("c1", arguments='{"a":1}'), call("c2", "weigh")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "2"}]},
        {"role": "assistant", "content": "Done."},
    )
    text, done = ([{"type": "output_text", "text": it, "annotations": []}] for it in ("See.", "Done."))
    assert body["input"] == [
        said("user", "Hi"),
        {**said("assistant", text), "status": "completed"},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"a":1}'},
        {"type": "function_call", "call_id": "c2", "name": "weigh", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}]},
        {**said("assistant", done), "status": "completed"},
    ]


def test_pictures_and_files_are_parts_of_the_users_message() -> None:
    parts = [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "file", "file": {"file_id": "file_1"}},
    ]
    assert sent({"role": "user", "content": parts})["input"][0]["content"] == [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
        {"type": "input_file", "file_id": "file_1"},
    ]


def test_custom_calls_and_their_results_have_kinds_of_their_own() -> None:
    entry = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    body = sent(
        {"role": "assistant", "content": None, "tool_calls": [entry]},
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
    )
    assert body["input"] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"},
    ]


def test_the_older_dialect_of_functions_is_translated_too() -> None:
    body = sent(
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}},
        {"role": "function", "name": "find", "content": "1"},
        functions=[{"name": "find", "parameters": {}}],
        function_call={"name": "find"},
    )
    made, result = body["input"]
    assert (made["type"], made["name"]) == ("function_call", "find")
    assert result == {"type": "function_call_output", "call_id": made["call_id"], "output": "1"}
    assert body["tools"] == [{"type": "function", "name": "find", "parameters": {}, "strict": False}]
    assert body["tool_choice"] == {"type": "function", "name": "find"}
    assert "functions" not in body
    assert "function_call" not in body


def test_reasoning_goes_back_before_what_it_led_to() -> None:
    answer = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("c1")],
        "reasoning_items": [REASONING],
    }
    body = sent(USER, answer, {"role": "tool", "tool_call_id": "c1", "content": "1"})
    kinds = [it["type"] for it in body["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    assert body["input"][1] == REASONING
    assert body["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"model": "gpt-5.4"}, True),
        ({"model": "openai/o3-mini"}, True),
        ({"model": "gpt-4.1"}, False),
        ({"model": "gpt-5-chat-latest"}, False),
        ({"model": "m", "reasoning_effort": "low"}, True),
        ({"model": "m"}, False),
    ],
)
def test_encrypted_reasoning_is_asked_for_where_there_is_reasoning(
    fields: dict[str, Any], asked: bool
) -> None:
    assert ("include" in sent(USER, **fields)) is asked


def test_parameters_with_another_name_are_renamed_and_those_that_are_refused_left_out() -> None:
    schema = {"type": "object"}
    body = sent(
        USER,
        max_completion_tokens=9,
        reasoning_effort="low",
        verbosity="high",
        response_format={"type": "json_schema", "json_schema": {"name": "out", "schema": schema}},
        temperature=0.5,
        parallel_tool_calls=True,
        stream=True,
        x_own=1,
        stream_options={"include_usage": True},
        seed=1,
        stop=["x"],
        n=1,
        frequency_penalty=0,
    )
    assert {key: body[key] for key in body if key not in ("input", "model", "store", "include")} == {
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "text": {
            "verbosity": "high",
            "format": {"type": "json_schema", "name": "out", "schema": schema},
        },
        "temperature": 0.5,
        "parallel_tool_calls": True,
        "stream": True,
        "x_own": 1,
    }
    assert sent(USER, max_tokens=7)["max_output_tokens"] == 7


def test_tools_are_flat_and_no_stricter_than_they_were() -> None:
    parameters = {"type": "object", "properties": {"function": {"type": "string"}}}
    loose = {"name": "find", "description": "Finds.", "parameters": parameters}
    body = sent(
        USER,
        tools=[
            {"type": "function", "function": loose},
            {"type": "function", "function": {**loose, "strict": True}},
        ],
        tool_choice="auto",
    )
    assert body["tools"] == [
        {"type": "function", **loose, "strict": False},
        {"type": "function", **loose, "strict": True},
    ]
    assert body["tool_choice"] == "auto"


ODD = st.recursive(
    st.sampled_from([None, True, 0, "", "text", "system", "user", "assistant", "tool", "function"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "id", "type", "text", "function", "name"])
            | st.sampled_from(["function_call", "arguments", "tool_call_id", "custom", "reasoning_items"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ODD, ODD, ODD)
def test_whatever_is_asked_becomes_a_request(messages: Any, tools: Any, choice: Any) -> None:
    body = to_responses({"messages": messages, "tools": tools, "functions": tools, "tool_choice": choice})
    assert isinstance(body["input"], list)
    assert all(isinstance(item, dict) for item in body["input"])
