"""All Sessions of a Run, by name; opens them when they are first asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from proxy.address import Address, address_in
from proxy.claims import begins_anew
from proxy.journal import Journal
from proxy.log.restore import StoredRun, StoredSession
from proxy.log.rows import PlannedRow, SessionRow
from proxy.players import Players
from proxy.session import Session, session_name
from proxy.sessions import Player
from proxy.settings import PlayConfig
from proxy.threads import Thread
from proxy.turns import Providing
from proxy.wire.errors import INVALID_REQUEST, ApiError
from scenarios.nearest import aside
from scenarios.types import Scenario

QUEUED = "queue"
"""How a Session is found that no request names."""

_NAME = re.compile(r"(?P<scenario>.+)\.e(?P<epoch>[1-9][0-9]{0,5})")


class Registry:
    """The Sessions of one Run. `queued` is the last one that was found by the queue, and
    `queued_first` the sha256 of the request that opened it. `stored` reads an attempt from the log,
    by its id.
    """

    def __init__(
        self,
        run_id: str,
        scenarios: Sequence[Scenario],
        journal: Journal,
        providing: Providing,
        config: PlayConfig,
        stored: Callable[[str], StoredSession | None],
    ) -> None:
        self.scenarios = {scenario.id: scenario for scenario in scenarios}
        self.players = Players(self._woken)
        self._stored = stored
        self._run_id = run_id
        self._journal = journal
        self._providing = providing
        self.config = config
        self.queued: Player | None = None
        self.queued_first: str | None = None
        self._latest: dict[str, int] = {}
        self._superseded: list[Player] = []

    def player(self, name: str, *, begins: Thread | None = None) -> Player:
        """The Session called `name`. A bare scenario id means its open epoch, or its next one.

        `begins` is the thread of a request that begins a conversation: only such a request
        opens another epoch after one that is over. Raises ApiError for a name that fits nothing.
        """
        if name in self.players:
            return self.players[name]
        if name in self.scenarios:
            epoch = self._latest.get(name, 0)
            if epoch:
                latest = self.players[session_name(name, epoch)]
                if not (latest.done and begins and begins_anew(latest.known.main, begins)):
                    return latest
            return self.open(name, epoch + 1)
        match = _NAME.fullmatch(name)
        if match and match["scenario"] in self.scenarios:
            return self.open(match["scenario"], int(match["epoch"]))
        raise self._unknown(name)

    def _unknown(self, name: str) -> ApiError:
        return ApiError(
            404,
            f"no session or scenario is called {name!r}{aside(name, self.scenarios)}: "
            "use a base URL that ends in /s/SCENARIO_ID/v1 with one of the "
            f"{len(self.scenarios)} loaded scenario ids",
            INVALID_REQUEST,
            "session_not_found",
        )

    def named(self, name: str) -> tuple[Scenario, Player | None]:
        """The Scenario that a name means, and its Session if that is there. Raises ApiError as `player`."""
        player = self.known(name)
        if player is not None:
            return player.session.scenario, player
        match = _NAME.fullmatch(name)
        scenario = self.scenarios.get(name) or (match and self.scenarios.get(match["scenario"]))
        if not scenario:
            raise self._unknown(name)
        return scenario, None

    def known(self, name: str | None) -> Player | None:
        """The Session that a name means, if it is there already."""
        latest = session_name(name, self._latest[name]) if name in self._latest else name
        return self.players.get(latest or "")

    def refused(self, address: Address) -> Player | None:
        """The Session whose agent sent a request that is not let in, if it is there.

        None too where it was another attempt's: nothing that its agent does concerns this one.
        """
        player = self.known(address.session)
        return player if player and address.attempt in (None, player.addressed) else None

    def given_call(self, messages: Sequence[Any]) -> Player | None:
        """The Session whose agent answers a call that it was given, by the call's id."""
        ids = set[str]()
        for message in reversed(messages):
            if not isinstance(message, dict):
                continue
            if message.get("role") == "assistant" and not message.get("tool_calls"):
                break  # What came before has been answered, maybe in another Session.
            call_id = message.get("tool_call_id") if message.get("role") == "tool" else None
            ids |= {call_id} if isinstance(call_id, str) else set()
        return next((player for player in self.players.values() if player.call_ids & ids), None)

    def open(self, scenario_id: str, epoch: int) -> Player:
        """The Session of this Scenario and epoch, opened if it is not there yet."""
        known = self.players.get(session_name(scenario_id, epoch))
        return known or self._begin(scenario_id, epoch, attempt=1)

    def next_attempt(self, player: Player, request_sha256: str | None = None) -> Player:
        """Begins a Session anew; what was played of it stays in the log, unscored.

        `request_sha256` is of the request that begins it, of the same agent as before.
        """
        player.deliveries.end()
        self._superseded = [it for it in (*self._superseded, player) if it.is_playing]
        row = player.row
        following = self._begin(row.scenario_id, row.epoch, row.attempt + 1)
        if request_sha256 is not None:
            following.addressed = player.addressed
        if self.queued is player:
            self.queued, self.queued_first = following, request_sha256
        return following

    async def plan(self, sessions: Sequence[tuple[str, int]]) -> None:
        """Writes down the (scenario id, epoch) that are going to be played."""
        rows = [
            PlannedRow(self._run_id, scenario, self.scenarios[scenario].hash, epoch)
            for scenario, epoch in sessions
        ]
        await self._journal.log.commit(*rows)

    def next_epoch(self, scenario_id: str) -> int:
        return self._latest.get(scenario_id, 0) + 1

    def restore(self, stored: StoredRun) -> None:
        """Takes over what an earlier process played, each Session's last attempt."""
        for row in stored.over:
            if row.scenario_id in self.scenarios:
                self.players.rest(row.name, row.attempt)
                self._note(row)
        for session in stored.sessions:
            if session.row.scenario_id not in self.scenarios:
                continue
            player = self._add(session.row)
            _restore(player, session)
            if any(exchange.correlation == QUEUED for exchange in session.exchanges):
                self.queued, self.queued_first = player, session.exchanges[0].request_sha256
        self.players.let_go()

    async def close(self) -> None:
        for player in (*self.players.values(), *self._superseded):
            await player.close()

    def _begin(self, scenario_id: str, epoch: int, attempt: int) -> Player:
        name = session_name(scenario_id, epoch)
        row = SessionRow(
            id=self._id(name, attempt),
            run_id=self._run_id,
            name=name,
            scenario_id=scenario_id,
            scenario_hash=self.scenarios[scenario_id].hash,
            epoch=epoch,
            attempt=attempt,
            opened_at=self._journal.now(),
        )
        return self._add(row)

    def _add(self, row: SessionRow) -> Player:
        player = self._new(row)
        self.players.add(player)
        self._note(row)
        return player

    def _note(self, row: SessionRow) -> None:
        self._latest[row.scenario_id] = max(row.epoch, self._latest.get(row.scenario_id, 0))

    def _new(self, row: SessionRow) -> Player:
        # Calls of two attempts have ids of their own: an agent of the first may still be about.
        name = row.name if row.attempt == 1 else f"{row.name}#{row.attempt}"
        session = Session(name, self.scenarios[row.scenario_id], self.config)
        return Player(row, session, self._journal, self._providing)

    def _id(self, name: str, attempt: int) -> str:
        return f"{self._run_id}/{name}" if attempt == 1 else f"{self._run_id}/{name}#{attempt}"

    def _woken(self, name: str, attempt: int) -> Player:
        """A Session that is over and was let go, as a proxy that is started anew has it."""
        stored = self._stored(self._id(name, attempt))
        assert stored is not None, f"{name} was over, and the log has it"
        player = self._new(stored.row)
        _restore(player, stored)
        return player


def _restore(player: Player, stored: StoredSession) -> None:
    player.restore(stored)
    addressed = [address_in(exchange.path).attempt for exchange in stored.exchanges]
    player.addressed = next(filter(None, addressed), player.row.attempt)
