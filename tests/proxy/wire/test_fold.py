from __future__ import annotations

from typing import Any

import pytest

from proxy.wire.fold import Fold
from scenarios.replies import read_reply
from scenarios.types import Reply


def fold(*chunks: Any) -> dict[str, Any]:
    result = Fold()
    for chunk in chunks:
        result.add(chunk)
    return result.response()


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def call(
    index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    fragment: dict[str, Any] = {"function": {}}
    if index is not None:
        fragment["index"] = index
    if id is not None:
        fragment |= {"id": id, "type": "function"}
    if name is not None:
        fragment["function"]["name"] = name
    if arguments is not None:
        fragment["function"]["arguments"] = arguments
    return delta(tool_calls=[fragment])


def message(*chunks: Any) -> dict[str, Any]:
    return fold(*chunks)["choices"][0]["message"]


def calls(*chunks: Any) -> list[tuple[str | None, str, Any]]:
    return [
        (entry.get("id"), entry["function"]["name"], entry["function"]["arguments"])
        for entry in message(*chunks)["tool_calls"]
    ]


def test_a_stream_becomes_the_completion_it_stands_for():
    whole = fold(
        {"id": "c1", "object": "chat.completion.chunk", "created": 3, "model": "m", "seed": None,
         "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
        {"id": "c1", "service_tier": "flex", "choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"id": "c1", "obfuscation": "xx", "choices": [{"index": 0, "delta": {"content": "lo"}}]},
        {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 2}]},
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    )  # fmt: skip
    assert whole == {
        "id": "c1",
        "object": "chat.completion",
        "created": 3,
        "model": "m",
        "service_tier": "flex",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "finish_reason": "stop",
                "stop_reason": 2,
            }
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2},
    }


def test_interleaved_calls_are_joined_by_index():
    assert calls(
        call(1, "b", "two", ""), call(0, "a", "one", ""), call(1, arguments='{"y"'), call(0, arguments="{}"),
        call(1, arguments=":2}"),
    ) == [("a", "one", "{}"), ("b", "two", '{"y":2}')]  # fmt: skip


def test_a_new_id_with_a_name_at_the_same_index_starts_a_new_call():
    assert calls(
        call(0, "a", "one", ""),
        call(0, arguments="{}"),
        call(0, "b", "two", ""),
        call(0, arguments='{"x":1}'),
    ) == [("a", "one", "{}"), ("b", "two", '{"x":1}')]


def test_an_id_made_up_for_every_fragment_does_not_split_a_call():
    assert calls(call(0, "a", "one", "{"), call(0, "b", arguments="}")) == [("a", "one", "{}")]


def test_id_and_name_repeated_in_every_fragment_are_not_concatenated():
    assert calls(call(0, "a", "one", "{"), call(0, "a", "one", "}")) == [("a", "one", "{}")]


def test_calls_without_index_are_told_apart_by_id():
    assert calls(call(None, "a", "one", "{"), call(None, arguments="}"), call(None, "b", "one", "{}")) == [
        ("a", "one", "{}"),
        ("b", "one", "{}"),
    ]


def test_calls_without_index_and_id_begin_with_a_name_after_a_whole_call():
    assert calls(
        call(None, None, "one", "{}"), call(None, None, "one", '{"a"'), call(None, arguments=":1}"),
        call(None, None, "two", "{}"),
    ) == [(None, "one", "{}"), (None, "one", '{"a":1}'), (None, "two", "{}")]  # fmt: skip


def test_an_id_that_comes_late_is_taken():
    assert calls(call(0, None, "one", ""), call(0, "a", arguments="{}")) == [("a", "one", "{}")]


def test_arguments_sent_as_an_object_are_kept():
    assert calls(call(0, "a", "one", {"x": 1})) == [("a", "one", {"x": 1})]


def test_a_call_without_type_gets_one_and_keeps_unknown_fields():
    fragment = {"index": 0, "id": "a", "function": {"name": "one"}, "extra_content": {"signature": "s"}}
    assert message(delta(tool_calls=[fragment]))["tool_calls"] == [
        {
            "type": "function",
            "id": "a",
            "extra_content": {"signature": "s"},
            "function": {"name": "one", "arguments": ""},
        }
    ]


def test_a_legacy_function_call_is_folded():
    assert message(
        delta(function_call={"name": "one", "arguments": ""}), delta(function_call={"arguments": "{}"})
    ) == {"role": "assistant", "content": None, "function_call": {"name": "one", "arguments": "{}"}}


def test_reasoning_and_refusal_grow_and_unknown_scalars_are_kept():
    assert message(
        delta(reasoning_content="a", reasoning="x"),
        delta(reasoning_content="b", reasoning="y", refusal="n"),
        delta(refusal="o", weight=0.5, annotations=[1]),
        delta(annotations=[2]),
    ) == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "ab",
        "reasoning": "xy",
        "refusal": "no",
        "weight": 0.5,
        "annotations": [1, 2],
    }


def test_choices_are_told_apart_by_index():
    whole = fold(delta(1, content="b"), delta(0, content="a"), delta(1, content="B"), delta(0, "stop"))
    assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in whole["choices"]] == [
        (0, "a", "stop"),
        (1, "bB", None),
    ]


def test_a_fold_is_finished_when_every_choice_is():
    result = Fold()
    assert not result.finished
    result.add(delta(0, content="a"))
    result.add(delta(1, "length"))
    assert not result.finished
    result.add(delta(0, "stop"))
    assert result.finished


def test_logprobs_are_joined():
    whole = fold(
        {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [1], "refusal": None}}]},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "logprobs": {"content": [2]}}]},
    )
    assert whole["choices"][0]["logprobs"] == {"content": [1, 2]}


@pytest.mark.parametrize("odd", ["x", {"content": 5}, {"content": {"a": 1}}, [1]])
def test_logprobs_of_the_wrong_kind_are_replaced_by_those_that_follow(odd: Any):
    whole = fold(
        {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": odd}]},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "logprobs": {"content": [2]}}]},
    )
    assert whole["choices"][0]["logprobs"] == {"content": [2]}


def test_content_parts_in_a_delta_are_joined_as_text():
    assert (
        message(delta(content=[{"type": "text", "text": "a"}, {"type": "image"}]), delta(content="b"))[
            "content"
        ]
        == "ab"
    )


def test_malformed_chunks_are_passed_over():
    whole = fold(
        None, [], "x", {}, {"choices": None}, {"choices": [None, {"delta": None}]}, {"usage": 3},
        {"choices": [{"delta": {"tool_calls": None, "content": 5}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"index": "0", "function": None}]}}]},
        {"choices": [{"index": True, "delta": {"function_call": "x"}}]},
    )  # fmt: skip
    assert whole["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"type": "function", "function": {"name": "", "arguments": ""}}],
                "function_call": "x",
            },
            "finish_reason": None,
        }
    ]


@pytest.mark.parametrize("calls", ["f", 7, {"name": "f"}, {"function": {"name": "f"}}, ["f"], [["f"]], [7]])
def test_what_should_be_tool_calls_and_is_not_passes_for_no_text(calls: Any):
    reply = read_reply(message({"choices": [{"index": 0, "delta": {"content": "hi", "tool_calls": calls}}]}))
    assert (reply.content, [call.name for call in reply.calls]) == ("hi", [""])


@pytest.mark.parametrize("calls", [None, [], {}, "", [None]])
def test_tool_calls_of_nothing_are_none(calls: Any):
    reply = read_reply(message({"choices": [{"index": 0, "delta": {"content": "hi", "tool_calls": calls}}]}))
    assert reply == Reply("hi")


def test_an_empty_legacy_call_is_none():
    reply = read_reply(message({"choices": [{"index": 0, "delta": {"content": "hi", "function_call": {}}}]}))
    assert reply == Reply("hi")


def test_a_whole_message_in_one_chunk_is_read():
    assert message({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}) == {
        "role": "assistant",
        "content": "hi",
    }


def test_nothing_at_all_folds_to_a_completion_without_choices():
    assert fold() == {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": []}


def test_the_input_of_a_custom_call_grows_like_arguments():
    parts = [
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": ""}},
        {"index": 0, "custom": {"input": "l"}},
        {"index": 0, "custom": {"input": "s"}},
    ]
    assert message(*(delta(tool_calls=[part]) for part in parts))["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    ]


@pytest.mark.parametrize("odd", ["x", 5, [1], True])
def test_a_custom_call_that_was_no_object_at_first_is_the_object_that_follows(odd: Any):
    custom = {"name": "sh", "input": "ls"}
    parts = [{"index": 0, "id": "c1", "type": "custom", "custom": it} for it in (odd, custom)]
    assert message(*(delta(tool_calls=[part]) for part in parts))["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": custom}
    ]
