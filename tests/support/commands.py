"""The command line as a user has it: a process of its own, or run in this one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, chdir
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.testing import CliRunner, Result

from run_proxy import Composition, main

PROGRAM = Path(__file__).resolve().parents[2] / "run_proxy.py"
LISTENING = re.compile(r"http://127\.0\.0\.1:\d+")


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    """A command, run in this process; `result.stderr` and `result.stdout` are apart."""
    return CliRunner().invoke(main, [str(it) for it in arguments], env=env, prog_name="wildproxy")


def run_in(folder: Path, *arguments: object, env: Mapping[str, str] | None = None) -> Result:
    """A command, run in this process as if it were begun in the folder.

    For tests about what it does and says: a process of its own takes longer to begin than to do it.
    """
    before, sys.argv = sys.argv, [str(PROGRAM)]
    try:
        with chdir(folder):
            return run(*arguments, env=dict(env or {}))
    finally:
        sys.argv = before


def printed_in(folder: Path, *arguments: object, env: Mapping[str, str] | None = None) -> str:
    """What a command prints that is run in the folder and must succeed."""
    done = run_in(folder, *arguments, env=env)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def understand(*arguments: str) -> None:
    """Reads the words of a command as the program would, and runs nothing. Raises click's errors."""
    words = list(arguments)
    command: click.Command = main
    context = click.Context(main, info_name="wildproxy", obj=Composition())
    while isinstance(command, click.Group):
        name, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command = inner
        context = command.make_context(name, words, parent=context)
        words = [*context._protected_args, *context.args]
    assert words == []


def error_line(result: Result, exit_code: int) -> str:
    """The one line of an error; the command must have ended with `exit_code` and no traceback."""
    assert result.exit_code == exit_code, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    [line] = [it for it in result.stderr.splitlines() if it.startswith("Error: ")]
    assert result.stderr.splitlines()[-1] == line
    return line


@dataclass
class Process:
    """A command that runs until it is told to stop; `said` is all that it printed."""

    process: asyncio.subprocess.Process
    url: str = ""
    said: bytes = b""
    errors: asyncio.Task[bytes] | None = field(default=None, repr=False)

    async def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Ends it and gives its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(how)
        assert self.process.stdout is not None
        assert self.errors is not None
        async with asyncio.timeout(30):
            self.said += await self.process.stdout.read() + await self.errors
            return await self.process.wait()


@asynccontextmanager
async def process(*arguments: object, env: dict[str, str] | None = None) -> AsyncIterator[Process]:
    """A command as a process; the block begins when it has said where it listens."""
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        *(str(it) for it in arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    assert started.stdout is not None
    assert started.stderr is not None
    running = Process(started, errors=asyncio.create_task(started.stderr.read()))
    try:
        async with asyncio.timeout(30):
            while not running.url:
                line = await started.stdout.readline()
                assert line, await running.errors if running.errors else b""
                running.said += line
                found = LISTENING.search(line.decode())
                running.url = found[0] if found else ""
        yield running
    finally:
        await running.stop(signal.SIGKILL)
