"""The queue behind a bare `/v1`: one conversation at a time, scenario after scenario."""

from __future__ import annotations

from typing import Any

from proxy.registry import Registry
from proxy.sentinel import Found
from proxy.sessions import Player
from proxy.threads import thread_of
from proxy.wire.errors import ApiError

WAYS = (
    "put the session into the base URL (/s/SCENARIO_ID/v1), into the API key (sk-eval-SCENARIO_ID), into the "
    "header x-eval-session, or into the prompt ([[next-user-turn session=SCENARIO_ID]])"
)


class Queue:
    """Gives requests that name no Session the open one, or opens the next Scenario's."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._first: str | None = None

    def player(self, body: dict[str, Any], found: Found | None, request_sha256: str) -> Player:
        """The Session a request belongs to. Raises ApiError for a second conversation at a time."""
        current, fresh = self._registry.queued, is_fresh(body, found)
        if current is not None and (not fresh or request_sha256 == self._first):
            return current
        if current is not None and current.main not in (None, thread_of(body)):
            # A call on the side, as agents make them, is no second conversation.
            return current
        if current is not None and not current.session.over:
            raise ApiError(
                400,
                f"session {current.row.name} is open on this address and another conversation begins: "
                f"to play several at a time, {WAYS}",
                code="session_is_open",
            )
        if found is None:
            raise ApiError(
                400,
                f"no session is open on this address and no user message holds [[next-user-turn]]: "
                f"prompt the agent with it, or {WAYS}",
                code="no_session",
            )
        self._first = request_sha256
        self._registry.queued = self._next()
        return self._registry.queued

    def _next(self) -> Player:
        registry = self._registry
        scenario = min(registry.scenarios, key=registry.next_epoch)
        return registry.open(scenario, registry.next_epoch(scenario))


def is_fresh(body: dict[str, Any], found: Found | None) -> bool:
    """Does a request begin a conversation? Its number says so, else that nothing was answered yet."""
    if found is not None and found.turn is not None:
        return found.turn == 1
    return not any(isinstance(m, dict) and m.get("role") == "assistant" for m in body["messages"])
