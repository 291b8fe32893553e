"""How much text one answer may hold: whatever a log has in it, a page gets so much and no more. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TEXT_CHARS = 20_000
"""The longest text that is given whole."""
ANSWER_CHARS = 2_000_000
"""All texts of one answer together; once they are used up, each is cut to LEAST_CHARS."""
LEAST_CHARS = 300


@dataclass(slots=True)
class Room:
    """Cuts texts, the more the less room is left."""

    left: int = ANSWER_CHARS
    longest: int = TEXT_CHARS

    @property
    def chars(self) -> int:
        """How long the next text may be."""
        return max(LEAST_CHARS, min(self.longest, self.left))

    def text(self, text: str, length: int | None = None) -> str:
        """`text`, or its beginning and how much is left out; `length` is that of a text of which
        `text` is the beginning.
        """
        length = len(text) if length is None else max(length, len(text))
        kept = text[: self.chars]
        self.left -= len(kept)
        return kept if len(kept) == length else f"{kept}… (+{length - len(kept):,} characters)"

    def value(self, value: Any) -> Any:
        """A JSON value with its texts cut; `value` itself is left as it is."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value[: self.chars]]
        if isinstance(value, dict):
            return {key[: self.chars]: self.value(item) for key, item in value.items()}
        self.left -= 1
        return value
