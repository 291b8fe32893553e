"""Sessions as chats in OpenAI form: what the LLM was told and what it said, as it was played. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scenarios.history import encode, released_tools
from scenarios.types import Reply, ToolCall
from scoring.types import JSON

if TYPE_CHECKING:
    from scoring.logs.detail import Message, SessionDetail, StepDetail

UNANSWERED = "[no result: the task ended with this call]"
"""In transcripts, what a call is told that was told nothing: chat formats want a result."""


def transcript_line(detail: SessionDetail, run: str, model: str) -> JSON:
    """A Session as one chat, the Tasks one after the other as they were played.

    `messages`: the system message as the LLM got it, then of each Task what the user said
    (in the agent's own template), what the LLM said, and what its tool calls were told. With
    gold history the LLM was shown the References of earlier Tasks in place of what it had
    said there; the transcript has what it said.
    """
    trajectory = detail.trajectory
    steps = [step for task in detail.tasks for step in task]
    tools = next((list(step.tools) for step in steps if step.tools), None)
    return {
        "session": trajectory.session,
        "scenario": trajectory.scenario.id,
        "epoch": trajectory.epoch,
        "run": run,
        "model": model,
        "tools": released_tools(trajectory.scenario) if tools is None else tools,
        "messages": [*_leading(steps[0].sent if steps else ()), *_played(detail)],
    }


def _leading(sent: Sequence[Message]) -> Iterator[Message]:
    for message in sent:
        if _role(message) == "user":
            return
        yield message


def _played(detail: SessionDetail) -> Iterator[Message]:
    for task, steps in zip(detail.trajectory.tasks, detail.tasks, strict=True):
        for reply, step in zip(task.replies, steps, strict=True):
            if step.sent and _role(step.sent[-1]) == "user":
                yield step.sent[-1]
            yield spoken(reply, step)
            yield from results(reply, step, UNANSWERED)


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else None


def spoken(reply: Reply, detail: StepDetail) -> Message:
    """What the LLM said, in plain chat form: no more than what is sent back to it."""
    thought = detail.message.get("reasoning_content") if isinstance(detail.message, Mapping) else None
    reasoning = {} if thought is None else {"reasoning_content": thought}
    if not reply.calls:
        return {"role": "assistant", **reasoning, "content": reply.content or ""}
    calls = plain_calls(reply, detail)
    for call in calls:
        call["function"]["arguments"] = as_text(call["function"]["arguments"])
    return {"role": "assistant", **reasoning, "content": reply.content, "tool_calls": calls}


def results(reply: Reply, detail: StepDetail, missing: str) -> Iterator[Message]:
    """What the calls of a reply were told; `missing` where that was nothing."""
    for call_id, _, observation in _told(reply, detail):
        content = missing if observation is None else observation
        yield {"role": "tool", "content": content, "tool_call_id": call_id}


def plain_calls(reply: Reply, detail: StepDetail) -> list[JSON]:
    """The tool calls in plain form, with the ids they went by and the arguments as they came."""
    return [
        {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call_id, call, _ in _told(reply, detail)
    ]


def as_text(arguments: Any) -> str:
    """The arguments of a call, which must be text, as text even where they are not."""
    return arguments if isinstance(arguments, str) else encode(arguments)


def _told(reply: Reply, detail: StepDetail) -> Iterator[tuple[str, ToolCall, str | None]]:
    """Each call with the id it went by and its observation, where the log has them call by call."""
    rows: list[tuple[str | None, str | None]] = list(zip(detail.call_ids, detail.observations, strict=True))
    if len(rows) != len(reply.calls):
        rows = [(None, None)] * len(reply.calls)
    for position, (call, (call_id, observation)) in enumerate(zip(reply.calls, rows, strict=True)):
        yield call_id or call.id or f"call_{position}", call, observation
