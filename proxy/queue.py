"""The queue behind a bare `/v1`: one conversation at a time, scenario after scenario."""

from __future__ import annotations

from typing import Any

from proxy.claims import begins_anew
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

    def player(self, body: dict[str, Any], found: Found | None, request_sha256: str) -> Player:
        """The Session a request belongs to. Raises ApiError for a second conversation at a time."""
        registry, current = self._registry, self._registry.queued
        if current is None or (current.done and self._is_next(current, body, found)):
            if found is None:
                raise ApiError(
                    400,
                    f"no session is open on this address and no user message holds [[next-user-turn]]: "
                    f"prompt the agent with it, or {WAYS}",
                    code="no_session",
                )
            registry.queued, registry.queued_first = self._next(), request_sha256
            return registry.queued
        if request_sha256 != registry.queued_first and self._is_another(current, body, found):
            raise ApiError(
                400,
                f"session {current.row.name} is open on this address and another conversation begins: "
                f"to play several at a time, {WAYS}",
                code="session_is_open",
            )
        return current

    def _is_next(self, current: Player, body: dict[str, Any], found: Found | None) -> bool:
        return (
            found is not None and is_fresh(body, found) and begins_anew(current.known.main, thread_of(body))
        )

    def _is_another(self, current: Player, body: dict[str, Any], found: Found | None) -> bool:
        """Does a second conversation begin? Calls on the side, as agents make them, are none."""
        if current.session.over or current.known.main is None or not is_fresh(body, found):
            return False
        thread = thread_of(body)
        return thread == current.known.main or (
            found is not None and thread.tools and current.known.main.tools
        )

    def _next(self) -> Player:
        registry = self._registry
        scenario = min(registry.scenarios, key=registry.next_epoch)
        return registry.open(scenario, registry.next_epoch(scenario))


def is_fresh(body: dict[str, Any], found: Found | None) -> bool:
    """Does a request begin a conversation? Its number says so, else that nothing was answered yet."""
    if found is not None and found.turn is not None:
        return found.turn == 1
    return not any(isinstance(m, dict) and m.get("role") == "assistant" for m in body["messages"])
