"""What a probe works with: the proxy under test, the provider behind it, the log if there is one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.conformance.client import Asking, Line
from tests.conformance.http import Failed, Headers
from tests.conformance.log import Log, Row
from tests.conformance.provider import ScriptedProvider

Mode = Literal["record", "session"]

TEXT_SCENARIO = "clinic_5"
"""Bundled; its first Task begins with a question to the user, so any text is right."""
CALLS_SCENARIO = "ledger_1"
"""Bundled; its first Task begins with two calls of `get_balance` beside each other."""
LEAVING_LIMIT = 1.0
"""Seconds in which a recording proxy must leave its provider when the agent has left."""


@dataclass(frozen=True, slots=True)
class Target:
    """A proxy under test. `base` is its base URL; `key` what agents authorize themselves with.

    `patience` and `leaving_limit` are in seconds.
    """

    base: str
    key: str
    patience: float = 10.0
    leaving_limit: float = LEAVING_LIMIT

    @property
    def host(self) -> str:
        return urlsplit(self.base).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.base).port or 80

    @property
    def path(self) -> str:
        return urlsplit(self.base).path.rstrip("/")


def new_key() -> str:
    """A key that occurs nowhere else."""
    return f"sk-canary-{secrets.token_hex(16)}"


@dataclass(slots=True)
class Bench:
    """One probe's workplace. `marker` is in all of its requests."""

    target: Target
    provider: ScriptedProvider
    mode: Mode
    log: Log | None = None
    scenario: str = TEXT_SCENARIO
    lines: list[Line] = field(default_factory=list)
    marker: str = field(init=False)
    session: str = field(init=False)

    def __post_init__(self) -> None:
        self.marker = f"probe-{secrets.token_hex(6)}"
        self.session = f"{self.scenario}.e{secrets.randbelow(899_999) + 100_000}"
        self.provider.expect(self.marker.encode())

    def again(self) -> Bench:
        """The same workplace with a marker, and a session, of its own."""
        return Bench(self.target, self.provider, self.mode, self.log, self.scenario, lines=self.lines)

    # Asking

    @property
    def base(self) -> str:
        """The path before the endpoint's: in a session it names that."""
        if self.mode == "record":
            return self.target.path
        return f"{self.target.path.removesuffix('/v1')}/s/{self.session}/v1"

    def messages(self, words: str = "Hello") -> list[dict[str, Any]]:
        """The user's message; in a session, with the placeholder of the first turn in it."""
        placeholder = "[[next-user-turn 1]]"
        if self.mode == "session":
            words = placeholder if words == "Hello" else f"{words} {placeholder}"
        return [{"role": "user", "content": words}]

    def body(self, **fields: Any) -> dict[str, Any]:
        return {"model": "asked-model", "user": self.marker, "messages": self.messages(), **fields}

    def headers(self, *more: tuple[str, str]) -> Headers:
        """What every client sends, and `more`."""
        host = f"{self.target.host}:{self.target.port}"
        return [("Host", host), ("Authorization", f"Bearer {self.target.key}"), *more]

    async def line(self) -> Line:
        """A new connection to the proxy."""
        self.lines.append(await Line.open(self.target.host, self.target.port, self.target.patience))
        return self.lines[-1]

    async def ask(
        self, *more: tuple[str, str], line: Line | None = None, raw: bytes | None = None, **fields: Any
    ) -> Asking:
        """A chat completion with these fields, or with the body `raw`; `more` are headers."""
        body = json.dumps(self.body(**fields), ensure_ascii=False).encode() if raw is None else raw
        return await self.request("POST", "/chat/completions", *more, line=line, body=body)

    async def request(
        self,
        method: str,
        path: str,
        *more: tuple[str, str],
        line: Line | None = None,
        body: bytes | None = None,
    ) -> Asking:
        kind = [("Content-Type", "application/json")] if body is not None else []
        line = line or await self.line()
        return await line.ask(method, self.base + path, self.headers(*kind, *more), body)

    def close(self) -> None:
        for line in self.lines:
            line.close()

    # What is in the log, if there is one

    async def logged(self, count: int = 1, side: str = "agent", **expected: Any) -> Row | None:
        """The last of `count` rows, which must have the `expected` columns; None without a log."""
        if self.log is None:
            return None
        row = (await self.log.exchanges(self.marker, count, side))[-1]
        for name, wanted in expected.items():
            same(row[name], wanted, f"the log's {name}")
        return row

    async def logged_message(self, **expected: Any) -> None:
        """The logged assistant message must have the `expected` fields."""
        if self.log is None or (row := await self.logged()) is None:
            return
        message = self.log.message(row) or {}
        for name, wanted in expected.items():
            same(message.get(name), wanted, f"the logged message's {name}")

    async def logged_steps(self, *decisions: str) -> None:
        """What was decided on the LLM's answers."""
        if self.log is not None:
            await self.logged()
            same(self.log.decisions(self.marker), list(decisions), "the decisions")


def check(condition: object, text: str) -> None:
    """Raises Failed with `text`, what was seen, unless the condition holds."""
    if not condition:
        raise Failed(text)


def same(seen: object, wanted: object, what: str) -> None:
    if seen != wanted:
        raise Failed(f"{what} is {_short(seen)}, not {_short(wanted)}")


def contains(seen: Iterable[tuple[str, str]], wanted: Iterable[tuple[str, str]], what: str) -> None:
    """Every wanted header is there, once."""
    pairs = [(name.lower(), text) for name, text in seen]
    for name, text in wanted:
        found = [it for key, it in pairs if key == name.lower()]
        check(found == [text], f"{what} has {name}: {found or 'none'}, not {text!r}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:45]}...{text[-40:]}"


def patient(target: Target, patience: float) -> Target:
    """For tests: nothing but the end of all patience is a reason to fail."""
    return replace(target, patience=patience, leaving_limit=patience)
