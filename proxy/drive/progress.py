"""A drive on the terminal while it runs: lines that stay, and below them what is being played.

Where there is no terminal, a line for each finished Session and failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self, TextIO

from proxy.drive.client import ControlClient, ControlError
from proxy.drive.driver import DriveReport
from proxy.drive.plan import Planned
from proxy.drive.played import Failure, Played
from proxy.drive.progress_text import (
    Colored,
    Running,
    failure_line,
    foot,
    more_line,
    running_line,
    session_line,
    summary,
)
from proxy.drive.states import SessionState
from proxy.drive.tally import Tally, tally
from proxy.terminal.block import Block
from proxy.terminal.environment import look_of, size_of
from scenarios.text import visible, width

LOOK_S = 0.5
"""How often the proxy is asked what the Sessions are at, and the block drawn anew."""
FOOT_ROWS = 2


class Progress:
    """Shows a drive on `out`. A context manager; a Watcher for `drive`.

    `clock` gives seconds from any start. `names` are those of the Sessions, as far as they are known.
    `goes_on`: a wrong step does not end its Task.
    """

    def __init__(
        self,
        sessions: int,
        tasks: int,
        out: TextIO,
        clock: Callable[[], float],
        names: Iterable[str] = (),
        *,
        goes_on: bool = False,
    ) -> None:
        self._total = Tally(sessions, tasks, goes_on=goes_on)
        self._out = out
        self._clock = clock
        self._look = look_of(out)
        self._started = clock()
        self._states: dict[str, SessionState] = {}
        self._running: dict[str, tuple[int, float]] = {}
        self._begun: dict[str, float] = {}
        self._named = max((width(visible(name)) for name in names), default=0)
        self._block: Block | None = None

    @property
    def moves(self) -> bool:
        """Is there a block that shows what is being played?"""
        return self._block is not None

    def __enter__(self) -> Self:
        self._started = self._clock()
        if self._out.isatty():
            self._block = Block(self._out, lambda: size_of(self._out))
            self.draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._block is not None:
            self._block.clear()
            self._block = None

    def began(self, session: str, tasks: int) -> None:
        self._named = max(self._named, width(visible(session)))
        self._running[session] = (tasks, self._begun.setdefault(session, self._clock()))
        self.draw()

    def moved(self, state: SessionState) -> None:
        self._states[state.session] = state
        self.draw()

    def heard(self, states: tuple[SessionState, ...]) -> None:
        """What the proxy says of the Sessions that are being played, ours and others'."""
        self._states.update({state.session: state for state in states if state.session in self._running})
        self.draw()

    def failed(self, failure: Failure) -> None:
        self._total = replace(self._total, failures=self._total.failures + 1)
        if not failure.follows:
            self._line(failure_line(failure, self._look))

    def finished(self, played: Played) -> None:
        self._running.pop(played.session, None)
        self._count(played)
        total = self._total
        done, sessions = total.done + total.already, total.sessions + total.already
        began = self._begun.get(played.session, self._clock())
        self._named = max(self._named, width(visible(played.session)))
        seconds, goes_on = self._clock() - began, total.goes_on
        self._line(session_line(played, done, sessions, seconds, self._look, self._named, goes_on=goes_on))

    def summary(self, report: DriveReport) -> list[str]:
        """The lines to print at the end."""
        return summary(report, self._now(), self._elapsed())

    def draw(self, *above: str) -> None:
        """Draws the block anew, if there is one."""
        if self._block is not None:
            self._block.draw(self._lines(), above)

    def _lines(self) -> list[Colored]:
        columns, rows = size_of(self._out)
        running = [
            Running(name, tasks, self._clock() - began, self._states.get(name))
            for name, (tasks, began) in self._running.items()
        ]
        room = max(rows - FOOT_ROWS - 2, 1)
        lines = [running_line(it, self._look, columns, self._named) for it in running[:room]]
        if len(running) > room:
            lines.append(more_line(len(running) - room, self._look, columns))
        return [*lines, *foot(self._now(), self._elapsed(), self._look, columns)]

    def _now(self) -> Tally:
        return tally(self._total, self._states)

    def _count(self, played: Played) -> None:
        total = self._total
        if played.already:
            self._total = replace(
                total,
                sessions=total.sessions - 1,
                tasks=total.tasks - played.planned.tasks,
                already=total.already + 1,
            )
            return
        self._total = replace(total, done=total.done + (played.end == "over"))
        if played.state and (played.end == "over" or played.session not in self._states):
            # What was heard of a Session that was given up is newer than what its last turn came to.
            self._states[played.session] = played.state

    def _elapsed(self) -> float:
        return self._clock() - self._started

    def _line(self, line: str) -> None:
        if self._block is not None:
            self.draw(line)
        else:
            print(line, file=self._out, flush=True)


@asynccontextmanager
async def showing(
    control: ControlClient,
    planned: Sequence[Planned],
    out: TextIO,
    clock: Callable[[], float],
    *,
    goes_on: bool = False,
) -> AsyncIterator[Progress]:
    """Shows a drive on `out` while the block is entered. What moves is asked of the proxy, if it is shown."""
    tasks = sum(item.tasks for item in planned)
    names = [f"{item.scenario}.e{item.epoch}" for item in planned]
    with Progress(len(planned), tasks, out, clock, names, goes_on=goes_on) as progress:
        looking = asyncio.create_task(_look(progress, control)) if progress.moves else None
        try:
            yield progress
        finally:
            if looking is not None:
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking


async def _look(progress: Progress, control: ControlClient) -> None:
    """An earlier version of the proxy does not say; then the times alone go on."""
    knows = True
    while True:
        if knows:
            try:
                progress.heard(await control.playing())
            except ControlError as error:
                knows = error.status is None
        progress.draw()
        await asyncio.sleep(LOOK_S)
