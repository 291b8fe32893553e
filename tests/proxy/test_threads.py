"""Which requests belong to a Session's conversation."""

from __future__ import annotations

from typing import Any

import pytest
from support import scenes

from proxy.threads import (
    NO_TURN,
    OTHER_SYSTEM,
    WITH_TOOLS,
    WITHOUT_TOOLS,
    Thread,
    side_reason,
    thread_of,
)

AGENT = Thread("be helpful", tools=True)
OTHER = Thread("write a title", tools=True)
AGENT_TOOLLESS = Thread("be helpful", tools=False)
OTHER_TOOLLESS = Thread("write a title", tools=False)
SYSTEM = {"role": "system", "content": "Be helpful."}
USER = {"role": "user", "content": "Hello"}


def reason(main: Thread | None, thread: Thread, what: str) -> str | None:
    """`what` names the facts that are true of the request."""
    facts = {name: name in what.split() for name in ("prompted", "numbered", "begun")}
    return side_reason(main, thread, **facts)


@pytest.mark.parametrize("what", ["", "prompted", "prompted numbered", "begun", "prompted numbered begun"])
@pytest.mark.parametrize("main", [AGENT, AGENT_TOOLLESS])
def test_a_request_like_the_conversation_is_of_it_whatever_it_says(main: Thread, what: str) -> None:
    assert reason(main, main, what) is None


@pytest.mark.parametrize(
    ("main", "thread", "what", "expected"),
    [
        # Before the conversation has begun, the first to ask for a turn begins it.
        (None, AGENT, "prompted", None),
        (None, AGENT_TOOLLESS, "prompted", None),
        (None, AGENT, "prompted numbered", None),
        (None, AGENT, "", NO_TURN),
        (None, AGENT_TOOLLESS, "", NO_TURN),
        # Another system prompt is the agent's own, with a clock in it, or that of a call on the side.
        (AGENT, OTHER, "", NO_TURN),
        (AGENT, OTHER, "prompted", None),
        (AGENT, OTHER, "prompted numbered", None),
        (AGENT, OTHER, "prompted begun", OTHER_SYSTEM),
        (AGENT, OTHER, "prompted numbered begun", OTHER_SYSTEM),
        (AGENT_TOOLLESS, OTHER_TOOLLESS, "", NO_TURN),
        (AGENT_TOOLLESS, OTHER_TOOLLESS, "prompted", OTHER_SYSTEM),
        (AGENT_TOOLLESS, OTHER_TOOLLESS, "prompted numbered", None),
        (AGENT_TOOLLESS, OTHER_TOOLLESS, "prompted numbered begun", OTHER_SYSTEM),
        # Whether tools are offered never changes within a conversation.
        (AGENT, AGENT_TOOLLESS, "", NO_TURN),
        (AGENT, AGENT_TOOLLESS, "prompted", WITHOUT_TOOLS),
        (AGENT, OTHER_TOOLLESS, "prompted numbered", WITHOUT_TOOLS),
        (AGENT_TOOLLESS, AGENT, "prompted", WITH_TOOLS),
        (AGENT_TOOLLESS, OTHER, "prompted numbered", WITH_TOOLS),
    ],
)
def test_what_is_not_like_the_conversation_is_a_side_call_for_a_reason(
    main: Thread | None, thread: Thread, what: str, expected: str | None
) -> None:
    assert reason(main, thread, what) == expected


@pytest.mark.parametrize(
    "same",
    [
        {"messages": [SYSTEM, USER, {"role": "assistant", "content": "Hi."}, USER]},
        {"messages": [SYSTEM, {"role": "user", "content": "Something else"}]},
        {"messages": [SYSTEM, USER, {"role": "system", "content": "Hurry up."}]},
        {"messages": [SYSTEM, USER], "temperature": 1, "model": "another", "tools": []},
        {"messages": [SYSTEM, "no message"]},
    ],
)
def test_a_conversation_is_known_again_whatever_follows_its_system_texts(same: dict[str, Any]) -> None:
    assert thread_of(same) == thread_of({"messages": [SYSTEM, USER]})


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [USER]},
        {"messages": [SYSTEM, SYSTEM, USER]},
        {"messages": [{"role": "system", "content": "Be rude."}, USER]},
        {"messages": [SYSTEM, USER], "tools": [scenes.TOOLS[0]]},
        {"messages": [SYSTEM, USER], "functions": [scenes.TOOLS[0]["function"]]},
    ],
)
def test_another_system_text_or_tools_make_another_conversation(other: dict[str, Any]) -> None:
    assert thread_of(other) != thread_of({"messages": [SYSTEM, USER]})
