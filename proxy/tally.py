"""What a Session has cost so far: tokens, and failures of the provider."""

from __future__ import annotations

from typing import Any

from proxy.wire.chat import usage_of


class Tally:
    """`turn` is (input, output) tokens of the turn that is played, the rest of the whole Session."""

    def __init__(self) -> None:
        self.input_tokens = 0
        self.output_tokens = 0
        self.provider_errors = 0
        self.turn = (0, 0)

    def count(self, response: dict[str, Any] | None) -> None:
        """Adds what the provider counted for one answer."""
        given, made = (count or 0 for count in usage_of(response))
        self.input_tokens += given
        self.output_tokens += made
        self.turn = (self.turn[0] + given, self.turn[1] + made)

    def restore(self, tokens: tuple[int, int]) -> None:
        self.input_tokens, self.output_tokens = tokens
