"""The command `report`: where it writes, what it refuses, and what it says."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support import logs, scored
from support.commands import error_line, run
from support.pages import taken_apart, write_log

from proxy.log.writer import LogWriter
from scoring.page.html import MOST_BYTES


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "shop.db")


def test_the_page_is_written_beside_the_log_and_says_how_large_it_is(log: Path) -> None:
    done = run("report", log)
    page = log.with_name("shop.html")
    size = page.stat().st_size / 1e6
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        f"{page}: 1 run, 2 sessions, {size:.1f} MB\n",
        "",
    )
    assert sorted(it.name for it in log.parent.iterdir()) == ["shop.db", "shop.html"]


def test_the_same_log_gives_the_same_bytes(log: Path) -> None:
    assert run("report", log).exit_code == 0
    first = log.with_name("shop.html").read_bytes()
    assert run("report", log).exit_code == 0
    assert log.with_name("shop.html").read_bytes() == first
    assert run("report", log, "-o", "-").stdout_bytes == first


def test_raw_exchanges_can_be_left_out(log: Path) -> None:
    with_raw = taken_apart(run("report", log, "-o", "-").stdout_bytes)
    without = taken_apart(run("report", log, "--no-raw", "-o", "-").stdout_bytes)
    assert (with_raw.document["raw"], without.document["raw"]) == (True, False)
    assert (len(with_raw.packed("raw")), without.packed("raw")) == (2, {})
    assert [row["raw"] for row in without.document["sessions"]] == [False, False]
    assert without.packed("detail") == with_raw.packed("detail")


def test_runs_stand_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "two.db", "r1", "r2")
    page = taken_apart(run("report", log, "--run", "r2", "--run", "r1", "-o", "-").stdout_bytes)
    document = page.document
    assert document["title"] == "2 runs"
    assert [(it["key"], it["run"], it["title"]) for it in document["runs"]] == [
        ("r0", "r2", "two.db, r2"),
        ("r1", "r1", "two.db, r1"),
    ]
    assert [it["verdicts"] for it in document["compare"]] == [
        {"task": "INCONCLUSIVE", "session": "INCONCLUSIVE"}
    ] * 2


def test_a_page_that_is_too_large_says_what_to_leave_out(tmp_path: Path) -> None:
    log = tmp_path / "large.db"
    with LogWriter.open(log) as writer:
        noise = random.Random(0).randbytes(MOST_BYTES)
        writer.commit_blocking(*logs.opened(), logs.turn(), logs.start("x1", side="provider"))
        writer.commit_blocking(logs.finish("x1", message=logs.text_message("Hi."), raw=noise))
        writer.commit_blocking(logs.step(message=logs.text_message("Hi.")), logs.end(0, "stopped"))
    done = run("report", log)
    assert done.exit_code == 0
    assert done.stderr.endswith("open slowly; leave out the raw exchanges with --no-raw\n")
    assert len(done.stderr.splitlines()) == 1
    assert run("report", log, "--no-raw").stderr == ""


def test_a_run_without_a_scored_task_gets_a_page_that_says_why(tmp_path: Path) -> None:
    log = tmp_path / "lost.db"
    with LogWriter.open(log) as writer:
        writer.commit_blocking(*logs.opened(), logs.turn(), logs.end(0, "infrastructure"))
    done = run("report", log)
    assert "lost.db, run r1: no scored task." in error_line(done, 3)
    [told] = taken_apart(log.with_name("lost.html")).document["runs"]
    assert told["scorers"]["strict"]["unscored"]["reasons"] == {"infrastructure": 1, "not played": 1}


def test_hostile_output_of_a_model_is_data_and_nothing_else(tmp_path: Path) -> None:
    hostile = scored.HOSTILE + "</script><script>alert(1)</script><!--"
    calls = logs.call_message((hostile, hostile), ("findPrice", hostile))
    log = tmp_path / "<b>&amp;{{script}}.db"
    with LogWriter.open(log) as writer:
        writer.commit_blocking(*logs.opened(), replace(logs.turn(), text=hostile))
        writer.commit_blocking(logs.start())
        writer.commit_blocking(logs.finish(message=calls, raw=hostile.encode("utf-8", "replace")))
        writer.commit_blocking(logs.step(message=calls, decision="stop"), logs.end(0, "stopped"))
    page = taken_apart(run("report", log, "-o", "-").stdout_bytes)
    [task, _] = page.packed("detail")["r0s0"]["tasks"]
    [raw] = page.packed("raw").values()
    assert page.title.startswith("<b>&amp;{{script}}.db")
    assert page.scripts.keys() == {"document", None, "detail-r0s0", "raw-r0s0"}
    assert [call["arguments"] for call in task["steps"][0]["calls"]] == [hostile, hostile]
    assert task["steps"][0]["calls"][0]["name"] == hostile
    assert raw["exchanges"][0]["answer"] == hostile.replace("\ud800", "?")
    assert json.loads(raw["messages"][raw["exchanges"][0]["message"]]) == calls


def test_a_log_is_never_overwritten(log: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other.db")
    link = tmp_path / "link.html"
    link.symlink_to(log)
    for target in (log, other, link):
        before = target.read_bytes()
        line = error_line(run("report", log, "-o", target), 2)
        assert line == (
            f"Error: {target}: is a log, which the page would overwrite; name another file with -o"
        )
        assert target.read_bytes() == before


def test_a_place_that_cannot_be_written_to_is_one_line(log: Path, tmp_path: Path) -> None:
    folder, missing = tmp_path / "folder", tmp_path / "missing" / "report.html"
    folder.mkdir()
    assert error_line(run("report", log, "-o", folder), 2) == (
        f"Error: {folder}: is a folder; name a file with -o, such as {folder / 'report.html'}"
    )
    assert error_line(run("report", log, "-o", missing), 2) == (
        f"Error: {missing}: the folder {missing.parent} is not there; make it, or choose another -o"
    )


def test_an_old_page_is_replaced_whole(log: Path) -> None:
    page = log.with_name("shop.html")
    page.write_text("old")
    assert run("report", log).exit_code == 0
    assert page.read_bytes() == run("report", log, "-o", "-").stdout_bytes
    assert [it.name for it in log.parent.glob("*.part")] == []


@pytest.mark.parametrize("column", ["output_message", "tools"])
def test_a_log_that_lost_a_message_is_damaged_in_one_line(log: Path, column: str) -> None:
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute(f"UPDATE exchanges SET {column} = 'lost'")
    line = error_line(run("report", log), 2)
    assert line.startswith(
        f"Error: {log}: is damaged (an exchange has a message or tools that are not there)"
    )
    assert run("report", log, "--no-raw").exit_code == 0


def test_logs_and_runs_that_are_not_there_are_one_line(log: Path, tmp_path: Path) -> None:
    two = scored.write_log(tmp_path / "two.db", "r1", "r2")
    assert "two.db holds 2 runs; choose with --run" in run("report", two).stderr
    assert "unknown run 'r9'" in run("report", log, "--run", "r9").stderr
    assert "nothing.db: no such log" in error_line(run("report", tmp_path / "nothing.db"), 2)
    assert not log.with_name("two.html").exists()


@pytest.mark.parametrize("place", [".", "/"])
def test_a_folder_that_has_no_name_is_no_log(place: str) -> None:
    assert "is a folder" in error_line(run("report", place), 2)


def test_a_log_that_was_only_recorded_says_where_to_look(tmp_path: Path) -> None:
    with LogWriter.open(tmp_path / "record.db") as writer:
        writer.commit_blocking(logs.run(mode="record"))
    done = run("report", tmp_path / "record.db")
    assert error_line(done, 3) == (
        "Error: record.db, run r1: nothing to score, as it was only recorded, without scenarios; "
        f"look at it with: wildproxy tail {tmp_path / 'record.db'}"
    )
