"""Work that agents do: for so long and no longer, whatever comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from proxy.drive.agent import AgentFailure
from proxy.log.redaction import scrub

CANCEL_GRACE_S = 5.0
"""How long an agent that is cancelled or closed may take before it is left to itself."""
REASON_LENGTH = 300
"""Characters of a reason that are shown."""

T = TypeVar("T")


async def settled(work: Coroutine[Any, Any, T], timeout: float) -> asyncio.Task[T] | None:
    """The task that did the work, done; None when it took longer and was cancelled.

    A task of its own keeps whatever an agent raises a value, and an agent that does not
    let itself be cancelled from holding up the rest.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=timeout)
        return task if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
        if task.done() and not task.cancelled():
            task.exception()  # Looked at, so that asyncio does not complain of a lost exception.


def failure_reason(task: asyncio.Task[Any]) -> str | None:
    """Why the work failed, in one line without secrets; None when it did not."""
    if task.cancelled():
        return "was cancelled from inside"
    error = task.exception()
    if error is None:
        return None
    return one_line(str(error) if isinstance(error, AgentFailure) else f"{type(error).__name__}: {error}")


def one_line(text: str) -> str:
    line = scrub(" ".join(text.split()))
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 3] + "..."


def raised(task: asyncio.Task[Any]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def answer_cancellation() -> None:
    """The cancellation has been dealt with: whoever awaits this task again must not meet it."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
