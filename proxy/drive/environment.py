"""The environment that an agent's process runs in. Pure.

Names and values of the switches are those that the frameworks themselves document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from proxy.drive.agent import AgentSession, placeholder_key
from proxy.log.redaction import is_maskable
from proxy.wire.endpoint import SESSION_HEADER

CONTROL_TOKEN = "EVAL_TOKEN"
"""Opens the control API, which no agent has any business with."""

DEFAULTS = {
    "OPENAI_TIMEOUT": "600",
    "PYTHONUNBUFFERED": "1",
    # Nothing leaves for anywhere but the proxy: traces, telemetry, price lists.
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
    "AGNO_TELEMETRY": "false",
}
"""What an agent gets unless the user's own environment says otherwise."""

_MCP_URL = "EVAL_MCP_URL"
_CUSTOM_HEADERS = "OPENAI_CUSTOM_HEADERS"
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_NAMED = re.compile(r"-{0,2}(?P<name>[\w-]+)=(?P<value>.*)", re.DOTALL)
"""`OPENAI_API_KEY=...`, or `--api-key=...`."""
_TOKEN = re.compile(r"/t/(?P<token>[^/]+)/")


def agent_environment(
    session: AgentSession, environ: Mapping[str, str], hidden: Iterable[str] = ()
) -> dict[str, str]:
    """The whole environment of the agent that plays `session`: `environ` without `hidden`,
    and the Session's address and key under every name that clients read.
    """
    hidden = {CONTROL_TOKEN, _MCP_URL, *hidden}
    kept = {name: value for name, value in environ.items() if name not in hidden}
    return {
        **DEFAULTS,
        **kept,
        **_direct(session.base_url, kept),
        **_session_header(session.name, kept.get(_CUSTOM_HEADERS, "")),
        "OPENAI_BASE_URL": session.base_url,
        "OPENAI_API_BASE": session.base_url,
        # Never a key that opens anything, whatever the agents in this process are given.
        "OPENAI_API_KEY": _header_safe(placeholder_key(session.name)) or placeholder_key("unnamed"),
        "EVAL_SESSION": session.name,
        "EVAL_BASE_URL": session.base_url,
        **({_MCP_URL: session.mcp_url} if session.mcp_url else {}),
    }


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values that must not be shown should an agent print them, by the names they stand under."""
    return tuple(value for name, value in environ.items() if _is_secret(name) and is_maskable(value))


def secrets_in(command: Sequence[str], base_url: str) -> tuple[str, ...]:
    """As `secrets_of`, of a command's words and of the address that its agent is given."""
    words = zip(["", *command], command, strict=False)
    found = {after for before, after in words if before.startswith("-") and _is_secret(before)}
    found |= {it["value"] for word in command if (it := _NAMED.fullmatch(word)) and _is_secret(it["name"])}
    if token := _TOKEN.search(base_url):
        found.add(token["token"])
    return tuple(sorted(filter(is_maskable, found)))


def _is_secret(name: str) -> bool:
    return any(word in name.upper() for word in _SECRET_WORDS)


def _direct(base_url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The way to the proxy leads through no HTTP proxy, whatever the environment has of them."""
    host = urlsplit(base_url).hostname or ""
    said = [environ.get(name, "") for name in ("NO_PROXY", "no_proxy")]
    hosts = dict.fromkeys(part.strip() for part in ",".join([*said, host]).split(","))
    joined = ",".join(filter(None, hosts))
    return {"NO_PROXY": joined, "no_proxy": joined}


def _session_header(session: str, present: str) -> dict[str, str]:
    """The Session's header after the user's own ones; OPENAI_CUSTOM_HEADERS has one on a line."""
    own = [line for line in present.splitlines() if not line.strip().lower().startswith(f"{SESSION_HEADER}:")]
    if name := _header_safe(session):
        own.append(f"{SESSION_HEADER}: {name}")
    return {_CUSTOM_HEADERS: "\n".join(own)} if own else {}


def _header_safe(text: str) -> str:
    """`text` if it can be sent in a header, else nothing: clients raise on what cannot."""
    return text if text.isascii() and text.isprintable() else ""
