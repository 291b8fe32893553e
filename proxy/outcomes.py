"""What an agent is answered: at the end of a turn, or with a call for it to carry out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from proxy.echo import NAMELESS, argument_text
from proxy.offered import Offered
from proxy.session import SESSION_OVER, TASK_OVER, Decision, Message, Served, shown
from proxy.wire.chat import completion
from scenarios.replies import read_call, read_reply
from scenarios.types import ToolCall

Body = dict[str, Any]

FINAL_ANSWER = "final_answer"
"""The tool by which smolagents' agents end a turn; a plain text makes them try again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole `chat.completion`: what every request for the turn gets.

    `final` is False for calls that the agent has to carry out before the turn goes on.
    """

    response: Body
    final: bool = True


def for_agent(response: Body, message: Message, decision: Decision, spent: Sequence[int]) -> Body:
    """The provider's last answer as the agent gets it: a text alone, and the tokens of the turn.

    `spent` is (input, output) tokens of all the turn's Steps.
    """
    if decision.action == "stop":
        message = {"role": "assistant", "content": TASK_OVER}
    else:
        message = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
        message["content"] = shown(read_reply(message).content)
    return _with(response, message, "stop", spent)


def session_over(model: Any, exchange_id: str, now: float) -> Outcome:
    """What every request gets after the last Task; `now` is in Unix seconds."""
    asked = model if isinstance(model, str) else ""
    whole = completion(id=f"chatcmpl-{exchange_id}", created=int(now), model=asked, content=SESSION_OVER)
    return Outcome(whole)


def is_control(name: str, patterns: Iterable[str]) -> bool:
    """Is this one of the agent's control tools, of which a call is no Step?"""
    return bool(name) and any(fnmatchcase(name, pattern) for pattern in patterns)


def without_control_calls(message: Message, patterns: Sequence[str]) -> tuple[Message, list[ToolCall]]:
    """An assistant message as it is judged, and the calls of control tools taken out of it.

    `patterns` are names or patterns of the tools. The message itself comes back if there is
    nothing to take out.
    """
    entries = message.get("tool_calls")
    entries = entries if isinstance(entries, list) else []
    taken = [call for call in map(read_call, entries) if is_control(call.name, patterns)]
    judged = dict(message)
    if taken:
        left = [entry for entry in entries if not is_control(read_call(entry).name, patterns)]
        judged = {**judged, "tool_calls": left} if left else _without(judged, "tool_calls")
    legacy = read_reply({"function_call": message.get("function_call")}).calls
    if legacy and is_control(legacy[0].name, patterns):
        judged = _without(judged, "function_call")
        taken = taken or list(legacy)
    return (judged, taken) if taken else (message, [])


def _without(message: Message, key: str) -> Message:
    return {name: value for name, value in message.items() if name != key}


def handed_over(response: Body, message: Message, spent: Sequence[int], ids: Sequence[str]) -> Body:
    """An answer that is nothing but control calls, as the agent gets it: to carry them out.

    `spent` is as in `for_agent`; `ids` are those that the agent gets, one for each call.
    """
    entries = message.get("tool_calls")
    if not isinstance(entries, list) or not entries:
        return _with(response, message, "function_call", spent)
    entries = [{"type": "function", **entry, "id": it} for entry, it in zip(entries, ids, strict=True)]
    return _with(response, {**message, "tool_calls": entries}, "tool_calls", spent)


def to_carry_out(
    response: Body,
    message: Message,
    served: Sequence[Served],
    spent: Sequence[int],
    known: Offered,
    *,
    legacy: bool = False,
) -> Body:
    """An accepted Step as the agent gets it: its calls, under the ids and names that it knows them by.

    `spent` is as in `for_agent`. `legacy`: the agent speaks the dialect of `functions`, in which there
    is one call, without an id, and gets it so; whatever the provider spoke.
    """
    kept = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    calls = [
        {
            "id": it.given,
            "type": "function",
            "function": {
                "name": it.call.name or NAMELESS,
                "arguments": argument_text(it.call.arguments),
            },
        }
        for it in served
    ]
    said = known.said({"content": None, **kept, "tool_calls": calls})
    if legacy and len(calls) == 1:
        function = said.pop("tool_calls")[0]["function"]
        return _with(response, {**said, "function_call": function}, "function_call", spent)
    return _with(response, said, "tool_calls", spent)


def _with(response: Body, message: Message, reason: str, spent: Sequence[int]) -> Body:
    # Clients send back all that they get: what says nothing only comes to harm on the way.
    said = {key: it for key, it in message.items() if key == "content" or it not in (None, [])}
    said = {"role": "assistant", "content": None, **said} | {"role": "assistant"}
    choice = {"index": 0, "message": said, "finish_reason": reason}
    usage = {"prompt_tokens": spent[0], "completion_tokens": spent[1], "total_tokens": sum(spent)}
    return {**response, "choices": [choice], "usage": usage}


def results_of(messages: Sequence[Any], calls: Sequence[ToolCall]) -> list[Message]:
    """The agent's results of calls that were handed over, in its request's order.

    Known by the id; in the dialect of `functions`, which has none, by the name, and then only
    what comes after the last assistant message.
    """
    ids = [call.id for call in calls if call.id]
    names = [call.name for call in calls if not call.id]
    found: list[Message] = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            found = [it for it in found if it["role"] == "tool"]
        elif (role == "tool" and message.get("tool_call_id") in ids) or (
            role == "function" and message.get("name") in names
        ):
            found.append(message)
    return found


def as_final_answer(response: Body, asked: Body, call_id: str) -> Body:
    """The same text as a call of `final_answer`, if the agent has that tool."""
    parameter = _answer_parameter(asked.get("tools"))
    if parameter is None:
        return response
    choice = response["choices"][0]
    arguments = json.dumps({parameter: choice["message"].get("content")}, ensure_ascii=False)
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": FINAL_ANSWER, "arguments": arguments},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {**response, "choices": [{**choice, "message": message, "finish_reason": "tool_calls"}]}


def _answer_parameter(tools: Any) -> str | None:
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and function.get("name") == FINAL_ANSWER:
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            return next(iter(properties), "answer") if isinstance(properties, dict) else "answer"
    return None
