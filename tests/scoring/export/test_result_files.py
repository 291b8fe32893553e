"""The form of the result files, from logs made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import logs
from support.exporting import (
    CHAIR,
    CLOSED,
    DATE,
    LAMP,
    ONE_CALL,
    exported,
    first_task,
    node,
    scored,
    shop,
)
from support.released_evaluation import judged

from scoring.export import CANDIDATES


def test_a_line_has_the_keys_of_the_released_form_in_their_order(log: Callable[..., Path]) -> None:
    path = log([[logs.call_message(LAMP), CLOSED], [logs.call_message(CHAIR), CLOSED]])
    (line,) = exported(path)
    assert list(line) == ["id", "model_name", "result"]
    assert (line["id"], line["model_name"], len(line["result"])) == ("shop_1", "m", 2)
    task = line["result"][1]
    assert list(task) == [
        "action_name_label",
        "is_optimal",
        "inference_log",
        "latency",
        "input_token_count",
        "output_token_count",
    ]
    assert (task["action_name_label"], task["is_optimal"]) == ("correct", True)
    assert (task["latency"], task["input_token_count"], task["output_token_count"]) == (
        [0.5, 0.5],
        [70, 71],
        [7, 7],
    )
    record = task["inference_log"]
    assert list(record) == ["task_idx", "begin_of_current_task", "step_0", "step_1"]
    assert record["task_idx"] == 1
    assert record["begin_of_current_task"] == {"role": "user", "content": "request 1-0"}


def test_a_right_call_is_told_as_what_was_sent_what_was_said_and_the_one_answer(
    log: Callable[..., Path],
) -> None:
    path = log([[{**logs.call_message(LAMP), "reasoning_content": "Hm."}, CLOSED], []])
    step = first_task(path)["inference_log"]["step_0"]
    function = {"name": "findPrice", "arguments": '{"thing": "lamp"}'}
    assert list(step) == ["inference_input", "inference_output", "inference_answer"]
    assert step["inference_input"] == {
        "messages": [{"role": "user", "content": "request 0-0"}],
        "tools": logs.RECORD["tools"],
    }
    assert list(step["inference_output"].items()) == [
        ("reasoning_content", "Hm."),
        ("content", None),
        ("tool_calls", [{"id": "call_0", "type": "function", "function": function}]),
        ("current_action_name_label", "correct"),
    ]
    answer = step["inference_answer"]["candidate_0_answer_function_list"]
    assert list(step["inference_answer"]) == ["candidate_0_answer_function_list"]
    assert answer == {"action": [function]}
    assert list(answer["action"][0]) == ["arguments", "name"]


def test_texts_are_answered_with_the_words_of_the_ask_and_of_the_closing_node(
    log: Callable[..., Path],
) -> None:
    ask = node("ask_user_for_required_parameters", {}, "Which lamp?", user_input="The red one.")
    close = node("prepare_to_answer", {"answer_type": "chat"}, "Ah.", 0)
    task = first_task(log([[logs.text_message("Which?"), CLOSED]], shop(ask, close)))
    steps = [task["inference_log"][f"step_{i}"] for i in range(2)]
    assert [step["inference_output"]["tool_calls"] for step in steps] == [None, None]
    first, second = (step["inference_answer"]["candidate_0_answer_function_list"] for step in steps)
    assert list(first.items()) == [
        ("action", [{"arguments": "{}", "name": "ask_user_for_required_parameters"}]),
        ("observation", "Which lamp?"),
        ("user_input", "The red one."),
    ]
    assert list(second.items()) == [
        ("action", [{"arguments": '{"answer_type": "chat"}', "name": "prepare_to_answer"}]),
        ("observation", "Ah."),
    ]


def test_the_answer_to_a_batch_is_in_the_order_of_names(log: Callable[..., Path]) -> None:
    record = shop(
        node("findPrice", {"thing": "lamp"}, 1),
        node("askClerk", {}, 2),
        node("prepare_to_answer", {}, "Done.", 0, 1),
    )
    record["tools"] = [
        *record["tools"],
        {"type": "function", "function": {"name": "askClerk", "description": "", "parameters": {}}},
    ]
    step = first_task(log([[logs.call_message(LAMP, ("askClerk", "{}")), CLOSED]], record))["inference_log"]
    answer = step["step_0"]["inference_answer"]["candidate_0_answer_function_list"]
    assert [action["name"] for action in answer["action"]] == ["askClerk", "findPrice"]


def test_a_wrong_step_ends_the_task_and_lists_what_was_allowed(log: Callable[..., Path]) -> None:
    record = shop(
        node("findPrice", {"thing": "lamp"}, 1),
        node("prepare_to_answer", {}, "Just so.", 0),
    )
    task = first_task(log([[logs.call_message(("noSuchTool", "{}"))]], record))
    assert (task["action_name_label"], task["is_optimal"]) == ("error", False)
    step = task["inference_log"]["step_0"]
    assert list(step["inference_output"]) == [
        "reasoning_content",
        "content",
        "tool_calls",
        "current_action_name_label",
        "error_reason",
    ]
    assert step["inference_output"]["current_action_name_label"] == "error"
    assert step["inference_output"]["error_reason"] == ("action name not in candidate_answer_function_list")
    assert step["inference_answer"] == {
        "candidate_0_answer_function_list": {
            "action": [{"arguments": '{"thing": "lamp"}', "name": "findPrice"}]
        }
    }


def test_of_many_allowed_batches_a_few_are_listed(log: Callable[..., Path]) -> None:
    names = [f"tool{i}" for i in range(12)]
    record = shop(*(node(name, {}, 1) for name in names), node("prepare_to_answer", {}, "", *range(12)))
    record["answer_list"][0][-1]["observation"] = "Done."
    record["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
    answer = first_task(log([[CLOSED]], record))["inference_log"]["step_0"]["inference_answer"]
    assert list(answer) == [f"candidate_{i}_answer_function_list" for i in range(CANDIDATES)]
    assert [it["action"][0]["name"] for it in answer.values()] == names[:CANDIDATES]


@pytest.mark.parametrize("reply", [logs.text_message(""), {"role": "assistant", "content": None}, "odd"])
def test_an_empty_reply_has_answers_too(log: Callable[..., Path], reply: Any) -> None:
    step = first_task(log([[reply], []]))["inference_log"]["step_0"]
    assert step["inference_output"]["tool_calls"] is None
    assert step["inference_output"]["error_reason"] == "tool_calls and content are None"
    assert list(step["inference_answer"]) == ["candidate_0_answer_function_list"]


def test_an_agent_that_says_no_more_is_written_as_an_empty_reply(log: Callable[..., Path]) -> None:
    task = first_task(log([[logs.call_message(LAMP)], []]))
    assert task["action_name_label"] == "error"
    assert (task["latency"], task["input_token_count"]) == ([0.5, 0.0], [70, 0])
    step = task["inference_log"]["step_1"]
    assert step["inference_output"]["error_reason"] == "tool_calls and content are None"
    sent = step["inference_input"]["messages"]
    assert sent[0] == {"role": "user", "content": "request 0-0"}
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_0"
    assert sent[2] == {"role": "tool", "content": '{"price": 3}', "tool_call_id": "call_0"}


def test_an_agent_that_never_asked_is_written_as_an_empty_reply_to_the_opening(
    log: Callable[..., Path],
) -> None:
    (line,) = exported(log([[logs.call_message(LAMP), CLOSED], []]))
    sent = line["result"][1]["inference_log"]["step_0"]["inference_input"]["messages"]
    assert sent[0] == {"role": "system", "content": DATE}
    assert sent[1] == {"role": "user", "content": "What is a lamp?"}
    assert sent[-1] == {"role": "user", "content": "And a chair?"}
    assert line["result"][1]["inference_log"]["begin_of_current_task"] == sent[-1]


UNREADABLE = [
    (None, None),
    (None, {}),
    (None, {"thing": "lamp"}),
    (None, '{"thing": ' + "1" * 5000 + "}"),
    (None, "[" * 950 + "]" * 950),
    ({"type": "object", "properties": {"thing": {"type": ["string", "null"]}}}, '{"thing": "lamp"}'),
    ({"type": "object", "properties": None}, '{"thing": "lamp"}'),
    ({"type": "object", "properties": {}, "required": None}, "{}"),
]


@pytest.mark.parametrize(("parameters", "arguments"), UNREADABLE)
def test_what_would_crash_the_released_checker_is_written_as_arguments_that_are_no_json(
    log: Callable[..., Path], parameters: Any, arguments: Any
) -> None:
    path = log(
        [[logs.call_message(("findPrice", arguments)), CLOSED]], shop(*ONE_CALL, parameters=parameters)
    )
    task = first_task(path)
    step = task["inference_log"]["step_0"]
    (call,) = step["inference_output"]["tool_calls"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["function"]["arguments"])
    (score,) = scored(path)[0].tasks
    assert judged(task) == (score.label, False, score.steps_kept) == ("error", False, 1)


def test_after_a_wrong_argument_as_many_steps_are_left_as_we_count(log: Callable[..., Path]) -> None:
    chain = (
        node("findPrice", {"thing": "lamp"}, 1),
        node("findPrice", {"thing": "chair"}, 2, 0),
        node("findPrice", {"thing": "bed"}, 2, 1),
        node("prepare_to_answer", {}, "Done.", 2),
    )
    said = [logs.call_message(it) for it in (LAMP, LAMP, ("findPrice", '{"thing": "bed"}'))]
    path = log([[*said, CLOSED]], shop(*chain))
    task = first_task(path)
    (score,) = scored(path)[0].tasks
    assert [key for key in task["inference_log"] if key.startswith("step_")] == [
        f"step_{i}" for i in range(4)
    ]
    assert judged(task) == ("error", False, 3)
    assert score.steps_kept == 3


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"role": "assistant", "content": None, "tool_calls": "oops"}, "parse tool_calls failed"),
        ({"role": "assistant", "content": None, "tool_calls": [7]}, "parse tool_calls failed"),
        ({"role": "assistant", "content": "Hello."}, "action name not in"),
    ],
)
def test_what_was_said_in_a_wrong_step_stays_as_it_was(
    log: Callable[..., Path], said: dict[str, Any], reason: str
) -> None:
    output = first_task(log([[said], []]))["inference_log"]["step_0"]["inference_output"]
    assert (output["content"], output["tool_calls"]) == (said["content"], said.get("tool_calls"))
    assert output["error_reason"].startswith(reason)


def test_a_legacy_function_call_is_written_as_a_tool_call(log: Callable[..., Path]) -> None:
    function = {"name": "findPrice", "arguments": '{"thing": "lamp"}'}
    said = {"role": "assistant", "content": None, "function_call": function}
    output = first_task(log([[said, CLOSED], []]))["inference_log"]["step_0"]["inference_output"]
    assert output["tool_calls"] == [{"id": "call_0", "type": "function", "function": function}]
    assert output["current_action_name_label"] == "correct"


def test_tools_of_the_agent_that_were_sent_too_are_there(log: Callable[..., Path]) -> None:
    own = {"type": "function", "function": {"name": "mine", "parameters": {}}}
    path = log([[logs.call_message(LAMP), CLOSED], []], body={"tools": [own, *logs.RECORD["tools"]]})
    tools = first_task(path)["inference_log"]["step_0"]["inference_input"]["tools"]
    assert tools == [own, *logs.RECORD["tools"]]


def test_half_a_surrogate_pair_survives(log: Callable[..., Path]) -> None:
    (line,) = exported(log([[logs.call_message(LAMP), logs.text_message("half \ud83d")], []]))
    step = line["result"][0]["inference_log"]["step_1"]
    assert step["inference_output"]["content"] == "half \ud83d"
