"""Processes of agents: a group of its own for each, pipes that never fill up, an end in any case."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self, cast
from weakref import WeakSet

from proxy.drive.agent import LAST_WORDS, AgentFailure, AgentKilled
from proxy.drive.environment import secrets_in, secrets_of
from proxy.log.redaction import scrub
from scenarios.text import visible

TAIL_BYTES = 8192
"""How much of the end of an output is kept."""
WORDS_LENGTH = 160
"""Characters of it that go into a message."""
END_GRACE_S = 2.0
"""How long a process may take to end by itself once its input is closed."""
TERM_GRACE_S = 1.0
"""How long it may take after SIGTERM. SIGKILL follows."""
GONE_S = 1.0
"""How long the pipes may stay open once the process is gone: it may have left children."""

_RUNNING: WeakSet[Process] = WeakSet()
"""All processes of this program: a signal that ends it at once knows of no context."""

Heard = Callable[[bytes], None]
"""Gets what a process writes on its standard output, in pieces."""


class Process:
    """A running command. Made by `Processes.start`."""

    def __init__(self, pipes: _Pipes, transport: asyncio.SubprocessTransport, secrets: Sequence[str]) -> None:
        self._pipes = pipes
        self._transport = transport
        self._secrets = secrets
        self._end_told = False
        self._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._transport.get_returncode()

    def write(self, data: bytes) -> None:
        """Puts `data` into the pipe. It waits there until the process reads it."""
        if not self._stdin.is_closing():
            self._stdin.write(data)

    def close_input(self) -> None:
        self._stdin.close()

    async def ended(self) -> int:
        """Waits until the process has ended and all it wrote is read; its exit code."""
        await self._pipes.exited.wait()
        await _within(GONE_S, self._pipes.gone)
        return cast(int, self.code)

    async def deaf(self) -> None:
        """Waits until the process can read no more input: it has closed it, or has ended."""
        await self._pipes.deaf.wait()

    def last_words(self) -> str:
        """The end of its standard error, else of its standard output; one line, safe to show."""
        return next(filter(None, (self._words(2), self._words(1))), "")

    @property
    def end_told(self) -> bool:
        """Was its end told of already?"""
        return self._end_told

    def words_of_its_end(self) -> str:
        """Its last words, when they are asked for first: each of its turns would repeat them."""
        words, self._end_told = "" if self._end_told else self.last_words(), True
        return words

    async def stop(self, grace: float = END_GRACE_S) -> None:
        """Ends it: its input closed, `grace` seconds later SIGTERM, then SIGKILL to the whole group."""
        try:
            self.close_input()
            if await _within(grace, self._pipes.exited):
                return
            self._signal(signal.SIGTERM)
            await _within(TERM_GRACE_S, self._pipes.exited)
        finally:
            self.kill()
            await _within(GONE_S, self._pipes.gone)
            self.close()

    def close(self) -> None:
        """Closes the pipes, whoever has their other ends."""
        self._transport.close()

    def kill(self) -> None:
        """Ends it and its children at once, if it has not ended already."""
        if not self._pipes.exited.is_set():
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    def _signal(self, number: int) -> None:
        signal_group(self._transport.get_pid(), number)

    def _words(self, output: int) -> str:
        text = self._pipes.tails[output].decode("utf-8", "replace")
        return abridged([visible(line) for line in scrub(text, self._secrets).split("\n")])


class Processes:
    """All processes of one kind of agent. When the context ends none of them is left."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._secrets = secrets_of(environ)
        self._started: set[Process] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = tuple(self._started)
        for process in left:
            process.kill()
        await asyncio.gather(*(process.stop() for process in left))

    async def start(
        self, command: Sequence[str], environment: Mapping[str, str], heard: Heard | None = None
    ) -> Process:
        """Starts `command`, which is never given to a shell. Raises OSError, and ValueError for
        what no command can hold."""
        loop = asyncio.get_running_loop()
        transport, pipes = await loop.subprocess_exec(
            lambda: _Pipes(heard), *command, env=environment, start_new_session=True
        )
        told = secrets_in(command, environment.get("OPENAI_BASE_URL", ""))
        process = Process(pipes, transport, (*self._secrets, *told))
        self._started.add(process)
        _RUNNING.add(process)
        pipes.when_gone = partial(self._forget, process)
        return process

    def _forget(self, process: Process) -> None:
        process.close()
        self._started.discard(process)


class _Pipes(asyncio.SubprocessProtocol):
    """Reads whatever comes, for as long as it comes, and keeps the end of it."""

    def __init__(self, heard: Heard | None) -> None:
        self.tails = {1: bytearray(), 2: bytearray()}
        self.deaf = asyncio.Event()
        self.exited = asyncio.Event()
        self.gone = asyncio.Event()
        self.when_gone: Callable[[], None] | None = None
        self._heard = heard
        self._pid: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pid = cast(asyncio.SubprocessTransport, transport).get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1 and self._heard is not None:
            self._heard(data)
            return
        tail = self.tails[fd]
        tail += data[-TAIL_BYTES:]
        del tail[:-TAIL_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.deaf.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.deaf.set()
        # At once, while the number still is the group's: what an agent leaves behind must
        # neither go on nor hold the pipes open.
        if self._pid is not None:
            signal_group(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        if self.when_gone is not None:
            self.when_gone()


def kill_all() -> None:
    """Ends every process that is still running, with its children. May be called by a signal handler."""
    for process in tuple(_RUNNING):
        process.kill()


def failure_by_end(process: Process, before: str = "", after: str = "") -> AgentFailure:
    """What the end of its process, between the words `before` and `after`, is to an agent: its own
    failure, or (AgentKilled) that of somebody else.
    """
    code, words = process.code or 0, process.words_of_its_end()
    reason = _with(" ".join(filter(None, (before, exit_text(code), after))), words)
    return (AgentKilled if was_killed(code) else AgentFailure)(reason)


def with_words(reason: str, process: Process) -> str:
    """A reason, and the end of what the process wrote."""
    return _with(reason, process.last_words())


def _with(reason: str, words: str) -> str:
    return f"{reason}{LAST_WORDS}{words}" if words else reason


def was_killed(code: int) -> bool:
    """Was the process ended from outside (by hand, for want of memory), and not by a fault of its own?"""
    return -code in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def exit_text(code: int) -> str:
    """`exited with code 3`, `was ended by SIGKILL`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


_TRACEBACK = "Traceback (most recent call last):"


def abridged(lines: Sequence[str], length: int = WORDS_LENGTH) -> str:
    """The last lines that fit into `length` characters, joined; of a single longer one both ends."""
    # Without what only points at something: rules, arrows, a traceback's head and the marks in it.
    full = [" ".join(line.split()) for line in lines if any(map(str.isalnum, line))]
    full = [line for line in full if line != _TRACEBACK]
    kept = ""
    for line in reversed(full):
        longer = f"{line} | {kept}" if kept else line
        if len(longer) > length:
            break
        kept = longer
    if kept or not full:
        return kept
    return f"{full[-1][: length - 61]}…{full[-1][-60:]}"


def signal_group(leader: int, number: int) -> None:
    """Signals a process and all its children; the process alone where there are no groups."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(leader, number)
        else:
            os.kill(leader, number)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Did it happen in time?"""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
