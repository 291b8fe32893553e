"""Logs that somebody else has made: who reads one runs nothing that is in it, and comes to an end."""

from __future__ import annotations

import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from support import logs
from support.commands import error_line, run

from proxy.log.database import reading
from proxy.log.errors import LogError
from proxy.log.writer import LogWriter

READERS = [
    ("score",),
    ("report", "-o", "-"),
    ("tail",),
    ("export", "--format", "openai"),
    ("log", "info"),
    ("log", "runs", "list"),
    ("log", "migrate"),
    ("log", "vacuum"),
]
ENDLESS = "WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT n FROM endless"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with LogWriter.open(path) as writer:
        said = logs.text_message("Fine.")
        asked = [{"role": "user", "content": "Hello."}]
        of = {"side": "provider", "reason": None, "turn": 1}
        writer.commit_blocking(
            *logs.opened(),
            logs.turn(),
            logs.start("x1", messages=asked, **of),
            logs.finish("x1", message=said, raw=b'{"id": "x"}'),
            logs.step(exchange_id="x1", message=said),
            logs.end(),
        )
    return path


def change(log: Path, *statements: str) -> None:
    with closing(sqlite3.connect(log)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def tables(log: Path) -> list[str]:
    return [name for (name,) in logs.query(log, "SELECT name FROM sqlite_master WHERE type = 'table'")]


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_a_log_with_a_view_in_the_place_of_any_table_is_none(log: Path, reader: tuple[str, ...]) -> None:
    whole = log.read_bytes()
    names = [name for name in tables(log) if not name.startswith("sqlite_")]
    assert len(names) > 10
    for name in names:
        log.write_bytes(whole)
        change(log, f"ALTER TABLE {name} RENAME TO kept", f"CREATE VIEW {name} AS {ENDLESS}")
        words = [*reader[:2], log, *reader[2:]] if reader[0] == "log" else [reader[0], log, *reader[1:]]
        result = run(*words)
        assert result.exit_code == 2, (name, result.output)
        assert "log" in error_line(result, 2)


def test_nothing_that_a_log_holds_can_call_a_function_that_is_not_harmless(log: Path) -> None:
    change(log, "CREATE VIEW notes AS SELECT harm() AS note", "DROP VIEW tool_call_log")
    change(log, "CREATE VIEW tool_call_log AS SELECT harm() AS name")
    harmed: list[int] = []
    for view in ("notes", "tool_call_log"):
        with pytest.raises(LogError, match="unsafe use of harm"), reading(log) as connection:
            connection.create_function("harm", 0, lambda: harmed.append(1))
            connection.execute(f"SELECT * FROM {view}").fetchall()
    assert harmed == []


def test_who_reads_a_log_cannot_write_so_that_no_trigger_fires(log: Path) -> None:
    with pytest.raises(LogError), reading(log) as connection:
        connection.execute("UPDATE meta SET value = 7 WHERE key = 'seq'")
    with reading(log) as connection:
        assert connection.execute("PRAGMA query_only").fetchone()[0] == 1
        assert connection.execute("PRAGMA cell_size_check").fetchone()[0] == 1


def test_a_small_cell_that_holds_a_huge_answer_is_damage_and_takes_no_memory(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.log.answers.LARGEST", 1 << 20)
    monkeypatch.setattr("scoring.logs.shown.LARGEST", 1 << 20)
    bomb = zlib.compress(bytes(100 << 20), 9)
    assert len(bomb) < 1 << 17
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE exchanges SET raw = ?", (bomb,))
    assert "damaged" in error_line(run("log", "show", log, "x1", "--raw"), 2)
    assert "damaged" in error_line(run("report", log, "-o", log.with_suffix(".html")), 2)


@pytest.mark.parametrize(
    "words", [("report", "-o", "{log}.html"), ("log", "show", "x1"), ("tail", "--wide"), ("score", "-v")]
)
def test_a_history_that_goes_round_in_a_circle_has_an_end(log: Path, words: tuple[str, ...]) -> None:
    change(log, "PRAGMA foreign_keys = OFF", "UPDATE chains SET parent = hash")
    before = time.process_time()
    at = 2 if words[0] == "log" else 1
    run(*words[:at], log, *(word.replace("{log}", str(log)) for word in words[at:]))
    assert time.process_time() - before < 60


@pytest.mark.parametrize("damage", ["[" * 100_000, '{"role": ' * 50_000, "nan", "", '"\\ud800"'])
def test_a_message_that_is_no_json_or_too_deep_is_one_line(log: Path, damage: str) -> None:
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE messages SET body = ?", (damage,))
    for words in (("score", log), ("report", log, "-o", f"{log}.html"), ("tail", log, "--wide")):
        result = run(*words)
        assert result.exit_code in (0, 2, 3), result.output
        assert "Traceback" not in result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), words
