"""Plays planned Sessions: opens turns, gives their prompts to an agent, writes down what failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from proxy.drive.agent import (
    LAST_WORDS,
    Agent,
    AgentFactory,
    AgentFailure,
    AgentKilled,
    AgentSession,
    AgentSilent,
    AgentUnusable,
    placeholder_key,
)
from proxy.drive.client import ControlClient, ControlError, ProxyLost
from proxy.drive.plan import Planned
from proxy.drive.played import Failure, FailureKind, Note, Played, Playing
from proxy.drive.refusal import Refusal, told, unknown
from proxy.drive.states import Inject, Opened, SessionState, Turn
from proxy.drive.work import CANCEL_GRACE_S, answer_cancellation, failure_reason, one_line, raised, settled

MAX_ATTEMPTS = 3
"""How often a Session is begun whose agent lost the proxy."""


@dataclass(frozen=True, slots=True)
class DriveReport:
    """What became of a plan, each part in the order of the plan.

    `halted` says why the drive gave up, if it did; `hopeless`: before any turn was answered, because
    none would have been. `interrupted`: it was cancelled.
    """

    played: tuple[Played, ...]
    not_started: tuple[Planned, ...]
    halted: str | None = None
    interrupted: bool = False
    hopeless: bool = False

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

    def began(self, session: str, tasks: int) -> None:
        """A Session of so many Tasks is played from now on."""

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
    inject: Inject = "sentinel",
    refusal: Refusal = unknown,
) -> DriveReport:
    """Plays the Sessions, `concurrency` at a time, begun in the order of the plan.

    With `inject` "driver" agents are prompted with the user's words in place of the sentinel.
    `refusal(session, turn)` is why the proxy refused a request of the agent, if it did and that is known.
    A Session that is over is left alone; one that an earlier drive has begun is begun anew.
    A turn that fails, or takes longer than `turn_timeout` seconds, is written down and the
    Session goes on with its next turn. A Session whose control request fails ends; when
    the proxy is lost everything ends. So it does when the first agents end before they ask for
    anything, or the provider refuses the key, before any turn was answered: none of it is the
    agent's failure then, and a watcher is not told of it. A cancellation ends the running Sessions and is
    answered by the report (`interrupted`), not by CancelledError: what was not played must
    be said. Raises AgentUnusable if there turns out to be no agent before any turn was answered.
    """
    drive = _Drive(control, factory, turn_timeout, progress, api_key, inject, refusal)
    todo = iter(enumerate(planned))
    interrupted = False
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(max(concurrency, 1), len(planned))):
                drive.workers.append(group.create_task(drive.work(todo)))
    except asyncio.CancelledError:
        interrupted = True
        answer_cancellation()
    except ExceptionGroup as errors:
        # Of the watcher, say: one that cannot write ends the drive. Or there is no agent.
        raise errors.exceptions[0] from errors
    return DriveReport(
        played=tuple(drive.played[position] for position in sorted(drive.played)),
        not_started=tuple(item for position, item in enumerate(planned) if position not in drive.played),
        halted=drive.halted,
        interrupted=interrupted,
        hopeless=drive.hopeless,
    )


_NO_TEXT = "the proxy does not say what the user says, being of an earlier version: leave --inject driver out"


class ProxyRestarted(Exception):
    """The proxy was started anew while an agent failed a turn: the failure is not the agent's."""


class _Hopeless(Exception):
    """No Session could be played: one line on why."""


_KEY_REFUSED = frozenset({401, 403})


class _Drive:
    """The mutable side of one drive."""

    def __init__(
        self,
        control: ControlClient,
        factory: AgentFactory,
        turn_timeout: float,
        progress: Watcher,
        api_key: Callable[[str], str],
        inject: Inject,
        refusal: Refusal,
    ) -> None:
        self._control = control
        self._factory = factory
        self._turn_timeout = turn_timeout
        self._progress = progress
        self._api_key = api_key
        self._inject = inject
        self._refusal = refusal
        self._asked = self._answered = False
        self._silent: set[str] = set()
        self.workers: list[asyncio.Task[None]] = []
        self.played: dict[int, Played] = {}
        self.halted: str | None = None
        self.hopeless = False

    async def work(self, todo: Iterator[tuple[int, Planned]]) -> None:
        """Plays Sessions until none is left; all workers take from the same iterator."""
        for position, planned in todo:
            session = Playing(planned)
            try:
                await self._play(session)
            except ControlError as error:
                session.end = "failed"
                self._fail(session, None, "proxy", one_line(str(error)))
                if isinstance(error, ProxyLost):
                    self._halt(one_line(str(error)))
                    return
            except _Hopeless as hopeless:
                session.end, self.hopeless = "failed", True
                self._halt(one_line(str(hopeless)))
                return
            finally:
                self.played[position] = session.result()
                if not self.hopeless:
                    self._progress.finished(self.played[position])

    async def _play(self, session: Playing) -> None:
        planned = session.planned
        for attempt in range(MAX_ATTEMPTS):
            opened = await self._opened(planned, again=attempt > 0)
            session.name, session.url = opened.session, opened.url
            session.already = opened.over and attempt == 0
            if not opened.over:
                self._progress.began(session.name, planned.tasks)
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

    async def _attempt(self, session: Playing, opened: Opened) -> AgentKilled | ProxyRestarted | None:
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

    async def _answer(self, agent: Agent, session: Playing, turn: Turn) -> BaseException | None:
        """Plays a turn; what the agent raised, or TimeoutError."""
        if self._inject == "driver" and turn.text is None:
            raise ControlError(_NO_TEXT)
        task = await settled(agent.turn(turn.said(self._inject), turn.number), self._turn_timeout)
        error = TimeoutError() if task is None else raised(task)
        if isinstance(error, AgentUnusable) and not self._answered:
            raise AgentUnusable(one_line(f"no session can be played: the agent {error}"))
        if error is not None and not self._answered and (why := await self._hopeless(session.name, error)):
            raise _Hopeless(why)
        if task is None:
            self._fail(session, turn.number, "timeout", await self._overdue(agent, session, turn.number))
        elif failed := failure_reason(task):
            follows = isinstance(error, AgentFailure) and error.follows
            self._fail(session, turn.number, "agent", failed, follows)
        elif note := task.result().note:
            session.notes.append(Note(session.name, turn.number, one_line(note)))
        session.state = await self._control.state(session.name)
        self._asked = self._asked or session.state.asked > 0
        self._answered = self._answered or session.state.answered > 0
        self._progress.moved(session.state)
        return error

    async def _hopeless(self, name: str, error: BaseException) -> str | None:
        """Why no Session could be played after such a failure of the first turns; None if one could."""
        with suppress(ControlError):
            state = await self._control.state(name)
            if state.failed_status in _KEY_REFUSED and not state.answered:
                refused = f"the provider refused the key (HTTP {state.failed_status})"
                return f"{refused}; set OPENAI_API_KEY, or --provider-key-env"
            self._asked = self._asked or state.asked > 0
            if isinstance(error, AgentSilent) and not self._asked:
                self._silent.add(name)
                self._asked = await self._control.some_ask(self._silent)
        return f"the agent {error.said}" if isinstance(error, AgentSilent) and not self._asked else None

    async def _overdue(self, agent: Agent, session: Playing, turn: int) -> str:
        """What there is to say of an agent that took too long."""
        reason, hint = f"no answer within {self._turn_timeout:g} s", ""
        with suppress(ControlError):
            state = await self._control.state(session.name)
            if state.asked < turn:
                reason += ": it sent the proxy no request for the turn that could be played"
            if not state.asked and not state.refused_turn:
                hint = f"; does it read OPENAI_BASE_URL? ({session.url})"
        words = agent.last_words()
        return one_line(f"{reason}{hint}{words and LAST_WORDS + words}")

    def _agent_session(self, opened: Opened) -> AgentSession:
        name = opened.session
        delivery = partial(self._control.delivery, name)
        return AgentSession(name, opened.url, self._api_key(name), delivery, opened.mcp_url)

    async def _close(self, agent: Agent, session: Playing) -> None:
        task = await settled(agent.close(), CANCEL_GRACE_S)
        if task is None:
            self._fail(session, None, "timeout", f"did not close within {CANCEL_GRACE_S:g} s")
        elif reason := failure_reason(task):
            self._fail(session, None, "agent", f"on closing: {reason}")

    def _fail(
        self, session: Playing, turn: int | None, kind: FailureKind, reason: str, follows: bool = False
    ) -> None:
        refusal = None if turn is None else self._refusal(session.name, turn)
        failure = Failure(session.name, turn, kind, told(reason, refusal), follows)
        session.failures.append(failure)
        self._progress.failed(failure)

    def _halt(self, reason: str) -> None:
        self.halted = self.halted or reason
        for worker in self.workers:
            if worker is not asyncio.current_task():
                worker.cancel()
