"""How a Run is configured: what `serve` and `drive` are told, and what of it the log keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

HISTORIES = ("gold",)
TOOL_MODES = ("intercept",)
MISMATCH = ("stop",)
AGENT_TOOLS = ("replace", "append")
OBSERVATIONS = ("matched", "released")


RunChoice = Literal["new", "continue", "resume"]
"""Which Run to play in: always a new one; the log's last if it has the same configuration
(`continue`), or that one or none (`resume`)."""


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """What decides how a Session is played: two Runs may be compared when this is equal.

    `observations`: `matched` gives every call the Observation it asked for; `released`
    repeats the order of the released harness, which swaps them (facts: section 5, rows 1, 2).
    `keep_tools` are patterns (`fnmatch`, case counts) of the agent's control tools: handoffs
    and the like, which stay beside the Scenario's and whose calls are no Steps.
    """

    history: Literal["gold"] = "gold"
    tools: Literal["intercept"] = "intercept"
    on_mismatch: Literal["stop"] = "stop"
    agent_tools: Literal["replace", "append"] = "replace"
    observations: Literal["matched", "released"] = "matched"
    keep_tools: tuple[str, ...] = ("transfer_to_*",)

    def as_json(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "tools": self.tools,
            "on_mismatch": self.on_mismatch,
            "agent_tools": self.agent_tools,
            "observations": self.observations,
            "keep_tools": list(self.keep_tools),
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a proxy process is told.

    `scenarios` are files, or the word that means the bundled ones; without any, the proxy
    only records. `provider` is a base URL or `sim:POLICY`. `provider_key_env` names the environment
    variable that holds the provider's key; None means the agent's own key is passed on.
    `resume_run` is the one Run to resume. `agent` is what drives the agent, for the record. `token`
    opens the control API; None makes one up.
    `keep_alive` is in seconds: how long the first byte is put off and how often a sign of
    life follows; `abandon_after` how long a provider request outlives its agent.
    """

    log: Path
    provider: str
    scenarios: tuple[str | Path, ...] = ()
    language: str = "en"
    provider_key_env: str | None = None
    model: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    play: PlayConfig = field(default_factory=PlayConfig)
    agent: str | None = None
    provider_retries: int = 3
    runs: RunChoice = "new"
    resume_run: str | None = None
    token: str | None = None
    keep_alive: float = 5.0
    abandon_after: float = 5.0


def config_hash(config: dict[str, Any]) -> str:
    """A short hash of a configuration: equal for equal content, whatever the key order."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
