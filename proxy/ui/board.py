"""What a page shows of one Run before anything is opened, and what of it has changed since."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from proxy.ui.figures import Figures
from proxy.ui.recorded import error_rows, exchange_rows
from proxy.ui.rows import PAGE, newest_sessions, session_rows
from proxy.ui.verdicts import Verdicts

JSON = dict[str, Any]

RUNS = 50
"""Runs that a page can choose from, the newest."""
MOST_NEW = 20_000
"""Values of `seq` after which all is read anew, rather than what is new."""
JUDGED_AT_ONCE = 10
"""Sessions judged before the page is told of it: those of a long Run come one after another."""

_RUNS = f"SELECT id, name, created_at, config FROM runs ORDER BY rowid DESC LIMIT {RUNS}"
_WINDOW = "seq > :after AND seq <= :upto"
_CHANGED = f"""SELECT id FROM sessions WHERE run_id = :run AND id IN (
    SELECT id FROM sessions WHERE {_WINDOW}
    UNION SELECT session_id FROM turns WHERE {_WINDOW}
    UNION SELECT session_id FROM tasks WHERE {_WINDOW}
    UNION SELECT session_id FROM steps WHERE {_WINDOW}
    UNION SELECT session_id FROM exchanges WHERE {_WINDOW})
    ORDER BY seq DESC"""


@dataclass(frozen=True, slots=True)
class Live:
    """What the proxy is at: the Run that it plays, since when, by which clock (Unix seconds)."""

    run: str
    since: float
    now: Callable[[], float]


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """One state of the log throughout; not to be kept for long, lest the writer cannot tidy up."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):  # it can only follow another error
            connection.execute("COMMIT")


@dataclass(slots=True)
class Board:
    """Reads one Run for one page. To be used in one thread, with one connection.

    `behind`: there is more to tell, though nobody has written since.
    """

    connection: sqlite3.Connection
    run: str
    live: Live
    verdicts: Verdicts
    behind: bool = False
    _after: int = 0
    _records: bool = False
    _figures: Figures = field(init=False)

    def __post_init__(self) -> None:
        self._figures = Figures(self.run, self.verdicts.found)

    def all(self) -> JSON:
        """The Run as it stands: its newest Sessions, or exchanges where the proxy only records."""
        with snapshot(self.connection):
            self._after = self._seq()
            self._figures = Figures(self.run, self.verdicts.found)
            self._figures.begin(self.connection)
            runs = [_run(row) for row in self.connection.execute(_RUNS)]
            self._records = any(run["id"] == self.run and run["records"] for run in runs)
            self.behind = self.verdicts.judges and bool(self._figures.unjudged)
            newest = newest_sessions(self.connection, self.run)
            return {
                "run": self.run,
                "live_run": self.live.run,
                "runs": runs,
                "records": self._records,
                "judged": self.verdicts.judges,
                "page": PAGE,
                "more": len(newest) == PAGE,
                **self._told(list(dict.fromkeys([*newest, *self._figures.still_open()[:PAGE]])), None),
            }

    def new(self) -> tuple[str, JSON] | None:
        """What has changed since the last call: `changed` rows, to be put in the place of those with
        their ids, or `all` again if that is too much. None if nothing has that concerns this Run.
        """
        with snapshot(self.connection):
            after, upto = self._after, self._seq()
            window = {"after": after, "upto": upto, "run": self.run}
            changed = [row[0] for row in self.connection.execute(_CHANGED, window)]
            if upto - after <= MOST_NEW and len(changed) <= PAGE:
                self._after = upto
                return self._changed(after, upto, changed)
        return "all", self.all()

    def _changed(self, after: int, upto: int, changed: list[str]) -> tuple[str, JSON] | None:
        self._figures.go_on(self.connection, after, upto, changed)
        judged = self._judged() if self.verdicts.judges else []
        self.behind = self.verdicts.judges and bool(self._figures.unjudged)
        told = self._told(list(dict.fromkeys([*changed, *judged])), (after, upto))
        if not (told["sessions"] or told["exchanges"] or told["errors"]):
            return None
        return "changed", told

    def _judged(self) -> list[str]:
        """Some Sessions more have their verdicts: the last ones first."""
        judged = list(islice(reversed(self._figures.unjudged), JUDGED_AT_ONCE))
        for session in judged:
            self.verdicts.judge(self.connection, session)
            self._figures.judged(session)
        return judged

    def _told(self, sessions: list[str], window: tuple[int, int] | None) -> JSON:
        rows = session_rows(self.connection, sessions, live_run=self.live.run, since=self.live.since)
        return {
            "seq": self._after,
            "now": self.live.now(),
            "sessions": [self.verdicts.put_into(row) for row in rows],
            "exchanges": exchange_rows(self.connection, self.run, window) if self._records else [],
            "errors": error_rows(self.connection, self.run, window),
            "figures": self._figures.document(),
        }

    def _seq(self) -> int:
        return int(self.connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0])


def _run(row: sqlite3.Row) -> JSON:
    config = json.loads(row["config"])
    return {
        "id": row["id"],
        "name": row["name"],
        "created_at": row["created_at"],
        "records": config.get("mode") == "record",
        "provider": config.get("provider"),
        "model": config.get("model"),
        "agent": config.get("agent"),
        "history": config.get("history"),
        "tools": config.get("tools"),
        "on_mismatch": config.get("on_mismatch"),
    }
