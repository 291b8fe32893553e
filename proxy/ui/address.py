"""Where the live page is, for a terminal."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Protocol, TextIO
from urllib.parse import quote, urlsplit


class Started(Protocol):
    """A proxy that takes requests."""

    @property
    def base_url(self) -> str: ...
    @property
    def token(self) -> str: ...


def page_address(proxy: Started, out: TextIO) -> str:
    """The page's address, with the token only for a terminal: output elsewhere may be kept.

    The token stands in the fragment, which no browser sends to any server.
    """
    page = f"{_reachable(proxy.base_url)}/ui"
    return f"{page}#token={quote(proxy.token, safe='')}" if out.isatty() else page


def _reachable(base_url: str) -> str:
    """The same with an address that a browser can ask for, where the proxy listens on all of them."""
    parts = urlsplit(base_url)
    address = ip_address((parts.hostname or "").partition("%")[0])
    if not address.is_unspecified:
        return base_url
    host = "127.0.0.1" if address.version == 4 else "[::1]"
    return f"{parts.scheme}://{host}:{parts.port}"
