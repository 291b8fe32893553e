"""Starting processes that have loaded all they need already: a storm has no time for imports.

A server of `multiprocessing` loads everything once and makes each process by a fork, which then is a process
like any other: it has its own memory and files, and dies at once when it is killed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import agent
import provider

import run_proxy

PROGRAM = Path(run_proxy.__file__)
LOADED = [
    "starting",
    "proxy.commands",
    "proxy.serving",
    "proxy.server",
    "proxy.drive.programs",
    "proxy.ui.routes",
    "scoring.cli",
]

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(LOADED)
_lock = threading.Lock()
"""Starting a process asks for the ends of all others: two threads at once would each get half of one."""


def program(words: list[str]) -> None:
    """`python run_proxy.py WORDS`."""
    sys.argv = [str(PROGRAM), *words]
    run_proxy.main(words)


def own_agent(folder: str, mode: str, session: str) -> None:
    agent.main([folder, mode, session])


def simulated(port: int, policy: str, notes: str) -> None:
    asyncio.run(provider.main(port, policy, Path(notes)))


def start(
    work: Callable[..., None], arguments: tuple[Any, ...], output: Path, environ: Mapping[str, str]
) -> ForkServerProcess:
    """Runs `work` in a new process; what it prints is put at the end of `output`."""
    process = _forks.Process(target=_begin, args=(work, arguments, output, dict(environ)), daemon=True)
    with _lock:
        process.start()
    return process


def code_of(process: ForkServerProcess) -> int | None:
    """Its exit code, negative for a signal; None while it runs."""
    with _lock:
        return process.exitcode


def end(process: ForkServerProcess, number: int) -> int:
    """Signals it and waits for its end; its exit code."""
    if code_of(process) is None and process.pid is not None:
        os.kill(process.pid, number)
    while (code := code_of(process)) is None:
        time.sleep(0.005)
    return code


def _begin(
    work: Callable[..., None], arguments: tuple[Any, ...], output: Path, environ: Mapping[str, str]
) -> None:
    with output.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    os.environ.update(environ)
    work(*arguments)
