"""Why the proxy did not let an agent's request in, where its log can be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from proxy.drive.agent import LAST_WORDS, LOG_SAYS
from proxy.log.database import reading
from proxy.log.errors import LogError
from scenarios.text import clip

SHOWN = 300
"""Characters of a refusal that are shown."""

Refusal = Callable[[str, int], str | None]
"""(Session, turn) -> why the proxy refused a request of that turn; None if it did not, or nobody knows."""


def refusals_in(log: Path, run: str) -> Refusal:
    """The last ones that are written down in `log`: `HTTP 400, tools_missing: the request must ...`."""

    def last(session: str, turn: int) -> str | None:
        with suppress(LogError, sqlite3.Error), reading(log) as connection:
            row = connection.execute(_LAST, {"run": run, "session": session, "turn": turn}).fetchone()
            return row and f"HTTP {row['status']}, {row['error_type']}: {row['error']}"
        return None

    return last


def unknown(session: str, turn: int) -> None:
    """Of a proxy whose log is its own."""


def told(reason: str, refusal: str | None) -> str:
    """Why a turn failed, with the refusal in it, unless the agent has told it itself.

    Last words that are the same refusal, cut short, are left out.
    """
    if refusal is None:
        return reason
    before, mark, words = reason.partition(LAST_WORDS)
    begins = refusal.partition(": ")[2][:40]
    if begins in before:
        return reason
    rest = "" if begins in words else f"{mark}{words}"
    shown = clip(refusal, SHOWN)
    if LOG_SAYS in before:
        return before.replace(LOG_SAYS, f"({shown})", 1) + rest
    return f"{before}; the proxy had refused its request ({shown}){rest}"


_LAST = """SELECT status, error_type, error FROM exchanges JOIN sessions ON sessions.id = session_id
    WHERE sessions.run_id = :run AND name = :session AND turn = :turn AND side = 'agent'
    AND finish_state = 'proxy_error' AND attempt = (
        SELECT max(attempt) FROM sessions WHERE run_id = :run AND name = :session)
    ORDER BY arrival DESC LIMIT 1"""
