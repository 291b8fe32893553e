"""What may be written down: no key, token or cookie, ever. Pure.

Two strengths. `scrub` is for error texts, URLs, headers and parameters: it masks the given
secrets and whatever looks like one. `mask` is for evidence (messages, answers), where a
guess could change what is scored: it masks the given secrets alone, and of these only such
as cannot be words of a conversation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

MASK = "[masked]"
PLACEHOLDER = "sk-eval-"
"""Keys that begin so name a session and are no secret."""

_HEADERS = frozenset(
    {
        "accept",
        "cf-ray",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "openai-model",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "server",
        "traceparent",
        "user-agent",
        "x-eval-session",
        "x-request-id",
        "x-should-retry",
    }
)
_HEADER_PREFIXES = ("x-stainless-", "x-ratelimit-")

_SECRET_NAMES = r"(?:api[-_]?key|x-api-key|access[-_]?token|auth[-_]?token|authorization|password|secret)"
_SECRET_FIELD = re.compile(rf"(?:{_SECRET_NAMES}|token|cookie|set-cookie|proxy-authorization)", re.IGNORECASE)
_PATTERNS = (
    # user:password@ in a URL
    (re.compile(r"(?<=://)[^/\s?#@\"']+@"), f"{MASK}@"),
    # ?api_key=... in a URL or a form, OPENAI_API_KEY=... before a command
    (
        re.compile(
            rf"((?:[?&;]|(?<![^\W_]))(?:{_SECRET_NAMES}|token|(?<=[?&;])key)=)[^&;\s#\"']+", re.IGNORECASE
        ),
        rf"\1{MASK}",
    ),
    # --api-key ... on a command line
    (
        re.compile(rf"((?<!\S)--(?:[\w-]+-)?(?:{_SECRET_NAMES}|token)\s+)[^\s\"'-][^\s\"']*", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    # "api_key": "..." in JSON, or the same as Python prints it
    (
        re.compile(rf"""((["']){_SECRET_NAMES}\2\s*:\s*(["']))(?:(?!\3).)+""", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    # Bearer and Basic credentials
    (re.compile(r"\b(Bearer|Basic)\s+(?!sk-eval-)[^\s\"',;]{6,}", re.IGNORECASE), rf"\1 {MASK}"),
    # keys by the shapes of their issuers; * because providers print keys half hidden
    (re.compile(r"(?<![\w-])sk-(?!eval-)[\w*.-]{7,}[\w*-]"), MASK),
    (re.compile(r"(?<![\w-])(?:gsk_|hf_|xai-|pplx-|nvapi-|ghp_|AIza)[\w*-]{16,}"), MASK),
)

_SUSPICIOUS = re.compile(r"""[=@"'\s]|sk-|gsk_|hf_|xai-|pplx-|nvapi-|ghp_|AIza""")
"""What there is in every text in which one of the patterns finds something."""


def allowed_headers(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that may be logged, names in lower case, in their order; repeated ones joined."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    kept: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        if name in _HEADERS or name.startswith(_HEADER_PREFIXES):
            value = _scrubbed(value)
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
    return kept


@lru_cache(maxsize=1024)
def _scrubbed(value: str) -> str:
    """Most headers are the same each time."""
    return scrub(value)


@lru_cache(maxsize=256)
def key_hash(secret: str) -> str:
    """Twelve hex digits that tell two keys apart and give neither away."""
    data = b"wildproxy key\x00" + secret.encode("utf-8", "backslashreplace")
    return hashlib.sha256(data).hexdigest()[:12]


_LONGEST_WORD = 20
"""So many letters are no word that somebody gives in place of a key."""


@lru_cache(maxsize=1024)
def is_maskable(secret: str) -> bool:
    """Whether `secret` can be masked in evidence: not ours, and not a word such as `unused`."""
    if secret.startswith(PLACEHOLDER) or (secret.isalpha() and len(secret) < _LONGEST_WORD):
        return False
    mixed = any(char.isdigit() for char in secret) and any(char.isalpha() for char in secret)
    # A date or a number can be eight digits, and so can a key of no use.
    return len(secret) >= 16 or (len(secret) >= 8 and mixed)


def forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """The texts to look for: each secret, and as JSON and addresses write it, the longest first."""
    found = {form for secret in secrets for form in _forms_of(secret)}
    return tuple(sorted(sorted(found), key=len, reverse=True))


@lru_cache(maxsize=1024)
def _forms_of(secret: str) -> frozenset[str]:
    if not is_maskable(secret):
        return frozenset({secret})
    escaped = json.dumps(secret)[1:-1]
    in_address = quote(secret, safe="", errors="backslashreplace")
    return frozenset({secret, escaped, escaped.replace("/", "\\/"), in_address})


def mask(text: str, secrets: Iterable[str]) -> str:
    """`text` without the given secrets, which are taken as `forms` gave them."""
    for secret in secrets:
        if secret in text and is_maskable(secret):
            text = text.replace(secret, MASK)
    return text


def mask_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """As `mask`, for an answer's bytes."""
    for secret in secrets:
        sought = secret.encode("utf-8", "backslashreplace")
        if sought in data and is_maskable(secret):
            data = data.replace(sought, MASK.encode())
    return data


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets and without anything that looks like one."""
    for secret in secrets:
        if secret in text and len(secret) >= 6 and not secret.startswith(PLACEHOLDER):
            text = text.replace(secret, MASK)
    if _SUSPICIOUS.search(text) is not None:
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
    return text


def scrub_bytes(data: bytes, secrets: Iterable[str] = ()) -> bytes:
    """As `scrub`, for an error answer's bytes. All other bytes stay as they are."""
    return scrub(mask_bytes(data, secrets).decode("latin-1"), secrets).encode("latin-1")


def scrub_json(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A JSON value with every text scrubbed, and every text under a name like `api_key` masked."""
    secrets = tuple(secrets)
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, list | tuple):
        return [scrub_json(item, secrets) for item in value]
    if isinstance(value, dict):
        return {scrub(name, secrets): _scrub_field(name, item, secrets) for name, item in value.items()}
    return value


def secret_fields(body: Any) -> list[str]:
    """The texts of a request that stand under a name like `api_key`, at its top or in what is there."""
    fields = body.items() if isinstance(body, dict) else ()
    inner = [pair for _, value in fields if isinstance(value, dict) for pair in value.items()]
    named = (value for name, value in (*fields, *inner) if _SECRET_FIELD.fullmatch(name))
    return [value for value in named if isinstance(value, str) and is_maskable(value)]


def _scrub_field(name: str, value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str) and _SECRET_FIELD.fullmatch(name):
        return value if value.startswith(PLACEHOLDER) else MASK
    return scrub_json(value, secrets)
