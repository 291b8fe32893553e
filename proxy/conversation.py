"""What is sent to the LLM in place of what the agent sent. Pure.

Only what must change is changed, and each change is named, so that the log can list it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proxy.play import Session
from proxy.settings import PlayConfig
from scenarios.history import date_text, gold_history, released_tools

Message = dict[str, Any]
Body = dict[str, Any]

_SYSTEM_ROLES = ("system", "developer")
_DROPPED = ("stop", "response_format")
"""With these a closing text may be cut short or never come."""


def provider_body(body: Body, session: Session, config: PlayConfig) -> tuple[Body, tuple[str, ...]]:
    """The request for the provider, and the names of what was changed in the agent's own.

    `messages`: the agent's leading messages with the Scenario's date, the earlier Tasks from
    their References (`gold`), and the current Task from the proxy's own record.
    """
    sent = {key: value for key, value in body.items() if key not in _DROPPED}
    changes = ["messages", *(key for key in _DROPPED if key in body)]
    sent["messages"] = _messages(body["messages"], session)
    sent["tools"] = _tools(body.get("tools"), session, config)
    changes.append("tools")
    if "tool_choice" in sent and sent["tool_choice"] not in ("auto", "none"):
        sent["tool_choice"] = "auto"
        changes.append("tool_choice")
    if sent.get("stream") and not sent.get("stream_options"):
        # Without it no tokens are counted; the agent's own stream has the usage only if it asked.
        sent["stream_options"] = {"include_usage": True}
        changes.append("stream_options")
    return sent, tuple(changes)


def leading(messages: Sequence[Any]) -> list[Message]:
    """The agent's own messages up to its first user message."""
    own: list[Message] = []
    for message in messages:
        if not isinstance(message, dict) or message.get("role") == "user":
            break
        own.append(message)
    return own


def _messages(messages: Sequence[Any], session: Session) -> list[Message]:
    assert session.turn is not None
    history = gold_history(session.scenario, session.turn.task)
    return [*_dated(leading(messages), date_text(session.scenario)), *history, *session.thread]


def _dated(own: list[Message], date: str) -> list[Message]:
    """The date goes to the last of the leading system messages: many chat templates refuse two."""
    last = max((i for i, message in enumerate(own) if message.get("role") in _SYSTEM_ROLES), default=None)
    if last is None:
        return [{"role": "system", "content": date}, *own]
    return [
        *own[:last],
        {**own[last], "content": _with_date(own[last].get("content"), date)},
        *own[last + 1 :],
    ]


def _with_date(content: Any, date: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": date}]
    return f"{content}\n\n{date}" if content else date


def _tools(own: Any, session: Session, config: PlayConfig) -> list[Any]:
    mock = released_tools(session.scenario)
    if config.agent_tools == "replace" or not isinstance(own, list):
        return mock
    names = {tool["function"]["name"] for tool in mock}
    return [*(tool for tool in own if _name(tool) not in names), *mock]


def _name(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None
