"""How a command ends: with its result, or with an error that says whether a user can mend it."""

from __future__ import annotations

import asyncio
import errno
import shlex
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from proxy.errors_cli import InputError
from proxy.log.errors import LogError
from proxy.server import StartError
from proxy.simulate.policies import PolicyError
from scenarios.load import ScenarioError

T = TypeVar("T")


class Infrastructure(click.ClickException):
    """Something other than the agent failed."""

    exit_code = 3


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the command; whatever a user can mend becomes one line."""
    try:
        return asyncio.run(work)
    except (StartError, ScenarioError, PolicyError, LogError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            # Whoever read the output has enough of it: click's business.
            raise
        if error.filename is not None:
            raise InputError(f"{error.filename}: {error.strerror}") from error
        raise Infrastructure(f"{error.strerror or error} (--debug tells where)") from error


def program() -> str:
    """How this program was called, for commands that can be copied."""
    script = Path(sys.argv[0])
    return f"{shlex.quote(sys.orig_argv[0])} {script}" if script.suffix == ".py" else script.name


def closing_words(log: Path, *, played: bool = True, run_id: str | None = None) -> str:
    """Where the log is, and what to do with it; with the Run that is meant, where it holds several."""
    return "\n".join([f"Log: {log}", *what_next(shlex.quote(str(log)), played=played, run_id=run_id)])


def what_next(log: str, *, played: bool = True, run_id: str | None = None) -> list[str]:
    commands = {"Score it": "score", "Look at it": "report"} if played else {"Look at it": "tail"}
    chosen = "" if run_id is None else f" --run {run_id}"
    return [f"{what}: {program()} {command} {log}{chosen}" for what, command in commands.items()]
