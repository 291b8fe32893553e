"""How a Run was played, and whether its figures may stand beside published ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.text import visible

GOLD, LIVE = "gold", "live"
PROXY = "proxy"
INTERCEPT = "intercept"
STOP, CONTINUE = "stop", "continue"


@dataclass(frozen=True, slots=True)
class Modes:
    """What the configuration of a Run says of how it was played; what it does not say is the default.

    `history_from` is None where the configuration has none, as with gold history.
    """

    history: str = GOLD
    history_from: str | None = None
    tools: str = INTERCEPT
    on_mismatch: str = STOP

    @property
    def usual(self) -> bool:
        """Are all modes those of the published benchmark?"""
        return (self.history, self.tools, self.on_mismatch) == (GOLD, INTERCEPT, STOP)

    @property
    def goes_on(self) -> bool:
        """Does a Task go on after a wrong Step?"""
        return self.on_mismatch == CONTINUE

    @property
    def echoes_agent(self) -> bool:
        """Does the LLM get the agent's own messages, so that what these lack is found?"""
        return self.history == LIVE and self.history_from != PROXY

    @property
    def why_not_comparable(self) -> str | None:
        """Why published figures measure something else; None if they do not.

        Who runs the tools makes no difference: relay and mcp serve the same Observations.
        """
        reasons = [] if self.history == GOLD else [f"{visible(self.history)} history"]
        if self.goes_on:
            reasons.append("wrong steps do not end a task")
        return ", ".join(reasons) or None

    @property
    def banner(self) -> str | None:
        """The line that stands over figures which published ones must not be set beside."""
        reason = self.why_not_comparable
        return None if reason is None else f"{reason}: not comparable with published figures"


def modes_of(config: Mapping[str, Any]) -> Modes:
    """The modes in the configuration of a Run, as its log has it. Never raises."""

    def said(key: str, default: str) -> str:
        return str(config.get(key) or default)

    history = said("history", GOLD)
    source = config.get("history_from")
    return Modes(
        history=history,
        history_from=str(source) if source and history == LIVE else None,
        tools=said("tools", INTERCEPT),
        on_mismatch=said("on_mismatch", CONTINUE if history == LIVE else STOP),
    )
