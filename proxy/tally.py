"""What a Session has cost so far: tokens, failures of the provider; and what it waits for. Pure."""

from __future__ import annotations

from typing import Any, Literal

from proxy.wire.chat import usage_of

WaitsFor = Literal["agent", "tools", "provider", "retry"]
"""The agent's next request, or the results of its tools; the provider's answer, or to ask it again."""


class Tally:
    """`turn` is (input, output) tokens of the turn that is played, the rest of the whole Session.

    `retries` counts requests that were sent to the provider again. `since` is in Unix seconds.
    """

    def __init__(self) -> None:
        self.input_tokens = 0
        self.output_tokens = 0
        self.provider_errors = 0
        self.retries = 0
        self.turn = (0, 0)
        self.waits_for: WaitsFor = "agent"
        self.since = 0.0

    def count(self, response: dict[str, Any] | None) -> None:
        """Adds what the provider counted for one answer."""
        given, made = (count or 0 for count in usage_of(response))
        self.input_tokens += given
        self.output_tokens += made
        self.turn = (self.turn[0] + given, self.turn[1] + made)

    def wait(self, what: WaitsFor, now: float) -> None:
        self.waits_for, self.since = what, now
        self.retries += what == "retry"

    def restore(self, tokens: tuple[int, int]) -> None:
        self.input_tokens, self.output_tokens = tokens
