"""Whose a request is, by its path: the Session, and for which of its attempts the address was made. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_PATH = re.compile(
    r"(?:/s/(?P<session>[^/]+)(?:/attempt/(?P<attempt>[1-9][0-9]{0,8}))?)?(?:/v1)?(?P<rest>/.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Address:
    """What a request is about: the Session's name and how it was found, the path behind it.

    `attempt` is the one that the address was made for; None: it means whichever is played.
    """

    session: str | None
    correlation: str | None
    path: str
    attempt: int | None = None


def address_in(raw_path: str) -> Address:
    """What a path says, as it was sent: what is passed on must not be decoded on the way."""
    match = _PATH.fullmatch(raw_path)
    path = (match["rest"] if match else raw_path).rstrip("/") or "/"
    if not match or not match["session"]:
        return Address(None, None, path)
    attempt = int(match["attempt"]) if match["attempt"] else None
    return Address(unquote(match["session"]), "path", path, attempt)


def path_of(session: str, attempt: int) -> str:
    """The path that the agent of one attempt is given; `/v1` or `/mcp` comes behind it."""
    return f"/s/{session}/attempt/{attempt}"
