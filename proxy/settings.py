"""How a Run is configured: what `serve` and `drive` are told, and what of it the log keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from proxy.limits import LIMITS, Limits

RunChoice = Literal["new", "continue", "resume"]
"""Which Run to play in: always a new one; the log's last if it has the same configuration
(`continue`), or that one or none (`resume`)."""


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """What decides how a Session is played: two Runs may be compared when this is equal.

    `history_from` says whose messages a `live` Session sends to the LLM: the agent's own, or the
    proxy's record of them. `max_steps` bounds a Task with `continue`.
    `observations`: `matched` gives every call the Observation it asked for; `released`
    repeats the order of the released harness, which swaps them (facts: section 5, rows 1, 2).
    `keep_tools` are patterns (`fnmatch`, case counts) of the agent's control tools: handoffs
    and the like, which stay beside the Scenario's and whose calls are no Steps.
    """

    history: Literal["gold", "live"] = "gold"
    history_from: Literal["agent", "proxy"] = "agent"
    tools: Literal["intercept", "relay", "mcp"] = "intercept"
    on_mismatch: Literal["stop", "continue"] = "stop"
    max_steps: int = 20
    agent_tools: Literal["replace", "append", "keep"] = "replace"
    observations: Literal["matched", "released"] = "matched"
    keep_tools: tuple[str, ...] = ("transfer_to_*",)
    inject: Literal["sentinel", "driver"] = "sentinel"

    @property
    def echoes_agent(self) -> bool:
        """Does the LLM get the agent's own messages?"""
        return self.history == "live" and self.history_from == "agent"

    @property
    def hands_over(self) -> bool:
        """Do tool calls go to the agent?"""
        return self.tools != "intercept"

    def as_json(self) -> dict[str, Any]:
        """All of it; what a mode has no use for is left out, so that it makes no difference."""
        return {
            "history": self.history,
            **({"history_from": self.history_from} if self.history == "live" else {}),
            "tools": self.tools,
            "on_mismatch": self.on_mismatch,
            **({"max_steps": self.max_steps} if self.on_mismatch == "continue" else {}),
            "agent_tools": self.agent_tools,
            "observations": self.observations,
            "keep_tools": list(self.keep_tools),
            **({"inject": self.inject} if self.inject != "sentinel" else {}),
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a proxy process is told.

    `scenarios` are files, or the word that means the bundled ones; without any, the proxy
    only records. `provider` is a base URL or `sim:POLICY`. `provider_key_env` names the environment
    variable that holds the provider's key; None means the agent's own key is passed on.
    `provider_api` is what it speaks. `resume_run` is the one Run to resume. `agent` is what drives
    the agent, for the record. `token` opens the control API; None makes one up.
    `agent_token` is what agents must show; where other machines can reach the proxy there must be
    one. `allowed_hosts` are further names by which it may be asked.
    `keep_alive` is in seconds: how long the first byte is put off and how often a sign of
    life follows; `abandon_after` how long a provider request outlives its agent.
    """

    log: Path
    provider: str
    scenarios: tuple[str | Path, ...] = ()
    language: str = "en"
    provider_key_env: str | None = None
    provider_api: Literal["chat", "responses"] = "chat"
    model: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    play: PlayConfig = field(default_factory=PlayConfig)
    agent: str | None = None
    provider_retries: int = 3
    runs: RunChoice = "new"
    resume_run: str | None = None
    token: str | None = None
    agent_token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    keep_alive: float = 5.0
    abandon_after: float = 5.0
    limits: Limits = LIMITS


def config_hash(config: dict[str, Any]) -> str:
    """A short hash of a configuration: equal for equal content, whatever the key order."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
