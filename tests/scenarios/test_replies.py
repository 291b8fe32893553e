"""What counts of an assistant message, whatever a provider puts there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.replies import read_call, read_reply
from scenarios.types import Reply, ToolCall


def entry(name: Any = "book", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "c0", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def test_a_reply_is_read_as_content_and_calls_in_order() -> None:
    calls = [entry(arguments=" {} "), entry("other", '{"a": 1}', id="c1")]
    assert read_reply({"content": "on it", "tool_calls": calls}) == Reply(
        "on it", (ToolCall("c0", "book", " {} "), ToolCall("c1", "other", '{"a": 1}'))
    )


@pytest.mark.parametrize("none", [None, [], (), {}, ""])
def test_a_reply_without_tool_calls_has_none(none: Any) -> None:
    assert read_reply({"content": "hello", "tool_calls": none, "function_call": none}) == Reply("hello")


@pytest.mark.parametrize(
    ("calls", "arguments"),
    [
        ("x", ["x"]),
        (5, [5]),
        ({"name": "book"}, [{"name": "book"}]),
        (entry(), [entry()]),
        ([None], [None]),
        ([[]], [[]]),
        ([{}, 7], [None, 7]),
        ([{"id": "", "function": "book"}], ["book"]),
    ],
)
def test_malformed_tool_calls_are_calls_without_a_name_and_never_a_text(calls: Any, arguments: Any) -> None:
    reply = read_reply({"content": "hello", "tool_calls": calls})
    assert reply == Reply("hello", tuple(ToolCall(None, "", it) for it in arguments))


@pytest.mark.parametrize("name", [None, 5, ["book"], {}])
def test_a_call_without_a_usable_name_has_an_empty_one(name: Any) -> None:
    assert read_call(entry(name)) == ToolCall("c0", "", "{}")


@pytest.mark.parametrize("call_id", [None, 5, "", ["c0"]])
def test_a_call_without_a_usable_id_has_none(call_id: Any) -> None:
    assert read_call(entry(id=call_id)) == ToolCall(None, "book", "{}")


@pytest.mark.parametrize("arguments", [None, {"x": 1}, ["{}"], 5])
def test_arguments_stay_what_they_are(arguments: Any) -> None:
    assert read_call(entry(arguments=arguments)) == ToolCall("c0", "book", arguments)


def test_a_custom_call_has_its_input_as_arguments() -> None:
    custom = {"id": "c0", "type": "custom", "custom": {"name": "book", "input": "blue"}}
    assert read_call(custom) == ToolCall("c0", "book", "blue")
    assert read_call({**entry(), "custom": {"name": "other"}}) == ToolCall("c0", "book", "{}")


def test_a_legacy_function_call_is_a_call_unless_there_are_others() -> None:
    legacy = {"content": None, "function_call": {"name": "book", "arguments": "{}"}}
    assert read_reply(legacy) == Reply(None, (ToolCall(None, "book", "{}"),))
    assert read_reply({**legacy, "tool_calls": [entry("other")]}).calls == (ToolCall("c0", "other", "{}"),)
    assert read_reply({"content": "hello", "function_call": "book"}).calls == (ToolCall(None, "", "book"),)


def test_the_texts_of_content_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "image_url"}, None, 3, "two", {"text": " three"}]
    assert read_reply({"content": parts}).content == "one two three"


@pytest.mark.parametrize("content", [None, 5, {"text": "x"}, True])
def test_content_that_is_not_text_is_none(content: Any) -> None:
    assert read_reply({"content": content}).content is None


@pytest.mark.parametrize("message", [None, "text", [], 5])
def test_what_is_no_message_says_nothing(message: Any) -> None:
    assert read_reply(message) == Reply(None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries(dict.fromkeys(("tool_calls", "function_call", "content"), json_values)))
def test_a_message_that_tried_to_call_something_has_a_call(message: dict[str, Any]) -> None:
    tried = bool(message["tool_calls"] or message["function_call"])
    assert bool(read_reply(message).calls) == tried
