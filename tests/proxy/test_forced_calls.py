"""Requests that belong to a conversation though they do not look like it."""

from __future__ import annotations

from typing import Any

import pytest
from support import scenes

from proxy.threads import NO_TURN, WITHOUT_TOOLS, Thread, followed, side_reason, thread_of

SYSTEM = {"role": "system", "content": "Be helpful."}
USER = {"role": "user", "content": "[[next-user-turn 1]]"}
CALL = {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "found"}
NOW = {"role": "user", "content": "Now give your final answer."}


def thread(*messages: Any, tools: bool = False) -> Thread:
    offered = {"tools": [scenes.tool("search")]} if tools else {}
    return thread_of({"messages": list(messages), **offered})


MAIN = thread(SYSTEM, USER, tools=True)


def reason(
    main: Thread | None, of: Thread, what: str = "prompted numbered begun", **more: bool
) -> str | None:
    facts = {name: name in what.split() for name in ("prompted", "numbered", "begun")}
    return side_reason(main, of, **facts, **more)


@pytest.mark.parametrize("what", ["", "prompted", "prompted begun", "prompted numbered begun"])
@pytest.mark.parametrize(
    "rest",
    [
        [CALLING, RESULT],
        [CALLING, RESULT, NOW],
        [{"role": "function", "name": "search", "content": "found"}],
        [{"type": "function_call_output", "call_id": "a", "output": "found"}],
    ],
)
def test_a_last_call_without_tools_that_has_tool_results_is_of_the_conversation(
    rest: list[Any], what: str
) -> None:
    last = thread(SYSTEM, USER, *rest)
    assert reason(MAIN, last, what) is None


def test_after_a_last_call_without_tools_the_conversation_still_has_them() -> None:
    last = thread(SYSTEM, USER, CALLING, RESULT)
    main = followed(MAIN, last)
    assert main == MAIN
    assert reason(main, MAIN) is None
    assert reason(main, last) is None


def test_any_other_request_of_the_conversation_is_what_it_is_known_by_from_then_on() -> None:
    other = thread({"role": "system", "content": "It is 9:31."}, USER, tools=True)
    assert followed(None, MAIN) == MAIN
    assert followed(MAIN, other) == other


@pytest.mark.parametrize(
    ("of", "what", "expected"),
    [
        (thread(SYSTEM, USER, NOW), "", NO_TURN),
        (thread(SYSTEM, USER, NOW), "prompted", WITHOUT_TOOLS),
        (thread(SYSTEM, USER, {"role": "assistant", "content": "Hi."}, NOW), "prompted begun", WITHOUT_TOOLS),
        (thread({"role": "system", "content": "Write a title."}, CALLING, RESULT), "", NO_TURN),
        (
            thread({"role": "system", "content": "Write a title."}, USER, RESULT),
            "prompted numbered",
            WITHOUT_TOOLS,
        ),
        (thread(USER, CALLING, RESULT), "prompted", WITHOUT_TOOLS),
    ],
)
def test_titles_and_summaries_stay_on_the_side(of: Thread, what: str, expected: str) -> None:
    assert reason(MAIN, of, what) == expected


def test_tool_results_do_not_change_what_a_conversation_is_known_by() -> None:
    assert thread(SYSTEM, USER, CALLING, RESULT, tools=True) == MAIN
    assert thread(SYSTEM, USER, CALLING, RESULT) == thread(SYSTEM, USER)


def test_the_agent_that_was_handed_over_to_goes_on_with_the_conversation() -> None:
    sales = thread({"role": "system", "content": "Sell."}, USER, CALLING, RESULT, tools=True)
    assert reason(MAIN, sales) is not None
    assert reason(MAIN, sales, answers=True) is None
    assert followed(MAIN, sales) == sales
