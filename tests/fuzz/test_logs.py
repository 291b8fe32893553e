"""Whatever has become of a log: a command gives a result, or one line of error and its exit code."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import scenes, story
from support.anything import NUMBERS, TEXTS, changed, json_values
from support.commands import run
from support.examples import examples
from support.odd_provider import odd_provider
from support.playing import prompt, serving

from proxy.log.damage import damage
from proxy.log.errors import LogError
from proxy.server import StartError, running
from proxy.settings import PlayConfig, Settings

KEYS = st.sampled_from(
    [
        *(
            "role",
            "content",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "id",
            "type",
            "choices",
            "message",
        ),
        *("action", "observation", "dependency_list", "tasks", "tools", "answer_list", "env_info", "history"),
        *("tools", "on_mismatch", "model", "provider", "inject", "max_steps", "keep_tools", "turn", "what"),
    ]
)
VALUES = json_values(KEYS)
CELLS = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | NUMBERS.filter(lambda it: isinstance(it, float))
    | TEXTS.map(lambda it: it.encode("utf-8", "replace").decode())
    | st.binary(max_size=20)
    | TEXTS.map(lambda it: it.encode("utf-8", "surrogatepass"))
)
READERS: list[tuple[str, ...]] = [
    ("score", "LOG"),
    ("score", "LOG", "-v", "--scorer", "wildtoolbench", "--scorer", "published"),
    ("score", "LOG", "--format", "json"),
    ("score", "LOG", "--format", "markdown"),
    ("compare", "LOG", "LOG"),
    ("tail", "LOG"),
    ("tail", "LOG", "--session", "shop_1.e1"),
    ("report", "LOG", "-o", "OUT.html"),
    ("export", "LOG", "--format", "openai", "-o", "OUT.jsonl", "--force"),
    ("export", "LOG", "--format", "wildtoolbench", "-o", "OUT", "--force"),
    ("log", "info", "LOG"),
    ("log", "runs", "list", "LOG"),
    ("log", "show", "LOG", "p2"),
    ("log", "migrate", "LOG"),
    ("log", "merge", "LOG", "-o", "OUT.db"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with everything that `tail` has a line for."""
    path = tmp_path_factory.mktemp("told") / "log.db"
    story.write(path)
    return path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a proxy that was stopped in the middle of two Sessions."""
    folder = tmp_path_factory.mktemp("played")
    asyncio.run(_play(folder))
    return folder / "log.db"


async def _play(folder: Path) -> None:
    file = scenes.write(folder, scenes.SHOP)
    options = {"scenarios": (file,), "play": PlayConfig(history="live", tools="relay")}
    async with odd_provider() as provider, serving(folder, provider.url, environ=None, **options) as proxy:
        for name, turns in (("shop.e1", (1, 2)), ("shop.e2", (1,))):
            for turn in turns:
                await proxy.send("POST", f"/s/{name}/v1/chat/completions", json=prompt(turn))
        await proxy.send("POST", "/s/shop.e3/v1/responses", json={"input": "[[next-user-turn 1]]"})


@dataclass(frozen=True)
class Cell:
    """Where a value stands: `key` names the row."""

    table: str
    column: str
    key: tuple[tuple[str, Any], ...]

    @property
    def where(self) -> str:
        return " AND ".join(f"{name} IS ?" for name, _ in self.key)

    @property
    def keys(self) -> list[Any]:
        return [value for _, value in self.key]


def cells(connection: sqlite3.Connection) -> Iterator[Cell]:
    """Everything that is stored."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        names = [column[1] for column in columns if column[5]]
        for row in connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall():
            key = tuple(zip(names, row, strict=True))
            yield from (Cell(table, column[1], key) for column in columns)


def with_cells_changed(path: Path, data: st.DataObject) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        places = st.sampled_from(list(cells(connection)))
        for cell in data.draw(st.lists(places, min_size=1, max_size=3)):
            found = connection.execute(
                f"SELECT {cell.column} FROM {cell.table} WHERE {cell.where}", cell.keys
            ).fetchone()
            other = data.draw(instead_of(found[0] if found else None))
            # The table itself may refuse it.
            with suppress(sqlite3.IntegrityError):
                connection.execute(
                    f"UPDATE {cell.table} SET {cell.column} = ? WHERE {cell.where}", [other, *cell.keys]
                )


def instead_of(value: Any) -> st.SearchStrategy[Any]:
    """What is JSON stays so more often than not."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return CELLS
    texts = changed(json.loads(value), VALUES, KEYS).map(json.dumps)
    return texts | texts | CELLS


def check(path: Path, words: tuple[str, ...]) -> int:
    """Runs a command on the log; gives its exit code."""
    ends = ("", ".html", ".jsonl", ".db")
    places = {"LOG": str(path), **{f"OUT{end}": str(path.with_name(f"out{end}")) for end in ends}}
    done = run(*(places.get(word, word) for word in words))
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    assert done.exit_code in (0, 1, 2, 3, 4), words
    done.output.encode()
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == (done.exit_code in (2, 3)), (words, done.stderr)
    return done.exit_code


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_every_command_reads_the_log_that_is_changed_here(told: Path, tmp_path: Path, words: Any) -> None:
    """Otherwise all that is tried would be what is refused at once."""
    path = Path(shutil.copyfile(told, tmp_path / "log.db"))
    assert check(path, words) == 0


@examples(8, large=True)
@given(st.data())
def test_a_log_with_cells_changed_is_read_or_refused_in_one_line(told: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        shutil.copyfile(told, path)
        with_cells_changed(path, data)
        for words in data.draw(st.lists(st.sampled_from(READERS), min_size=2, max_size=4, unique=True)):
            check(path, words)


@examples(8, large=True)
@given(st.data())
def test_a_log_with_bytes_changed_is_read_or_refused_in_one_line(told: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        path.write_bytes(spoilt(told.read_bytes(), data))
        for words in data.draw(st.lists(st.sampled_from(READERS), min_size=2, max_size=4, unique=True)):
            check(path, words)


def spoilt(sound: bytes, data: st.DataObject) -> bytes:
    raw = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw) - 1) | st.integers(0, 200))
        piece = data.draw(st.binary(min_size=1, max_size=64) | st.just(b"\x00" * 4096))
        raw[at : at + len(piece)] = piece
    return bytes(raw[: len(sound) if data.draw(st.booleans()) else data.draw(st.integers(0, len(sound)))])


@examples(8, large=True)
@given(st.data())
def test_a_proxy_goes_on_with_a_changed_log_or_says_why_not(played: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        if data.draw(st.booleans()):
            path.write_bytes(spoilt(played.read_bytes(), data))
        else:
            shutil.copyfile(played, path)
            with_cells_changed(path, data)
        asyncio.run(resumed(path, played.parent / "scenarios.jsonl"))


async def resumed(path: Path, file: Path) -> None:
    play = PlayConfig(history="live", tools="relay")
    settings = Settings(log=path, provider="sim:oracle", scenarios=(file,), play=play, runs="continue")
    try:
        async with running(settings, environ={}):
            pass
    except (StartError, LogError) as error:
        assert len(str(error).splitlines()) == 1
    except Exception:
        # The program looks for what is wrong with the log, and ends with that.
        if damage(path) is None:
            raise
