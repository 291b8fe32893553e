"""Rows that are handed over to be written, and how those who wait for them are told."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from proxy.log.errors import LogError
from proxy.log.rows import Row

Waiter = asyncio.Future[None] | Future[None]


@dataclass(frozen=True, slots=True)
class Call:
    """The rows of one call: written all in one transaction, or not at all."""

    rows: tuple[Row, ...]
    secrets: tuple[str, ...]
    waiter: Waiter | None = None

    @property
    def unawaited(self) -> Call:
        """The same rows, for which nobody waits any more."""
        return Call(self.rows, self.secrets)


_Told = tuple[Call, Waiter, LogError | None]


def tell(
    calls: Sequence[Call],
    errors: Sequence[LogError | None],
    take_back: Callable[[Call], None] = lambda call: None,
) -> None:
    """Wakes whoever waits; an event loop once for all in it, as each time costs it a system call.

    `take_back` gets the calls with an error that nobody hears of any more.
    """
    loops: defaultdict[asyncio.AbstractEventLoop, list[_Told]] = defaultdict(list)
    for call, error in zip(calls, errors, strict=True):
        if isinstance(call.waiter, Future):
            _settle([(call, call.waiter, error)], take_back)
        elif call.waiter is not None:
            loops[call.waiter.get_loop()].append((call, call.waiter, error))
    for loop, told in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, told, take_back)


def _settle(told: Sequence[_Told], take_back: Callable[[Call], None]) -> None:
    for call, waiter, error in told:
        if waiter.done():  # the caller was cancelled
            if error is not None:
                take_back(call)
        elif error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
