"""Giving an agent its turn's answer: signs of life while it waits, the log before the last byte."""

from __future__ import annotations

import asyncio

from aiohttp import web

from proxy.claims import AgentRequest
from proxy.dialects import Dialect
from proxy.journal import Journal
from proxy.log.errors import LogError
from proxy.respond import Connection, error_response, failure_response
from proxy.sessions import Player
from proxy.turns import ProviderFailed
from proxy.wire.chat import read_message
from proxy.wire.errors import ApiError


class Giving:
    """One request for a turn, until its answer is written out in the agent's dialect."""

    def __init__(
        self,
        journal: Journal,
        player: Player,
        asked: AgentRequest,
        dialect: Dialect,
        connection: Connection,
    ) -> None:
        self._journal = journal
        self._player = player
        self._asked = asked
        self._dialect = dialect
        self._connection = connection

    async def run(self) -> web.StreamResponse:
        try:
            return await self._answer()
        except LogError:
            self._player.deliveries.fail(self._asked.claim.turn, 503)
            if self._connection.begun is None:
                raise
            self._journal.log.put(self._journal.unrecorded(self._asked.exchange_id))
            return self._connection.fail(web.Response(status=503))

    async def _answer(self) -> web.StreamResponse:
        exchange_id, turn = self._asked.exchange_id, self._asked.claim.turn
        player, connection = self._player, self._connection
        try:
            outcome = await connection.wait(asyncio.ensure_future(player.answer(self._asked)))
            completion = self._dialect.given(outcome, exchange_id, f"{player.row.id} {turn}")
            player.gave(read_message(completion))
            await self._journal.log.commit(self._journal.given(exchange_id, completion))
            self._dialect.released(completion, player.row.id)
            response = await connection.write(self._dialect.rendered(completion))
            self._journal.delivered(exchange_id)
            if outcome.final:
                player.deliveries.answer(turn)
            return response
        except ProviderFailed as exc:
            if connection.begun is not None:
                player.deliveries.keep_failure(turn, exc)
            failure = failure_response(exc.answer, str(exc))
            response = await self._fail(failure, "provider_error", exc.answer.error_type, str(exc))
            player.deliveries.fail(turn, exc.answer.status)
            return response
        except ApiError as exc:
            return await self._fail(error_response(exc), "proxy_error", exc.code or exc.type, exc.message)

    async def _fail(
        self, response: web.Response, state: str, kind: str | None, error: str
    ) -> web.StreamResponse:
        status = response.status
        row = self._journal.failed(
            self._asked.exchange_id, state, status=status, error_type=kind or str(status), error=error
        )
        await self._journal.log.commit(row)
        return self._connection.fail(response)
