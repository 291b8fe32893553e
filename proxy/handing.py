"""Calls that an agent was given to carry out, and how it comes back from them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proxy.outcomes import Outcome, results_of
from proxy.session import Message
from proxy.wire.chat import read_message, reply_of


@dataclass(frozen=True, slots=True)
class Handed:
    """What an agent was given, and is to be given again to a request that is sent again.

    `control` says that the calls are of its own control tools, whose results the LLM must get;
    those of the Scenario's tools have their Observations already. `asked` are the sha256 of the
    requests that got it.
    """

    outcome: Outcome
    control: bool
    asked: frozenset[str] = field(default_factory=frozenset)

    @property
    def message(self) -> Message:
        return read_message(self.outcome.response) or {}

    def results(self, body: dict[str, Any]) -> list[Message]:
        """The agent's results of these calls, as a request brings them."""
        return results_of(body["messages"], reply_of(self.message)[1])

    def is_answered(self, body: dict[str, Any], sha256: str) -> bool:
        """Does a request come after the calls, and not again for them?

        Frameworks drop results, merge them, or put them into a user message: another request than
        those that got the calls goes on, whatever is in it.
        """
        if self.results(body):
            return True
        return not self.control and sha256 not in self.asked
