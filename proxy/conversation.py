"""What is sent to the LLM in place of what the agent sent. Pure.

Only what must change is changed, and each change is named, so that the log can list it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from proxy.live_blocks import without_refused
from proxy.live_history import Finding, live_messages
from proxy.offered import Offered, offered
from proxy.outcomes import FINAL_ANSWER, is_control
from proxy.session import Session, shown
from proxy.settings import PlayConfig
from scenarios.history import date_text, gold_history, released_tools
from scenarios.replies import read_call, read_reply

Message = dict[str, Any]
Body = dict[str, Any]

NO_OTHER_NAMES = Offered()
_SYSTEM_ROLES = ("system", "developer")
_DROPPED = ("stop", "response_format")
"""With these a closing text may be cut short or never come."""
_TOOLS = ("tools", "tool_choice")
_FUNCTIONS = ("functions", "function_call")
"""The older dialect of the same two."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What goes to the provider: `changes` names what is not as the agent sent it, `findings`
    what the agent has lost or changed of its history, and `offered` under which names it offers
    the Scenario's tools.
    """

    body: Body
    changes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    offered: Offered = NO_OTHER_NAMES


def provider_body(
    body: Body,
    session: Session,
    *,
    replaced_user: bool = False,
    last_call: bool = False,
    remembered: Offered = NO_OTHER_NAMES,
    findings: bool = True,
) -> Sending:
    """The request for the provider. Raises ApiError where the agent lacks tools that it must have.

    `messages`: the agent's leading messages with the Scenario's date, then with `gold` the
    earlier Tasks from their References and the current one from the proxy's own record; with
    `live` the agent's own messages, or that record of all Tasks. An agent that
    uses `functions` gets all of it in that dialect. `replaced_user` says that the turn's
    words took the place of a whole user message, which had no sentinel. `last_call`: the agent asks
    for a text at last, without the tools that it has; where it carries out the calls, it gets none.
    `remembered` are the names under which it offered the Scenario's tools before. Without `findings`
    none are looked for: one request of the agent can have lost nothing between two Steps.
    """
    config, legacy = session.config, speaks_legacy(body)
    (tools, choice), others = (_FUNCTIONS, _TOOLS) if legacy else (_TOOLS, _FUNCTIONS)
    dropped = [key for key in (*_DROPPED, *others) if key in body]
    sent = {key: value for key, value in body.items() if key not in dropped}
    known = _known_tools(body, session, remembered)
    changes = ["messages", *(["user_message"] if replaced_user else []), *dropped]
    sent["messages"], made, found = _messages(body["messages"], session, known, legacy, findings)
    changes += made
    offering = _offered(body, session)
    if last_call and config.hands_over:
        sent.pop(choice, None)
    elif config.agent_tools != "keep" or offering != (sent.get(tools) or []):
        sent[tools] = offering
        changes.append(tools)
    if choice in sent and sent[choice] not in ("auto", "none"):
        sent[choice] = "auto"
        changes.append(choice)
    if sent.get("stream") and not sent.get("stream_options"):
        # Without it no tokens are counted; the agent's own stream has the usage only if it asked.
        sent["stream_options"] = {"include_usage": True}
        changes.append("stream_options")
    return Sending(sent, tuple(changes), found, known)


def speaks_legacy(body: Body) -> bool:
    """Does a request offer its tools as `functions`, the dialect before `tools`?"""
    return bool(body.get("functions")) and isinstance(body["functions"], list) and not body.get("tools")


def control_tools(body: Body, session: Session) -> tuple[str, ...]:
    """Names of the agent's tools whose calls are no Steps; never one of the Scenario's."""
    mock = {tool.name for tool in session.scenario.tools}
    return tuple(name for name in _names(body) if _is_kept(name, session.config) and name not in mock)


def _known_tools(body: Body, session: Session, remembered: Offered) -> Offered:
    """Under which names the agent offers the Scenario's tools; under their own where we put them there."""
    names = _names(body)
    if session.config.agent_tools != "keep" or (not names and session.steps):
        # A last call for a text comes without tools.
        return remembered
    return offered(session.scenario, names)


def _names(body: Body) -> list[str]:
    return [name for name in map(_name, _own_tools(body)) if name is not None]


def leading(messages: Sequence[Any], given: Collection[str] = ()) -> list[Message]:
    """The agent's own messages up to its first user message; `given` are texts of its earlier turns."""
    own: list[Message] = []
    for message in messages:
        if not isinstance(message, dict) or message.get("role") in ("user", "tool", "function"):
            break
        answered = message.get("role") == "assistant" and read_reply(message).content in given
        if answered or message.get("tool_calls") or message.get("function_call"):
            # An agent that lost the beginning of its history: the rest of it is of earlier turns.
            break
        own.append(message)
    return own


def _messages(
    messages: Sequence[Any], session: Session, known: Offered, legacy: bool, looking: bool
) -> tuple[list[Message], tuple[str, ...], tuple[Finding, ...]]:
    """(what is sent, the names of what was changed in it, what the agent lost of it)."""
    assert session.turn is not None
    changes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    own = leading(messages, _given(session))
    if session.config.echoes_agent:
        live = live_messages(messages, session.record, session.aliases, findings=looking)
        changes, findings = live.changes, live.findings
        own = list(takewhile(lambda it: it.get("role") in _SYSTEM_ROLES, live.messages))
        ours = list(live.messages[len(own) :])
    else:
        past = session.past if session.config.history == "live" else _gold(session)
        ours = [known.said(message) for message in (*past, *session.thread)]
    dated = _dated(own, date_text(session.scenario))
    sent = [*dated, *(_legacy(ours) if legacy else ours)]
    return [without_refused(message) for message in sent], changes, findings


def _given(session: Session) -> set[str]:
    """The texts that ended the turns so far."""
    return {shown(str(turn.messages[-1].get("content"))) for turn in session.record if turn.done}


def _gold(session: Session) -> Sequence[Message]:
    assert session.turn is not None
    return gold_history(session.scenario, session.turn.task)


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


def _legacy(messages: Sequence[Message]) -> Iterator[Message]:
    """The same conversation with `function_call`: one call a message, each followed by its result."""
    for at, message in enumerate(messages):
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            results = takewhile(lambda it: it.get("role") == "tool", messages[at + 1 :])
            told = {_id_of(it): it.get("content") for it in results}
            yield from _one_by_one(message, calls, told)
        elif message.get("role") != "tool":
            yield message


def _id_of(result: Message) -> str | None:
    found = result.get("tool_call_id")
    return found if isinstance(found, str) else None


def _one_by_one(
    message: Message, calls: Sequence[Message], told: Mapping[str | None, Any]
) -> Iterator[Message]:
    said = {key: value for key, value in message.items() if key != "tool_calls"}
    for call in map(read_call, calls):
        yield {**said, "function_call": {"name": call.name, "arguments": call.arguments}}
        yield {"role": "function", "name": call.name, "content": told.get(call.id, "")}
        # What the LLM said and thought beside its calls it said once.
        said = {"role": "assistant", "content": None if said.get("content") is None else ""}


def _offered(body: Body, session: Session) -> list[Any]:
    """The Scenario's tools, behind those of the agent's own that stay, in the request's dialect."""
    config = session.config
    mock = [] if config.agent_tools == "keep" else released_tools(session.scenario)
    names = {tool["function"]["name"] for tool in mock}
    own = [tool for tool in _own_tools(body) if _stays(_name(tool), names, config)]
    if speaks_legacy(body):
        return [tool["function"] for tool in (*own, *mock)]
    return [*own, *mock]


def _own_tools(body: Body) -> list[Any]:
    """The agent's tools, in the dialect of `tools` whatever its own."""
    if speaks_legacy(body):
        return [{"type": "function", "function": function} for function in body["functions"]]
    tools = body.get("tools")
    return tools if isinstance(tools, list) else []


def _stays(name: str | None, mock: set[str], config: PlayConfig) -> bool:
    if name is None:
        return config.agent_tools != "replace"
    if name in mock or name == FINAL_ANSWER:
        # By the latter smolagents' agents end a turn: the LLM's text is made such a call.
        return False
    return config.agent_tools != "replace" or _is_kept(name, config)


def _is_kept(name: str, config: PlayConfig) -> bool:
    return name != FINAL_ANSWER and is_control(name, config.keep_tools)


def _name(tool: Any) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None
