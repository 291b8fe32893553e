"""A Session as rows, and rows as a Session again. Pure: nothing that decides lives in a process alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from proxy.echo import argument_text
from proxy.handing import Control, Handed, HandedOver, carried_out, known_by
from proxy.log.rows import HandoverRow, StepRow, TaskEndRow, ToolCallRow
from proxy.offered import Offered
from proxy.outcomes import FINAL_ANSWER, Outcome, for_agent, handed_over, to_carry_out
from proxy.play import begin, judge, open_turn
from proxy.session import Decision, End, Message, Session
from proxy.wire.chat import completion, read_message, reply_of, usage_of
from proxy.wire.errors import PROXY_FAULT
from scenarios.types import ToolCall

if TYPE_CHECKING:
    from proxy.log.restore import StoredExchange, StoredSession


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
                arguments=None if call.arguments is None else argument_text(call.arguments),
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
    """Where a stored Session stands: the outcome of each turn, and what the last one's agent was handed."""

    session: Session
    outcomes: dict[int, Outcome]
    handed: HandedOver


def replay(session: Session, stored: StoredSession) -> Replayed:
    """Plays what is stored of a Session over again. Raises ReplayError where a Step is decided otherwise."""
    outcomes: dict[int, Outcome] = {}
    out: Handed | None = None
    for turn in stored.turns:
        session, out = open_turn(session), None
        if turn.turn in stored.said:
            session = begin(session, stored.said[turn.turn], stored.asked.get(turn.turn))
        for happened in _happened(stored, turn.turn):
            if isinstance(happened, HandoverRow):
                session, out = _handed_again(session, stored, happened)
                continue
            session, decision = _judged_again(session, happened)
            given = _given(stored, turn.turn, happened.exchange_id, happened.decided_at)
            out = None
            if decision.action != "observe":
                outcomes[turn.turn] = Outcome(for_agent(given, happened.message, decision, _tokens(given)))
            elif session.config.hands_over:
                calls = to_carry_out(given, happened.message, decision.served, _tokens(given), Offered())
                out = Handed(Outcome(calls, final=False))
    if len(stored.ends) > len(session.ends):
        # The last Task was left and no turn was opened after it.
        session = open_turn(session)
    ends = tuple(cast(End, end.end) for end in stored.ends)
    right = tuple(session.names_right[i : i + 1] == (True,) for i in range(len(ends)))
    failed = session.task_is_open and _has_failed(stored)
    session = replace(session, ends=ends, names_right=right, failed=failed)
    return Replayed(session, outcomes, _handed_over(stored, out))


def _happened(stored: StoredSession, turn: int) -> list[StepRow | HandoverRow]:
    """The Steps of a turn and the hand-overs between them, in order."""
    every: tuple[StepRow | HandoverRow, ...] = (*stored.handovers, *stored.steps)
    happened = [it for it in every if it.turn == turn]
    # The sort keeps the order of equals: hand-overs by position, before the Step with their number.
    return sorted(happened, key=lambda it: it.step)


def _judged_again(session: Session, step: StepRow) -> tuple[Session, Decision]:
    content, calls = reply_of(step.message)
    name = session.name
    session, decision = judge(session, step.message, content, calls)
    if (decision.action, decision.nodes) != (step.decision, step.nodes):
        raise ReplayError(
            f"session {name}, task {step.task + 1}, step {step.step + 1} was decided as "
            f"{step.decision!r} and would be {decision.action!r} now: begin a new run"
        )
    return session, decision


def _handed_again(session: Session, stored: StoredSession, row: HandoverRow) -> tuple[Session, Handed | None]:
    """Control calls, carried out if they were."""
    control = Control(row.position, row.message, row.aliases)
    session = known_by(session, control)
    if row.results is not None:
        return carried_out(session, control, row.results), None
    given = _given(stored, row.turn, row.exchange_id, 0.0)
    calls = handed_over(given, row.message, _tokens(given), list(row.aliases))
    return session, Handed(Outcome(calls, final=False), control)


def _handed_over(stored: StoredSession, out: Handed | None) -> HandedOver:
    """What each request of the last turn was given to carry out, as the log has it; and what is out."""
    given: dict[str, Outcome] = {}
    turn = stored.turns[-1].turn if stored.turns else 0
    for exchange in stored.exchanges:
        calls = reply_of(exchange.message)[1]
        if exchange.turn != turn or not calls or calls[0].name == FINAL_ANSWER:
            continue
        outcome = Outcome(_whole(_answer_of(exchange), exchange.message), final=False)
        given[exchange.request_sha256] = outcome
        if out is not None and _is_same(calls, _calls_of(out.outcome)):
            # As the agent was given them: in its dialect, and under the names that it has for its tools.
            out = replace(out, outcome=outcome, given=True)
    return HandedOver(out, given, sum(row.turn == turn for row in stored.handovers))


def _calls_of(outcome: Outcome) -> Sequence[ToolCall]:
    return reply_of(read_message(outcome.response))[1]


def _is_same(given: Sequence[ToolCall], calls: Sequence[ToolCall]) -> bool:
    """Are these the calls that were given? The dialect of `functions` has no ids."""
    if [call.id for call in given] == [call.id for call in calls]:
        return True
    return [(None, call.arguments) for call in calls] == [(call.id, call.arguments) for call in given]


def _whole(response: Message, message: Message | None) -> Message:
    choice = {**response["choices"][0], "message": message}
    reason = "function_call" if message and message.get("function_call") else "tool_calls"
    return {**response, "choices": [{**choice, "finish_reason": reason}]}


def _answer_of(exchange: StoredExchange) -> Message:
    return completion(
        id=exchange.response_id or "",
        created=int(exchange.started_at),
        model=exchange.response_model or "",
        usage=exchange.tokens,
    )


def _given(stored: StoredSession, turn: int, exchange_id: str, decided_at: float) -> Message:
    """What the agent was given of the turn besides its text: id, model, time and tokens."""
    for exchange in reversed(stored.exchanges):
        if exchange.turn == turn and exchange.finish_state == "complete":
            return _answer_of(exchange)
    return completion(id=f"chatcmpl-{exchange_id}", created=int(decided_at), model="")


def _tokens(response: Message) -> tuple[int, int]:
    given, made = usage_of(response)
    return given or 0, made or 0


def _has_failed(stored: StoredSession) -> bool:
    """Was a failure of the provider, or a fault of the proxy, the last that the open turn came to?"""
    turn = stored.turns[-1].turn
    ended = [ex for ex in stored.exchanges if ex.turn == turn and ex.finish_state != "pending"]
    return bool(ended) and (ended[-1].finish_state == "provider_error" or ended[-1].error_type == PROXY_FAULT)
