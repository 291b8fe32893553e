"""Getting one Step from the provider: the request, its retries, and a row for each try."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from proxy.conversation import Sending
from proxy.journal import Journal, Origin
from proxy.log.rows import SessionRow
from proxy.provider import Answer, Provider
from proxy.tally import Tally
from proxy.wire.answer import TLS_FAILURE
from proxy.wire.chat import dump_json, read_message

Body = dict[str, Any]

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for more patience than this is asked again after this long."""
_AGAIN = frozenset({408, 409, 425, 429})


class ProviderFailed(Exception):
    """The provider gave no completion; the Session stands where it stood."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.error or answer.finish_state)
        self.answer = answer


class Asked(Protocol):
    """The agent's request that a Step is for."""

    @property
    def exchange_id(self) -> str: ...
    @property
    def body(self) -> Body: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def key(self) -> str | None: ...
    @property
    def query(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Providing:
    """How Steps are got. `simulated` providers are told the Session's name; `model` replaces
    the agent's, if set; `retries` is how often a failed request is sent again.
    """

    provider: Provider
    journal: Journal
    simulated: bool = False
    model: str | None = None
    retries: int = 3
    abandon_after: float = 5.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def step(
        self, row: SessionRow, turn: int | None, asked: Asked, sending: Sending, tally: Tally
    ) -> tuple[str, Answer]:
        """(exchange id, answer with a message in it). The exchange is finished by the caller.

        `turn` is the number of the one being played; `tally` is told what is waited for. Raises
        ProviderFailed when the last try failed too.
        """
        body, changes = sending.body, sending.changes
        if self.model is not None:
            body, changes = {**body, "model": self.model}, (*changes, "model")
        origin = Origin(row.id, turn, asked.exchange_id, findings=sending.findings)
        raw = dump_json(body)
        for attempt in range(self.retries + 1):
            exchange_id = self.journal.sent(self.provider.path, raw, body, asked.key, origin, changes)
            tally.wait("provider", self.journal.now())
            answer = await self._ask(exchange_id, body, raw, asked, row.name)
            if read_message(answer.response) is not None:
                return exchange_id, answer
            self.journal.log.put(self.journal.answered(exchange_id, answer))
            if attempt == self.retries or not may_pass(answer):
                raise ProviderFailed(answer)
            tally.wait("retry", self.journal.now())
            await self.sleep(wait_before(attempt, answer, self.journal.now()))
        raise AssertionError("unreachable: the last try returns or raises")

    async def _ask(self, exchange_id: str, body: Body, raw: bytes, asked: Asked, name: str) -> Answer:
        try:
            return await self.provider.complete(
                body,
                raw=raw,
                key=asked.key,
                headers=asked.headers,
                session=name if self.simulated else None,
                query=asked.query,
            )
        except asyncio.CancelledError:
            given_up = self.journal.failed(
                exchange_id,
                "client_abort",
                status=None,
                error_type="client_disconnected",
                error="given up: nobody waits for this turn any more",
            )
            self.journal.log.put(given_up)
            raise


def may_pass(answer: Answer) -> bool:
    """Is this a failure that may not come again: overload, a broken connection, a 5xx?"""
    if answer.status is None:
        return answer.error_type != TLS_FAILURE
    if answer.status >= 400:
        return answer.status in _AGAIN or answer.status >= 500
    return answer.finish_state in ("provider_abort", "error_event")


def wait_before(attempt: int, answer: Answer, now: float) -> float:
    """Seconds until the next try: what the provider asks for, else twice as long each time.

    `now` is in Unix seconds: the provider may name a date (RFC 9110, section 10.2.3).
    """
    asked = _retry_after(answer.headers, now)
    return min(_FIRST_WAIT * 2**attempt if asked is None else asked, _LONGEST_WAIT)


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    until = _date(headers.get("retry-after", ""))
    # A date that is over may be due to clocks that differ, and says nothing then.
    return until - now if until is not None and until > now else None


def _date(text: str) -> float | None:
    """An HTTP date in Unix seconds."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
