"""What the lines look like."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

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
from proxy.tail.lines import Printer, Style

AT = datetime(2026, 1, 2, 10, 20, 30, tzinfo=UTC).timestamp()
HERE = Place("r1", "shop_1.e1", 0, 2)
CALL = Call("gpt-x", 200, "complete", 1234, 56, 1.2, 0.41, None)
LIMITED = Call("gpt-x", 429, "provider_error", None, None, 0.2, None, "rate_limited: slow\ndown")
GONE = Call(None, None, "client_abort", None, None, None, None, "client_disconnected: the agent left")


def lines(*events: Event, **style: object) -> list[str]:
    printer = Printer(Style(**{"session": False, "zone": UTC, **style}))  # type: ignore[arg-type]
    return [line for event in events for line in printer.lines(event)]


def line(event: Event, **style: object) -> str:
    """The one line of an event, without the day."""
    return lines(event, **style)[-1]


def test_a_whole_task_reads_from_top_to_bottom() -> None:
    assert lines(
        RunBegun(Place("r1"), AT, AT - 60, "nightly", {"mode": "play", "provider": "sim:x", "model": None}),
        SessionOpened(Place("r1", "shop_1.e1"), AT),
        UserTurn(HERE, AT, "task", "What is a lamp?"),
        ProviderCall(HERE, AT, CALL),
        ToolCalled(HERE, AT, "findPrice", '{"thing":  "lamp"}'),
        Observed(HERE, AT, '{"price": 3}'),
        Verdict(HERE, AT, 0, "observe", "called findPrice", None),
        AssistantText(HERE, AT, "It is 3."),
        Verdict(HERE, AT, 1, "stop", "replied in text", "replied in text; allowed here: findPrice"),
        TaskEnded(Place("r1", "shop_1.e1", 0), AT, "stopped"),
        UserTurn(Place("r1", "shop_1.e1", 1, 12), AT, "reply", "The big one."),
    ) == [
        "2026-01-02",
        "10:20:30      run         r1 (nightly) begun 2026-01-02 10:19:30: play, sim:x",
        "10:20:30      session     shop_1.e1",
        "10:20:30 1.2  user        What is a lamp?",
        "10:20:30 1.2  provider    gpt-x 1,234→56 tokens 1.20 s (first 0.41 s)",
        '10:20:30 1.2  call        findPrice {"thing":  "lamp"}',
        '10:20:30 1.2  observation {"price": 3}',
        "10:20:30 1.2  step 1      observe",
        "10:20:30 1.2  assistant   It is 3.",
        "10:20:30 1.2  step 2      stop: replied in text; allowed here: findPrice",
        "10:20:30 1    task        stopped",
        "10:20:30 2.12 user reply  The big one.",
    ]


def test_failures_and_side_calls_say_what_was_wrong() -> None:
    assert line(ProviderCall(HERE, AT, LIMITED)) == (
        "10:20:30 1.2  provider    gpt-x provider_error status 429 0.20 s - rate_limited: slow ⏎ down"
    )
    assert line(AgentFailure(HERE, AT, GONE)) == (
        "10:20:30 1.2  agent       client_abort - client_disconnected: the agent left"
    )
    assert line(SideCall(HERE, AT, "without tools", CALL, "A title")) == (
        "10:20:30 1.2  side call   without tools; gpt-x 1,234→56 tokens 1.20 s (first 0.41 s) → A title"
    )
    assert line(SideCall(Place("r1"), AT, "recorded", CALL, "")) == (
        "10:20:30      recorded    gpt-x 1,234→56 tokens 1.20 s (first 0.41 s)"
    )


def test_a_finding_names_the_turn_that_it_is_about() -> None:
    found = HistoryFinding(HERE, AT, 1, "lost_answer", "not in the request: It is 3.")
    assert line(found) == "10:20:30 1.2  finding     turn 1: lost_answer: not in the request: It is 3."


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (None, "observation 3"),
        ("served", "observation 3"),
        ("redundant", "observation (redundant) 3"),
        ("unknown_tool", "error       (unknown_tool) 3"),
        ("invalid_arguments", "error       (invalid_arguments) 3"),
        ("no_data", "error       (no_data) 3"),
    ],
)
def test_an_answer_that_is_no_observation_of_its_own_says_what_it_is(outcome: str | None, shown: str) -> None:
    assert line(Observed(HERE, AT, "3", outcome)) == f"10:20:30 1.2  {shown}"


def test_tokens_that_one_side_did_not_count_are_unknown() -> None:
    assert "?→5 tokens" in line(ProviderCall(HERE, AT, Call("m", 200, "complete", None, 5, 1.0, None, None)))


def test_a_new_day_is_a_line_of_its_own() -> None:
    day = 24 * 60 * 60
    events = [TaskEnded(HERE, AT + n, "closed") for n in (0, 1, day, day + 1)]
    assert [text for text in lines(*events) if "task" not in text] == ["2026-01-02", "2026-01-03"]


def test_every_line_says_whose_it_is_and_names_of_other_lengths_stay_in_their_column() -> None:
    printer = Printer(Style(zone=UTC), ["商店_1.e1"])
    shown = [
        printer.lines(TaskEnded(Place("r1", name, 0), AT, "closed"))[-1] for name in ("a.e1", "商店_1.e1")
    ]
    assert shown == [
        "10:20:30 a.e1      1    task        closed",
        "10:20:30 商店_1.e1 1    task        closed",
    ]


def test_long_texts_are_cut_with_the_count_of_what_is_missing() -> None:
    assert line(AssistantText(HERE, AT, "x" * 15), text_columns=10).endswith("xxxxxxxxxx… (+5)")
    assert line(Observed(HERE, AT, "x" * 15), observation_columns=10).endswith("xxxxxxxxxx… (+5)")
    assert line(ToolCalled(HERE, AT, "f", "x" * 15), text_columns=10).endswith("f xxxxxxxxxx… (+5)")


def test_nothing_that_comes_from_outside_is_obeyed_by_a_terminal() -> None:
    evil = "\x1b[31m\x07\u202e\n\x9b2J"
    call = Call(evil, 200, evil, 1, 1, 1.0, None, evil)
    place = Place(evil, evil, 0, 1)
    events: list[Event] = [
        RunBegun(place, AT, AT, evil, {"model": evil}),
        SessionOpened(place, AT),
        UserTurn(place, AT, evil, evil),
        ProviderCall(place, AT, call),
        SideCall(place, AT, evil, call, evil),
        AgentFailure(place, AT, call),
        AssistantText(place, AT, evil),
        ToolCalled(place, AT, evil, evil),
        Observed(place, AT, evil),
        Observed(place, AT, evil, evil),
        HistoryFinding(place, AT, 1, evil, evil),
        Verdict(place, AT, 0, evil, evil, evil),
        TaskEnded(place, AT, evil),
    ]
    shown = lines(*events, session=True)
    assert len(shown) == 1 + len(events)
    assert all(text.isprintable() and r"\x1b[31m\x07\u202e ⏎ \x9b2J" in text for text in shown[1:])


def test_colours_are_only_where_they_are_wanted() -> None:
    stopped = Verdict(HERE, AT, 0, "stop", "did", "wrong")
    assert "\x1b" not in line(stopped)
    assert line(stopped, color=True) == (
        "\x1b[2m10:20:30 1.2 \x1b[0m \x1b[31mstep 1     \x1b[0m \x1b[31mstop: wrong\x1b[0m"
    )
