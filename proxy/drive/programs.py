"""Agents that are commands: one process for a Session, or one for each turn.

A program knows nothing of us, and what it prints means nothing: the proxy alone knows whether
a turn was answered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from proxy.drive.agent import (
    LOG_SAYS,
    SETTLE_S,
    UNASKED,
    Agent,
    AgentAnswer,
    AgentFactory,
    AgentFailure,
    AgentKilled,
    AgentSession,
    AgentSilent,
    AgentUnusable,
)
from proxy.drive.environment import agent_environment
from proxy.drive.process import Process, Processes, exit_text, failure_by_end, with_words

Per = Literal["session", "turn"]

_NOT_RUN = frozenset({126, 127})
"""Exit codes of a shell, or of `env`, that could not run a program, or did not find it."""
_UNUSABLE = (FileNotFoundError, PermissionError, NotADirectoryError)

_SLOT = re.compile(r"\{(turn|session|base_url)\}")
_NEWLINES = re.compile(r"\r\n|\r|\n")


@asynccontextmanager
async def programs(
    command: Sequence[str], *, per: Per, environ: Mapping[str, str], hidden: Sequence[str] = ()
) -> AsyncIterator[AgentFactory]:
    """A factory of agents that run `command`, whose words may hold {turn}, {session}, {base_url}.

    `per` session: one process, each prompt a line on its standard input. `per` turn: one
    process a turn, the prompt in place of {turn}, else on standard input. `hidden` are
    variables of `environ` that agents must not see. No process outlives the context.
    """
    async with Processes(environ) as processes:

        def start(session: AgentSession, turn: str) -> Awaitable[Process]:
            words = {"turn": turn, "session": session.name, "base_url": session.base_url}
            argv = [filled(word, words) for word in command]
            return processes.start(argv, agent_environment(session, environ, hidden))

        prompt_in_command = any("{turn}" in word for word in command)

        def factory(session: AgentSession) -> Agent:
            if per == "session":
                return SessionProgram(session, start)
            return TurnProgram(session, start, prompt_in_command=prompt_in_command)

        yield factory


Start = Callable[[AgentSession, str], Awaitable[Process]]
"""(Session, prompt) -> the process that was started."""


class SessionProgram:
    """One process for the whole Session, which reads prompts line by line.

    A prompt of several lines becomes one: its line breaks become spaces. Where it is the user's
    own words (`--inject driver`), the proxy puts them as they were into the request for the LLM.
    The next line is written when the proxy has given the turn's answer: a program that is
    not ready for it yet finds it in the pipe.
    """

    def __init__(self, session: AgentSession, start: Start) -> None:
        self._session = session
        self._start = start
        self._process: Process | None = None
        self._turn = 0

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        if self._process is None:
            self._process = await started(self._start(self._session, ""))
        process = self._process
        # Should it have ended before its first prompt, that is its first turn's failure.
        if self._turn and (gone := gone_in(self._turn, process, "process")):
            raise await charged(self._session, self._turn, gone)
        self._turn = number
        process.write(_NEWLINES.sub(" ", prompt).encode("utf-8", "replace") + b"\n")
        delivery = asyncio.create_task(wait_for_delivery(self._session, number))
        if await first_of(delivery, asyncio.create_task(process.deaf())):
            if delivery.result() in ("failed", "refused"):
                raise AgentFailure(_NO_ANSWER[delivery.result()])
            return AgentAnswer()
        return await self._early(process, number)

    def last_words(self) -> str:
        return self._process.last_words() if self._process else ""

    async def close(self) -> None:
        if self._process is not None:
            await self._process.stop()

    async def _early(self, process: Process, number: int) -> AgentAnswer:
        """It stopped listening; has it got the answer all the same?"""
        missing = await self._session.missing(number)
        if missing is None:
            return AgentAnswer()
        ended = asyncio.create_task(process.ended())
        if not await first_of(ended, asyncio.create_task(asyncio.sleep(SETTLE_S))):
            raise AgentFailure(with_words(f"closed its standard input {missing}", process))
        raise await charged(self._session, number, failure_of_program(process, missing))


_NO_ANSWER = {
    "failed": "the provider failed",
    "refused": f"the proxy refused its request {LOG_SAYS}",
}


class TurnProgram:
    """A process for each turn; the turn is over when its process has ended."""

    def __init__(self, session: AgentSession, start: Start, *, prompt_in_command: bool) -> None:
        self._session = session
        self._start = start
        self._prompt_in_command = prompt_in_command
        self._process: Process | None = None

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        process = self._process = await started(self._start(self._session, prompt))
        try:
            if not self._prompt_in_command:
                process.write(prompt.encode("utf-8", "replace") + b"\n")
            process.close_input()
            code = await process.ended()
        finally:
            await process.stop(grace=0)
        missing = await self._session.missing(number)
        if missing is not None:
            raise failure_of_program(process, missing)
        if code == 0:
            return AgentAnswer()
        return AgentAnswer(note=with_words(f"{exit_text(code)} after the turn was answered", process))

    def last_words(self) -> str:
        return self._process.last_words() if self._process else ""

    async def close(self) -> None:
        """Nothing to do: no process outlives its turn."""


def filled(word: str, values: Mapping[str, str]) -> str:
    """A word of the command with its slots filled, once: what is filled in holds no slots."""
    return _SLOT.sub(lambda slot: values[slot[1]], word)


def gone_in(turn: int, process: Process, noun: str) -> AgentFailure | None:
    """The failure of a process that ended in, or after, an earlier turn; None while it runs."""
    if process.code is None:
        return None
    told = process.end_told
    failure = failure_by_end(process, f"its {noun}", f"in or after turn {turn} and is not started again")
    failure.follows = told
    return failure


async def charged(session: AgentSession, turn: int, failure: AgentFailure) -> AgentFailure:
    """The failure of a process that ended for good, and whose last turn was `turn`: AgentKilled if all
    that it was told in it is that the provider failed."""
    if await session.delivery(turn, 0) == "failed":
        return AgentKilled(str(failure))
    return failure


def failure_of_program(process: Process, missing: str) -> AgentFailure:
    """The failure of a program that ended `missing` its answer; AgentUnusable if it could not be run,
    AgentSilent if it ended by itself and had not asked."""
    failure = failure_by_end(process, after=missing)
    if missing != UNASKED or isinstance(failure, AgentKilled):
        return failure
    if process.code in _NOT_RUN:
        return AgentUnusable(str(failure))
    return silent(process, str(failure))


def silent(process: Process, reason: str) -> AgentSilent:
    """What the end of a process is that has not asked for its turn."""
    code, words = process.code or 0, process.last_words()
    end = f"ended with code {code}" if code >= 0 else exit_text(code)
    return AgentSilent(reason, f"{end} before it asked anything{words and f': {words}'}")


async def started(starting: Awaitable[Process]) -> Process:
    """The process, or AgentFailure if there is none."""
    try:
        return await starting
    except OSError as error:
        unusable = AgentUnusable if isinstance(error, _UNUSABLE) else AgentFailure
        raise unusable(f"cannot be started ({error.strerror or error}): check --agent") from error
    except ValueError as error:
        raise AgentFailure(f"cannot be started ({error})") from error


async def wait_for_delivery(session: AgentSession, number: int) -> str:
    """Waits, for ever if need be, until the turn was answered or has failed."""
    return await session.delivery(number, None)


async def first_of(wanted: asyncio.Task[Any], other: asyncio.Task[Any]) -> bool:
    """Waits for one of the two, ends the other; was it, or was it also, `wanted`?"""
    try:
        await asyncio.wait({wanted, other}, return_when=asyncio.FIRST_COMPLETED)
        return wanted.done()
    finally:
        for task in (wanted, other):
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
