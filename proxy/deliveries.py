"""What became of a Session's turns on their way to the agent. The verdicts know nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from proxy.log.restore import StoredExchange, StoredSession
from proxy.outcomes import FINAL_ANSWER
from proxy.turns import ProviderFailed
from proxy.wire.chat import reply_of


class Deliveries:
    """Which turns were answered, failed or refused; whoever waits for one is told."""

    def __init__(self) -> None:
        self.failed = 0
        """The last turn that the provider failed, the agent being told; 0 if there was none."""
        self.failed_status = 0
        """The HTTP status with which it did so; 0 if there was none."""
        self.refused = 0
        """The last turn in which a request was not let in."""
        self._delivered: set[int] = set()
        self._unsure: set[int] = set()
        self._unseen: dict[int, ProviderFailed] = {}
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def answered(self) -> int:
        """The last turn whose terminal event was written out to the agent; 0 if none was."""
        return max(self._delivered, default=0)

    def has_answer(self, turn: int) -> bool:
        return turn in self._delivered

    def answer(self, turn: int) -> None:
        self._delivered.add(turn)
        self._notify()

    def fail(self, turn: int, status: int | None) -> None:
        self.failed, self.failed_status = turn, status or 0
        self._notify()

    def refuse(self, turn: int) -> None:
        self.refused = turn
        self._notify()

    def ask(self, turn: int) -> None:
        """The agent asks for the turn: an earlier failure of it is no longer the last word."""
        if self.failed == turn:
            self.failed = self.failed_status = 0

    def keep_failure(self, turn: int, failure: ProviderFailed) -> None:
        """A failure could not be told with its status: the re-sent request gets it."""
        self._unseen[turn] = failure

    def take_failure(self, turn: int) -> ProviderFailed | None:
        return self._unseen.pop(turn, None)

    def end(self) -> None:
        """Nothing more will come: another attempt has taken over."""
        self._ended = True
        self._notify()

    async def settled(self, turn: int, timeout: float) -> None:
        """Returns when the turn was answered, failed or refused, at the latest after `timeout` seconds."""
        if turn in self._unsure:
            # An agent that has its answer does not ask again, and one that has not can still have it.
            self.answer(turn)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._ended and turn > max(self.answered, self.failed, self.refused):
                    await self._changed.wait()

    def restore(self, stored: StoredSession, over: Collection[int]) -> None:
        """`over` are the turns that have an outcome: calls to carry out are no answer."""
        for exchange in stored.exchanges:
            answers = exchange.turn in over and not _hands_over(exchange)
            if exchange.delivered_at is not None and answers:
                self._delivered.add(exchange.turn)
            elif exchange.finish_state == "complete" and answers:
                # The process ended while it was written out: whether the agent has got it nobody knows.
                self._unsure.add(exchange.turn)
        failed = [ex.turn for ex in stored.exchanges if ex.finish_state == "provider_error"]
        self.failed = max(failed, default=0)

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _hands_over(exchange: StoredExchange) -> bool:
    """Was the agent answered with calls, and not with smolagents' form of a text?"""
    calls = reply_of(exchange.message)[1]
    return bool(calls) and calls[0].name != FINAL_ANSWER
