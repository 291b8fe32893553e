"""A Session as rows, and rows as a Session again. Pure: nothing that decides lives in a process alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from proxy.handing import Handed
from proxy.log.rows import StepRow, TaskEndRow, ToolCallRow
from proxy.offered import Offered
from proxy.outcomes import Outcome, for_agent, to_carry_out
from proxy.play import begin, judge, open_turn
from proxy.session import Decision, End, Message, Session
from proxy.wire.chat import completion, read_message, reply_of, usage_of
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
                outcome=it.outcome if it else None,
            )
            for position, (call, it) in enumerate(zip(calls, served, strict=True))
        ),
    )


def end_rows(session_id: str, before: Session, after: Session, now: float) -> list[TaskEndRow]:
    """The rows of the Tasks that ended between two states of a Session."""
    known = len(before.ends)
    return [TaskEndRow(session_id, known + i, end, now) for i, end in enumerate(after.ends[known:])]


class ReplayError(Exception):
    """What is stored of a Session is not what would be decided today; one line."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Where a stored Session stands: the outcome of each turn, and what the agent was handed last."""

    session: Session
    outcomes: dict[int, Outcome]
    handed: Handed | None = None


def replay(session: Session, stored: StoredSession) -> Replayed:
    """Plays what is stored of a Session over again. Raises ReplayError where a Step is decided otherwise."""
    outcomes: dict[int, Outcome] = {}
    handed: Handed | None = None
    for turn in stored.turns:
        session, handed = open_turn(session), None
        if turn.turn in stored.said:
            session = begin(session, stored.said[turn.turn], stored.asked.get(turn.turn))
        for step in (step for step in stored.steps if step.turn == turn.turn):
            session, decision = _again(session, step)
            given = _given(stored, turn.turn, step)
            if decision.action != "observe":
                outcome = for_agent(given, step.message, decision, _tokens(given))
                outcomes[turn.turn], handed = Outcome(outcome), None
            elif session.config.hands_over:
                calls = to_carry_out(given, step.message, decision.served, _tokens(given), Offered())
                handed = _handed(stored, turn.turn, calls)
    if len(stored.ends) > len(session.ends):
        # The last Task was left and no turn was opened after it.
        session = open_turn(session)
    ends = tuple(cast(End, end.end) for end in stored.ends)
    failed = session.task_is_open and _has_failed(stored)
    return Replayed(replace(session, ends=ends, failed=failed), outcomes, handed)


def _again(session: Session, step: StepRow) -> tuple[Session, Decision]:
    content, calls = reply_of(step.message)
    name = session.name
    session, decision = judge(session, step.message, content, calls)
    if (decision.action, decision.nodes) != (step.decision, step.nodes):
        raise ReplayError(
            f"session {name}, task {step.task + 1}, step {step.step + 1} was decided as "
            f"{step.decision!r} and would be {decision.action!r} now: begin a new run"
        )
    return session, decision


def _handed(stored: StoredSession, turn: int, calls: Message) -> Handed:
    """Calls that the agent was given, by the names under which it was, if it was."""
    exchanges = [exchange for exchange in stored.exchanges if exchange.turn == turn]
    ids = [call.id for call in reply_of(read_message(calls))[1]]
    for exchange in exchanges:
        if [call.id for call in reply_of(exchange.message)[1]] == ids:
            calls = {**calls, "choices": [{**calls["choices"][0], "message": exchange.message}]}
    asked = frozenset(exchange.request_sha256 for exchange in exchanges[-1:])
    return Handed(Outcome(calls, final=False), control=False, asked=asked)


def _given(stored: StoredSession, turn: int, step: StepRow) -> Message:
    """What the agent was given of the turn besides its text: id, model, time and tokens."""
    for exchange in reversed(stored.exchanges):
        if exchange.turn == turn and exchange.finish_state == "complete":
            return completion(
                id=exchange.response_id or "",
                created=int(exchange.started_at),
                model=exchange.response_model or "",
                usage=exchange.tokens,
            )
    return completion(id=f"chatcmpl-{step.exchange_id}", created=int(step.decided_at), model="")


def _tokens(response: Message) -> tuple[int, int]:
    given, made = usage_of(response)
    return given or 0, made or 0


def _has_failed(stored: StoredSession) -> bool:
    """Was the provider's failure the last that the open turn came to?"""
    turn = stored.turns[-1].turn
    ended = [ex.finish_state for ex in stored.exchanges if ex.turn == turn and ex.finish_state != "pending"]
    return ended[-1:] == ["provider_error"]
