"""However much a log holds, a page is given so much and no more."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import logs
from support.playing import recording
from support.watching import LENT, asked, data, watching

from proxy.log.writer import LogWriter
from proxy.ui.board import Board, Live
from proxy.ui.detail import session_detail
from proxy.ui.raw import raw_exchanges
from proxy.ui.reading import reader
from proxy.ui.recorded import exchange
from proxy.ui.room import ANSWER_CHARS, LEAST_CHARS, TEXT_CHARS, Room
from proxy.ui.rows import PAGE, newest_sessions, session_rows
from proxy.ui.verdicts import Verdicts

SESSIONS = 2 * PAGE + 7
HUGE = "long " * 300_000
HALF = "\ud800"


def rows() -> Iterator[Any]:
    yield logs.run("old", mode="play")
    yield logs.scenario("shop_1", {**logs.RECORD, "task_types": ["Chat"] * 2, "turn_subtypes": [None]})
    for number in range(1, SESSIONS + 1):
        yield logs.session(f"s{number}", epoch=number, run_id="old")
    yield logs.turn(1, 0, "s1")
    yield logs.start(
        "x1", "s1", side="provider", run_id="old", messages=[{"role": "user", "content": HUGE + HALF}]
    )
    yield logs.finish("x1", message=logs.text_message(HUGE), raw=HUGE.encode())
    answer = logs.call_message(("findPrice", json.dumps({"thing": HUGE})))
    call = logs.call(0, "findPrice", json.dumps({"thing": HUGE}), HUGE)
    yield logs.step(0, 0, "s1", decision="observe", message=answer, calls=(call,))
    yield logs.step(1, 0, "s1", message=logs.text_message(HUGE))
    yield logs.end(0, "closed", "s1")
    yield logs.start("x2", None, run_id="old", messages=None, body=None, reason="refused")
    yield logs.finish("x2", status=400, finish_state="proxy_error", error=HUGE)
    messages = [{"role": "user", "content": f"message {number}"} for number in range(1000)]
    yield logs.start("x3", None, run_id="old", messages=messages)
    yield logs.finish("x3", message=logs.text_message(HALF))


@pytest.fixture
def big_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with LogWriter.open(path, now=lambda: 1.0) as writer:
        for row in rows():
            writer.put(row)
    return path


def change(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


async def test_sessions_come_in_pages_the_newest_first(provider: Any, tmp_path: Path, big_log: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT, log=big_log) as proxy:
        async with watching(proxy, run="old") as board:
            await board.once(lambda it: it.first)
        found = board.first["sessions"]
        assert len(found) <= 2 * PAGE
        pages = [await data(proxy, "sessions", run="old")]
        while last := pages[-1]["sessions"]:
            pages.append(await data(proxy, "sessions", run="old", before=last[-1]["seq"]))
        assert [len(page["sessions"]) for page in pages] == [PAGE, PAGE, 7, 0]
        epochs = [row["epoch"] for page in pages for row in page["sessions"]]
        assert epochs == list(range(SESSIONS, 0, -1))


def test_no_question_goes_through_all_that_a_log_holds(big_log: Path) -> None:
    """By SQLite's own plans: every table that grows is asked by an index."""
    asked_for: list[str] = []
    verdicts = Verdicts(LENT)
    with reader(big_log) as connection:
        connection.set_trace_callback(asked_for.append)
        board = Board(connection, "old", Live("old", 0.0, lambda: 9.0), verdicts)
        board.all()
        board.new()
        session_rows(connection, newest_sessions(connection, "old", 10**6), live_run="old", since=0.0)
        session_detail(connection, "s1", board.live, verdicts)
        exchange(connection, "x1")
        raw_exchanges(connection, ["x1"])
        connection.set_trace_callback(None)
        questions = {sql for sql in asked_for if sql.lstrip().startswith(("SELECT", "WITH"))}
        plans = [row[3] for sql in questions for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert len(questions) > 20
    growing = ("exchanges", "sessions", "turns", "tasks", "steps", "tool_calls", "messages", "chains")
    assert [plan for plan in plans if plan.startswith(tuple(f"SCAN {table}" for table in growing))] == []


async def test_huge_texts_are_cut_and_say_so(provider: Any, tmp_path: Path, big_log: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT, log=big_log) as proxy:
        answers = [
            await asked(proxy, "session", id="s1"),
            await asked(proxy, "exchange", id="x1"),
            await asked(proxy, "exchange", id="x3"),
            await asked(proxy, "raw", id="x1"),
            await asked(proxy, "errors", run="old"),
        ]
        assert [answer.status for answer in answers] == [200] * 5
        assert all(len(answer.raw) < 15 * TEXT_CHARS for answer in answers)
        session, exchange, history, raw, errors = (answer.json for answer in answers)
        calls, text = session["tasks"][0]["steps"]
        assert session["too_long"] is True, "scorers compare texts: these would take them too long"
        left_out = f"… (+{len(HUGE) - TEXT_CHARS:,} characters)"
        assert calls["calls"][0]["observation"] == HUGE[:TEXT_CHARS] + left_out
        assert text["text"].startswith(HUGE[:TEXT_CHARS])
        assert text["text"].endswith("characters)")
        assert exchange["messages"][0]["text"].startswith(HUGE[:TEXT_CHARS])
        assert (history["omitted"], len(history["messages"])) == (600, 401)
        assert history["messages"][0]["text"] == "message 600"
        assert history["messages"][-1]["text"] == HALF
        assert raw["exchanges"][0]["answer"].endswith("… (cut off)")
        assert [len(row["error"]) for row in errors["errors"]] == [600]


async def test_an_answer_that_is_damaged_is_said_to_be(provider: Any, tmp_path: Path, big_log: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT, log=big_log) as proxy:
        change(big_log, "UPDATE exchanges SET raw = ? WHERE id = 'x1'", b"no zlib")
        assert (await data(proxy, "raw", id="x1"))["exchanges"][0][
            "answer"
        ] == "(what is stored of it is damaged)"
        change(big_log, "UPDATE exchanges SET raw = ? WHERE id = 'x1'", zlib.compress(b"\xff\xfe"))
        assert (await data(proxy, "raw", id="x1"))["exchanges"][0]["answer_base64"] == "//4="


async def test_what_is_not_there_is_not_found(provider: Any, tmp_path: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT) as proxy:
        for wanted in ("", "nothing", "%00", "'"):
            for path in ("session", "exchange"):
                assert (await asked(proxy, path, id=wanted)).status == 404


async def test_a_number_that_is_none_is_refused(provider: Any, tmp_path: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT) as proxy:
        for number in ("-1", "x", "1e3", "%EF%BC%99", "1" * 19, ""):
            answer = await asked(proxy, "sessions", before=number)
            assert (answer.status, answer.error["param"]) == (400, "before"), number


@settings(max_examples=40)
@given(st.lists(st.text(max_size=40), max_size=40), st.integers(0, 400))
def test_all_texts_together_take_no_more_room_than_there_is(texts: list[str], left: int) -> None:
    room = Room(left=left, longest=30)
    cut = [room.text(text * 20) for text in texts]
    said = [len(it.partition("… (+")[0]) for it in cut]
    assert sum(said) <= left + LEAST_CHARS * len(texts)
    assert all(it <= max(30, LEAST_CHARS) for it in said)
    for text, shown in zip(texts, cut, strict=True):
        assert shown == text * 20 or shown.endswith(" characters)")


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda it: st.lists(it) | st.dictionaries(st.text(max_size=8), it),
    )
)
def test_a_value_that_fits_is_given_as_it_is(value: Any) -> None:
    assert Room(ANSWER_CHARS).value(value) == value
