"""The commands `log vacuum` and `log merge`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import logs

from proxy.log.cli import log
from proxy.log.database import reading
from proxy.log.describe import size_text
from proxy.log.migrations import MIGRATIONS, migrate
from proxy.log.restore import read_history
from proxy.log.rows import ExchangeDelivered, PlannedRow
from proxy.log.writer import LogWriter
from scoring.cli import score

PROGRAM = Path(__file__).resolve().parents[3] / "run_proxy.py"
HISTORY = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a lamp?"}]


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(log, [str(argument) for argument in arguments])


def said(*arguments: object) -> str:
    result = ran(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(*arguments: object) -> str:
    result = ran(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    return line


def played(run: str, at: float = 4.0, answer: str = "It is 3.", epoch: int = 1) -> list[Any]:
    """A run with a session of two exchanges, a side call, and one that belongs to no session."""
    session, agent, provider = f"{run}/s{epoch}", f"{run}.a{epoch}", f"{run}.p{epoch}"
    reply, call = logs.text_message(answer), logs.call_message(("findPrice", '{"thing": "lamp"}'))
    return [
        logs.run(run, at, history="gold"),
        logs.scenario(),
        PlannedRow(run, "shop_1", "hash-shop_1", epoch),
        logs.session(session, epoch=epoch, run_id=run),
        logs.turn(session_id=session),
        logs.start(agent, session, started_at=at, messages=HISTORY),
        logs.start(provider, session, side="provider", parent_id=agent, messages=[*HISTORY, {"of": run}]),
        logs.finish(provider, message=call, raw=b'{"of": "%s"}' % run.encode()),
        logs.step(session_id=session, exchange_id=provider, message=call, decision="observe",
                  calls=(logs.call(0, "findPrice", '{"thing": "lamp"}', "3"),)),
        logs.start(f"{provider}b", session, side="provider", parent_id=agent, messages=[*HISTORY, call]),
        logs.finish(f"{provider}b", message=reply),
        logs.step(1, session_id=session, exchange_id=f"{provider}b", message=reply),
        logs.end(session_id=session),
        logs.finish(agent, message=reply),
        ExchangeDelivered(agent, at + 1.5),
        logs.start(f"{run}.side", None, run_id=run, turn=None, reason="without tools"),
    ]  # fmt: skip


def made(path: Path, *runs: list[Any]) -> Path:
    with LogWriter.open(path, now=lambda: 1.0) as writer:
        for rows in runs:
            writer.commit_blocking(*rows)
    return path


def tables(path: Path, *without: str) -> dict[str, list[Any]]:
    """All that a log holds, in order where there is one, but for the columns that are named."""
    found = {}
    with reading(path) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
            kept = [{key: row[key] for key in row if key not in without} for row in rows]
            found[table] = sorted(kept, key=repr)
    return found


def scores(path: Path, run: str) -> str:
    result = CliRunner().invoke(score, [str(path), "--run", run, "--format", "json"])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.replace(path.name, "the log").replace(str(path.parent), "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def orphaned(path: Path) -> None:
    """Leaves a megabyte of bodies that no row refers to, as a program that was killed or meddled might."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO messages VALUES ('none', hex(randomblob(500000)))")
        connection.execute("INSERT INTO chains VALUES ('nowhere', NULL, 'none', 0)")
        connection.execute("INSERT INTO tool_lists VALUES ('unused', '[]')")
        connection.execute("INSERT INTO scenarios VALUES ('unplayed', 'u', '{}', 'u.jsonl', '')")


def test_vacuum_drops_what_nothing_refers_to_and_keeps_all_else(path: Path) -> None:
    before = tables(made(path, played("r1"), played("r2", answer="It is 4.")))
    orphaned(path)
    size = path.stat().st_size
    assert said("vacuum", path) == (
        f"{path}: {size_text(size)} before, {size_text(path.stat().st_size)} after; rows that nothing "
        "referred to: 1 of chains, 1 of messages, 1 of tool_lists, 1 of scenarios\n"
    )
    assert path.stat().st_size < 300_000
    assert tables(path) == before
    assert os.listdir(path.parent) == [path.name]
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*played("r3"))


def test_a_scenario_that_is_planned_or_played_is_kept(path: Path) -> None:
    rows = [logs.run(), logs.scenario("a"), logs.scenario("b"), logs.scenario("c"), logs.session("s", "a")]
    made(path, [*rows, PlannedRow("r1", "b", "hash-b", 1)])
    said("vacuum", path)
    assert logs.query(path, "SELECT id FROM scenarios ORDER BY id") == [("a",), ("b",)]


def test_a_log_that_is_open_elsewhere_is_not_vacuumed(path: Path) -> None:
    made(path, played("r1"))
    expected = (
        f"Error: {path}: is open in another program (a proxy, or one that reads it): end that, and try again"
    )
    with LogWriter.open(path) as writer:
        assert refused("vacuum", path) == expected
        writer.commit_blocking(*played("r2"))
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader:
            reader.execute("SELECT * FROM runs")
            writer.close()
            assert refused("vacuum", path) == expected
    said("vacuum", path)
    assert len(tables(path)["runs"]) == 2


def test_a_vacuum_on_a_full_disk_says_so_and_loses_nothing(path: Path) -> None:
    made(path, played("r1"))
    orphaned(path)
    before = tables(path)["exchanges"]
    limit = path.stat().st_size + 20_000
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(limit), str(PROGRAM), "log", "vacuum", str(path)],
        capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(path.parent)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {path}: nothing is lost, but ")
    assert done.stderr.count("\n") == 1
    assert tables(path)["exchanges"] == before


FULL = """
import resource, runpy, signal, sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]) // 3, -1))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_vacuum_that_is_killed_loses_nothing(path: Path, tmp_path: Path) -> None:
    made(path, played("r1"), played("r2"))
    orphaned(path)
    before = tables(path, "hash")["exchanges"]
    for kept in range(3):
        copy = tmp_path / f"copy{kept}.db"
        shutil.copy(path, copy)
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(copy), str(kept)])
        assert child.wait() == -signal.SIGKILL
        with LogWriter.open(copy) as writer:
            writer.commit_blocking(*played("r3"))
        exchanges = tables(copy, "hash")["exchanges"]
        assert [row for row in exchanges if row["run_id"] != "r3"] == before
        assert len(exchanges) == len(before) * 3 // 2


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from proxy.log import vacuum

def traced(sql):
    if sql.startswith(("BEGIN IMMEDIATE", "VACUUM", "PRAGMA wal_checkpoint")[int(sys.argv[2])]):
        connection.set_progress_handler(lambda: os.kill(os.getpid(), signal.SIGKILL), 20)

def alone(path):
    global connection
    connection = opened(path)
    connection.set_trace_callback(traced)
    return connection

opened, vacuum._alone = vacuum._alone, alone
vacuum.vacuum_log(Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_merged_logs_score_run_by_run_as_each_did_alone(tmp_path: Path) -> None:
    first = made(tmp_path / "a.db", played("r1", 5.0), played("r3", 9.0, "It is 5."))
    second = made(tmp_path / "b.db", played("r2", 7.0, "It is 4."))
    alone = [scores(log_, run) for log_, run in ((first, "r1"), (second, "r2"), (first, "r3"))]
    before = {file: file.read_bytes() for file in (first, second)}
    output = tmp_path / "all.db"

    assert said("merge", first, second, "-o", output) == f"{output}: 3 runs, 12 exchanges\n"

    assert [scores(output, run) for run in ("r1", "r2", "r3")] == alone
    assert {file: file.read_bytes() for file in before} == before
    assert set(tmp_path.iterdir()) == {first, second, output}


def test_a_merged_log_is_what_the_runs_would_have_made_in_one(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a.db", played("r2", 7.0)), made(tmp_path / "b.db", played("r1", 5.0))
    together = made(tmp_path / "c.db", played("r1", 5.0), played("r2", 7.0))
    said("merge", first, second, "-o", tmp_path / "all.db")

    assert tables(tmp_path / "all.db") == tables(together)
    with reading(tmp_path / "all.db") as connection:
        runs = connection.execute("SELECT id FROM runs ORDER BY rowid").fetchall()
        tip = connection.execute("SELECT tip FROM exchanges WHERE id = 'r2.p1'").fetchone()[0]
        assert ([row["id"] for row in runs], read_history(connection, tip)) == (
            ["r1", "r2"],
            [*HISTORY, {"of": "r2"}],
        )
    with LogWriter.open(tmp_path / "all.db") as writer:
        writer.commit_blocking(*played("r4"))


def test_a_run_that_several_logs_have_is_taken_once(tmp_path: Path) -> None:
    first, copy = made(tmp_path / "a.db", played("r1", 5.0)), tmp_path / "b.db"
    shutil.copy(first, copy)
    said("runs", "rename", copy, "r1", "nightly")
    made(copy, played("r2", 7.0))
    output = tmp_path / "all.db"

    text = said("merge", first, copy, copy, "-o", output)

    assert text == f"{output}: 2 runs, 8 exchanges; 3 were in more than one of them\n"
    assert logs.query(output, "SELECT id, name FROM runs ORDER BY id") == [("r1", "nightly"), ("r2", None)]
    again = tmp_path / "again.db"
    said("merge", output, first, "-o", again)
    assert tables(again) == tables(output)


def test_runs_that_cannot_be_in_one_log_are_refused_in_one_line(tmp_path: Path) -> None:
    first, other = (
        made(tmp_path / "a.db", played("r1")),
        made(tmp_path / "b.db", played("r1", answer="Four.")),
    )
    output = tmp_path / "all.db"
    assert refused("merge", first, other, "-o", output) == (
        f"Error: {other}: run r1 is not the same as in {first}: take only the log in which it is complete, "
        "or delete it from the other (`wildproxy log runs delete`)"
    )
    named, called = made(tmp_path / "c.db", played("r2")), made(tmp_path / "d.db", played("r3"))
    for file in (named, called):
        said("runs", "rename", file, "r", "nightly")
    assert refused("merge", named, called, "-o", output) == (
        f"Error: {called}: its run r3 and r2 of {named} are both called 'nightly': rename one of them "
        "(`wildproxy log runs rename`)"
    )
    with closing(sqlite3.connect(called, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET name = NULL")
        connection.execute("UPDATE exchanges SET id = 'r2.side' WHERE id = 'r3.side'")
    assert "run r3 has ids in exchanges that another run has too" in refused(
        "merge", named, called, "-o", output
    )
    assert set(tmp_path.iterdir()) == {first, other, named, called}


def test_nothing_is_overwritten_and_no_older_log_is_taken(tmp_path: Path) -> None:
    first, taken = made(tmp_path / "a.db", played("r1")), tmp_path / "taken.db"
    taken.write_text("mine")
    assert refused("merge", first, first, "-o", taken) == (
        f"Error: {taken}: is there already, and is not overwritten: give another name"
    )
    assert taken.read_text() == "mine"
    nowhere = tmp_path / "none" / "all.db"
    assert "the folder" in refused("merge", first, "-o", nowhere)

    older = tmp_path / "older.db"
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        migrate(connection, lambda: 1.0, MIGRATIONS[:1])
    for words in (("merge", first, older, "-o", tmp_path / "all.db"), ("vacuum", older)):
        assert refused(*words).endswith(f"run `wildproxy log migrate {older}`")
    assert refused("merge", first, tmp_path / "no.db", "-o", tmp_path / "all.db").endswith("no such log")
    assert set(tmp_path.iterdir()) == {first, taken, older}


def test_a_message_that_is_another_under_the_same_hash_is_not_mixed_in(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a.db", played("r1")), made(tmp_path / "b.db", played("r2"))
    with closing(sqlite3.connect(second, isolation_level=None)) as connection:
        connection.execute("""UPDATE messages SET body = '"meddled"' WHERE body LIKE '%Be brief%'""")
    assert f"Error: {second}: is damaged: messages " in refused(
        "merge", first, second, "-o", tmp_path / "c.db"
    )


def test_exchanges_of_no_run_are_merged_too(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a.db", played("r1")), made(tmp_path / "b.db", played("r2"))
    for file in (first, second):
        with LogWriter.open(file) as writer:
            writer.commit_blocking(
                logs.start("stray", None, turn=None), logs.start(file.name, None, turn=None)
            )
    said("merge", first, second, "-o", tmp_path / "c.db")
    order = "SELECT id FROM exchanges WHERE run_id IS NULL ORDER BY arrival"
    assert logs.query(tmp_path / "c.db", order) == [("stray",), ("a.db",), ("b.db",)]
    assert json.loads(said("info", tmp_path / "c.db", "--format", "json"))["exchanges"] == 11
