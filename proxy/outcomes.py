"""What an agent is answered at the end of a turn. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proxy.play import TASK_OVER, Decision, Message

Body = dict[str, Any]

FINAL_ANSWER = "final_answer"
"""The tool by which smolagents' agents end a turn; a plain text makes them try again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole `chat.completion`: what every request for the turn gets."""

    response: Body


def for_agent(response: Body, message: Message, decision: Decision, spent: Sequence[int]) -> Body:
    """The provider's last answer as the agent gets it: a text alone, and the tokens of the turn.

    `spent` is (input, output) tokens of all the turn's Steps.
    """
    if decision.action == "stop":
        message = {"role": "assistant", "content": TASK_OVER}
    else:
        message = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": spent[0], "completion_tokens": spent[1], "total_tokens": sum(spent)}
    return {**response, "choices": [choice], "usage": usage}


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
