from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database
from support import logs
from support.playing import until

from proxy.log.database import reading
from proxy.log.errors import LogError
from proxy.log.restore import read_history
from proxy.log.rows import ExchangeDelivered, StepRow
from proxy.log.writer import LogWriter

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def writer(path: Path) -> Iterator[LogWriter]:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened())
        yield writer


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else can commit in the meantime."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def ids(path: Path) -> list[str]:
    return [name for (name,) in logs.query(path, "SELECT id FROM exchanges ORDER BY arrival")]


def messages(path: Path, exchange: str) -> list[Any]:
    with reading(path) as connection:
        tip = connection.execute("SELECT tip FROM exchanges WHERE id = ?", (exchange,)).fetchone()[0]
        return read_history(connection, tip)


async def test_a_concurrent_reader_sees_what_commit_has_returned_for(writer: LogWriter, path: Path) -> None:
    await writer.commit(logs.start("x1"))
    assert logs.query(path, "SELECT id, finish_state FROM exchanges") == [("x1", "pending")]

    await writer.commit(logs.finish("x1"))
    assert logs.query(path, "SELECT id, finish_state FROM exchanges") == [("x1", "complete")]


async def test_a_reader_in_the_middle_of_its_reading_does_not_hold_up_the_writer(
    writer: LogWriter, path: Path
) -> None:
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM exchanges").fetchone()[0] == 0
        await writer.commit(logs.start("x1"))
        assert connection.execute("SELECT count(*) FROM exchanges").fetchone()[0] == 0
    assert ids(path) == ["x1"]


async def test_commit_covers_all_that_was_put_before(writer: LogWriter, path: Path) -> None:
    for number in range(100):
        writer.put(logs.start(f"x{number}"))

    await writer.commit()

    assert ids(path) == [f"x{number}" for number in range(100)]


async def test_rows_that_nobody_waits_for_are_written_without_being_asked_for(
    writer: LogWriter, path: Path
) -> None:
    for number in range(3):
        writer.put(logs.start(f"x{number}"))
        await until(lambda last=f"x{number}": last in ids(path))  # type: ignore[misc]


async def test_many_committers_at_once_are_all_told(writer: LogWriter, path: Path) -> None:
    await asyncio.gather(*(writer.commit(logs.start(f"x{number}")) for number in range(200)))

    assert sorted(ids(path)) == sorted(f"x{number}" for number in range(200))


def test_calls_from_many_threads_are_all_written(writer: LogWriter, path: Path) -> None:
    def work(name: str) -> None:
        for number in range(20):
            writer.commit_blocking(logs.start(f"{name}.{number}"))

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ids(path)) == 160


async def test_a_cancelled_awaiter_loses_nothing(writer: LogWriter, path: Path) -> None:
    with locked(path):
        task = asyncio.ensure_future(writer.commit(logs.start("x1"), logs.finish("x1")))
        await asyncio.sleep(0)  # the call has handed its rows over and waits
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ids(path) == []

    await writer.commit()

    assert logs.query(path, "SELECT id, finish_state FROM exchanges") == [("x1", "complete")]


@pytest.mark.parametrize("when", ["before it is told", "as it is told"])
async def test_rows_that_were_given_up_are_taken_back_if_their_caller_is_cancelled(
    writer: LogWriter, path: Path, when: str
) -> None:
    with locked(path):
        task = asyncio.ensure_future(writer.commit(logs.start("x1"), logs.finish("x1")))
        await asyncio.sleep(0)
        # The loop stands still until the writer has failed, and has had time to say so.
        while writer.failed is None:
            time.sleep(0.05)
        time.sleep(0.05)
        if when == "as it is told":
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await writer.commit()

    assert logs.query(path, "SELECT id, finish_state FROM exchanges") == [("x1", "complete")]


def test_a_closed_event_loop_does_not_disturb_the_writer(writer: LogWriter, path: Path) -> None:
    loop = asyncio.new_event_loop()
    with locked(path):
        task = loop.create_task(writer.commit(logs.start("x1")))
        loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        loop.close()

    writer.commit_blocking(logs.start("x2"))

    assert ids(path) == ["x1", "x2"]


async def test_the_rows_of_one_call_are_written_all_or_none(writer: LogWriter, path: Path) -> None:
    await writer.commit(logs.start("x1"))

    with pytest.raises(LogError, match=r"log.db: a row was refused: ExchangeStart: .*exchanges.id"):
        await writer.commit(logs.start("x2"), logs.turn(), logs.start("x1"))

    assert ids(path) == ["x1"]
    assert logs.query(path, "SELECT count(*) FROM turns") == [(0,)]


async def test_a_refused_call_does_not_disturb_others_of_the_same_transaction(
    writer: LogWriter, path: Path
) -> None:
    shared = [{"role": "user", "content": "the same words in both"}]
    with locked(path):
        calls = [
            asyncio.ensure_future(writer.commit(logs.start("x1"))),
            asyncio.ensure_future(writer.commit(logs.start("x2", messages=shared), logs.start("x1"))),
            asyncio.ensure_future(writer.commit(logs.start("x3", messages=shared))),
        ]
        await asyncio.sleep(0)

    results = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(result) for result in results] == [type(None), LogError, type(None)]
    assert ids(path) == ["x1", "x3"]
    assert messages(path, "x3") == shared
    assert writer.failed is None


@pytest.mark.parametrize(
    "row",
    [
        logs.finish("nobody"),
        ExchangeDelivered("nobody", 1.0),
        logs.session("s2"),
        logs.session("s2", "unknown", epoch=2),
        logs.start("x1", body={"a": object()}),
        logs.start("x1", started_at=None),
        logs.step(exchange_id="nobody"),
    ],
)
async def test_rows_that_contradict_the_log_are_refused(writer: LogWriter, row: Any) -> None:
    with pytest.raises(LogError, match="a row was refused"):
        await writer.commit(row)

    await writer.commit(logs.start("fine"))


async def test_an_exchange_is_finished_once(writer: LogWriter) -> None:
    await writer.commit(logs.start("x1"), logs.finish("x1"))

    with pytest.raises(LogError, match="no pending exchange x1"):
        await writer.commit(logs.finish("x1"))


async def test_a_lost_row_that_nobody_waits_for_stops_the_writer(path: Path) -> None:
    writer = LogWriter.open(path)
    writer.put(logs.finish("nobody"))
    await writer.commit()

    for attempt in (lambda: writer.put(logs.run()), lambda: writer.commit_blocking(logs.run())):
        with pytest.raises(LogError, match="no pending exchange nobody"):
            attempt()
    with pytest.raises(LogError, match="no pending exchange nobody"):
        await writer.commit(logs.run())
    with pytest.raises(LogError, match="no pending exchange nobody"):
        writer.close()
    assert logs.query(path, "SELECT count(*) FROM runs") == [(0,)]


async def test_an_error_of_sqlite_fails_the_waiters_and_the_writer_until_it_can_write_again(
    path: Path,
) -> None:
    writer = LogWriter.open(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE exchanges")

    with locked(path):
        calls = [asyncio.ensure_future(writer.commit(row)) for row in (logs.run(), logs.start("x1", None))]
        await asyncio.sleep(0)
    results = await asyncio.gather(*calls, return_exceptions=True)

    assert isinstance(results[1], LogError)
    assert writer.failed is not None
    with pytest.raises(LogError, match=r"log.db: cannot be written \(OperationalError: no such table"):
        await writer.commit(logs.start("x2", None))
    await writer.commit(logs.run("r2"))
    assert writer.failed is None
    writer.close()
    assert logs.query(path, "SELECT id FROM runs") == [("r2",)]


DISK_FULL = """
import resource, sys
from support import logs
from proxy.log.writer import LogError, LogWriter

writer = LogWriter.open(sys.argv[1])
writer.commit_blocking(*logs.opened())
all_of_it = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, all_of_it[1]))
try:
    for number in range(1000):
        writer.commit_blocking(logs.start(f"x{number}", body={"long": str(number) * 1000}))
        print(f"x{number}", flush=True)
except LogError as error:
    print("failed:", error)
for number in range(3):
    writer.put(logs.start(f"kept{number}", body={"long": str(number) * 300_000}))
    try:
        writer.commit_blocking(logs.start(f"refused{number}"))
    except LogError as error:
        print("refused:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, all_of_it)
writer.commit_blocking(logs.start("after"))
print("kept0\\nkept1\\nkept2\\nafter")
writer.close()
"""


def test_a_full_disk_is_an_error_and_once_it_has_room_all_is_there_but_what_was_refused(path: Path) -> None:
    done = python(DISK_FULL, str(path))
    output, error = done.communicate()

    lines = output.splitlines()
    [failed] = [line for line in lines if line.startswith("failed: ")]
    assert failed == f"failed: {path}: cannot be written (OperationalError: disk I/O error)"
    assert lines.count(failed.replace("failed", "refused")) == 3
    assert error.splitlines() == [
        f"{failed.removeprefix('failed: ')}: requests get 503 until it can be written again",
        f"{path}: is written again, requests are served",
    ]
    written = [line for line in lines if ": " not in line]
    assert len(written) > 4
    assert ids(path) == written


KILLED = """
import sys
from support import logs
from proxy.log.writer import LogWriter

writer = LogWriter.open(sys.argv[1])
writer.commit_blocking(*logs.opened())
number = 0
while True:
    writer.put(logs.start(f"x{number}"))
    writer.commit_blocking(logs.finish(f"x{number}", raw=b"answer"))
    print(f"x{number}", flush=True)
    number += 1
"""


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / f"log{attempt}.db"
        child = python(KILLED, str(path))
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(7 * attempt + 1)]
        child.send_signal(signal.SIGKILL)
        told += [line.strip() for line in child.stdout if line.strip()]
        child.communicate()

        with LogWriter.open(path) as writer:
            writer.commit_blocking(logs.start("after"))
        complete = logs.query(
            path, "SELECT id FROM exchanges WHERE finish_state = 'complete' ORDER BY arrival"
        )
        assert [name for (name,) in complete][: len(told)] == told


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=TESTS.parent,
        env={"PYTHONPATH": f"{TESTS.parent}:{TESTS}"},
    )


def test_closing_writes_what_was_put_and_leaves_one_file(path: Path) -> None:
    writer = LogWriter.open(path)
    for row in logs.opened():
        writer.put(row)
    writer.close()
    writer.close()

    assert list(path.parent.iterdir()) == [path]
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 1
    with pytest.raises(LogError, match=r"log.db: the log is closed$"):
        writer.put(logs.run())


def test_leaving_by_an_error_closes_and_keeps_that_error(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), LogWriter.open(path) as writer:
        writer.put(logs.finish("nobody"))
        raise ZeroDivisionError


async def test_every_write_of_a_followed_row_takes_the_next_number(writer: LogWriter, path: Path) -> None:
    await writer.commit(logs.turn(), logs.start("x1"), logs.start("x2"))
    await writer.commit(logs.step(), logs.end(), logs.finish("x1"))
    await writer.commit(ExchangeDelivered("x1", 9.0))

    numbers = """SELECT 'session', seq FROM sessions UNION ALL SELECT 'turn', seq FROM turns
        UNION ALL SELECT id, seq FROM exchanges UNION ALL SELECT 'step', seq FROM steps
        UNION ALL SELECT 'end', seq FROM tasks ORDER BY seq"""
    assert logs.query(path, numbers) == [
        ("session", 1),
        ("turn", 2),
        ("x2", 4),
        ("step", 5),
        ("end", 6),
        ("x1", 8),
    ]
    assert logs.query(path, "SELECT id, delivered_at FROM exchanges WHERE seq > 6") == [("x1", 9.0)]
    assert ids(path) == ["x1", "x2"]


def test_the_numbers_go_on_after_reopening_and_deleting(path: Path) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened(), logs.turn(1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM turns")

    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.turn(2))

    assert logs.query(path, "SELECT turn, seq FROM turns") == [(2, 3)]


def test_two_writers_share_a_log_without_using_a_number_twice(path: Path) -> None:
    with LogWriter.open(path) as one, LogWriter.open(path) as two:
        one.commit_blocking(*logs.opened())
        for number in range(20):
            (one, two)[number % 2].commit_blocking(logs.start(f"x{number}"))

    assert logs.query(path, "SELECT count(*), count(DISTINCT seq), max(seq) FROM exchanges") == [(20, 20, 21)]


def test_a_history_sent_again_is_stored_once(writer: LogWriter, path: Path) -> None:
    history = [{"role": "user", "content": f"message {number}"} for number in range(6)]
    tools = [{"type": "function", "function": {"name": "f"}}]
    for length in range(1, 7):
        row = logs.start(f"x{length}", messages=history[:length], body={"model": "m", "tools": tools, "n": 1})
        writer.commit_blocking(row)

    counts = """SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM chains),
        (SELECT count(*) FROM tool_lists)"""
    assert logs.query(path, counts) == [(6, 6, 1)]
    for length in range(1, 7):
        assert messages(path, f"x{length}") == history[:length]
    assert logs.query(
        path, "SELECT DISTINCT exchanges.body, t.body FROM exchanges JOIN tool_lists t ON hash = tools"
    ) == [('{"model":"m","n":1}', json.dumps(tools, separators=(",", ":")))]


def test_what_another_process_has_removed_is_written_again(writer: LogWriter, path: Path) -> None:
    row = logs.start("x1", messages=[{"role": "user", "content": "hello"}])
    writer.commit_blocking(row)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("exchanges", "chains", "messages"):
            connection.execute(f"DELETE FROM {table}")

    writer.commit_blocking(row)

    assert messages(path, "x1") == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("given", [None, []])
def test_no_messages_and_an_empty_list_are_told_apart(
    writer: LogWriter, path: Path, given: list[Any] | None
) -> None:
    writer.commit_blocking(logs.start("x1", messages=given))

    assert logs.query(path, "SELECT message_count, tip FROM exchanges") == [
        (given if given is None else 0, None)
    ]


def test_strange_values_from_the_wire_are_stored(writer: LogWriter, path: Path) -> None:
    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    odd = {"role": "user", "content": "half a smile \ud83d", "n": [float("nan"), 10**30], "nul": "a\x00b"}
    writer.commit_blocking(
        logs.start("x1", messages=[odd, "not an object", None, deep], body={"model": "\udc00", "deep": deep}),
        logs.finish("x1", response_id={"not": "text"}, input_tokens=2**64, output_tokens="3", error="\ud800"),
        logs.step(calls=(logs.call(0, "f\ud83d", '{"a": "\ud83d"}', "seen \ud83d"),), message=odd),
    )

    first, second, third, _ = messages(path, "x1")
    assert first == {**odd, "n": ["NaN", 10**30]}
    assert (second, third) == ("not an object", None)
    row = logs.query(path, "SELECT response_id, input_tokens, output_tokens, error FROM exchanges")
    assert row == [('{"not":"text"}', None, None, "\\ud800")]
    assert logs.query(path, "SELECT name, arguments, observation FROM tool_calls") == [
        ("f\\ud83d", '{"a": "\\ud83d"}', "seen \\ud83d")
    ]
    assert logs.query(path, "SELECT min(json_valid(body)) FROM messages") == [(1,)]


def test_everything_known_of_an_exchange_is_in_its_row(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(
        logs.start(
            "x1", headers={"User-Agent": "agent"}, key_hash="0123456789ab", changes=("tools replaced",)
        ),
        logs.start("p1", side="provider", parent_id="x1", stream=True, reason="title"),
        logs.finish(
            "p1",
            time_to_first_chunk=0.25,
            response_id="chatcmpl-1",
            response_model="m-2025",
            finish_reasons=("stop",),
            input_tokens=10,
            output_tokens=2,
            message=logs.text_message("hi"),
            headers={"x-request-id": "req"},
            raw=b"data: [DONE]\n\n",
        ),
    )

    with closing(sqlite3.connect(path)) as connection:
        first, second = Database(connection).query("SELECT * FROM exchanges ORDER BY arrival")
    assert (first["finish_state"], first["run_id"], first["changes"]) == (
        "pending",
        "r1",
        '["tools replaced"]',
    )
    assert (first["request_headers"], first["key_hash"]) == ('{"user-agent":"agent"}', "0123456789ab")
    assert logs.answer(path, "p1") == b"data: [DONE]\n\n"
    expected = {
        "side": "provider",
        "parent_id": "x1",
        "stream": 1,
        "reason": "title",
        "status": 200,
        "finish_state": "complete",
        "time_to_first_chunk": 0.25,
        "request_model": "m",
        "response_model": "m-2025",
        "response_id": "chatcmpl-1",
        "finish_reasons": '["stop"]',
        "input_tokens": 10,
        "output_tokens": 2,
        "response_headers": '{"x-request-id":"req"}',
        "error": None,
    }
    assert {name: second[name] for name in expected} == expected


def test_a_scenario_that_is_there_is_not_written_again(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(logs.run("r2"), logs.scenario(), logs.session("s2", run_id="r2"))

    assert logs.query(path, "SELECT count(*) FROM scenarios") == [(1,)]


def test_one_query_tells_which_calls_a_session_made_and_what_it_was_told(
    writer: LogWriter, path: Path
) -> None:
    def calls(number: int, task: int, exchange: str, *made: tuple[str, str, str | None]) -> StepRow:
        rows = tuple(logs.call(i, name, arguments, told) for i, (name, arguments, told) in enumerate(made))
        message = logs.call_message(*((name, arguments) for name, arguments, _ in made))
        return logs.step(number, task, exchange_id=exchange, decision="observe", message=message, calls=rows)

    writer.commit_blocking(logs.scenario("ledger_1"), logs.session("s2", "ledger_1"))
    writer.commit_blocking(
        logs.start("other", "s1"), logs.step(exchange_id="other", calls=(logs.call(0, "no", "", ""),))
    )
    writer.commit_blocking(logs.start("x1", "s2"))
    for row in (
        calls(1, 1, "x1", ("add", '{"sum":9}', None)),
        calls(0, 0, "x1", ("find", '{"q":"a"}', "[1]"), ("find", '{"q":"b"}', "[2]")),
        calls(0, 1, "x1", ("add", '{"sum":7}', '{"ok":true}')),
    ):
        writer.commit_blocking(StepRow(**{**{n: getattr(row, n) for n in row.__slots__}, "session_id": "s2"}))

    with closing(sqlite3.connect(path)) as connection:
        found = list(
            Database(connection).query(
                """select task, step, name, arguments, observation
                from tool_call_log where session = 'ledger_1.e1' order by task, step, position"""
            )
        )
    assert [tuple(row.values()) for row in found] == [
        (1, 1, "find", '{"q":"a"}', "[1]"),
        (1, 1, "find", '{"q":"b"}', "[2]"),
        (2, 1, "add", '{"sum":7}', '{"ok":true}'),
        (2, 2, "add", '{"sum":9}', None),
    ]
    unordered = (
        "SELECT task, step, name, arguments, observation FROM tool_call_log WHERE session = 'ledger_1.e1'"
    )
    assert logs.query(path, unordered) == [tuple(row.values()) for row in found]
