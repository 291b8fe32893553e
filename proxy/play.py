"""What happens next in a Session. Pure: no network, no clock, no storage.

A Session (`proxy.session`) is a value. `open_turn` lets the user speak, `begin` puts the agent's message with
these words into the record, `judge` decides on one assistant message of the LLM. Whatever an
agent echoes, the record that decides is the one kept here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from proxy.echo import alias_of, call_ids, echo
from proxy.refusals import refusal
from proxy.session import TASK_OVER, Decision, End, Message, Outcome, PlayedTurn, Served, Session, Turn, shown
from scenarios.assign import assign_calls
from scenarios.history import observation_text
from scenarios.live import LiveStep, Progress, begin_task, take
from scenarios.matcher import Match, start
from scenarios.reference import ready
from scenarios.steps import Mismatch, did, take_step
from scenarios.strict.by_name import takes_by_name
from scenarios.strict.rulebooks import is_right
from scenarios.types import Reply, Task, ToolCall

NOT_RELEASED = "right by the graph, but the released harness ends the task here"
"""Begins the reason of a Step that only the released harness refuses."""


def open_turn(session: Session) -> Session:
    """The user's next turn: the scripted reply if the LLM asked, else the next Task's words.

    A Task that is still open otherwise ends as `agent_stopped`, or as `infrastructure` if it
    was the provider that failed; a `live` Session ends with it. When there is no Task left
    the Session comes back with `over` true and no new turn.
    """
    number = session.turn.number + 1 if session.turn else 1
    if session.task_is_open and session.reply is not None and session.turn is not None:
        turn = Turn(number, session.turn.task, "reply", session.reply)
        return replace(session, turn=turn, reply=None)
    session = _left(session) if session.task_is_open else session
    if session.over:
        return session
    task = session.scenario.tasks[len(session.ends)]
    progress = None
    if session.config.on_mismatch == "continue":
        scenario = session.scenario
        progress = begin_task(scenario.tools, task.nodes, session.progress, notes=scenario.notes)
    return replace(
        session,
        turn=Turn(number, len(session.ends), "task", task.text),
        state=start(task.nodes),
        progress=progress,
        task_from=number,
        done=frozenset(),
        served=frozenset(),
        steps=0,
        reply=None,
    )


def _left(session: Session) -> Session:
    """The open Task is left; what comes after it cannot be reached with a history that breaks off."""
    left: End = "infrastructure" if session.failed else "agent_stopped"
    session = replace(_ended(session, left), failed=False)
    while session.config.history == "live" and not session.over:
        session = _ended(session, "not_reached")
    return session


def _ended(session: Session, end: End) -> Session:
    right = end == "closed" and session.state is not None
    return replace(session, ends=(*session.ends, end), names_right=(*session.names_right, right))


def begin(session: Session, said: Message, asked: Message | None = None) -> Session:
    """The agent asks for the turn: its user message, with the turn's words in it, joins the record.

    `asked` is the message as it came, if that is another one.
    """
    if session.turn is None or session.begun == session.turn.number:
        return session
    turn = PlayedTurn(session.turn.number, session.turn.words, asked or said, said)
    return replace(session, record=(*session.record, turn), begun=turn.number)


def heard(session: Session, *messages: Message, handed: frozenset[str] = frozenset()) -> Session:
    """The current turn with more messages in it; `handed` are ids of calls that the agent was given."""
    turn = session.record[-1]
    turn = replace(turn, messages=(*turn.messages, *messages), handed=turn.handed | handed)
    return replace(session, record=(*session.record[:-1], turn))


def _spoken(session: Session, text: str | None) -> Session:
    session = heard(session, {"role": "assistant", "content": text})
    return replace(session, record=(*session.record[:-1], replace(session.record[-1], done=True)))


def provider_failed(session: Session) -> Session:
    """The provider gave no Step: should the Task be left now, it is not the agent's fault."""
    return replace(session, failed=True)


def judge(
    session: Session, message: Message, content: str | None, calls: Sequence[ToolCall]
) -> tuple[Session, Decision]:
    """Decides on one assistant message. `content` and `calls` are what was read from it.

    With `stop`, names decide and a wrong Step ends the Task: one that neither the released harness
    takes nor the graph allows, since some scorer may find the others right. With `continue` it goes
    on, and each call gets what a real tool would say.
    """
    reply = Reply(content, tuple(calls))
    taken = None if session.state is None else take_step(session.state, reply)
    session = replace(session, steps=session.steps + 1, failed=False)
    if session.progress is not None:
        return _pass(session, session.progress, message, reply, taken)
    if not isinstance(taken, Match):
        return _beyond_released(session, message, reply, taken)
    if taken.kind == "call":
        return _observe(session, message, calls, taken)
    session = replace(session, state=taken.state, done=session.done | set(taken.nodes))
    return _text(session, content, taken.kind, taken.nodes, None)


def _beyond_released(
    session: Session, message: Message, reply: Reply, refused: Mismatch | None
) -> tuple[Session, Decision]:
    """A Step that the released harness does not take; `refused` is None if it refused an earlier one."""
    nodes = _task(session).nodes
    # A closing node is done when it was called as if it were a tool: the close is still to come.
    done = frozenset(
        {i for i in session.served if nodes[i].is_call} | {i for i in session.done if nodes[i].is_ask}
    )
    taken = takes_by_name(nodes, done, reply, partial(is_right, session.scenario))
    if taken is None:
        allowed = tuple((nodes[i].name,) for i in ready(nodes, done))
        return _stop(session, (refused or Mismatch(did(reply), allowed)).reason)
    reason = None if refused is None else f"{NOT_RELEASED}: {refused.reason}"
    kind, found = taken
    if kind == "call":
        session = replace(session, state=None, served=session.served | set(found))
        told: list[tuple[str, int | None, Outcome]] = [
            (_told(session, node), node, "served") for node in found
        ]
        session, served = _serve(session, message, reply.calls, told)
        return session, Decision("observe", tuple(sorted(found)), served, reason)
    session = replace(session, state=None, done=session.done | set(found))
    return _text(session, reply.content, kind, found, reason)


def _stop(session: Session, reason: str) -> tuple[Session, Decision]:
    return _ended(_spoken(session, TASK_OVER), "stopped"), Decision("stop", reason=reason)


def _text(
    session: Session,
    content: str | None,
    kind: Literal["ask", "close"],
    nodes: tuple[int, ...],
    reason: str | None,
) -> tuple[Session, Decision]:
    session = _spoken(session, shown(content))
    if kind == "ask":
        asked = _task(session).nodes[nodes[0]]
        return replace(session, reply=asked.user_input or ""), Decision("ask", nodes, reason=reason)
    return _ended(session, "closed"), Decision("close", nodes, reason=reason)


def _pass(
    session: Session, progress: Progress, message: Message, reply: Reply, taken: Match | Mismatch | None
) -> tuple[Session, Decision]:
    """Judges a Step where a wrong one does not end the Task (see `scenarios.live`)."""
    step = take(progress, reply)
    reason = taken.reason if isinstance(taken, Mismatch) else None
    state = taken.state if isinstance(taken, Match) else None
    if step.kind == "nothing":
        return _stop(session, reason or "replied with neither text nor tool calls")
    if step.kind == "calls" and session.steps >= session.config.max_steps:
        return _stop(session, f"{session.steps} steps and not at the end: --max-steps bounds a task")
    if isinstance(taken, Match) and step.kind in ("ask", "close") and taken.nodes != step.nodes:
        reason = f"replied in text, taken for {'a question' if step.kind == 'ask' else 'the end'}"
        state = None
    if any(answer.node is None or answer.redundant for answer in step.answers):
        state = None
    session = replace(session, state=state, progress=step.progress, done=step.progress.done)
    if step.kind == "calls":
        return _answer(session, message, reply.calls, step, reason)
    return _text(session, reply.content, step.kind, step.nodes, reason)


def _answer(
    session: Session, message: Message, calls: Sequence[ToolCall], step: LiveStep, reason: str | None
) -> tuple[Session, Decision]:
    told: list[tuple[str, int | None, Outcome]] = []
    for call, answer in zip(calls, step.answers, strict=True):
        if answer.text is not None:
            told.append((answer.text, answer.node, "redundant" if answer.redundant else "served"))
        else:
            outcome, text = refusal(session.scenario.tools, call)
            told.append((text, None, outcome))
    session, served = _serve(session, message, calls, told)
    wrong = [f"{it.call.name}: {it.outcome}" for it in served if it.outcome != "served"]
    return session, Decision("observe", step.nodes, served, "; ".join(filter(None, [reason, *wrong])) or None)


def _task(session: Session) -> Task:
    assert session.turn is not None
    return session.scenario.tasks[session.turn.task]


def _observe(
    session: Session, message: Message, calls: Sequence[ToolCall], match: Match
) -> tuple[Session, Decision]:
    meant = _meant(session, calls, match)
    nodes = _by_name(session, match) if session.config.observations == "released" else meant
    told: list[tuple[str, int | None, Outcome]] = [(_told(session, node), node, "served") for node in nodes]
    session = replace(
        session,
        state=match.state,
        done=session.done | set(match.nodes),
        served=session.served | {node for node in meant if node is not None},
    )
    session, served = _serve(session, message, calls, told)
    return session, Decision("observe", match.nodes, served)


def _serve(
    session: Session,
    message: Message,
    calls: Sequence[ToolCall],
    told: Sequence[tuple[str, int | None, Outcome]],
) -> tuple[Session, tuple[Served, ...]]:
    """Puts a Step and what its calls were told into the record."""
    before = (*session.past, *session.thread) if session.config.history == "live" else session.thread
    known = {it.get("tool_call_id") for it in before}
    place = place_of(session)
    ids = call_ids(calls, known, place)
    given = [alias_of(place, k) if session.config.hands_over else None for k in range(len(calls))]
    served = tuple(
        Served(call, call_id, text, node, outcome, alias)
        for call, call_id, alias, (text, node, outcome) in zip(calls, ids, given, told, strict=True)
    )
    results = [{"role": "tool", "content": it.observation, "tool_call_id": it.id} for it in served]
    handed = frozenset(ids) if session.config.hands_over else frozenset()
    session = heard(session, echo(message, calls, ids), *results, handed=handed)
    aliases = {it.given: it.id for it in served if it.given}
    return replace(session, aliases={**session.aliases, **aliases}), served


def place_of(session: Session) -> str:
    """Names the Step that was judged last, like no other of the Run."""
    assert session.turn is not None
    return f"{session.name}\x00{session.turn.number}\x00{session.steps}"


def _told(session: Session, node: int | None) -> str:
    return "" if node is None else observation_text(_task(session).nodes[node].observation)


def _by_name(session: Session, match: Match) -> list[int | None]:
    """Whose Observation each call gets from the released harness, whatever it asked for."""
    nodes = _task(session).nodes
    by_name = sorted(match.nodes, key=lambda i: nodes[i].name)
    return list[int | None](by_name)


def _meant(session: Session, calls: Sequence[ToolCall], match: Match) -> list[int | None]:
    """Which node each call is for."""
    nodes = _task(session).nodes
    # By name and arguments among all nodes that could have been meant, not only those the
    # matcher took: it takes nodes of one name in annotation order, whatever was asked.
    open_to = session.done | session.served
    could = [
        i
        for i, node in enumerate(nodes)
        if i not in session.served and (i in match.nodes or set(node.dependencies) <= open_to)
    ]
    assigned = assign_calls(nodes, could, calls, partial(is_right, session.scenario))
    spare = [i for i in match.nodes if i not in assigned]
    return [spare.pop(0) if node is None and spare else node for node in assigned]
