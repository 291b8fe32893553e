"""Who may ask anything of this proxy: by which name, from which page, with which token.

It is looked at before a request's body is read. What is refused is not written down: else any page and
any neighbour could fill the log. What is let in has no token in it any more, wherever it stood.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from yarl import URL

from proxy.wire.errors import AUTHENTICATION, INVALID_REQUEST, ApiError

TOKEN_HEADER = "x-eval-token"
TOKEN_PATH = "/t/"
"""`/t/TOKEN` stands before any other path: for agents that can be told a base URL and nothing else."""
SHORTEST_TOKEN = 16

CONTAINERS = frozenset(
    {
        "gateway.docker.internal",
        "host.containers.internal",
        "host.docker.internal",
        "host.lima.internal",
        "host.minikube.internal",
        "host.orb.internal",
        "host.rancher-desktop.internal",
    }
)
"""What a container calls the machine that it runs on. No public DNS has names that end in `.internal`."""

_BEFORE = re.compile(r"/t/(?P<token>[^/]*)(?P<rest>/.*)?", re.DOTALL)
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")

_NO_TOKEN = (
    "this proxy wants its token: put /t/TOKEN before the path of the base URL (http://HOST:PORT/t/TOKEN/v1), "
    f"or send it as the API key or in the header {TOKEN_HEADER}"
)
_FOREIGN_HOST = (
    "this proxy listens to this machine alone: ask for 127.0.0.1 or localhost, and its port; "
    "or start serve with --allow-host and the name that was asked for"
)
_FOREIGN_PAGE = (
    "pages of other sites may not use this proxy: let the agent's server ask it, or start serve with "
    "--allow-host and the page's host"
)


@dataclass(frozen=True, slots=True)
class Admission:
    """What a proxy lets in.

    `names` are the hosts, in lower case, by which it is known beside those of every machine. `is_local`:
    only this machine can reach it, so that any other name is one by which a page elsewhere was led
    here (DNS rebinding). `token` is what agents must show; None lets them in without.
    """

    names: frozenset[str] = frozenset()
    is_local: bool = True
    token: str | None = None

    @property
    def prefix(self) -> str:
        """What stands before the paths that agents are given."""
        return "" if self.token is None else f"{TOKEN_PATH}{self.token}"

    def check_owner(self, request: web.Request) -> None:
        """For what has a token of its own, or is for everybody. Raises ApiError."""
        self._check_host(request)
        self._check_page(request)

    def admit_agent(self, request: web.Request) -> web.Request:
        """The request without a token, if it may be served. Raises ApiError."""
        if self.token is None:
            self._check_host(request)
            self._check_page(request)
        elif not self._has_token(request):
            raise ApiError(401, _NO_TOKEN, AUTHENTICATION, "no_token")
        # Whoever has the token is no page that a browser was led to.
        return self._without_token(request)

    def _check_host(self, request: web.Request) -> None:
        if self.is_local and not _is_of_machine(request.headers.get("Host", ""), self.names):
            raise ApiError(421, _FOREIGN_HOST, code="foreign_host")

    def _check_page(self, request: web.Request) -> None:
        """A browser sends a page's requests wherever the page likes; simple ones without asking."""
        origins = request.headers.getall("Origin", [])
        if not all(self._is_welcome(origin, request) for origin in origins):
            raise ApiError(403, _FOREIGN_PAGE, INVALID_REQUEST, "foreign_origin")
        # Pictures, scripts and links come without an Origin.
        is_foreign = request.headers.get("Sec-Fetch-Site") == "cross-site" and not origins
        if is_foreign and not _is_link_to_page(request):
            raise ApiError(403, _FOREIGN_PAGE, INVALID_REQUEST, "foreign_origin")

    def _is_welcome(self, origin: str, request: web.Request) -> bool:
        try:
            parts = urlsplit(origin)
            host = parts.hostname
        except ValueError:
            return False
        is_own = parts.netloc.lower() == request.headers.get("Host", "").lower() != ""
        return is_own or (host is not None and (_is_loopback_name(host) or host in self.names))

    def _has_token(self, request: web.Request) -> bool:
        """Compared in a time that tells nothing of the token."""
        before = _BEFORE.fullmatch(request.rel_url.raw_path)
        given = [before["token"]] if before else []
        given += request.headers.getall(TOKEN_HEADER, [])
        given += [_bare(value) for name in _KEY_HEADERS for value in request.headers.getall(name, [])]
        return any(self._is_token(text) for text in given)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), (self.token or "").encode())

    def _without_token(self, request: web.Request) -> web.Request:
        """As if it had never been there: nothing behind this can log it or send it on."""
        before = _BEFORE.fullmatch(request.rel_url.raw_path)
        if self.token is None and before is None and TOKEN_HEADER not in request.headers:
            return request
        kept = [pair for pair in request.headers.items() if not self._holds_token(*pair)]
        url = request.rel_url
        if before is not None:
            query = f"?{url.raw_query_string}" if url.raw_query_string else ""
            url = URL(f"{before['rest'] or '/'}{query}", encoded=True)
        return request.clone(rel_url=url, headers=kept)

    def _holds_token(self, name: str, value: str) -> bool:
        name = name.lower()
        if name == TOKEN_HEADER:
            return True
        return name in _KEY_HEADERS and self.token is not None and self._is_token(_bare(value))


def why_no_token(token: str) -> str | None:
    """What is wrong with a token that is to keep strangers out; None if it can."""
    if not _TOKEN.fullmatch(token):
        return "may have letters, digits and . _ ~ - in it alone, as it stands in addresses"
    if len(token) < SHORTEST_TOKEN:
        return f"has fewer than {SHORTEST_TOKEN} characters, which can be guessed"
    return None


def _bare(value: str) -> str:
    """A key without the word `Bearer`."""
    scheme, blank, key = value.partition(" ")
    return key.strip() if blank and scheme.lower() == "bearer" else value


@lru_cache(maxsize=256)
def _is_of_machine(host: str, names: frozenset[str]) -> bool:
    """An address is no name: nobody else's DNS can lead a browser to it under an Origin of theirs."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    return _is_loopback_name(name) or name in CONTAINERS | names or _is_address(name)


def _is_loopback_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ip_address(name.partition("%")[0]).is_loopback


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_link_to_page(request: web.Request) -> bool:
    """Somebody follows a link to the live page, which is empty without its token."""
    is_navigation = request.headers.get("Sec-Fetch-Mode") == "navigate"
    return is_navigation and request.method == "GET" and request.path in ("/ui", "/ui/")


def known_names(host: str, allowed: Iterable[str]) -> frozenset[str]:
    """The names of a proxy that was told to listen on `host`, in lower case."""
    return frozenset(name.lower().removesuffix(".") for name in (host, *allowed))
