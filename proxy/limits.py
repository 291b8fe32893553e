"""How much of the proxy one agent or one provider can take. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`request` and `answer` are bytes of a body once it is decompressed.

    The head of a request must be there `head_s` seconds after its first byte (or after the connection
    was made, if none comes), its body `body_s` seconds after its head. Beyond `connections` at once, those
    are closed that have been idle for longest. A provider may be silent for `silence_s`.
    """

    request: int = 128 * MB
    answer: int = 128 * MB
    head_s: float = 60.0
    body_s: float = 300.0
    connections: int = 10_000
    silence_s: float = 600.0


LIMITS = Limits()


def shown(size: int) -> str:
    """A number of bytes as it is said."""
    return f"{size // MB} MB" if size >= MB else f"{size} bytes"
