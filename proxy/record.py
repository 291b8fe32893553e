"""A Session as rows, and rows as a Session again. Pure: nothing that decides lives in a process alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from proxy.log.rows import StepRow, TaskEndRow, ToolCallRow
from proxy.outcomes import Outcome, for_agent
from proxy.play import Decision, End, Message, Session, begin, judge, open_turn
from proxy.wire.chat import completion, reply_of
from scenarios.types import ToolCall

if TYPE_CHECKING:
    from proxy.log.restore import StoredSession


def step_row(
    session_id: str,
    before: Session,
    decision: Decision,
    message: Message,
    calls: Sequence[ToolCall],
    *,
    exchange_id: str,
    now: float,
) -> StepRow:
    """The row of a Step that was decided on where the Session stood at `before`."""
    assert before.turn is not None
    served = decision.served or [None] * len(calls)
    return StepRow(
        session_id=session_id,
        task=before.turn.task,
        step=before.steps,
        turn=before.turn.number,
        exchange_id=exchange_id,
        decided_at=now,
        decision=decision.action,
        message=message,
        nodes=decision.nodes,
        reason=decision.reason,
        calls=tuple(
            ToolCallRow(
                position=position,
                tool_call_id=it.id if it else call.id,
                name=call.name,
                arguments=call.arguments if isinstance(call.arguments, str) else None,
                observation=it.observation if it else None,
                node=it.node if it else None,
            )
            for position, (call, it) in enumerate(zip(calls, served, strict=True))
        ),
    )


def end_rows(session_id: str, before: Session, after: Session, now: float) -> list[TaskEndRow]:
    """The rows of the Tasks that ended between two states of a Session."""
    known = len(before.ends)
    return [TaskEndRow(session_id, known + i, end, now) for i, end in enumerate(after.ends[known:])]


def replay(session: Session, stored: StoredSession, observations: str) -> tuple[Session, dict[int, Outcome]]:
    """Plays what is stored of a Session over again: where it stands, and the outcome of each turn."""
    outcomes: dict[int, Outcome] = {}
    for turn in stored.turns:
        session = open_turn(session)
        if turn.turn in stored.said:
            session = begin(session, stored.said[turn.turn])
        for step in (step for step in stored.steps if step.turn == turn.turn):
            content, calls = reply_of(step.message)
            session, decision = judge(session, step.message, content, calls, observations)
            if decision.action != "observe":
                name = f"chatcmpl-{step.exchange_id}"
                base = completion(id=name, created=int(step.decided_at), model="")
                outcomes[turn.turn] = Outcome(for_agent(base, step.message, decision, (0, 0)))
    if len(stored.ends) > len(session.ends):
        # The last Task was left and no turn was opened after it.
        session = open_turn(session)
    ends = tuple(cast(End, end.end) for end in stored.ends)
    return replace(session, ends=ends), outcomes
