"""The words of a Scenario as chat messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import scenes

from scenarios.history import (
    as_sent,
    date_text,
    gold_history,
    observation_text,
    reference_call_id,
    released_tools,
)
from scenarios.load import load
from scenarios.types import Scenario

ID = re.compile(r'"(?:tool_call_id|id)": "([^"]*)"')


def with_plain_ids(messages: list[dict[str, Any]]) -> str:
    """The messages as JSON text, tool-call ids numbered in the order in which they first occur."""
    text = json.dumps(messages, ensure_ascii=False)
    for number, call_id in enumerate(dict.fromkeys(ID.findall(text))):
        text = text.replace(f'"{call_id}"', f'"ID{number}"')
    return text


@pytest.fixture(scope="module")
def real(real_session_files: list[Path]) -> dict[str, Scenario]:
    return {it.id: it for file in load(real_session_files) for it in file.scenarios}


def test_every_task_of_the_real_sessions_starts_with_the_released_messages_to_the_byte(
    shared: Path, real: dict[str, Scenario]
) -> None:
    lines = (shared / "parity" / "history.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 40
    for line in lines:
        expected = json.loads(line)
        scenario, task = real[expected["id"]], expected["task"]
        messages = [
            {"role": "system", "content": date_text(scenario)},
            *gold_history(scenario, task),
            {"role": "user", "content": scenario.tasks[task].text},
        ]
        assert with_plain_ids(messages) == with_plain_ids(expected["messages"])


def test_the_first_task_has_no_history() -> None:
    assert gold_history(scenes.scenario(), 0) == []


def test_a_task_becomes_its_words_its_calls_what_they_were_told_and_the_closing_text() -> None:
    first, second = (reference_call_id("shop", 1, node) for node in (0, 1))
    assert gold_history(scenes.scenario(), 2)[4:] == [
        {"role": "user", "content": "Price of a chair, and how many lamps are there?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "getPrice", "arguments": '{"thing": "chair"}'},
                    "id": first,
                },
                {
                    "type": "function",
                    "function": {"name": "countStock", "arguments": '{"thing": "lamp"}'},
                    "id": second,
                },
            ],
        },
        {"role": "tool", "content": '{"price": 7}', "tool_call_id": first},
        # A string is encoded once more in history, and only there.
        {"role": "tool", "content": '"12 lamps"', "tool_call_id": second},
        {"role": "assistant", "content": "7, and 12."},
    ]


def test_an_ask_becomes_a_question_and_the_scripted_reply() -> None:
    asked = gold_history(scenes.scenario(), 3)[9:]
    assert [(message["role"], message["content"]) for message in asked[:3]] == [
        ("user", "Book one."),
        ("assistant", "Which day?"),
        ("user", "On Monday."),
    ]
    assert [message["role"] for message in asked[3:]] == ["assistant", "tool", "assistant"]


def test_json_inside_messages_keeps_blanks_characters_and_lists() -> None:
    observation = [{"größe": "5 m²", "n": 1.0, "none": None}]
    nodes = [scenes.call("getPrice", {"thing": "ü", "more": [1, 2]}, observation), scenes.close("ok", 0)]
    _, calling, result, _ = gold_history(scenes.scenario(scenes.record("s", ("a", nodes), ("b", nodes))), 1)
    assert calling["tool_calls"][0]["function"]["arguments"] == '{"thing": "ü", "more": [1, 2]}'
    assert result["content"] == '[{"größe": "5 m²", "n": 1.0, "none": null}]'


def test_ids_are_unique_and_the_same_each_time() -> None:
    scenario = scenes.scenario()
    history = gold_history(scenario, 4)
    ids = [call["id"] for message in history for call in message.get("tool_calls", ())]
    assert len(set(ids)) == len(ids) == 4
    assert all(re.fullmatch(r"call_[0-9a-f]{1,35}", it) for it in ids)
    assert gold_history(scenario, 4) == history


@pytest.mark.parametrize(
    ("observation", "text"),
    [("plain", "plain"), ("", ""), ({"a": "ü"}, '{"a": "ü"}'), ([1], "[1]"), (None, "null"), (True, "true")],
)
def test_in_the_current_task_a_string_is_told_as_it_is_and_all_else_as_json(
    observation: Any, text: str
) -> None:
    assert observation_text(observation) == text


def test_the_type_float_is_a_number_at_any_depth_and_all_else_is_kept() -> None:
    spec = {
        "type": "function",
        "function": {
            "name": "f",
            "description": 'a "type": "float" in words',
            "parameters": {
                "type": "object",
                "properties": {
                    "float": {"type": "float", "enum": ["float"]},
                    "list": {"type": "array", "items": {"type": "float"}},
                    "any": {"type": ["float", "null"]},
                },
                "required": ["float"],
            },
        },
    }
    before = json.dumps(spec)
    sent = as_sent(spec)
    assert json.dumps(spec) == before
    properties = sent["function"]["parameters"]["properties"]
    assert properties["float"] == {"type": "number", "enum": ["float"]}
    assert properties["list"]["items"] == {"type": "number"}
    assert properties["any"] == {"type": ["float", "null"]}
    assert sent["function"]["description"] == spec["function"]["description"]


def test_tools_are_sent_in_their_order() -> None:
    names = [tool["function"]["name"] for tool in released_tools(scenes.scenario())]
    assert names == ["getPrice", "countStock", "book", "weigh"]
