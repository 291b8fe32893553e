"""Ports for servers that are told theirs: begun again at the same one, or by another process."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

FIRST, COUNT = 20_000, 12_000
"""Below the ports that the system gives to whoever asks for any, as other tests do all the time."""


def free_port() -> int:
    """A port of 127.0.0.1 at which nobody listens, and that nobody else is given before it is used."""
    while True:
        port = FIRST + secrets.randbelow(COUNT)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
