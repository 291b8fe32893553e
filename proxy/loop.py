"""A turn that is being played. It belongs to the Session, not to the connections that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from proxy.outcomes import Outcome
from proxy.wire.errors import ApiError


class Loop:
    """Plays a turn in a task of its own. When nobody waits for it any more it is given up,
    `abandon_after` seconds later, so that a re-sent request still finds it.

    `name` is for messages; `done` is called with the Loop when it is over in any way.
    """

    def __init__(
        self,
        turn: int,
        work: Coroutine[Any, Any, Outcome],
        *,
        name: str,
        abandon_after: float,
        done: Callable[[Loop], None],
    ) -> None:
        self.turn = turn
        self._name = name
        self._abandon_after = abandon_after
        self._waiting: set[str] = set()
        self._giving_up: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(work, name=name)
        self._task.add_done_callback(lambda _: done(self))

    @property
    def outcome(self) -> Outcome | None:
        """What the turn came to; None if it was given up or failed."""
        if not self._task.done() or self._task.cancelled() or self._task.exception() is not None:
            return None
        return self._task.result()

    async def join(self, exchange_id: str) -> Outcome:
        """Waits for the turn. Raises ApiError if it is given up, else whatever playing it raises."""
        self._waiting.add(exchange_id)
        if self._giving_up is not None:
            self._giving_up.cancel()
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._task.cancelled():
                raise ApiError(409, f"{self._name} was given up", code="turn_given_up") from None
            raise
        finally:
            self._waiting.discard(exchange_id)
            if not self._waiting and not self._task.done():
                later = asyncio.get_running_loop().call_later
                self._giving_up = later(self._abandon_after, self._task.cancel)

    async def over(self) -> None:
        """Returns when the turn is over, however."""
        await asyncio.wait({self._task})

    async def cancel(self) -> None:
        self._task.cancel()
        await self.over()
