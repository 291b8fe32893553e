"""What happens next in a Session. Pure: no network, no clock, no storage.

A Session is a value. `open_turn` lets the user speak, `begin` puts the agent's message with
these words into the thread, `judge` decides on one assistant message of the LLM. Whatever an
agent echoes, the record that decides is the one kept here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from scenarios.assign import assign_calls
from scenarios.history import observation_text
from scenarios.matcher import Match, State, start
from scenarios.steps import Mismatch, take_step
from scenarios.types import Reply, Scenario, Task, ToolCall

Message = dict[str, Any]
End = Literal["closed", "stopped", "agent_stopped", "infrastructure"]

SESSION_OVER = "[session over]"
"""What every request gets after the last Task; the provider is not called."""

TASK_OVER = "[task over]"
"""What the agent gets in place of a wrong Step, which ends the Task."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A user turn: its number (from 1), the Task it belongs to (0-based), its words."""

    number: int
    task: int
    kind: Literal["task", "reply"]
    words: str


@dataclass(frozen=True, slots=True)
class Session:
    """Where a Session stands.

    `ends` has an entry for each Task that is over. `thread` is the current Task's
    conversation as the LLM sees it, from the user's first words on. `begun` is the last
    turn whose words are in the thread. `done` are the nodes the matcher took Steps for,
    `served` those whose Observation was given: they can differ where names repeat.
    `reply` is the scripted reply to an accepted ask, until it is given. `failed` says that
    the provider failed after the last accepted Step.
    """

    name: str
    scenario: Scenario
    turn: Turn | None = None
    begun: int = 0
    ends: tuple[End, ...] = ()
    state: State | None = None
    thread: tuple[Message, ...] = ()
    done: frozenset[int] = frozenset()
    served: frozenset[int] = frozenset()
    steps: int = 0
    reply: str | None = None
    failed: bool = False

    @property
    def task_is_open(self) -> bool:
        return self.turn is not None and self.turn.task == len(self.ends)

    @property
    def over(self) -> bool:
        return len(self.ends) == len(self.scenario.tasks)


@dataclass(frozen=True, slots=True)
class Served:
    """A tool call and what it was told. `id` is the one used in the thread."""

    call: ToolCall
    id: str
    observation: str | None
    node: int | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a Step came to.

    `action`: `observe` (loop on with the provider), `ask` or `close` (the text goes to the
    agent), `stop` (the Task is over; the agent gets `TASK_OVER`). `nodes` are what the
    matcher took the Step for, `mismatch` is why it took a stopped one for none.
    """

    action: Literal["observe", "ask", "close", "stop"]
    nodes: tuple[int, ...] = ()
    served: tuple[Served, ...] = ()
    mismatch: Mismatch | None = None

    @property
    def reason(self) -> str | None:
        """Why the Step was stopped, for the log: it names what the Reference allows."""
        return None if self.mismatch is None else self.mismatch.reason


def open_turn(session: Session) -> Session:
    """The user's next turn: the scripted reply if the LLM asked, else the next Task's words.

    A Task that is still open otherwise ends as `agent_stopped`, or as `infrastructure` if it
    was the provider that failed. When there is no Task left
    the Session comes back with `over` true and no new turn.
    """
    number = session.turn.number + 1 if session.turn else 1
    if session.task_is_open and session.reply is not None and session.turn is not None:
        turn = Turn(number, session.turn.task, "reply", session.reply)
        return replace(session, turn=turn, reply=None)
    left: End = "infrastructure" if session.failed else "agent_stopped"
    ends = (*session.ends, left) if session.task_is_open else session.ends
    session = replace(session, ends=ends, failed=False)
    if session.over:
        return session
    task = len(ends)
    words = session.scenario.tasks[task].text
    return replace(
        session,
        turn=Turn(number, task, "task", words),
        state=start(session.scenario.tasks[task].nodes),
        thread=(),
        done=frozenset(),
        served=frozenset(),
        steps=0,
        reply=None,
    )


def begin(session: Session, said: Message) -> Session:
    """The agent asks for the turn: its user message, with the turn's words in it, joins the thread."""
    if session.turn is None or session.begun == session.turn.number:
        return session
    return replace(session, thread=(*session.thread, said), begun=session.turn.number)


def provider_failed(session: Session) -> Session:
    """The provider gave no Step: should the Task be left now, it is not the agent's fault."""
    return replace(session, failed=True)


def judge(
    session: Session, message: Message, content: str | None, calls: Sequence[ToolCall], observations: str
) -> tuple[Session, Decision]:
    """Decides on one assistant message. `content` and `calls` are what was read from it.

    As released, names decide and a wrong Step ends the Task (`--on-mismatch stop`).
    """
    assert session.state is not None
    match = take_step(session.state, Reply(content, tuple(calls)))
    session = replace(session, steps=session.steps + 1, failed=False)
    if isinstance(match, Mismatch):
        return replace(session, ends=(*session.ends, "stopped")), Decision("stop", mismatch=match)
    if match.kind == "call":
        return _observe(session, message, calls, match, observations)
    thread = (*session.thread, {"role": "assistant", "content": content})
    session = replace(session, thread=thread, state=match.state, done=session.done | set(match.nodes))
    if match.kind == "ask":
        asked = _task(session).nodes[match.nodes[0]]
        return replace(session, reply=asked.user_input or ""), Decision("ask", match.nodes)
    return replace(session, ends=(*session.ends, "closed")), Decision("close", match.nodes)


def _task(session: Session) -> Task:
    assert session.turn is not None
    return session.scenario.tasks[session.turn.task]


def _observe(
    session: Session,
    message: Message,
    calls: Sequence[ToolCall],
    match: Match,
    observations: str,
) -> tuple[Session, Decision]:
    nodes = _answering(session, calls, match, observations)
    ids = _call_ids(session, calls)
    served = tuple(
        Served(call, call_id, _told(session, node), node)
        for call, call_id, node in zip(calls, ids, nodes, strict=True)
    )
    results = [{"role": "tool", "content": it.observation, "tool_call_id": it.id} for it in served]
    session = replace(
        session,
        state=match.state,
        done=session.done | set(match.nodes),
        thread=(*session.thread, _echo(message, calls, ids), *results),
        served=session.served | {node for node in nodes if node is not None},
    )
    return session, Decision("observe", match.nodes, served)


def _told(session: Session, node: int | None) -> str:
    return "" if node is None else observation_text(_task(session).nodes[node].observation)


def _answering(
    session: Session, calls: Sequence[ToolCall], match: Match, observations: str
) -> list[int | None]:
    """Which node's Observation each call gets."""
    nodes = _task(session).nodes
    if observations == "released":
        by_name = sorted(match.nodes, key=lambda i: nodes[i].name)
        return list[int | None](by_name)
    # By name and arguments among all nodes that could have been meant, not only those the
    # matcher took: it takes nodes of one name in annotation order, whatever was asked.
    open_to = session.done | session.served
    could = [
        i
        for i, node in enumerate(nodes)
        if i not in session.served and (i in match.nodes or set(node.dependencies) <= open_to)
    ]
    assigned = assign_calls(nodes, could, calls)
    spare = [i for i in match.nodes if i not in assigned]
    return [spare.pop(0) if node is None and spare else node for node in assigned]


def _call_ids(session: Session, calls: Sequence[ToolCall]) -> list[str]:
    """The provider's ids, where each is given once in the Task; else ids of our own."""
    taken = {message.get("tool_call_id") for message in session.thread}
    ids: list[str] = []
    for position, call in enumerate(calls):
        usable = isinstance(call.id, str) and call.id and call.id not in taken
        ids.append(call.id if usable and call.id else _own_id(session, position))
        taken.add(ids[-1])
    return ids


def _own_id(session: Session, position: int) -> str:
    number = session.turn.number if session.turn else 0
    seed = f"{session.name}\x00{number}\x00{session.steps}\x00{position}"
    return f"call_{hashlib.sha256(seed.encode()).hexdigest()[:24]}"


def _echo(message: Message, calls: Sequence[ToolCall], ids: Sequence[str]) -> Message:
    """The assistant message as the released harness sends it back, with the ids in use."""
    raw = message.get("tool_calls")
    if not isinstance(raw, list) or len(raw) != len(calls):
        raw = [{"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    thought = message.get("reasoning_content")
    reasoning = {} if thought is None else {"reasoning_content": thought}
    with_ids = [{**call, "id": call_id} for call, call_id in zip(raw, ids, strict=True)]
    return {"role": "assistant", **reasoning, "content": message.get("content"), "tool_calls": with_ids}
