"""Who may look at the live page, and what a browser may do with it.

The page itself is for everybody and holds nothing. What is read from the log needs the control
token: References may be in it, and the agent under test can reach this server.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from aiohttp import web

from proxy.wire.errors import AUTHENTICATION, ApiError

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_REFUSED = (
    "the live page needs the proxy's token: open the address that the proxy printed on its terminal, "
    "or paste the token (EVAL_TOKEN, if that is set)"
)


def is_loopback(host: str) -> bool:
    """Does a socket that is bound to this address hear this machine alone?"""
    return ip_address(host.partition("%")[0]).is_loopback


def is_below(path: str, *roots: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


async def secure(request: web.Request, response: web.StreamResponse) -> None:
    """Tells the browser what the live page may do, whatever is answered below `/ui`."""
    if is_below(request.path, "/ui"):
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)


def authorize(request: web.Request, token: str) -> None:
    """Raises ApiError unless the request has the token."""
    if not has_token(request, token):
        raise ApiError(401, _REFUSED, AUTHENTICATION, "no_token")


def has_token(request: web.Request, token: str) -> bool:
    """Compared in a time that tells nothing of the token."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
