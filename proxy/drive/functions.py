"""Agents that are Python functions: `module:function`, called in a worker process of their own.

    def ask(prompt: str) -> str | None: ...         # or async

One worker plays one Session: the module is imported anew in each, with the Session's
environment already set and the current folder on `sys.path`. A class in place of the function
is instantiated once a Session, without arguments, and its instance called.
"""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proxy.drive.agent import (
    UNASKED,
    Agent,
    AgentAnswer,
    AgentFactory,
    AgentFailure,
    AgentKilled,
    AgentSession,
    AgentUnusable,
)
from proxy.drive.environment import agent_environment
from proxy.drive.process import Process, Processes, failure_by_end
from proxy.drive.programs import charged, first_of, gone_in, silent, started

WORKER = Path(__file__).with_name("worker.py")


@asynccontextmanager
async def functions(
    target: str, *, environ: Mapping[str, str], hidden: Sequence[str] = ()
) -> AsyncIterator[AgentFactory]:
    """A factory of agents that call `target` (`module:function`), each in a worker of its own.

    `hidden` are variables of `environ` that agents must not see. No worker outlives the context.
    """
    async with Processes(environ) as processes:

        def factory(session: AgentSession) -> Agent:
            return FunctionAgent(session, target, processes, agent_environment(session, environ, hidden))

        yield factory


def missing_part(target: str) -> str | None:
    """What of `module:function` is certainly not there, `module 'x'` say; None if it may all be.

    Nothing of the module is run: a name that its source does not have anywhere cannot be there.
    """
    module, _, path = target.partition(":")
    try:
        spec = _spec(module)
    except ValueError:
        spec = None
    if spec is None:
        package = module.partition(".")[0]
        return None if package != module and _spec(package) else f"module {module!r}"
    name = path.partition(".")[0]
    source = _source(spec)
    if source is None or re.search(rf"\b{re.escape(name)}\b", source) or _MAKES_NAMES.search(source):
        return None
    return f"{name!r} in module {module!r}"


_MAKES_NAMES = re.compile(
    r"\bimport\s*\(?\s*\*|\b(?:__getattr__|globals|vars|locals|setattr|exec|__dict__|sys\.modules)\b"
)
"""In the source of a module that may have names which do not stand there."""


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module is, found without running the packages around it."""
    package, *inner = module.split(".")
    # The worker looks in its current folder first, which is this one.
    spec = importlib.machinery.PathFinder.find_spec(package, [os.getcwd()])
    spec = spec or importlib.util.find_spec(package)
    for name in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        package = f"{package}.{name}"
        spec = importlib.machinery.PathFinder.find_spec(package, spec.submodule_search_locations)
    return spec


def _source(spec: importlib.machinery.ModuleSpec) -> str | None:
    loader = spec.loader
    if not isinstance(loader, importlib.machinery.SourceFileLoader):
        return None
    try:
        return loader.get_source(spec.name)
    except (ImportError, SyntaxError):
        return None


class FunctionAgent:
    """A worker that calls the function for each turn."""

    def __init__(
        self, session: AgentSession, target: str, processes: Processes, environment: Mapping[str, str]
    ) -> None:
        self._session = session
        self._target = target
        self._processes = processes
        self._environment = environment
        self._process: Process | None = None
        self._turn = 0
        self._heard = bytearray()
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        process = self._process = self._process or await self._start()
        gone = gone_in(self._turn, process, "worker")
        self._turn = self._turn if gone else number
        process.write(json.dumps({"turn": number, "prompt": prompt}).encode() + b"\n")
        said = asyncio.create_task(self._answer(number))
        if not await first_of(said, asyncio.create_task(process.ended())):
            raise await self._ended(process, gone)
        error, text = said.result().get("error"), said.result().get("text")
        if "turn" not in said.result():
            raise AgentUnusable(str(error))
        missing = await self._session.missing(number)
        if error is not None and missing is not None:
            raise AgentFailure(error)
        if missing is not None:
            raise AgentFailure(f"returned {missing}")
        return AgentAnswer(text or "", note=error and f"raised after the turn was answered: {error}")

    def last_words(self) -> str:
        return self._process.last_words() if self._process else ""

    async def close(self) -> None:
        if self._process is not None:
            await self._process.stop()

    async def _ended(self, process: Process, gone: AgentFailure | None) -> AgentFailure:
        """The failure of a worker that has ended; `gone` if it did so before this turn."""
        failure = gone or failure_by_end(process, "its worker")
        unasked = gone is None and await self._session.missing(self._turn) == UNASKED
        if unasked and not isinstance(failure, AgentKilled):
            return silent(process, str(failure))
        return await charged(self._session, self._turn, failure)

    async def _start(self) -> Process:
        # -P: the folder of the worker's own file must not be where modules are looked for.
        command = [sys.executable, "-P", str(WORKER), self._target]
        return await started(self._processes.start(command, self._environment, self._hear))

    async def _answer(self, number: int) -> dict[str, Any]:
        """What is said of turn `number`. What comes late of an earlier turn is of no use any more."""
        while True:
            message = await self._said.get()
            if "turn" not in message:
                # It holds for every turn that is still to come.
                self._said.put_nowait(message)
                return message
            if message["turn"] == number:
                return message

    def _hear(self, data: bytes) -> None:
        self._heard += data
        *lines, rest = self._heard.split(b"\n")
        self._heard = bytearray(rest)
        for line in lines:
            self._said.put_nowait(json.loads(line))
