"""Plays planned Sessions: opens turns, gives their prompts to an agent, writes down what failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from proxy.drive.agent import Agent, AgentFactory, AgentKilled, AgentSession, placeholder_key
from proxy.drive.client import ControlClient, ControlError, ProxyLost
from proxy.drive.plan import Planned
from proxy.drive.states import Opened, SessionState, Turn
from proxy.drive.work import CANCEL_GRACE_S, failure_reason, one_line, settled

MAX_ATTEMPTS = 3
"""How often a Session is begun whose agent lost the proxy."""

FailureKind = Literal["agent", "timeout", "proxy"]
SessionEnd = Literal["over", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong in a Session; `turn` is None where it was not in a turn.

    `kind`: `agent` (it raised, or what it was given by the provider failed it), `timeout`
    (it took longer than the turn timeout), `proxy` (the control API failed).
    """

    session: str
    turn: int | None
    kind: FailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that went wrong with an agent in a turn that it had answered all the same."""

    session: str
    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class Played:
    """A Session that was begun. `state` is the last one known; None if there was none.

    `end`: `over` (played to its end), `failed` (given up because the proxy failed),
    `cancelled` (the drive was stopped). `already`: it was over before the drive began.
    """

    planned: Planned
    session: str
    end: SessionEnd
    state: SessionState | None
    failures: tuple[Failure, ...]
    notes: tuple[Note, ...] = ()
    already: bool = False


@dataclass(frozen=True, slots=True)
class DriveReport:
    """What became of a plan, each part in the order of the plan.

    `halted` says why the drive gave up, if it did; `interrupted`: it was cancelled.
    """

    played: tuple[Played, ...]
    not_started: tuple[Planned, ...]
    halted: str | None = None
    interrupted: bool = False

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(failure for played in self.played for failure in played.failures)

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(note for played in self.played for note in played.notes)

    @property
    def unfinished(self) -> tuple[Played, ...]:
        """The Sessions that were begun and are not over."""
        return tuple(played for played in self.played if played.end != "over")

    @property
    def complete(self) -> bool:
        """Every Session was played to its end and no turn failed."""
        return not (self.not_started or self.unfinished or self.failures)


class Watcher(Protocol):
    """Is told what happens, while it happens."""

    def moved(self, state: SessionState) -> None:
        """A turn was played."""

    def failed(self, failure: Failure) -> None: ...

    def finished(self, played: Played) -> None: ...


async def drive(
    control: ControlClient,
    planned: Sequence[Planned],
    factory: AgentFactory,
    *,
    concurrency: int,
    turn_timeout: float,
    progress: Watcher,
    api_key: Callable[[str], str] = placeholder_key,
) -> DriveReport:
    """Plays the Sessions, `concurrency` at a time, begun in the order of the plan.

    A Session that is over is left alone; one that an earlier drive has begun is begun anew.
    A turn that fails, or takes longer than `turn_timeout` seconds, is written down and the
    Session goes on with its next turn. A Session whose control request fails ends; when
    the proxy is lost everything ends. A cancellation ends the running Sessions and is
    answered by the report (`interrupted`), not by CancelledError: what was not played must
    be said.
    """
    drive = _Drive(control, factory, turn_timeout, progress, api_key)
    todo = iter(enumerate(planned))
    interrupted = False
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(max(concurrency, 1), len(planned))):
                drive.workers.append(group.create_task(drive.work(todo)))
    except asyncio.CancelledError:
        interrupted = True
        _answer_cancellation()
    except ExceptionGroup as errors:
        # Of the watcher, say: one that cannot write ends the drive.
        raise errors.exceptions[0] from errors
    return DriveReport(
        played=tuple(drive.played[position] for position in sorted(drive.played)),
        not_started=tuple(item for position, item in enumerate(planned) if position not in drive.played),
        halted=drive.halted,
        interrupted=interrupted,
    )


class ProxyRestarted(Exception):
    """The proxy was started anew while an agent failed a turn: the failure is not the agent's."""


class _Drive:
    """The mutable side of one drive."""

    def __init__(
        self,
        control: ControlClient,
        factory: AgentFactory,
        turn_timeout: float,
        progress: Watcher,
        api_key: Callable[[str], str],
    ) -> None:
        self._control = control
        self._factory = factory
        self._turn_timeout = turn_timeout
        self._progress = progress
        self._api_key = api_key
        self.workers: list[asyncio.Task[None]] = []
        self.played: dict[int, Played] = {}
        self.halted: str | None = None

    async def work(self, todo: Iterator[tuple[int, Planned]]) -> None:
        """Plays Sessions until none is left; all workers take from the same iterator."""
        for position, planned in todo:
            session = _Playing(planned)
            try:
                await self._play(session)
            except ControlError as error:
                session.end = "failed"
                self._fail(session, None, "proxy", one_line(str(error)))
                if isinstance(error, ProxyLost):
                    self._halt(one_line(str(error)))
                    return
            finally:
                self.played[position] = session.result()
                self._progress.finished(self.played[position])

    async def _play(self, session: _Playing) -> None:
        planned = session.planned
        for attempt in range(MAX_ATTEMPTS):
            opened = await self._opened(planned, again=attempt > 0)
            session.name = opened.session
            session.already = opened.over and attempt == 0
            cause = None if opened.over else await self._attempt(session, opened)
            if not isinstance(cause, ProxyRestarted):
                break
        session.state = await self._control.state(session.name)
        session.end = "over" if cause is None else "failed"

    async def _opened(self, planned: Planned, *, again: bool) -> Opened:
        """The Session, over or not yet begun: no agent can go on where another's conversation broke off."""
        opened = await self._control.create(planned.scenario, planned.epoch, again=again)
        if opened.turn > 0 and not opened.over:
            return await self._control.create(planned.scenario, planned.epoch, again=True)
        return opened

    async def _attempt(self, session: _Playing, opened: Opened) -> AgentKilled | ProxyRestarted | None:
        """Plays a Session to its end; else what ended it that was not the agent's doing."""
        agent = self._factory(self._agent_session(opened))
        number, error = opened.turn, None
        try:
            while turn := await self._control.open_turn(session.name, number, wait=error is None):
                number = turn.number
                error = await self._answer(agent, session, turn)
                if isinstance(error, AgentKilled):
                    return error
                if error is not None and session.state and session.state.process != opened.process:
                    return ProxyRestarted()
        finally:
            await self._close(agent, session)
        return None

    async def _answer(self, agent: Agent, session: _Playing, turn: Turn) -> BaseException | None:
        """Plays a turn; what the agent raised, or TimeoutError."""
        task = await settled(agent.turn(turn.prompt, turn.number), self._turn_timeout)
        if task is None:
            self._fail(session, turn.number, "timeout", await self._overdue(agent, session, turn.number))
        elif failed := failure_reason(task):
            self._fail(session, turn.number, "agent", failed)
        elif note := task.result().note:
            session.notes.append(Note(session.name, turn.number, one_line(note)))
        session.state = await self._control.state(session.name)
        self._progress.moved(session.state)
        return TimeoutError() if task is None else task.exception()

    async def _overdue(self, agent: Agent, session: _Playing, turn: int) -> str:
        """What there is to say of an agent that took too long."""
        reason = f"no answer within {self._turn_timeout:g} s"
        with suppress(ControlError):
            if (await self._control.state(session.name)).asked < turn:
                reason += ": it sent the proxy no request for the turn that could be played"
        words = agent.last_words()
        return one_line(f"{reason}; its last words: {words}" if words else reason)

    def _agent_session(self, opened: Opened) -> AgentSession:
        name = opened.session
        return AgentSession(name, opened.url, self._api_key(name), partial(self._control.delivery, name))

    async def _close(self, agent: Agent, session: _Playing) -> None:
        task = await settled(agent.close(), CANCEL_GRACE_S)
        if task is None:
            self._fail(session, None, "timeout", f"did not close within {CANCEL_GRACE_S:g} s")
        elif reason := failure_reason(task):
            self._fail(session, None, "agent", f"on closing: {reason}")

    def _fail(self, session: _Playing, turn: int | None, kind: FailureKind, reason: str) -> None:
        failure = Failure(session.name, turn, kind, reason)
        session.failures.append(failure)
        self._progress.failed(failure)

    def _halt(self, reason: str) -> None:
        self.halted = self.halted or reason
        for worker in self.workers:
            if worker is not asyncio.current_task():
                worker.cancel()


class _Playing:
    """A Session while it is played."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.name = f"{planned.scenario}.e{planned.epoch}"
        self.end: SessionEnd = "cancelled"
        self.state: SessionState | None = None
        self.failures: list[Failure] = []
        self.notes: list[Note] = []
        self.already = False

    def result(self) -> Played:
        failures, notes = tuple(self.failures), tuple(self.notes)
        return Played(self.planned, self.name, self.end, self.state, failures, notes, self.already)


def _answer_cancellation() -> None:
    """The cancellation has been dealt with: whoever awaits this task again must not meet it."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
