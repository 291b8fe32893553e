"""From a log that somebody writes to events, each once and in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import logs

from proxy.log.errors import LogError
from proxy.log.rows import ExchangeDelivered, SessionRow, ToolCallRow
from proxy.log.writer import LogWriter
from proxy.tail.events import (
    AgentFailure,
    AssistantText,
    Call,
    Event,
    HistoryFinding,
    Observed,
    Place,
    ProviderCall,
    RunBegun,
    SessionOpened,
    SideCall,
    TaskEnded,
    ToolCalled,
    UserTurn,
    Verdict,
)
from proxy.tail.follow import Follower, Overview, Wanted, overview

RUN = RunBegun(Place("r1"), 2.0, 1.0, None, {"provider": "sim:oracle"})
SESSION = Place("r1", "shop_1.e1")
TURN = Place("r1", "shop_1.e1", 0, 1)
TASK = Place("r1", "shop_1.e1", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def writer(path: Path) -> Iterator[LogWriter]:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(provider="sim:oracle"), logs.scenario(), logs.session())
        yield writer


@pytest.fixture
def follow(path: Path) -> Iterator[Any]:
    """follow(**wanted): a follower of the log."""
    followers = []

    def start(**wanted: Any) -> Follower:
        followers.append(Follower(path, overview(path, Wanted(**wanted)).scope))
        return followers[-1]

    yield start
    for follower in followers:
        follower.close()


def call(**values: Any) -> Call:
    given: dict[str, Any] = {
        "model": "m",
        "status": 200,
        "state": "complete",
        "input_tokens": None,
        "output_tokens": None,
        "seconds": 1.0,
        "first_chunk": 0.5,
        "error": None,
    }
    return Call(**{**given, **values})


def provider_start(exchange_id: str, **values: Any) -> Any:
    return logs.start(exchange_id, side="provider", parent_id="x1", **values)


def texts(events: Any) -> list[str]:
    return [event.text for event in events if isinstance(event, UserTurn | AssistantText)]


def test_a_step_is_told_from_the_user_s_words_to_the_verdict(writer: LogWriter, follow: Any) -> None:
    message = logs.call_message(("findPrice", '{"thing":  "lamp"}'), ("findPrice", "{"))
    calls = (
        logs.call(0, "findPrice", '{"thing":  "lamp"}', '{"price": 3}'),
        logs.call(1, "findPrice", "{", None),
    )
    writer.commit_blocking(logs.turn(), logs.start("x1"), provider_start("p1"))
    writer.commit_blocking(
        logs.finish("p1", input_tokens=10, output_tokens=5, response_model="m-2"),
        logs.step(
            decision="observe", exchange_id="p1", message={**message, "content": "Let me look."}, calls=calls
        ),
        logs.step(1, decision="stop", reason="text where a call is due", exchange_id="p1"),
        logs.end(how="stopped"),
    )

    assert list(follow().new()) == [
        RUN,
        SessionOpened(SESSION, 2.0),
        UserTurn(TURN, 3.0, "task", "words of turn 1"),
        ProviderCall(TURN, 5.0, call(model="m-2", input_tokens=10, output_tokens=5)),
        AssistantText(TURN, 6.0, "Let me look."),
        ToolCalled(TURN, 6.0, "findPrice", '{"thing":  "lamp"}'),
        Observed(TURN, 6.0, '{"price": 3}'),
        ToolCalled(TURN, 6.0, "findPrice", "{"),
        Verdict(TURN, 6.0, 0, "observe", "called findPrice, findPrice", None),
        AssistantText(TURN, 6.0, "It is 3."),
        Verdict(TURN, 6.0, 1, "stop", "replied in text", "text where a call is due"),
        TaskEnded(TASK, 7.0, "stopped"),
    ]


def test_what_is_written_later_comes_later_and_nothing_comes_twice(writer: LogWriter, follow: Any) -> None:
    follower = follow()
    assert list(follower.new()) == [RUN, SessionOpened(SESSION, 2.0)]
    assert list(follower.new()) == []

    writer.commit_blocking(logs.turn(), logs.start("x1"), provider_start("p1"))
    assert list(follower.new()) == [UserTurn(TURN, 3.0, "task", "words of turn 1")]

    gone = logs.finish("x1", finish_state="client_abort", status=None, error_type="client_disconnected")
    writer.commit_blocking(logs.finish("p1"), gone)
    failure = call(state="client_abort", status=None, error="client_disconnected")
    assert list(follower.new()) == [ProviderCall(TURN, 5.0, call()), AgentFailure(TURN, 5.0, failure)]

    writer.commit_blocking(ExchangeDelivered("x1", 8.0))
    assert list(follower.new()) == []
    assert list(follow().new())[2:] == [
        UserTurn(TURN, 3.0, "task", "words of turn 1"),
        ProviderCall(TURN, 5.0, call()),
        AgentFailure(TURN, 5.0, failure),
    ]


def test_a_turn_that_an_agent_begins_is_written_again_and_told_once(
    writer: LogWriter, path: Path, follow: Any
) -> None:
    follower = follow()
    writer.commit_blocking(logs.turn())
    assert texts(follower.new()) == ["words of turn 1"]

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'seq'")
        connection.execute("UPDATE turns SET seq = (SELECT value FROM meta WHERE key = 'seq')")
    assert list(follower.new()) == []
    assert texts(follow().new()) == ["words of turn 1"]


def test_an_agent_s_request_that_went_well_says_nothing_of_its_own(writer: LogWriter, follow: Any) -> None:
    writer.commit_blocking(logs.turn(), logs.start("x1"), logs.finish("x1"), ExchangeDelivered("x1", 8.0))
    assert list(follow().new())[2:] == [UserTurn(TURN, 3.0, "task", "words of turn 1")]


def lacking(exchange_id: str, *findings: tuple[int, str, str], **values: Any) -> list[Any]:
    """A provider exchange whose request lacked this of the agent's history."""
    named = tuple({"turn": turn, "what": what, "detail": detail} for turn, what, detail in findings)
    started = logs.start(exchange_id, side="provider", findings=named, turn=2, **values)
    return [started, logs.finish(exchange_id)]


def test_what_an_agent_lost_is_told_once_and_not_at_every_request(writer: LogWriter, follow: Any) -> None:
    place = Place("r1", "shop_1.e1", 0, 2)
    follower = follow()
    writer.commit_blocking(logs.turn(), logs.turn(2), *lacking("p1", (1, "lost_turn", "gone")))
    writer.commit_blocking(*lacking("p2", (1, "lost_turn", "gone for good"), (1, "lost_answer", "no text")))
    told = [HistoryFinding(place, 5.0, 1, "lost_turn", "gone"), ProviderCall(place, 5.0, call())]
    more = [HistoryFinding(place, 5.0, 1, "lost_answer", "no text"), ProviderCall(place, 5.0, call())]
    assert list(follower.new())[4:] == [*told, *more]

    # Another turn, or another attempt, is another finding.
    again = lacking("p3", (1, "lost_turn", "gone"), (2, "lost_turn", "gone"))
    second = lacking("p4", (1, "lost_turn", "x"), session_id="s2")
    writer.commit_blocking(*again, logs.session("s2", attempt=2), logs.turn(2, session_id="s2"), *second)
    found = [event for event in follower.new() if isinstance(event, HistoryFinding)]
    other = Place("r1", "shop_1.e1#2", 0, 2)
    assert found == [
        HistoryFinding(place, 5.0, 2, "lost_turn", "gone"),
        HistoryFinding(other, 5.0, 1, "lost_turn", "x"),
    ]


def test_an_answer_to_a_wrong_call_says_what_it_is(writer: LogWriter, follow: Any) -> None:
    message = logs.call_message(("findPrice", "{}"), ("fly", "{}"))
    calls = (
        ToolCallRow(0, "call_0", "findPrice", "{}", '{"price": 3}', 0, "redundant"),
        ToolCallRow(1, "call_1", "fly", "{}", "no such tool", None, "unknown_tool"),
    )
    writer.commit_blocking(
        logs.turn(), logs.start("x1"), logs.step(decision="observe", message=message, calls=calls)
    )
    assert [event for event in follow().new() if isinstance(event, Observed)] == [
        Observed(TURN, 6.0, '{"price": 3}', "redundant"),
        Observed(TURN, 6.0, "no such tool", "unknown_tool"),
    ]


def test_a_side_call_is_told_with_its_reason_and_answer(writer: LogWriter, follow: Any) -> None:
    answer = {**logs.call_message(("route", "{}")), "content": [{"type": "text", "text": "A title"}]}
    writer.commit_blocking(
        logs.start("x1", None, run_id="r1", turn=None, reason="without tools"),
        logs.finish("x1", message=answer),
    )
    assert list(follow().new())[2:] == [
        SideCall(Place("r1"), 5.0, "without tools", call(), "A title route({})")
    ]


def test_a_recorded_exchange_is_told_with_what_was_said(path: Path, follow: Any) -> None:
    history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
    with LogWriter.open(path) as writer:
        writer.commit_blocking(
            logs.run(),
            logs.start("x1", None, turn=None, reason="recorded", messages=history),
            logs.finish("x1", message=logs.text_message("Hello.")),
        )
    assert list(follow().new()) == [
        RunBegun(Place("r1"), 4.0, 1.0, None, {}),
        UserTurn(Place("r1"), 4.0, "recorded", "Hello?"),
        SideCall(Place("r1"), 5.0, "recorded", call(), ""),
        AssistantText(Place("r1"), 5.0, "Hello."),
    ]


def played(run_id: str, created_at: float, session: str, at: float) -> list[Any]:
    row = SessionRow(session, run_id, session, session.split(".")[0], "hash-shop_1", 1, 1, at)
    turn = logs.turn(session_id=session)
    return [logs.run(run_id, created_at), logs.scenario(), row, turn]


@pytest.fixture
def two_runs(path: Path) -> Iterator[LogWriter]:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*played("r1", 1.0, "a.e1", 10.0), *played("r2", 2.0, "b.e1", 20.0))
        yield writer


def sessions(events: Any) -> list[str]:
    return [event.place.session for event in events if isinstance(event, SessionOpened)]


@pytest.mark.parametrize(
    ("run", "shown"), [(None, ["b.e1"]), ("r1", ["a.e1"]), ("all", ["a.e1", "b.e1"]), ("r2", ["b.e1"])]
)
def test_the_newest_run_is_shown_unless_another_is_wanted(
    two_runs: LogWriter, follow: Any, run: str | None, shown: list[str]
) -> None:
    assert sessions(follow(run=run).new()) == shown


def test_a_run_that_begins_later_is_followed_too_but_not_if_one_was_named(
    two_runs: LogWriter, follow: Any
) -> None:
    newest, named = follow(), follow(run="r2")
    list(newest.new()), list(named.new())
    two_runs.commit_blocking(*played("r3", 3.0, "c.e1", 30.0))

    events: list[Event] = list(newest.new())
    assert events[:2] == [
        RunBegun(Place("r3"), 30.0, 3.0, None, {}),
        SessionOpened(Place("r3", "c.e1"), 30.0),
    ]
    assert list(named.new()) == []


def test_a_run_is_known_by_its_name_and_by_the_beginning_of_its_id(two_runs: LogWriter, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET name = 'nightly' WHERE id = 'r1'")
    assert overview(path, Wanted("nightly")).run == "r1"
    with pytest.raises(LogError, match="several runs begin with 'r': r1, r2"):
        overview(path, Wanted("r"))
    with pytest.raises(LogError, match=r"has no run 'x'; it has: r1 \(nightly\), r2"):
        overview(path, Wanted("x"))


def test_a_session_is_known_by_its_name_and_a_scenario_by_its_id(two_runs: LogWriter, path: Path) -> None:
    for wanted in ("b.e1", "b"):
        found = overview(path, Wanted(session=wanted))
        assert (found.runs, found.run, found.sessions, found.known) == (2, "r2", ("b.e1",), ("b.e1",))
    assert overview(path, Wanted(run="all", session="a")).sessions == ("a.e1",)
    assert overview(path, Wanted(session="a")).sessions == ()


def test_one_session_of_several_is_shown_alone(writer: LogWriter, follow: Any) -> None:
    writer.commit_blocking(
        logs.scenario("shop_2"), logs.session("s2", "shop_2"), logs.turn(session_id="s2"), logs.turn(2)
    )
    assert texts(follow(session="shop_2").new()) == ["words of turn 1"]
    assert texts(follow(session="shop_1").new()) == ["words of turn 2"]


def test_a_second_attempt_is_told_from_the_first(writer: LogWriter, follow: Any) -> None:
    writer.commit_blocking(logs.session("s2", attempt=2))
    assert sessions(follow().new()) == ["shop_1.e1", "shop_1.e1#2"]


def test_what_is_older_than_since_is_left_out(writer: LogWriter, follow: Any) -> None:
    writer.commit_blocking(logs.turn(), logs.start("x1"), logs.finish("x1"), logs.step(), logs.end())
    assert [type(event) for event in follow(since=6.0).new()] == [
        RunBegun,
        AssistantText,
        Verdict,
        TaskEnded,
    ]


def test_a_log_longer_than_a_window_is_read_whole(
    writer: LogWriter, follow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.tail.follow.WINDOW", 3)
    writer.commit_blocking(*(logs.turn(number) for number in range(1, 21)))
    assert texts(follow().new()) == [f"words of turn {number}" for number in range(1, 21)]


def test_a_log_at_rest_is_read_without_a_file_beside_it_and_a_writer_that_comes_is_noticed(
    writer: LogWriter, path: Path, follow: Any
) -> None:
    writer.close()
    follower = follow()
    assert len(list(follower.new())) == 2
    assert list(follower.new()) == []
    assert list(path.parent.iterdir()) == [path]

    with LogWriter.open(path) as again:
        again.commit_blocking(logs.turn())
        assert texts(follower.new()) == ["words of turn 1"]
        again.commit_blocking(logs.turn(2))
        assert texts(follower.new()) == ["words of turn 2"]
    assert list(follower.new()) == []

    with LogWriter.open(path) as again:
        again.commit_blocking(logs.turn(3))
    assert texts(follower.new()) == ["words of turn 3"]


def test_a_follower_does_not_keep_the_writer_from_emptying_its_wal(
    writer: LogWriter, path: Path, follow: Any
) -> None:
    list(follow().new())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_another_file_in_the_old_one_s_place_is_read_from_its_beginning(
    writer: LogWriter, path: Path, follow: Any
) -> None:
    writer.commit_blocking(*(logs.turn(number) for number in range(1, 9)))
    follower = follow()
    assert len(texts(follower.new())) == 8
    writer.close()
    for file in list(path.parent.iterdir()):
        file.unlink()
    assert list(follower.new()) == []
    assert not follower.replaced

    with LogWriter.open(path) as other:
        other.commit_blocking(*logs.opened(), logs.turn())
        assert texts(follower.new()) == ["words of turn 1"]
    assert follower.replaced


def test_an_overview_of_a_log_without_runs_has_nothing_chosen(path: Path) -> None:
    LogWriter.open(path).close()
    found: Overview = overview(path, Wanted())
    assert (found.runs, found.run, found.sessions) == (0, None, ())
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*logs.opened())
        follower = Follower(path, found.scope)
        assert sessions(follower.new()) == ["shop_1.e1"]
        follower.close()
