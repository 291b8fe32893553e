from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.errors import ApiError
from proxy.wire.responses import StoredResponse, item_id, with_call_ids
from proxy.wire.responses_answer import output_items
from proxy.wire.responses_request import parse_request, references, to_chat

RESPONSE = "resp_" + "ab" * 20


def asked(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **fields}


def messages(*items: Any, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_chat(asked(*items, **fields), {}).body["messages"]
    return found


def fields(**given: Any) -> dict[str, Any]:
    body = dict(to_chat({"input": "Hi", **given}, {}).body)
    assert body.pop("messages") == [{"role": "user", "content": "Hi"}]
    return body


def called(call_id: str, name: str = "find", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def told(call_id: str, output: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def chat_call(call_id: str, name: str = "find", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def stored(
    *before: dict[str, Any], answer: dict[str, Any], response_id: str = RESPONSE, **asked: Any
) -> dict[str, StoredResponse]:
    completion = {"choices": [{"index": 0, "message": {"role": "assistant", **answer}}]}
    return {
        response_id: StoredResponse(response_id, asked, tuple(before), with_call_ids(completion, response_id))
    }


USER = {"role": "user", "content": "Hi"}


# Input


def test_a_text_is_what_the_user_says() -> None:
    assert to_chat({"input": "Hi"}, {}).body == {"messages": [USER]}


def test_instructions_are_a_system_message_before_all_else() -> None:
    assert messages({"role": "user", "content": "Hi"}, instructions="Be brief.") == [
        {"role": "system", "content": "Be brief."},
        USER,
    ]


@pytest.mark.parametrize("role", ["user", "system", "developer", "assistant"])
@pytest.mark.parametrize("typed", [{}, {"type": "message"}])
@pytest.mark.parametrize(
    "content",
    [
        "Hi",
        [{"type": "input_text", "text": "Hi"}],
        [{"type": "output_text", "text": "Hi", "annotations": []}],
        [{"type": "text", "text": "Hi"}],
    ],
)
def test_a_message_may_have_a_type_or_none_and_its_text_any_form(
    role: str, typed: dict[str, str], content: Any
) -> None:
    item = {**typed, "role": role, "content": content, "id": "msg_1", "status": "completed"}
    assert messages(item) == [{"role": role, "content": "Hi"}]


def test_pictures_and_files_of_the_users_stay_beside_the_text() -> None:
    parts = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
    ]
    assert messages({"role": "user", "content": parts}) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {
                    "type": "file",
                    "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"},
                },
            ],
        }
    ]


def test_a_refusal_is_not_what_the_assistant_said() -> None:
    item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I will not."}],
    }
    assert messages(item) == [{"role": "assistant", "content": None, "refusal": "I will not."}]


# Calls


def test_neighbouring_calls_are_one_message_and_results_name_the_call_and_not_the_item() -> None:
    found = messages(
        {"role": "user", "content": "Hi"},
        called("call_1", arguments='{"a": 1}', id="fc_1", status="completed"),
        called("call_2", name="weigh", id="fc_2"),
        told("call_2", [{"type": "input_text", "text": "heavy"}]),
        told("call_1"),
    )
    assert found == [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [chat_call("call_1", arguments='{"a": 1}'), chat_call("call_2", "weigh")],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "heavy"},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]


@pytest.mark.parametrize("text_first", [True, False])
def test_a_text_beside_calls_is_of_the_same_message(text_first: bool) -> None:
    text = {"role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    answer = [text, called("c1"), called("c2")] if text_first else [called("c1"), called("c2"), text]
    found = messages(reasoning, *answer, told("c1"), told("c2"))
    assert found[0] == {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [chat_call("c1"), chat_call("c2")],
    }
    assert [it["role"] for it in found] == ["assistant", "tool", "tool"]


def test_answers_that_a_result_or_the_user_parts_stay_apart() -> None:
    found = messages(
        called("c1"),
        told("c1"),
        called("c2"),
        told("c2"),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "More"},
        {"role": "assistant", "content": "No."},
    )
    assert [it["role"] for it in found] == ["assistant", "tool"] * 2 + ["assistant", "user", "assistant"]
    assert [len(it.get("tool_calls", ())) for it in found if it["role"] == "assistant"] == [1, 1, 0, 0]


def test_custom_calls_keep_their_input() -> None:
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sh", "input": "ls"}
    result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "a.txt"}
    assert messages(call, result) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    ]


def test_arguments_and_outputs_that_are_no_text_become_json() -> None:
    found = messages(called("c1", arguments={"ä": 1}), told("c1", {"n": None}))  # type: ignore[arg-type]
    assert found[0]["tool_calls"][0]["function"]["arguments"] == '{"ä": 1}'
    assert found[1]["content"] == '{"n": null}'


def test_items_that_chat_has_no_form_for_are_left_out_and_named() -> None:
    request = asked(
        {"role": "user", "content": "Hi"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "mcp_list_tools", "id": "mcpl_1"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
    )
    chat = to_chat(request, {})
    assert chat.body["messages"] == [USER]
    assert chat.dropped == ("input[1]: web_search_call", "input[2]: mcp_list_tools")


# References


def test_a_request_refers_to_a_previous_response_and_to_the_responses_of_items() -> None:
    other = "resp_" + "cd" * 20
    request = asked(
        {"type": "item_reference", "id": item_id(other, "msg", 1)},
        {"id": item_id(other, "fc", 2)},
        {"type": "message", "role": "user", "id": "msg_1", "content": "Hi"},
        {"type": "item_reference", "id": "msg_of_somebody_else"},
        {"type": "item_reference", "id": 5},
        previous_response_id=RESPONSE,
    )
    assert references(request) == {RESPONSE, other}


def test_the_previous_conversation_comes_first_without_its_instructions() -> None:
    known = stored(
        {"role": "system", "content": "Old."},
        {"role": "developer", "content": "Always."},
        USER,
        answer={"content": "Hello."},
        instructions="Old.",
    )
    request = {"input": "Next", "previous_response_id": RESPONSE, "instructions": "New."}
    chat = to_chat(request, known)
    assert chat.body == {
        "messages": [
            {"role": "system", "content": "New."},
            {"role": "developer", "content": "Always."},
            USER,
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Next"},
        ]
    }


def test_results_follow_the_calls_of_the_previous_response() -> None:
    known = stored(USER, answer={"content": None, "tool_calls": [chat_call("c1")]})
    request = {"input": [told("c1", "7")], "previous_response_id": RESPONSE}
    assert to_chat(request, known).body["messages"] == [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [chat_call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    ]


def test_what_is_sent_once_more_beside_results_is_not_said_twice() -> None:
    """As a client does that sends its whole turn with every `previous_response_id`."""
    known = stored(
        {"role": "user", "content": "Before"},
        {"role": "assistant", "content": "Yes?"},
        USER,
        {"role": "assistant", "content": "First.", "tool_calls": [chat_call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        answer={"content": None, "tool_calls": [chat_call("c2")]},
    )
    again = [USER, {"role": "assistant", "content": "First."}, told("c1", "1"), told("c2", "2")]
    request = {"input": again, "previous_response_id": RESPONSE}
    found = to_chat(request, known).body["messages"]
    assert found[:-1] == list(known[RESPONSE].conversation)
    assert found[-1] == {"role": "tool", "tool_call_id": "c2", "content": "2"}


def test_the_same_words_are_said_again_when_the_last_answer_was_whole() -> None:
    known = stored(USER, answer={"content": "Hello."})
    chat = to_chat({"input": [USER], "previous_response_id": RESPONSE}, known)
    assert [it["role"] for it in chat.body["messages"]] == ["user", "assistant", "user"]


def test_the_same_words_after_the_results_are_a_turn_of_their_own() -> None:
    known = stored(USER, answer={"content": None, "tool_calls": [chat_call("c1")]})
    chat = to_chat({"input": [told("c1"), USER], "previous_response_id": RESPONSE}, known)
    assert [it["role"] for it in chat.body["messages"]] == ["user", "assistant", "tool", "user"]


def test_a_reference_stands_for_the_item_it_names() -> None:
    answer = {"content": "Look.", "reasoning_content": "Hm.", "tool_calls": [chat_call("c1")]}
    known = stored(USER, answer=answer)
    ids = [item["id"] for item in output_items(known[RESPONSE].completion)]
    assert [it.split("_")[0] for it in ids] == ["rs", "msg", "fc"]
    request = asked(USER, *({"type": "item_reference", "id": it} for it in ids), told("c1"))
    assert to_chat(request, known).body["messages"] == [
        USER,
        {"role": "assistant", "content": "Look.", "tool_calls": [chat_call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]


def test_a_reference_to_somebody_elses_reasoning_is_left_out_like_all_reasoning() -> None:
    assert messages(USER, {"type": "item_reference", "id": "rs_68a1"}) == [USER]


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
