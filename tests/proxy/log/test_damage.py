"""What is said of a log that somebody, or a disk, has spoilt."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import story
from support.commands import error_line, run

from proxy.log.damage import damage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    story.write(tmp_path / "log.db")
    return tmp_path / "log.db"


def spoil(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)


SPOILT = [
    ("UPDATE turns SET text = x'00ff' WHERE turn = 2 AND session_id = 's2'", "turns.text", "['s2', 2]"),
    ("UPDATE exchanges SET started_at = 'soon' WHERE id = 'p3'", "exchanges.started_at", "['p3']"),
    ("UPDATE exchanges SET input_tokens = 'many' WHERE id = 'p2'", "exchanges.input_tokens", "['p2']"),
    ("UPDATE exchanges SET raw = 'text' WHERE id = 'p2'", "exchanges.raw", "['p2']"),
    ("UPDATE runs SET config = '[]'", "runs.config", "['r1']"),
    ("UPDATE steps SET nodes = '{}' WHERE task = 0 AND step = 0 AND session_id = 's1'", "steps.nodes", "s1"),
    ("UPDATE exchanges SET changes = '[' WHERE id = 'p2'", "exchanges.changes", "['p2']"),
    ("DELETE FROM meta WHERE key = 'answer_dictionary'", "meta", "answer_dictionary"),
    ("UPDATE meta SET value = 0 WHERE key = 'answer_dictionary'", "meta", "answer_dictionary"),
    ("UPDATE meta SET value = 'soon' WHERE key = 'created_at'", "meta", "created_at"),
    ("UPDATE meta SET value = NULL WHERE key = 'seq'", "meta", "seq"),
    ("UPDATE messages SET hash = 'x' WHERE rowid = 1", "chains", "messages"),
]


@pytest.mark.parametrize(("sql", "column", "row"), SPOILT, ids=[" ".join(it[1:]) for it in SPOILT])
def test_a_cell_that_no_proxy_writes_is_named_with_its_row(
    path: Path, sql: str, column: str, row: str
) -> None:
    spoil(path, sql)
    found = damage(path)
    assert found is not None
    assert found.startswith(f"{path}: is damaged: {column}")
    assert row in found


def test_a_file_whose_pages_are_spoilt_is_damaged(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 : 4096 * 6] = b"\xff" * 4096 * 4
    path.write_bytes(raw)
    assert f"{path}: is damaged: " in str(damage(path))


def test_a_sound_log_is_not_damaged_nor_is_what_is_no_log(path: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("SQLite is a library.")
    assert [damage(it) for it in (path, note, tmp_path, tmp_path / "none.db")] == [None] * 4


@pytest.mark.parametrize("words", [("score",), ("tail",), ("report",), ("compare",), ("log", "info")])
def test_a_command_that_cannot_read_a_damaged_log_says_so_in_one_line(
    path: Path, words: tuple[str, ...]
) -> None:
    spoil(path, "UPDATE turns SET text = x'00ff'")
    spoil(path, "UPDATE scenarios SET record = '5', id = x'00'")
    spoil(path, "UPDATE exchanges SET started_at = 'soon'")
    out = ("-o", path.with_name("out.html")) if words == ("report",) else ()
    other = (path,) if words == ("compare",) else ()
    done = run(*words, path, *other, *out)
    if done.exit_code != 0:
        assert str(path) in error_line(done, done.exit_code)


@pytest.mark.parametrize("words", [("score",), ("tail",), ("log", "info"), ("log", "migrate"), ("report",)])
def test_a_schema_that_is_no_text_is_damage(path: Path, words: tuple[str, ...]) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"tableturnsturns", b"table\x80urnsturns"))
    assert path.read_bytes() != raw
    out = ("-o", path.with_name("out.html")) if words == ("report",) else ()
    assert str(path) in error_line(run(*words, path, *out), 2)


READERS = [("score",), ("tail",), ("log", "info"), ("log", "migrate"), ("log", "vacuum")]


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE meta SET key = NULL WHERE key = 'schema_version'",
        "UPDATE meta SET value = 'new' WHERE key = 'schema_version'",
    ],
)
def test_a_log_that_does_not_say_its_version_is_left_alone(
    path: Path, words: tuple[str, ...], sql: str
) -> None:
    spoil(path, sql)
    before = path.read_bytes()
    line = error_line(run(*words, path), 2)
    assert str(path) in line
    assert "the schema_version in its meta is no number" in line
    assert path.read_bytes() == before


def test_the_line_says_what_is_wrong_and_the_traceback_is_there_for_who_asks(path: Path) -> None:
    spoil(path, "UPDATE turns SET text = x'00ff' WHERE turn = 1 AND session_id = 's1'")
    line = error_line(run("tail", path), 2)
    assert "is damaged: turns.text of the row ['s1', 1] holds text no more, but blob" in line
    assert isinstance(run("--debug", "tail", path).exception, TypeError)
