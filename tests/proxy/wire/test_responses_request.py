"""Input, calls and references of a Responses request as chat messages."""

from __future__ import annotations

from typing import Any

import pytest
from support.items import RESPONSE, USER, asked, called, chat_call, messages, stored, told

from proxy.wire.responses import item_id
from proxy.wire.responses_answer import output_items
from proxy.wire.responses_request import references, to_chat

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
