"""Sessions as they play: one record each, whoever asks and however often.

The loop with the provider belongs to the Session, not to a connection: the same turn asked
for again joins the loop that runs or gets its stored outcome, and a turn never runs twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proxy import sentinel
from proxy.claims import AgentRequest, Claim, Position, claim_of, spoken
from proxy.conversation import control_tools, provider_body, speaks_legacy
from proxy.deliveries import Deliveries
from proxy.handing import Handed, HandedOver, carried_out, hand_control
from proxy.journal import Journal
from proxy.log.restore import StoredSession
from proxy.log.rows import HandoverDoneRow, HandoverRow, Row, SessionRow, TurnBegunRow, TurnRow
from proxy.loop import Loop
from proxy.offered import Offered
from proxy.outcomes import Outcome, for_agent, session_over, to_carry_out, without_control_calls
from proxy.play import begin, judge, open_turn, provider_failed
from proxy.provider import Answer
from proxy.record import end_rows, replay, step_row
from proxy.sentinel import Found
from proxy.session import Decision, Message, Session
from proxy.tally import Tally
from proxy.threads import Known, thread_of
from proxy.turns import ProviderFailed, Providing
from proxy.wire.chat import read_message, reply_of
from proxy.wire.errors import ApiError
from scenarios.types import ToolCall

Body = dict[str, Any]


class Player:
    """One Session attempt."""

    def __init__(self, row: SessionRow, session: Session, journal: Journal, providing: Providing) -> None:
        self.row = row
        self.session = session
        self.addressed = row.attempt
        """The attempt that its agent's address names: an earlier one after a call on the side came first."""
        self.known = Known()
        self.tally = Tally()
        self.deliveries = Deliveries()
        self.call_ids: set[str] = set()
        """Of the calls that the agent was given: their results name the Session."""
        self.fetched: set[str] = set()
        """Ids of calls whose Observation the agent has got over MCP."""
        self._journal = journal
        self._providing = providing
        self._recorded = False
        self._words: dict[int, str] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._handed = HandedOver()
        self._asked: set[str] = set()
        self._to_give: Handed | None = None
        self._offered = Offered()
        self._loop: Loop | None = None

    @property
    def turn(self) -> int:
        """The number of the last opened turn; 0 before the first."""
        return self.session.turn.number if self.session.turn else 0

    @property
    def waited(self) -> float:
        """Seconds for which it has waited for what it waits for."""
        return max(0.0, self._journal.now() - self.tally.since) if self.tally.since else 0.0

    @property
    def recorded(self) -> bool:
        """Has the log the Session?"""
        return self._recorded

    @property
    def is_playing(self) -> bool:
        """Is a turn being played, whoever waits for it?"""
        return self._loop is not None

    @property
    def done(self) -> bool:
        """The Session is over, and its last answer is not still to be given."""
        unheard = self.turn in self._outcomes and not self.deliveries.has_answer(self.turn)
        return self.session.over and not unheard

    async def open_turn(self, *, after: int | None = None, wait: bool = False) -> int | None:
        """The user speaks next: the new turn's number, or None when the Session is over.

        What is still being played is given up, or first played to its end (`wait`). With
        `after`, the turn behind that one: should it be open already, it is not passed over.
        """
        self.known.numbered = True
        if wait and self._loop is not None:
            await self._loop.over()
        if after is None or after >= self.turn:
            await self._cancel_loop()
        before = self.turn
        if after is not None and after < before:
            return before
        self._open()
        return self.turn if self.turn != before else None

    def check(self, attempt: int | None) -> None:
        """Raises ApiError for an agent that was given its address for another attempt."""
        if attempt not in (None, self.addressed):
            text = (
                f"attempt {attempt} of session {self.row.name} is over: it is played anew, by another agent"
            )
            raise ApiError(410, text, code="attempt_over")

    def record(self) -> None:
        """Writes the Session down, once; not before a request is known to be one of it."""
        if not self._recorded:
            self._recorded = True
            self._journal.log.put(self.row)

    async def committed(self) -> None:
        """Returns when all that happened so far is in the log."""
        await self._journal.log.commit()

    def claim(self, body: Body, found: Found | None) -> Claim:
        """What a request is; changes nothing. Raises ApiError for a turn that cannot be."""
        at = Position(
            name=self.row.name,
            turn=self.turn,
            begun=max(self.session.begun, self.known.begun),
            over=self.session.over,
            delivered=self.deliveries.has_answer(self.turn),
            main=self.known.main,
            numbered=self.known.numbered,
            hands_over=self.session.config.hands_over,
        )
        out = self._handed.out
        results = out is not None and bool(out.results(body))
        now = found is None or found.turn in (None, self.turn)
        goes_on = out is not None and (out.control is not None or (now and thread_of(body).tools))
        return claim_of(at, body, found, answers=results and goes_on, results=results)

    def gave(self, message: Message | None) -> None:
        """The agent was given this message."""
        self.call_ids.update(call.id for call in reply_of(message)[1] if call.id)

    def accept(self, claim: Claim) -> None:
        """The request is let in: from now on the conversation is known by it."""
        self.record()
        side = claim.side is not None
        self.known.accept(claim.thread, claim.turn, numbered=claim.numbered, side=side)

    def spoken(self, body: Body) -> Found | None:
        """The turn whose words stand in a request without a sentinel (`drive --inject driver`)."""
        asked = {turn.number: turn.asked for turn in self.session.record}
        return spoken(body, self.turn, self._words, asked, self.known.main)

    def takes_over(self, body: Body, found: Found | None) -> bool:
        """Was the conversation so far only a call on the side of the one that begins here?

        A title or router call without tools can come first, and looks like an agent that has
        none until the agent's own first request shows its tools.
        """
        if found is None or found.turn not in (None, 1) or self.session.begun > 1:
            return False
        return self.known.seemed_to_have_no_tools(thread_of(body))

    def fill_side_call(self, raw: bytes, claim: Claim) -> bytes:
        """The body of a side call with the user's words; binds the first turn without starting it."""
        waits = self.session.task_is_open and self.session.reply is None
        if self.turn == 0 or (claim.turn == self.turn + 1 and self.known.numbered and not waits):
            self._open()
        words = self._words.get(claim.turn) or self._words.get(self.turn)
        return raw if words is None else sentinel.fill_raw(raw, words, self._words)

    async def answer(self, request: AgentRequest) -> Outcome:
        """What a turn comes to. Raises ApiError, and ProviderFailed if it comes to nothing."""
        number = request.claim.turn
        while True:
            if failure := self.deliveries.take_failure(number):
                raise failure
            if number == self.turn and (again := self._handed.again(request.body, request.sha256)):
                return again
            if number in self._outcomes:
                return self._outcomes[number]
            self._take_results(request, number)
            loop = self._loop
            if loop is not None and loop.turn != number:
                # Requests of one Session are answered in order.
                await loop.over()
                continue
            if loop is None:
                if number > self.turn:
                    self._open()
                if number > self.turn:
                    now = self._journal.now()
                    return session_over(request.body.get("model"), request.exchange_id, now)
                if number < self.turn:
                    text = f"turn {number} is over: session {self.row.name} is at turn {self.turn}"
                    raise ApiError(400, text, code="turn_over")
                loop = self._start_loop(number, request)
            self._asked.add(request.sha256)
            return await loop.join(request.exchange_id)

    async def close(self) -> None:
        await self._cancel_loop()

    def restore(self, stored: StoredSession) -> None:
        """Takes over what an earlier process played; nothing is written."""
        self._recorded = True
        replayed = replay(self.session, stored)
        self.session, self._outcomes, self._handed = replayed.session, replayed.outcomes, replayed.handed
        self._words = {turn.turn: turn.text for turn in stored.turns}
        self.deliveries.restore(stored, frozenset(self._outcomes))
        for exchange in stored.exchanges:
            self.gave(exchange.message)
        self.known.restore(stored.thread)
        self.tally.restore(stored.tokens)

    def _open(self) -> None:
        before, self.session = self.session, open_turn(self.session)
        now = self._journal.now()
        self.tally.wait("agent", now)
        rows: list[Row] = [*end_rows(self.row.id, before, self.session, now)]
        turn = self.session.turn
        if turn is not None and turn != before.turn:
            self._words[turn.number] = turn.words
            self.tally.turn, self._handed = (0, 0), HandedOver()
            rows.append(TurnRow(self.row.id, turn.number, turn.task, turn.kind, turn.words, now))
        self._journal.log.put(*rows)

    def _start_loop(self, number: int, request: AgentRequest) -> Loop:
        self.deliveries.ask(number)
        self._asked.clear()
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
        handed_over = loop.outcome is not None and not loop.outcome.final
        self.tally.wait("tools" if handed_over else "agent", self._journal.now())
        if loop.outcome is not None and loop.outcome.final:
            self._outcomes[loop.turn] = loop.outcome
        elif loop.outcome is not None and loop.turn == self.turn:
            handed = self._to_give if self._to_give else Handed(loop.outcome)
            self._handed.give(handed, self._asked)

    def _take_results(self, request: AgentRequest, number: int) -> None:
        """The agent goes on after calls that it was given: the LLM sees what its control calls gave."""
        if number != self.turn or (handed := self._handed.close()) is None or handed.control is None:
            return
        control, results = handed.control, handed.results(request.body)
        self.session = carried_out(self.session, control, results)
        thread = self.known.as_json(request.claim.thread)
        self._journal.log.put(HandoverDoneRow(self.row.id, number, control.position, results, thread))

    async def _cancel_loop(self) -> None:
        if self._loop is not None:
            await self._loop.cancel()

    async def _play(self, request: AgentRequest) -> Outcome:
        """Plays the current turn to its end; goes on after the last accepted Step."""
        self._begin(request.claim)
        self._to_give = None
        controls = control_tools(request.body, self.session)
        last = self.known.lacks_its_tools(request.claim.thread)
        first = True
        while True:
            sending = provider_body(
                request.body,
                self.session,
                replaced_user=request.claim.whole,
                last_call=last,
                remembered=self._offered,
                findings=first,
            )
            self._offered, first = sending.offered, False
            try:
                exchange_id, answer = await self._providing.step(
                    self.row, self.turn, request, sending, self.tally
                )
            except ProviderFailed:
                self.tally.provider_errors += 1
                self.session = provider_failed(self.session)
                raise
            response, message = answer.response, read_message(answer.response)
            assert response is not None and message is not None
            self.tally.count(answer.response)
            message, control = without_control_calls(message, controls)
            if control and not reply_of(message)[1]:
                self._journal.log.put(self._journal.answered(exchange_id, answer))
                return self._hand_control(exchange_id, response, control)
            message = sending.offered.meant(message)
            decision = self._decide(exchange_id, answer, message)
            if decision.action != "observe":
                return Outcome(for_agent(response, message, decision, self.tally.turn))
            if self.session.config.hands_over:
                calls = to_carry_out(
                    response,
                    message,
                    decision.served,
                    self.tally.turn,
                    sending.offered,
                    legacy=speaks_legacy(request.body),
                )
                return Outcome(calls, final=False)

    def _hand_control(self, exchange_id: str, response: Body, calls: Sequence[ToolCall]) -> Outcome:
        message, steps = read_message(response) or {}, self.session.steps
        self.session, handed = hand_control(
            self.session, response, message, calls, self.tally.turn, self._handed.controls
        )
        control = handed.control
        assert control is not None
        aliases = dict(control.aliases)
        row = HandoverRow(self.row.id, self.turn, control.position, steps, exchange_id, control.said, aliases)
        self._journal.log.put(row)
        self._to_give = handed
        return handed.outcome

    def _begin(self, claim: Claim) -> None:
        turn, message = self.session.turn, claim.message
        if turn is None or message is None or self.session.begun == turn.number:
            return
        if claim.whole:
            said = sentinel.put_whole(message, turn.words)
        else:
            said = sentinel.fill(message, turn.words, self._words)
        self.session = begin(self.session, said, message)
        thread = self.known.as_json(claim.thread)
        asked = None if message == said else message
        self._journal.log.put(TurnBegunRow(self.row.id, turn.number, said, thread, asked))

    def _decide(self, exchange_id: str, answer: Answer, message: Message) -> Decision:
        before = self.session
        # Should judging fail, that is not the agent's fault, and what was answered is known all the same.
        self.session = provider_failed(before)
        happened: list[Row] = [self._journal.answered(exchange_id, answer)]
        try:
            content, calls = reply_of(message)
            after, decision = judge(before, message, content, calls)
            now = self._journal.now()
            step = step_row(self.row.id, before, decision, message, calls, exchange_id=exchange_id, now=now)
            happened += [step, *end_rows(self.row.id, before, after, now)]
            self.session = after
        finally:
            self._journal.log.put(*happened)
        return decision
