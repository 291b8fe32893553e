"""What the proxy of this project wrote down of a probe: its columns are in docs/schema.md."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conformance.http import within

Row = dict[str, Any]

_BOTH_SIDES = """
with asked as (select id from exchanges where side = 'agent' and (instr(body, :m) or instr(path, :m)))
select * from exchanges
where side = :side and (id in (select id from asked) or parent_id in (select id from asked))
order by arrival
"""
_ANSWERS = """
select raw,
    (select value from meta where key = 'answer_dictionary') || coalesce(messages.body, '') as dictionary
from exchanges left join messages on messages.hash = output_message where raw is not null
"""
_STEPS = """
select steps.decision from steps join exchanges on exchanges.id = steps.exchange_id
where exchanges.parent_id in (select id from exchanges where instr(body, :m)) order by steps.seq
"""
_CALLS = """
select tool_calls.name, tool_calls.arguments, tool_calls.observation
from tool_calls join steps using (session_id, task, step)
join exchanges on exchanges.id = steps.exchange_id
where exchanges.parent_id in (select id from exchanges where instr(body, :m))
order by steps.seq, tool_calls.position
"""


class Log:
    """A log that is read while the proxy writes. `patience` is in seconds."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self._patience = patience

    def query(self, sql: str, **values: object) -> list[Row]:
        with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, values)]

    async def exchanges(self, marker: str, count: int = 1, side: str = "agent") -> list[Row]:
        """The exchanges of one side that a marker names, once `count` of them are over."""

        def over() -> list[Row]:
            rows = self.query(_BOTH_SIDES, m=marker, side=side)
            return [row for row in rows if row["finish_state"] != "pending"]

        async def wait() -> list[Row]:
            while len(rows := over()) < count:
                await asyncio.sleep(0.01)
            return rows

        return await within(self._patience, wait(), f"{count} finished {side} rows in the log")

    def message(self, row: Row) -> Any:
        """The assistant message of an exchange, None if it has none."""
        found = self.query("select body from messages where hash = :h", h=row["output_message"])
        return json.loads(found[0]["body"]) if found else None

    def decisions(self, marker: str) -> list[str]:
        return [row["decision"] for row in self.query(_STEPS, m=marker)]

    def calls(self, marker: str) -> list[tuple[str, str, str]]:
        """(name, arguments, observation) of each call that was judged."""
        return [(it["name"], it["arguments"], it["observation"]) for it in self.query(_CALLS, m=marker)]

    def everything(self) -> bytes:
        """All bytes of the log's files, and of the answers that are compressed in them."""
        files = [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))]
        answers = (
            zlib.decompressobj(zdict=it["dictionary"].encode()).decompress(it["raw"])
            for it in self.query(_ANSWERS)
        )
        return b"\n".join([*(it.read_bytes() for it in files if it.exists()), *answers])
