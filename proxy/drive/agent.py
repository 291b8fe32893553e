"""What the driver asks of an agent, and the key it gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from proxy.wire.endpoint import SESSION_KEY_PREFIX


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent said at the end of a turn. Nothing is scored by it."""

    text: str


class AgentFailure(Exception):
    """An agent could not answer a turn. One line, fit for the user."""


class Agent(Protocol):
    """An agent in one Session."""

    async def turn(self, prompt: str) -> AgentAnswer:
        """Answers one user turn. Any exception is a failed turn; AgentFailure words its reason."""

    async def close(self) -> None:
        """Lets go of whatever the agent holds. Called once, after a failure too."""


AgentFactory = Callable[[str, str, str], Agent]
"""(session name, base URL, API key) -> the agent that plays this Session. Must not raise:
an agent that cannot be had says so in its first turn."""


def placeholder_key(session: str) -> str:
    """An API key that names the Session and opens nothing."""
    return SESSION_KEY_PREFIX + session


def api_keys(environ: Mapping[str, str], variable: str | None) -> Callable[[str], str]:
    """The API key of each Session's agent: the one in the environment, else a placeholder."""
    key = environ.get(variable, "").strip() if variable else ""
    return (lambda session: key) if key else placeholder_key
