"""Agents that are servers themselves, and point at the proxy by their own configuration.

Nobody can change such an agent's base URL from outside for each Session, so the prompt names
the Session: `[[next-user-turn 1 session=NAME]]`. Its base URL is the proxy's bare `/v1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from proxy import sentinel
from proxy.drive.agent import (
    Agent,
    AgentAnswer,
    AgentFactory,
    AgentFailure,
    AgentSession,
    AgentUnusable,
)
from proxy.log.redaction import scrub
from proxy.terminal.text import one_line
from proxy.wire.endpoint import display_url

CHAT_PATH = "/chat/completions"
CONNECT_TIMEOUT_S = 30.0
ANSWER_BYTES = 1 << 20
"""How much of an answer is looked at; the rest is read and dropped."""
SHOWN_COLUMNS = 160
"""Of an error's body."""

_SLOT = re.compile(r"\{(turn|session)\}")
Message = dict[str, Any]


@asynccontextmanager
async def http_agents(url: str, *, model: str, body: Any = None) -> AsyncIterator[AgentFactory]:
    """A factory of agents behind the server at `url`, which may hold {session}.

    Without `body` the server is asked for chat completions of `model`, with the history.
    `body` is a JSON value that is sent instead, for each turn, with {turn} and {session}
    filled in wherever they stand in its texts.
    """
    async with aiohttp.TCPConnector(limit=0) as connector:

        def factory(session: AgentSession) -> Agent:
            # A client of its own: an agent that sets cookies must not mix its Sessions up.
            http = aiohttp.ClientSession(
                connector=connector,
                connector_owner=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            )
            return HttpAgent(session, http, endpoint(url, session.name, chat=body is None), model, body)

        yield factory


class HttpAgent:
    """One Session with the server. A turn that fails leaves no trace in the history."""

    def __init__(
        self, session: AgentSession, http: aiohttp.ClientSession, url: str, model: str, body: Any
    ) -> None:
        self._session = session
        self._http = http
        self._url = url
        self._model = model
        self._body = body
        self._history: list[Message] = []

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        said = with_session(prompt, self._session.name)
        messages = [*self._history, {"role": "user", "content": said}]
        if self._body is None:
            body: Any = {"model": self._model, "messages": messages}
        else:
            body = fill(self._body, {"turn": said, "session": self._session.name})
        status, raw = await self._post(body)
        missing = await self._session.missing(number)
        shown = one_line(scrub(raw.decode("utf-8", "replace")).strip(), SHOWN_COLUMNS)
        if missing is not None:
            raise AgentFailure(f"answered HTTP {status} {missing}: {shown or 'an empty body'}")
        text = _text(raw)
        self._history = [*messages, {"role": "assistant", "content": text}] if text else messages
        if 200 <= status < 300:
            return AgentAnswer(text)
        return AgentAnswer(text, note=f"answered HTTP {status} after the turn was answered: {shown}")

    def last_words(self) -> str:
        """Nothing: what a server writes, it writes elsewhere."""
        return ""

    async def close(self) -> None:
        await self._http.close()

    async def _post(self, body: Any) -> tuple[int, bytes]:
        try:
            async with self._http.post(self._url, json=body, allow_redirects=False) as response:
                kept = b""
                async for chunk in response.content.iter_any():
                    kept += chunk[: ANSWER_BYTES - len(kept)]
                return response.status, kept
        except TimeoutError:
            raise AgentUnusable(f"cannot be reached at {display_url(self._url)} (no connection)") from None
        except aiohttp.ClientConnectorError as error:
            where = display_url(self._url)
            raise AgentUnusable(f"cannot be reached at {where} ({error.strerror or error})") from error
        except aiohttp.ClientError as error:
            where = display_url(self._url)
            raise AgentFailure(f"the request to {where} failed ({error or type(error).__name__})") from error


def endpoint(url: str, session: str, *, chat: bool) -> str:
    """Where a Session's turns are sent: `url` itself, or its chat completions."""
    url = url.replace("{session}", quote(session, safe=""))
    if not chat or url.split("?")[0].endswith(CHAT_PATH):
        return url
    return url.rstrip("/") + CHAT_PATH


def with_session(prompt: str, session: str) -> str:
    """The prompt with its sentinel naming the Session. Raises AgentFailure if it cannot.

    A prompt without a sentinel is left as it is.
    """
    match = sentinel.PATTERN.search(prompt)
    if match is None or match["session"]:
        return prompt
    named = f"{match[0].removesuffix(']]').rstrip()} session={session}]]"
    if not sentinel.PATTERN.fullmatch(named):
        raise AgentFailure(
            f"the session's name {session!r} cannot stand in a prompt: a scenario id for agents that are "
            "servers has only letters, digits and . _ ~ -"
        )
    return prompt[: match.start()] + named + prompt[match.end() :]


def fill(value: Any, words: dict[str, str]) -> Any:
    """A JSON value with its slots filled, in every text of it, once."""
    if isinstance(value, str):
        return _SLOT.sub(lambda slot: words[slot[1]], value)
    if isinstance(value, list):
        return [fill(item, words) for item in value]
    if isinstance(value, dict):
        return {name: fill(item, words) for name, item in value.items()}
    return value


def _text(raw: bytes) -> str:
    """The text of a chat completion; nothing if it is something else."""
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return content if isinstance(content, str) else ""
