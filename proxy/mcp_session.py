"""A Session's tools for the MCP endpoint, and the rows of what is asked there."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from proxy.journal import Journal, Origin
from proxy.mcp import Told, serve_mcp
from proxy.mcp_calls import answer_to
from proxy.requests import Visit
from proxy.sessions import Player
from proxy.wire.chat import dump_json
from scenarios.history import released_tools
from scenarios.types import ToolCall

REASON = "mcp"
"""Why such an exchange is not of the conversation."""


class SessionTools:
    """The mock tools of one Session."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.beside: list[str] = []
        """Tools that were called without the LLM having done so."""

    def listed(self) -> list[dict[str, Any]]:
        return released_tools(self._player.session.scenario)

    async def call(self, name: str, arguments: dict[str, Any]) -> Told:
        call = ToolCall(None, name, dump_json(arguments).decode("utf-8", "replace"))
        found = answer_to(self._player.session, call, self._player.fetched)
        if found.id is None:
            self.beside.append(name)
        else:
            self._player.fetched.add(found.id)
        return Told(found.text)


def mcp_origin(visit: Visit, player: Player) -> Origin:
    """Where an exchange with the MCP endpoint belongs."""
    return Origin(player.row.id, player.turn or None, correlation=visit.address.correlation, reason=REASON)


async def give_tools(request: web.Request, player: Player, journal: Journal, exchange_id: str) -> web.Response:
    """Answers a request to the MCP endpoint; what it says is in the log before the agent has it."""
    tools = SessionTools(player)
    response = await serve_mcp(request, tools)
    said = f"called without the LLM having done so: {', '.join(tools.beside)}" if tools.beside else None
    raw = response.body if isinstance(response.body, bytes) else b""
    await journal.log.commit(journal.told(exchange_id, response.status, raw, said))
    return response
