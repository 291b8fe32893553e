"""What the driver asks of an agent, and what it gives it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from proxy.wire.endpoint import SESSION_KEY_PREFIX

SETTLE_S = 1.0
"""How long a turn's answer may be under way when its agent says, or shows, that it is done."""

Delivery = Literal["answered", "failed", "refused", "waiting", "unasked"]
"""What became of a turn at the proxy: its answer reached the agent; the provider failed and
the agent was told; the agent's request was not let in; the agent asked and has no answer;
the agent has not asked, or nothing that could be played."""

LAST_WORDS = "; its last words: "
"""Stands in a reason before what a program wrote at last, which is another in each Session."""

LOG_SAYS = "(the log says why)"
"""Stands where the reason of a refusal belongs, for whoever knows it (`refusal.told`)."""

UNASKED = "without having sent the proxy a request for the turn that could be played"
_MISSING = {
    "failed": "after the provider had failed",
    "refused": f"after the proxy had refused its request {LOG_SAYS}",
    "waiting": "before the turn was answered",
    "unasked": UNASKED,
}


@dataclass(frozen=True, slots=True)
class AgentSession:
    """The Session that an agent plays. `base_url` and `api_key` are for its OpenAI client.

    `mcp_url` is where an MCP client finds the Session's tools, if the proxy offers them so.
    `delivery(turn, timeout)` waits until the turn was answered or has failed, at most
    `timeout` seconds (None: for ever), and says how it stands then. Raises ControlError.
    """

    name: str
    base_url: str
    api_key: str
    delivery: Callable[[int, float | None], Awaitable[Delivery]]
    mcp_url: str | None = None

    async def missing(self, turn: int) -> str | None:
        """How an agent that is done with a turn missed its answer, to go on a sentence; None if it has it."""
        return _MISSING.get(await self.delivery(turn, SETTLE_S))


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent said at the end of a turn. Nothing is scored by it.

    `note` is one line on something that went wrong and did not cost the turn.
    """

    text: str = ""
    note: str | None = None


class AgentFailure(Exception):
    """An agent could not answer a turn. One line, fit for the user.

    `follows`: only because of its end in an earlier turn, whose failure told of that.
    """

    follows = False


class AgentError(ValueError):
    """An agent that cannot be chosen: one line, what is wrong and how to mend it."""


class AgentUnusable(AgentFailure, AgentError):
    """There is no agent: no such program, function or server. No other Session would fare better."""


class AgentKilled(AgentFailure):
    """An agent was ended by somebody else, or by the provider's failure, which was the last that it
    was told: its Session is infrastructure's loss, not its own."""


class AgentSilent(AgentFailure):
    """An agent's program ended before it asked for its turn. `said` begins after "the agent"."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(reason)
        self.said = said


class Agent(Protocol):
    """An agent in one Session."""

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        """Answers user turn `number`. Any exception is a failed turn; AgentFailure words its reason."""

    def last_words(self) -> str:
        """The end of what a silent agent wrote for its developers, in one line without secrets; or nothing.

        Asked for when a turn took too long.
        """

    async def close(self) -> None:
        """Lets go of whatever the agent holds. Called once, after a failure too."""


AgentFactory = Callable[[AgentSession], Agent]
"""The agent that plays a Session. Must not raise: an agent that cannot be had says so in its
first turn."""


def placeholder_key(session: str) -> str:
    """An API key that names the Session and opens nothing."""
    return SESSION_KEY_PREFIX + session


def api_keys(environ: Mapping[str, str], variable: str | None) -> Callable[[str], str]:
    """The API key of each Session's agent: the one in the environment, else a placeholder."""
    key = environ.get(variable, "").strip() if variable else ""
    return (lambda session: key) if key else placeholder_key
