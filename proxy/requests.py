"""What a request says: whose it is, what is in it, and what of it must not be written down."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from proxy.address import Address, address_in
from proxy.limits import LIMITS, Limits, shown
from proxy.log.redaction import is_maskable, secret_fields
from proxy.responses import Translated
from proxy.sessions import Player
from proxy.wire.answer import one_line
from proxy.wire.body import read_object
from proxy.wire.endpoint import SESSION_HEADER, SESSION_KEY_PREFIX
from proxy.wire.errors import ApiError

Body = dict[str, Any]

_KEY_HEADERS = (
    "api-key",
    "cf-aig-authorization",
    "helicone-auth",
    "ocp-apim-subscription-key",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
)
_KEY_PARAMETERS = frozenset(
    {"key", "api_key", "api-key", "apikey", "token", "access_token", "subscription-key", "sig", "signature"}
)


@dataclass(slots=True)
class Visit:
    """A request while it is served, and what is known of it so far.

    `translated` is what became of a Responses request.
    """

    request: web.Request
    address: Address
    raw: bytes = b""
    player: Player | None = None
    exchange_id: str | None = None
    translated: Translated | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()


LIMITS_KEY = web.AppKey("limits", Limits)


async def read_body(request: web.Request) -> bytes:
    """Raises ApiError for a body that is too large, too slow or broken."""
    limits = request.app.get(LIMITS_KEY, LIMITS)
    if (request.content_length or 0) > limits.request:
        raise _too_large(limits)
    try:
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(limits.body_s):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(limits) from None
    except TimeoutError:
        text = f"the body was not there {limits.body_s:g} seconds after its head"
        raise ApiError(408, text, code="request_timeout") from None
    except (web.RequestPayloadError, ConnectionError) as exc:
        raise ApiError(400, f"the body cannot be read: {one_line(str(exc))}") from exc


def _too_large(limits: Limits) -> ApiError:
    text = f"the body has more than {shown(limits.request)}, which is the most that a request may have"
    return ApiError(413, text, code="request_too_large")


def secrets_of(request: web.Request, body: Any = None) -> list[str]:
    """What an agent authorizes itself with, wherever it stands: none of it may reach the log."""
    headers = request.headers
    given = [headers[name] for name in ("Authorization", "Proxy-Authorization") if name in headers]
    given += [headers[name] for name in _KEY_HEADERS if name in headers]
    # Behind the scheme, such as `Bearer`, where there is one.
    found = [value.partition(" ")[2].strip() or value.strip() for value in given]
    found += [part for value in found for part in _user_and_password(value)]
    if "Cookie" in headers:
        found += [cookie for cookie in request.cookies.values() if is_maskable(cookie)]
    if request.query_string:
        found += [value for name, value in request.query.items() if name.lower() in _KEY_PARAMETERS]
    return [secret for secret in (*found, *secret_fields(body)) if secret]


def _user_and_password(basic: str) -> list[str]:
    """The password of HTTP's `Basic` scheme, and it with its user; nothing if it is no such thing."""
    try:
        pair = base64.b64decode(basic, validate=True).decode()
    except ValueError:
        return []
    _, colon, password = pair.partition(":")
    return [part for part in (pair, password) if is_maskable(part)] if colon else []


def find_address(request: web.Request) -> Address:
    """The Session by URL path, else API key, else header; and the endpoint's path."""
    address = address_in(request.rel_url.raw_path)
    if address.session:
        return address
    key = agent_key(request)
    if key and key.startswith(SESSION_KEY_PREFIX):
        return replace(address, session=key.removeprefix(SESSION_KEY_PREFIX), correlation="api_key")
    if name := request.headers.get(SESSION_HEADER):
        return replace(address, session=name, correlation="header")
    return address


def agent_key(request: web.Request) -> str | None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def parse_body(raw: bytes) -> Body:
    """A chat completion request."""
    body = read_object(raw)
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise ApiError(400, "messages must be a list that is not empty", param="messages")
    return body


def json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
