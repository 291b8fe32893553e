"""Sessions as they play: one record each, whoever asks and however often.

The loop with the provider belongs to the Session, not to a connection: the same turn asked
for again joins the loop that runs or gets its stored outcome, and a turn never runs twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from proxy import sentinel
from proxy.journal import Journal
from proxy.log.restore import StoredSession
from proxy.log.rows import Row, SessionRow, TurnBegunRow, TurnRow
from proxy.loop import Loop
from proxy.outcomes import Outcome, for_agent
from proxy.play import (
    SESSION_OVER,
    Decision,
    Message,
    Session,
    begin,
    judge,
    open_turn,
    provider_failed,
)
from proxy.provider import Answer
from proxy.record import end_rows, replay, step_row
from proxy.sentinel import Found
from proxy.settings import PlayConfig
from proxy.threads import Thread, side_reason, thread_of
from proxy.turns import ProviderFailed, Providing
from proxy.wire.chat import completion, read_message, reply_of, usage_of
from proxy.wire.errors import INVALID_REQUEST, ApiError

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request is in its Session: a request for turn `turn`, or a side call for a reason.

    `message` is the agent's user message that the turn's words go into; `whole` says that it
    has no sentinel and is replaced altogether.
    """

    turn: int
    message: Message | None = None
    whole: bool = False
    side: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """An agent's request for a turn: its exchange, what it claims, its body."""

    exchange_id: str
    claim: Claim
    body: Body
    headers: Mapping[str, str]
    key: str | None


class Player:
    """One Session attempt."""

    def __init__(
        self, row: SessionRow, session: Session, journal: Journal, providing: Providing, config: PlayConfig
    ) -> None:
        self.row = row
        self.session = session
        self.main: Thread | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.provider_errors = 0
        self._journal = journal
        self._providing = providing
        self._config = config
        self._recorded = False
        self._superseded = False
        self._numbered = False
        self._words: dict[int, str] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._unseen: dict[int, ProviderFailed] = {}
        self._delivered: set[int] = set()
        self.failed_turn = 0
        self.refused_turn = 0
        self._changed = asyncio.Event()
        self._loop: Loop | None = None

    @property
    def turn(self) -> int:
        """The number of the last opened turn; 0 before the first."""
        return self.session.turn.number if self.session.turn else 0

    async def open_turn(self, *, wait: bool = False) -> int | None:
        """The user speaks next: the new turn's number, or None when the Session is over.

        What is still being played is given up, or first played to its end (`wait`).
        """
        self._numbered = True
        if wait and self._loop is not None:
            await self._loop.over()
        await self._cancel_loop()
        before = self.turn
        self._open()
        return self.turn if self.turn != before else None

    def record(self) -> None:
        """Writes the Session down, once; not before a request is known to be one of it."""
        if not self._recorded:
            self._recorded = True
            self._journal.log.put(self.row)

    async def committed(self) -> None:
        """Returns when all that happened so far is in the log."""
        await self._journal.log.commit()

    def claim(self, body: Body, found: Found | None) -> Claim:
        """What a request is. Raises ApiError for a turn that cannot be."""
        thread = thread_of(body)
        self._numbered = self._numbered or bool(found and found.turn)
        number = self._wanted(found)
        begun = self.session.begun >= number
        numbered = found is not None and found.turn is not None
        reason = side_reason(self.main, thread, prompted=found is not None, numbered=numbered, begun=begun)
        message = found.message if found else sentinel.last_user_message(body["messages"])
        if reason is not None or message is None:
            return Claim(number, side=reason or "no user message in it")
        self.main = thread
        return Claim(number, message, whole=found is None)

    def takes_over(self, body: Body, found: Found | None) -> bool:
        """Was the conversation so far only a call on the side of the one that begins here?

        A title or router call without tools can come first, and looks like an agent that has
        none until the agent's own first request shows its tools.
        """
        if self.main is None or self.main.tools or found is None or self.session.begun > 1:
            return False
        return thread_of(body).tools and found.turn in (None, 1)

    def fill_side_call(self, raw: bytes, claim: Claim) -> bytes:
        """The body of a side call with the user's words; binds the first turn without starting it."""
        if self.turn == 0 or (claim.turn == self.turn + 1 and self._numbered):
            self._open()
        words = self._words.get(claim.turn) or self._words.get(self.turn)
        return raw if words is None else sentinel.fill_raw(raw, words, self._words)

    async def answer(self, request: AgentRequest) -> Body:
        """The completion for a turn. Raises ApiError, and ProviderFailed if there is none."""
        number = request.claim.turn
        while True:
            if number in self._unseen:
                raise self._unseen.pop(number)
            if number in self._outcomes:
                return self._outcomes[number].response
            loop = self._loop
            if loop is not None and loop.turn != number:
                # Requests of one Session are answered in order.
                await loop.over()
                continue
            if loop is None:
                if number > self.turn:
                    self._open()
                if number > self.turn:
                    return self._own_answer(request, SESSION_OVER)
                if number < self.turn:
                    raise self._turn_is_over(number)
                loop = self._start_loop(number, request)
            return (await loop.join(request.exchange_id)).response

    @property
    def answered(self) -> int:
        """The last turn whose terminal event was written out to the agent; 0 if none was."""
        return max(self._delivered, default=0)

    def delivered(self, turn: int) -> None:
        """The turn's terminal event was written out to the agent."""
        self._delivered.add(turn)
        self._notify()

    def told_failure(self, turn: int) -> None:
        """The agent was told that the turn cannot be answered."""
        self.failed_turn = turn
        self._notify()

    def refused(self, turn: int) -> None:
        """A request that the agent made for the turn, or while it was on, was not let in."""
        self.refused_turn = turn
        self._notify()

    async def settled(self, turn: int, timeout: float) -> None:
        """Returns when the turn was answered or failed, at the latest after `timeout` seconds.

        Also when another attempt has taken over: then it is that one's turn.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._superseded and turn > max(self.answered, self.failed_turn, self.refused_turn):
                    await self._changed.wait()

    def supersede(self) -> None:
        """Another attempt takes this one's place."""
        self._superseded = True
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def not_seen(self, turn: int, failure: ProviderFailed) -> None:
        """A failure could not be told with its status: the re-sent request gets it."""
        self._unseen[turn] = failure

    async def close(self) -> None:
        await self._cancel_loop()

    def restore(self, stored: StoredSession) -> None:
        """Takes over what an earlier process played; nothing is written."""
        self._recorded = True
        self.session, self._outcomes = replay(self.session, stored, self._config.observations)
        self._words = {turn.turn: turn.text for turn in stored.turns}
        self._delivered = {
            exchange.turn for exchange in stored.exchanges if exchange.delivered_at is not None
        }
        self.input_tokens, self.output_tokens = stored.tokens

    def _boundary(self) -> int:
        """The turn that a prompt without a number means: the next one, once the last was delivered."""
        fresh = self.turn == 0 or self.turn in self._delivered
        return self.turn + 1 if fresh else self.turn

    def _wanted(self, found: Found | None) -> int:
        """Which turn a request is about: its number binds."""
        if found is None:
            return max(self.turn, 1) if self._numbered else self._boundary()
        if found.turn is None:
            return self._boundary()
        if found.turn > self.turn + 1 and not self.session.over:
            raise ApiError(
                400,
                f"turn {found.turn} has not been opened: session {self.row.name} is at turn {self.turn}; "
                f"prompt the agent with {sentinel.prompt(self.turn + 1)}",
                code="turn_not_open",
            )
        return found.turn

    def _turn_is_over(self, number: int) -> ApiError:
        return ApiError(
            400,
            f"turn {number} is over: session {self.row.name} is at turn {self.turn}",
            INVALID_REQUEST,
            "turn_over",
        )

    def _open(self) -> None:
        before, self.session = self.session, open_turn(self.session)
        now = self._journal.now()
        rows: list[Row] = [*end_rows(self.row.id, before, self.session, now)]
        turn = self.session.turn
        if turn is not None and turn != before.turn:
            self._words[turn.number] = turn.words
            rows.append(TurnRow(self.row.id, turn.number, turn.task, turn.kind, turn.words, now))
        self._journal.log.put(*rows)

    def _start_loop(self, number: int, request: AgentRequest) -> Loop:
        self._loop = Loop(
            number,
            self._play(request),
            name=f"turn {number} of session {self.row.name}",
            abandon_after=self._providing.abandon_after,
            done=self._finish_loop,
        )
        return self._loop

    def _finish_loop(self, loop: Loop) -> None:
        if self._loop is loop:
            self._loop = None
        if loop.outcome is not None:
            self._outcomes[loop.turn] = loop.outcome

    async def _cancel_loop(self) -> None:
        if self._loop is not None:
            await self._loop.cancel()

    async def _play(self, request: AgentRequest) -> Outcome:
        """Plays the current turn to its end; goes on after the last accepted Step."""
        self._begin(request.claim)
        spent = (0, 0)
        while True:
            try:
                exchange_id, answer = await self._providing.step(self.row, self.session, request)
            except ProviderFailed:
                self.provider_errors += 1
                self.session = provider_failed(self.session)
                raise
            response, message = answer.response, read_message(answer.response)
            assert response is not None and message is not None
            given, made = self._count(answer)
            spent = (spent[0] + given, spent[1] + made)
            decision = self._decide(exchange_id, answer, message)
            if decision.action != "observe":
                return Outcome(for_agent(response, message, decision, spent))

    def _begin(self, claim: Claim) -> None:
        turn, message = self.session.turn, claim.message
        if turn is None or message is None or self.session.begun == turn.number:
            return
        if claim.whole:
            said = sentinel.put_whole(message, turn.words)
        else:
            said = sentinel.fill(message, turn.words, self._words)
        self.session = begin(self.session, said)
        self._journal.log.put(TurnBegunRow(self.row.id, turn.number, said))

    def _count(self, answer: Answer) -> tuple[int, int]:
        given, made = (count or 0 for count in usage_of(answer.response))
        self.input_tokens += given
        self.output_tokens += made
        return given, made

    def _decide(self, exchange_id: str, answer: Answer, message: Message) -> Decision:
        before = self.session
        content, calls = reply_of(message)
        self.session, decision = judge(before, message, content, calls, self._config.observations)
        now = self._journal.now()
        step = step_row(self.row.id, before, decision, message, calls, exchange_id=exchange_id, now=now)
        ends = end_rows(self.row.id, before, self.session, now)
        self._journal.log.put(self._journal.answered(exchange_id, answer), step, *ends)
        return decision

    def _own_answer(self, request: AgentRequest, text: str) -> Body:
        model = request.body.get("model")
        return completion(
            id=f"chatcmpl-{request.exchange_id}",
            created=int(self._journal.now()),
            model=model if isinstance(model, str) else "",
            content=text,
        )


def session_name(scenario_id: str, epoch: int) -> str:
    return f"{scenario_id}.e{epoch}"
