"""Sessions as they play: one record each, whoever asks and however often.

The loop with the provider belongs to the Session, not to a connection: the same turn asked
for again joins the loop that runs or gets its stored outcome, and a turn never runs twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.conversation import provider_body
from proxy.journal import Journal, Origin
from proxy.log.rows import SessionRow, StepRow, TaskEndRow, ToolCallRow, TurnRow
from proxy.play import SESSION_OVER, TASK_OVER, Decision, Message, Session, begin, judge, open_turn
from proxy.provider import Answer, Provider
from proxy.sentinel import Found
from proxy.settings import PlayConfig
from proxy.wire.chat import completion, dump_json, read_message, reply_of, usage_of
from proxy.wire.errors import INVALID_REQUEST, ApiError
from scenarios.types import Scenario

Body = dict[str, Any]

_NAME = re.compile(r"(?P<scenario>.+)\.e(?P<epoch>[1-9]\d{0,5})")


class ProviderFailed(Exception):
    """The provider gave no completion; the Session stands where it stood."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.error or answer.finish_state)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """An agent's request for a turn: its exchange, its body, the sentinel found in it."""

    exchange_id: str
    body: Body
    found: Found
    headers: Mapping[str, str]
    key: str | None


@dataclass(frozen=True, slots=True)
class Loop:
    """A turn that is being played, and how many requests wait for it."""

    turn: int
    task: asyncio.Task[Body]
    waiting: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class World:
    """What all Sessions of a Run share.

    `simulated` providers are told the Session's name. `model` replaces the agent's, if set.
    """

    run_id: str
    provider: Provider
    journal: Journal
    config: PlayConfig
    simulated: bool = False
    model: str | None = None
    abandon_after: float = 5.0


def session_name(scenario_id: str, epoch: int) -> str:
    return f"{scenario_id}.e{epoch}"


class Player:
    """One Session attempt."""

    def __init__(self, world: World, row: SessionRow, session: Session) -> None:
        self.row = row
        self.session = session
        self.input_tokens = 0
        self.output_tokens = 0
        self.provider_errors = 0
        self._world = world
        self._outcomes: dict[int, Body] = {}
        self._delivered: set[int] = set()
        self._loop: Loop | None = None

    @property
    def turn(self) -> int:
        """The number of the last opened turn; 0 before the first."""
        return self.session.turn.number if self.session.turn else 0

    async def open_turn(self) -> int | None:
        """The user speaks next: the new turn's number, or None when the Session is over."""
        await self._cancel_loop()
        before = self.turn
        self._open()
        return self.turn if self.turn != before else None

    async def answer(self, request: AgentRequest) -> Body:
        """The completion for a turn. Raises ApiError for a turn that cannot be, ProviderFailed."""
        while True:
            number = self._wanted(request.found)
            if number in self._outcomes:
                return self._outcomes[number]
            loop = self._loop
            if loop is not None and loop.turn != number:
                # Requests of one Session are answered in order.
                await asyncio.wait({loop.task})
                continue
            if loop is None:
                if number > self.turn:
                    self._open()
                if number > self.turn:
                    return self._own_answer(request, SESSION_OVER)
                loop = self._start_loop(number, request)
            return await self._join(loop, request)

    def delivered(self, found: Found) -> None:
        """The turn's terminal event was written out to the agent."""
        self._delivered.add(found.turn or self.turn)

    async def close(self) -> None:
        await self._cancel_loop()

    def _wanted(self, found: Found) -> int:
        """Which turn a request is about: its number binds; a bare sentinel goes by what was delivered."""
        if found.turn is None:
            fresh = self.turn == 0 or self.turn in self._delivered
            return self.turn + 1 if fresh else self.turn
        if found.turn > self.turn + 1 and not self.session.over:
            raise ApiError(
                400,
                f"turn {found.turn} has not been opened: session {self.row.name} is at turn {self.turn}; "
                f"prompt the agent with [[next-user-turn {self.turn + 1}]]",
            )
        if found.turn < self.turn and found.turn not in self._outcomes:
            raise ApiError(
                400,
                f"turn {found.turn} is over: session {self.row.name} is at turn {self.turn}",
                INVALID_REQUEST,
            )
        return found.turn

    def _open(self) -> None:
        before, self.session = self.session, open_turn(self.session)
        rows: list[TurnRow | TaskEndRow] = self._ends(before)
        turn = self.session.turn
        if turn is not None and turn != before.turn:
            now = self._world.journal.now()
            rows.append(TurnRow(self.row.id, turn.number, turn.task, turn.kind, turn.words, now))
        self._world.journal.log.put(*rows)

    def _ends(self, before: Session) -> list[TurnRow | TaskEndRow]:
        now = self._world.journal.now()
        known = len(before.ends)
        return [
            TaskEndRow(self.row.id, known + i, end, now) for i, end in enumerate(self.session.ends[known:])
        ]

    def _start_loop(self, number: int, request: AgentRequest) -> Loop:
        loop = Loop(number, asyncio.create_task(self._play(request), name=f"{self.row.name} turn {number}"))
        self._loop = loop
        loop.task.add_done_callback(lambda task: self._finish_loop(loop, task))
        return loop

    def _finish_loop(self, loop: Loop, task: asyncio.Task[Body]) -> None:
        if self._loop is loop:
            self._loop = None
        if not task.cancelled() and task.exception() is None:
            self._outcomes[loop.turn] = task.result()

    async def _join(self, loop: Loop, request: AgentRequest) -> Body:
        loop.waiting.add(request.exchange_id)
        try:
            return await asyncio.shield(loop.task)
        except asyncio.CancelledError:
            if loop.task.cancelled():
                raise ApiError(409, f"turn {loop.turn} of session {self.row.name} was given up") from None
            raise
        finally:
            loop.waiting.discard(request.exchange_id)
            if not loop.waiting and not loop.task.done():
                later = self._world.abandon_after
                asyncio.get_running_loop().call_later(later, self._abandon, loop)

    def _abandon(self, loop: Loop) -> None:
        if not loop.waiting and not loop.task.done():
            loop.task.cancel()

    async def _cancel_loop(self) -> None:
        if self._loop is not None:
            self._loop.task.cancel()
            await asyncio.wait({self._loop.task})

    async def _play(self, request: AgentRequest) -> Body:
        """Plays the current turn to its end; goes on after the last accepted Step."""
        self.session = begin(self.session, request.found.message)
        spent = (0, 0)
        while True:
            exchange_id, answer = await self._ask_provider(request)
            spent = tuple(map(sum, zip(spent, self._count(answer), strict=True)))  # type: ignore[assignment]
            message = read_message(answer.response)
            if answer.response is None or message is None:
                self.provider_errors += 1
                raise ProviderFailed(answer)
            decision = self._decide(exchange_id, answer, message)
            if decision.action != "observe":
                return _for_agent(answer.response, message, decision, spent)

    async def _ask_provider(self, request: AgentRequest) -> tuple[str, Answer]:
        world = self._world
        body, changes = provider_body(request.body, self.session, world.config)
        if world.model is not None:
            body, changes = {**body, "model": world.model}, (*changes, "model")
        origin = Origin(self.row.id, self.turn, request.exchange_id)
        exchange_id = world.journal.sent(
            "/chat/completions", dump_json(body), body, request.key, origin, changes
        )
        try:
            answer = await world.provider.complete(
                body,
                key=request.key,
                headers=request.headers,
                session=self.row.name if world.simulated else None,
            )
        except asyncio.CancelledError:
            world.journal.log.put(
                world.journal.failed(
                    exchange_id,
                    "client_abort",
                    status=None,
                    error_type="client_disconnected",
                    error="given up: nobody waits for this turn any more",
                )
            )
            raise
        if read_message(answer.response) is None:
            world.journal.log.put(world.journal.answered(exchange_id, answer))
        return exchange_id, answer

    def _count(self, answer: Answer) -> tuple[int, int]:
        given, made = (count or 0 for count in usage_of(answer.response))
        self.input_tokens += given
        self.output_tokens += made
        return given, made

    def _decide(self, exchange_id: str, answer: Answer, message: Message) -> Decision:
        journal, before = self._world.journal, self.session
        content, calls = reply_of(message)
        assert before.turn is not None
        self.session, decision = judge(before, message, content, calls, self._world.config.observations)
        served = {id(it.call): it for it in decision.served}
        told = [(call, served.get(id(call))) for call in calls]
        step = StepRow(
            session_id=self.row.id,
            task=before.turn.task,
            step=before.steps,
            turn=before.turn.number,
            exchange_id=exchange_id,
            decided_at=journal.now(),
            decision=decision.action,
            message=message,
            nodes=decision.nodes,
            reason=decision.reason,
            calls=tuple(
                ToolCallRow(
                    position=position,
                    tool_call_id=it.id if it else call.id,
                    name=call.name,
                    arguments=call.arguments if isinstance(call.arguments, str) else None,
                    observation=it.observation if it else None,
                    node=it.node if it else None,
                )
                for position, (call, it) in enumerate(told)
            ),
        )
        journal.log.put(journal.answered(exchange_id, answer), step, *self._ends(before))
        return decision

    def _own_answer(self, request: AgentRequest, text: str) -> Body:
        journal = self._world.journal
        model = request.body.get("model")
        return completion(
            id=f"chatcmpl-{request.exchange_id}",
            created=int(journal.now()),
            model=model if isinstance(model, str) else "",
            content=text,
        )


def _for_agent(response: Body, message: Message, decision: Decision, spent: Sequence[int]) -> Body:
    """The provider's last answer as the agent gets it: a text alone, and the tokens of the whole turn."""
    if decision.action == "stop":
        message = {"role": "assistant", "content": TASK_OVER}
    else:
        message = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": spent[0], "completion_tokens": spent[1], "total_tokens": sum(spent)}
    return {**response, "choices": [choice], "usage": usage}


class Registry:
    """All Sessions of a Run, by name; opens them when they are first asked for."""

    def __init__(self, world: World, scenarios: Sequence[Scenario]) -> None:
        self.scenarios = {scenario.id: scenario for scenario in scenarios}
        self.players: dict[str, Player] = {}
        self._world = world
        self._latest: dict[str, int] = {}

    def player(self, name: str, *, first_turn: bool = False) -> Player:
        """The Session called `name`. A bare scenario id means its open epoch, or its next one.

        `first_turn` says that the request begins a conversation: only such a request opens
        another epoch after one that is over. Raises ApiError for a name that fits nothing.
        """
        if name in self.players:
            return self.players[name]
        if name in self.scenarios:
            epoch = self._latest.get(name, 0)
            if epoch and not (self.players[session_name(name, epoch)].session.over and first_turn):
                return self.players[session_name(name, epoch)]
            return self.open(name, epoch + 1)
        match = _NAME.fullmatch(name)
        if match and match["scenario"] in self.scenarios:
            return self.open(match["scenario"], int(match["epoch"]))
        raise ApiError(
            404,
            f"no session or scenario is called {name!r}: use a base URL that ends in "
            f"/s/SCENARIO_ID/v1 with one of the {len(self.scenarios)} loaded scenario ids",
            INVALID_REQUEST,
            "session_not_found",
        )

    def open(self, scenario_id: str, epoch: int) -> Player:
        name = session_name(scenario_id, epoch)
        if name in self.players:
            return self.players[name]
        scenario = self.scenarios[scenario_id]
        row = SessionRow(
            id=f"{self._world.run_id}/{name}",
            run_id=self._world.run_id,
            name=name,
            scenario_id=scenario_id,
            scenario_hash=scenario.hash,
            epoch=epoch,
            attempt=1,
            opened_at=self._world.journal.now(),
        )
        self._world.journal.log.put(row)
        self.players[name] = Player(self._world, row, Session(name, scenario))
        self._latest[scenario_id] = max(epoch, self._latest.get(scenario_id, 0))
        return self.players[name]

    async def close(self) -> None:
        for player in self.players.values():
            await player.close()
