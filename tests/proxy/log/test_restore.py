from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from support import logs

from proxy.log.errors import LogError
from proxy.log.restore import StoredExchange, StoredSession, read_run, read_runs
from proxy.log.rows import ExchangeDelivered, TurnBegunRow
from proxy.log.writer import LogWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def exchange(
    name: str, turn: int, finish_state: str = "complete", status: int | None = 200
) -> StoredExchange:
    return StoredExchange(
        id=name,
        turn=turn,
        request_sha256=hashlib.sha256(b"cd").hexdigest(),
        started_at=4.0,
        correlation="path",
        finish_state=finish_state,
        status=status,
        response_id=None,
        response_model=None,
        tokens=(0, 0),
        message=None,
        error_type=None,
        delivered_at=None,
        path="/v1/chat/completions",
    )


def test_a_session_is_given_back_as_it_was_written(path: Path) -> None:
    turns = (logs.turn(1, 0), logs.turn(2, 0, kind="reply"), logs.turn(3, 1))
    calls = (
        logs.call(0, "findPrice", '{"thing": "lamp"}', '{"price": 3}'),
        logs.call(1, "findPrice", "{", None),
    )
    steps = (
        logs.step(
            0, 0, decision="observe", nodes=(0,), message=logs.call_message(("findPrice", "{}")), calls=calls
        ),
        logs.step(1, 0, decision="ask", nodes=(1,), message=logs.text_message("Which lamp?")),
        logs.step(0, 1, turn=3, exchange_id="p3", decision="stop", reason="unknown tool"),
    )
    ends = (logs.end(0), logs.end(1, "stopped"))
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened(), turns[0], logs.start("x1"), steps[0], steps[1])
        writer.commit_blocking(
            logs.finish(
                "x1",
                message=logs.text_message("Which lamp?"),
                response_id="c1",
                response_model="m-2",
                input_tokens=12,
                output_tokens=5,
            ),
            ExchangeDelivered("x1", 8.0),
            TurnBegunRow(turns[0].session_id, 1, {"role": "user", "content": "Please: Turn it on."}),
            turns[1],
            ends[0],
            turns[2],
        )
        writer.commit_blocking(
            logs.start("x3", turn=3),
            logs.start("p3", turn=3, side="provider", parent_id="x3"),
            logs.start("side", turn=3, reason="title"),
            steps[2],
            ends[1],
        )

    stored = read_run(path, "r1")

    assert stored is not None
    assert stored.row == logs.run()
    assert stored.scenarios == (logs.scenario(),)
    first = StoredExchange(
        id="x1",
        turn=1,
        request_sha256=hashlib.sha256(b"cd").hexdigest(),
        started_at=4.0,
        correlation="path",
        finish_state="complete",
        status=200,
        response_id="c1",
        response_model="m-2",
        tokens=(12, 5),
        message=logs.text_message("Which lamp?"),
        error_type=None,
        delivered_at=8.0,
        path="/v1/chat/completions",
    )
    exchanges = (first, exchange("x3", 3, "pending", None))
    said = {1: {"role": "user", "content": "Please: Turn it on."}}
    assert stored.sessions == (StoredSession(logs.session(), turns, steps, ends, exchanges, said),)


def test_runs_are_kept_apart_and_sessions_are_in_the_order_of_their_opening(path: Path) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(
            logs.run("r2", 5.0, a=1), logs.run("r1", 3.0), logs.scenario("b"), logs.scenario("a")
        )
        writer.commit_blocking(
            logs.session("s3", "b", run_id="r2"),
            logs.session("s1", "a", run_id="r2", attempt=2),
            logs.session("s2", "a", run_id="r1"),
        )

    assert read_runs(path) == (logs.run("r1", 3.0), logs.run("r2", 5.0, a=1))
    stored = read_run(path, "r2")
    assert stored is not None
    assert [session.row.id for session in stored.sessions] == ["s3", "s1"]
    assert read_run(path, "r9") is None


def test_a_log_that_is_being_written_can_be_restored_from(path: Path) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened(), logs.turn())

        stored = read_run(path, "r1")

    assert stored is not None
    assert stored.sessions[0].turns == (logs.turn(),)


def test_a_missing_log_is_an_error(path: Path) -> None:
    with pytest.raises(LogError, match="no such log"):
        read_run(path, "r1")
