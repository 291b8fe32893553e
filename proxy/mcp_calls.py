"""Which call of the conversation a call over MCP is, and what it is told. Pure.

The LLM makes a call once, in the conversation; the agent carries it out over MCP. Both are one
call in the record, and the Observation is the one that the Step was judged to have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from proxy.refusals import refusal
from proxy.session import Message, Session
from scenarios.assign import agreement, parse_arguments
from scenarios.replies import read_reply
from scenarios.types import ToolCall


@dataclass(frozen=True, slots=True)
class Found:
    """What a call over MCP is told. `id` is the conversation's call; None if it is none of them."""

    text: str
    id: str | None = None


def answer_to(session: Session, call: ToolCall, fetched: Collection[str]) -> Found:
    """The answer to a call; `fetched` are ids of calls that had theirs.

    Frameworks fill in defaults and drop what they do not know: of the calls of that tool whose answer
    was not fetched yet, the one that agrees best is meant, of the others only an equal one. A call that
    the LLM did not make moves nothing, and learns nothing: it is told that there is no data.
    """
    arguments = parse_arguments(call.arguments)
    known = [(made, text) for made, text in _handed(session, 1) if made.name == call.name]
    now = {made.id for made, _ in _handed(session, session.task_from)}
    waiting = [it for it in known if it[0].id in now and it[0].id not in fetched]
    again = [it for it in known if _agrees(it[0], arguments) == 1.0]
    if waiting and (not again or any(it in waiting for it in again)):
        made, text = max(waiting, key=lambda it: _agrees(it[0], arguments))
        return Found(text, made.id)
    if again:
        return Found(again[-1][1], again[-1][0].id)
    return Found(refusal(session.scenario.tools, call)[1])


def _agrees(made: ToolCall, arguments: object) -> float:
    expected = parse_arguments(made.arguments)
    return agreement(arguments, expected if isinstance(expected, dict) else {})


def _handed(session: Session, since: int) -> Iterator[tuple[ToolCall, str]]:
    """The calls that the agent was given from turn `since` on, each with what it was told."""
    for turn in session.record:
        if turn.number >= since:
            told = {it["tool_call_id"]: str(it.get("content")) for it in turn.messages if _is_result(it)}
            for message in turn.messages:
                for call in read_reply(message).calls:
                    if call.id in turn.handed and call.id in told:
                        yield call, told[call.id]


def _is_result(message: Message) -> bool:
    return message.get("role") == "tool" and isinstance(message.get("tool_call_id"), str)
