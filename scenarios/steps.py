"""Is a reply a Step that the Reference allows? Play and score ask here, and say no in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.matcher import Match, State, allowed, match_calls, match_text
from scenarios.types import Reply

ALLOWED_HERE = "; allowed here: "
"""Stands in a reason between what a reply did and what it gives away of the Reference."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A reply that is no Step here.

    `did` says what it did, and follows from the reply alone. `allowed` are batches of names
    that would have been right: it gives the Reference away, so the agent's side must not see it.
    """

    did: str
    allowed: tuple[tuple[str, ...], ...]

    @property
    def reason(self) -> str:
        """Both in one line, for the owner of the log."""
        batches = " or ".join(" + ".join(names) for names in self.allowed)
        return f"{self.did}{ALLOWED_HERE}{batches}" if batches else f"{self.did}; nothing was left to do"


def take_step(state: State, reply: Reply) -> Match | Mismatch:
    """The Step that the released harness takes a reply for; a Mismatch where it takes it for none.

    Where there are tool calls the text beside them is ignored; without any, text that is not
    empty will do (facts: section 4).
    """
    match: Match | None = None
    if reply.calls:
        match = match_calls(state, [call.name for call in reply.calls])
    elif reply.content:
        match = match_text(state)
    return match or mismatch(state, did(reply))


def mismatch(state: State, did: str) -> Mismatch:
    """What `did` says was done where the Task stands at `state`, and is not allowed there."""
    return Mismatch(did, tuple(allowed(state)))


def did(reply: Reply) -> str:
    """What a reply does, in words."""
    if reply.calls:
        return f"called {', '.join(_spoken([call.name for call in reply.calls]))}"
    return "replied in text" if reply.content else "replied with neither text nor tool calls"


def _spoken(names: Sequence[str]) -> list[str]:
    return [name or "something without a name" for name in names]
