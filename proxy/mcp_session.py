"""The MCP endpoint of a proxy that plays: whose tools are asked for, and the rows of what is asked."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from proxy.journal import Journal, Origin
from proxy.mcp import Told, serve_mcp
from proxy.mcp_calls import answer_to
from proxy.queue import WAYS
from proxy.refusals import refusal
from proxy.registry import Registry
from proxy.requests import Visit
from proxy.sessions import Player
from proxy.wire.chat import dump_json
from proxy.wire.errors import ApiError
from scenarios.history import released_tools
from scenarios.types import Scenario, ToolCall

MCP_PATH = "/mcp"
REASON = "mcp"
"""Why such an exchange is not of the conversation."""


class SessionTools:
    """The mock tools of one Session; `player` is None as long as it was not opened.

    `beside` are the tools that were called without the LLM having done so.
    """

    def __init__(self, scenario: Scenario, player: Player | None) -> None:
        self._scenario = scenario
        self._player = player
        self.beside: list[str] = []

    def listed(self) -> list[dict[str, Any]]:
        return released_tools(self._scenario)

    async def call(self, name: str, arguments: dict[str, Any]) -> Told:
        call = ToolCall(None, name, dump_json(arguments).decode("utf-8", "replace"))
        if self._player is None:
            self.beside.append(name)
            return Told(refusal(self._scenario.tools, call)[1])
        found = answer_to(self._player.session, call, self._player.fetched)
        if found.id is None:
            self.beside.append(name)
        else:
            self._player.fetched.add(found.id)
        return Told(found.text)


def tools_of(registry: Registry, visit: Visit) -> SessionTools:
    """The tools that a request is about. Raises ApiError; opens nothing."""
    if registry.config.tools != "mcp":
        text = (
            f"the tools are not served over MCP with --tools {registry.config.tools}: start with --tools mcp"
        )
        raise ApiError(404, text, code="endpoint_not_played")
    name = visit.address.session
    if name is not None:
        scenario, player = registry.named(name)
        if player is not None:
            player.check(visit.address.attempt)
        visit.player = player
    elif registry.queued is not None:
        scenario, visit.player = registry.queued.session.scenario, registry.queued
    else:
        raise ApiError(400, f"no session is open on this address: {WAYS}", code="no_session")
    return SessionTools(scenario, visit.player)


def mcp_origin(visit: Visit) -> Origin:
    """Where an exchange with the endpoint belongs."""
    origin = Origin(correlation=visit.address.correlation, reason=REASON)
    player = visit.player
    if player is None or not player.recorded:
        return origin
    return Origin(player.row.id, player.turn or None, correlation=origin.correlation, reason=REASON)


async def give_tools(
    request: web.Request, tools: SessionTools, journal: Journal, exchange_id: str
) -> web.Response:
    """Answers a request to the endpoint; what it says is in the log before the agent has it."""
    response = await serve_mcp(request, tools)
    said = f"called without the LLM having done so: {', '.join(tools.beside)}" if tools.beside else None
    raw = response.body if isinstance(response.body, bytes) else b""
    await journal.log.commit(journal.told(exchange_id, response.status, raw, said))
    return response
