"""How a command is stopped: SIGINT, SIGTERM and SIGHUP end its work, a second one ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
ECHO_S = 0.5
"""A signal that comes again so soon is the same one: a shell and its terminal both tell of a
hang-up, and a program around this one hands on what the terminal has told already."""

T = TypeVar("T")


def exit_code(number: int) -> int:
    """The exit code of a command that a signal has stopped, as shells have it."""
    return 128 + number


async def until_stopped(
    work: Coroutine[Any, Any, T], at_once: Callable[[], None]
) -> tuple[T | None, int | None]:
    """What `work` returns, and the signal that came meanwhile, if one did.

    The first signal cancels the work, which may still return what it has (None: it did not).
    A second one calls `at_once` and ends the program on the spot. A signal that is ignored,
    as under `nohup`, stays ignored.
    """
    task = asyncio.current_task()
    assert task is not None
    with _Stop(asyncio.get_running_loop(), task, at_once) as stop:
        try:
            result: T | None = await work
        except asyncio.CancelledError:
            if stop.number is None:
                raise
            task.uncancel()
            result = None
    return result, stop.number


class _Stop:
    """Handles the signals while the block runs. `number` is the first one that came."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], at_once: Callable[[], None]
    ) -> None:
        self.number: int | None = None
        self._loop = loop
        self._task = task
        self._at_once = at_once
        self._last = (0, 0.0)
        self._before: dict[int, Any] = {}
        # Asked now: a terminal that has hung up does not count as one any more.
        self._terminals = [it.fileno() for it in (sys.stdout, sys.stderr) if it.isatty()]

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    # Not by the loop's own handlers: these would wait for a loop that is busy.
    def _received(self, number: int, frame: FrameType | None) -> None:
        last, self._last = self._last, (number, time.monotonic())
        if number == getattr(signal, "SIGHUP", None):
            self._leave_terminals()
        if self.number is None:
            self.number = number
            self._loop.call_soon_threadsafe(self._task.cancel)
        elif number != last[0] or self._last[1] - last[1] > ECHO_S:
            self._at_once()
            os._exit(exit_code(number))

    def _leave_terminals(self) -> None:
        """What is still to be said has no reader: writing to a terminal that is gone would fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for output in self._terminals:
            os.dup2(nowhere, output)
        os.close(nowhere)
