"""Where a provider is, and which headers go to it and come back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

SESSION_HEADER = "x-eval-session"
SESSION_KEY_PREFIX = "sk-eval-"
_OWN_HEADER_PREFIX = "x-eval-"
_ENDPOINTS = ("/chat/completions", "/responses")
_WANTED = "give an address such as http://127.0.0.1:8000/v1"

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110, section 7.6.1, and the ones RFC 2616 named besides."""
_REQUEST_ONLY = frozenset({"host", "content-length", "accept-encoding", "expect"})
"""Made anew for the provider: its host, our body's length, an answer that is not compressed."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's base URL, taken apart.

    `base` ends before `/chat/completions` (or `/responses`) and has neither user nor query in it. `query`
    is added to every request. `authorization` is what a user name in the URL asks for.
    """

    base: str
    query: str = ""
    authorization: str | None = None

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """Raise ValueError, in one line without secrets, for what is not an HTTP(S) URL."""
        text = url.strip()
        shown = display_url(text)
        if any(ord(character) <= 32 or ord(character) == 127 for character in text):
            raise ValueError(f"the provider URL {shown!r} has blanks in it: {_WANTED}")
        try:
            parts = urlsplit(text)
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            # Not shown: where a URL cannot be taken apart, a password may be anywhere in it.
            raise ValueError(f"the provider URL is not valid: {_WANTED}") from None
        if not valid:
            raise ValueError(f"the provider URL {shown!r} lacks http:// or a host: {_WANTED}")
        path = parts.path.rstrip("/")
        for endpoint in _ENDPOINTS:
            path = path.removesuffix(endpoint).rstrip("/")
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"
        return cls(base, parts.query, _basic(parts))

    def url(self, path: str) -> str:
        """The address of `path` (which may have a query of its own) at this provider."""
        path, _, query = path.partition("?")
        query = "&".join(part for part in (self.query, query) if part)
        return f"{self.base}/{path.lstrip('/')}{'?' if query else ''}{query}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts from the URL that must never be shown."""
        values = [pair.partition("=")[2] for pair in self.query.split("&")]
        values += [unquote(value) for value in values]
        basic = (self.authorization or "").split()[1:]
        for pair in (b64decode(text).decode() for text in basic):
            values += [pair, *pair.split(":", 1)]
        return (*basic, *(value for value in values if len(value) >= 8))


def _basic(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + b64encode(pair.encode()).decode()


def display_url(url: str) -> str:
    """A URL fit to be seen: without user, password, query and fragment."""
    front = url.partition("#")[0].partition("?")[0]
    scheme, mark, rest = front.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"


def own_authorization(key: str | None) -> str | None:
    """What a key of the provider's asks for. Raises ValueError for one of no use."""
    key = (key or "").strip()
    if any(not "!" <= character <= "~" for character in key):
        raise ValueError(
            "the provider key has blanks or characters outside ASCII in it: check where it is set"
        )
    return f"Bearer {key}" if key else None


def agent_authorization(key: str | None) -> str | None:
    """What an agent's key asks for; one that names a session of ours is none."""
    return f"Bearer {key}" if key and not key.startswith(SESSION_KEY_PREFIX) else None


def request_headers(
    headers: Iterable[tuple[str, str]], authorization: str | None, replace: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """An agent's headers as they go to the provider: all but those that end here.

    `authorization` takes the place of the agent's own. A key that names a session of
    ours is no key and never leaves. `replace` (lower case) names headers the caller sets.
    """
    kept = []
    for name, value, lower in _end_to_end(headers):
        if lower in _REQUEST_ONLY or lower in replace or not _can_be_sent(value):
            continue
        if lower in ("authorization", "api-key", "x-api-key"):
            own = value.removeprefix(value[: len("bearer ")] if value[:7].lower() == "bearer " else "")
            if own.lstrip().startswith(SESSION_KEY_PREFIX) or (lower == "authorization" and authorization):
                continue
        kept.append((name, value))
    if authorization:
        kept.append(("Authorization", authorization))
    kept.append(("Accept-Encoding", "identity"))
    return kept


def response_headers(headers: Iterable[tuple[str, str]], decoded: bool) -> list[tuple[str, str]]:
    """A provider's headers as they go to the agent; `decoded`: the body was decompressed."""
    gone = {"content-length", "content-encoding"} if decoded else {"content-length"}
    return [(name, value) for name, value, lower in _end_to_end(headers) if lower not in gone]


def joined(headers: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Headers by lower-case name, repeated ones joined by a comma."""
    result: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        result[lower] = f"{result[lower]}, {value}" if lower in result else value
    return result


def _end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """(name, value, name in lower case) of each header that is not for the next hop alone."""
    named = [(name, value, name.lower()) for name, value in headers]
    gone = _HOP_BY_HOP
    if listed := ",".join(value for _, value, lower in named if lower == "connection"):
        gone = gone | {token.strip().lower() for token in listed.split(",")}
    return [it for it in named if it[2] not in gone and not it[2].startswith(_OWN_HEADER_PREFIX)]


def _can_be_sent(value: str) -> bool:
    """False for bytes that were not UTF-8: they cannot be written back as they came."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
