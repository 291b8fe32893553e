"""Events as lines: a line for each Step, or one for each event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from proxy.tail.compact import Compact, Wide
from proxy.tail.events import (
    AgentFailure,
    AssistantText,
    Call,
    Event,
    HistoryFinding,
    Observed,
    Place,
    ProviderCall,
    ProxyStarted,
    RunBegun,
    SessionOpened,
    SideCall,
    TaskEnded,
    ToolCalled,
    UserTurn,
    Verdict,
)
from proxy.tail.lines import Cost, Line, Told, place_text
from proxy.tail.summary import SessionSummary, Spent, TaskSummary

AT = 1000.0
HERE = Place("r1", "shop_1.e1", 0, 2)
THERE = Place("r1", "shop_2.e1", 0, 1)
TASK = Place("r1", "shop_1.e1", 0)
SESSION = Place("r1", "shop_1.e1")
CALL = Call("gpt-x", 200, "complete", 1234, 56, 1.2, 0.41, None)
COST = Cost(1234, 56, 1.2)
LIMITED = Call("gpt-x", 429, "provider_error", None, None, 0.2, None, "rate_limited: slow down")
GONE = Call(None, None, "client_abort", None, None, None, None, "client_disconnected: the agent left")
SPENT = Spent(2000, 100, 3.5)


def lines(teller: Compact | Wide, events: Iterable[Told]) -> list[Line]:
    return [*(line for event in events for line in teller.lines(event)), *teller.rest()]


def compact(*events: Told) -> list[tuple[Any, ...]]:
    """(kind, mark, text, verdict, cost) of each line."""
    return [(it.kind, it.mark, it.text, it.verdict, it.cost) for it in lines(Compact(), events)]


def wide(*events: Told) -> list[tuple[str, str]]:
    return [(it.kind, it.text) for it in lines(Wide(), events)]


def step(place: Place, decision: str, *told: Event, reason: str | None = None) -> list[Event]:
    return [ProviderCall(place, AT, CALL), *told, Verdict(place, AT, 0, decision, "did", reason)]


def test_a_step_is_one_line_with_what_it_cost() -> None:
    events = step(
        HERE,
        "observe",
        ToolCalled(HERE, AT, "findPrice", '{"thing": "lamp"}'),
        Observed(HERE, AT, "3", "served"),
        ToolCalled(HERE, AT, "stock", "{}"),
        Observed(HERE, AT, "7", "served"),
        ToolCalled(HERE, AT, "findPrice", '{"thing": "chair"}'),
        Observed(HERE, AT, "5", "served"),
    )
    assert compact(*events) == [("calls", "calls", "findPrice ×2, stock", None, COST)]


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        ("close", ("says", "", "It is 3.", None, COST)),
        ("ask", ("asks", "asks", "It is 3.", None, COST)),
        ("stop", ("says", "wrong", "It is 3.", "wrong", COST)),
    ],
)
def test_a_text_is_one_line_that_says_what_it_was(decision: str, line: tuple[Any, ...]) -> None:
    assert compact(*step(HERE, decision, AssistantText(HERE, AT, "It is 3."))) == [line]


def test_a_step_without_anything_in_it_says_so() -> None:
    assert compact(*step(HERE, "stop")) == [("says", "wrong", "(nothing)", "wrong", COST)]


def test_calls_that_were_told_something_else_say_what() -> None:
    told = [
        ToolCalled(HERE, AT, "a", "{}"),
        Observed(HERE, AT, "x", "redundant"),
        ToolCalled(HERE, AT, "", "{}"),
        Observed(HERE, AT, "x", "unknown_tool"),
        ToolCalled(HERE, AT, "a", "{"),
        Observed(HERE, AT, "x", "unknown_tool"),
    ]
    text = "a ×2, (no name); redundant, unknown_tool ×2"
    assert compact(*step(HERE, "observe", *told)) == [("calls", "odd", text, None, COST)]


def test_a_text_that_ends_a_task_too_early_is_marked() -> None:
    text = AssistantText(HERE, AT, "Hm.")
    assert compact(*step(HERE, "close", text, reason="too early")) == [("says", "odd", "Hm.", None, COST)]


def test_steps_of_sessions_that_play_at_once_are_told_apart() -> None:
    events = [
        ProviderCall(HERE, AT, CALL),
        ProviderCall(THERE, AT, CALL),
        AssistantText(HERE, AT, "here"),
        AssistantText(THERE, AT, "there"),
        Verdict(THERE, AT, 0, "close", "did", None),
        Verdict(HERE, AT, 0, "close", "did", None),
    ]
    shown = lines(Compact(), events)
    assert [(it.place, it.text, it.cost) for it in shown] == [(THERE, "there", COST), (HERE, "here", COST)]


def test_an_answer_of_the_provider_that_became_no_step_is_a_line_of_its_own() -> None:
    handed_over = ProviderCall(HERE, AT, CALL)
    assert compact(handed_over, *step(HERE, "close", AssistantText(HERE, AT, "Done."))) == [
        ("llm", "", "gpt-x, first chunk 0.41s", None, COST),
        ("says", "", "Done.", None, COST),
    ]


def test_failures_are_lines_at_once_and_do_not_hide_what_the_next_try_cost() -> None:
    failed = ProviderCall(HERE, AT, LIMITED)
    assert compact(
        failed, *step(HERE, "close", AssistantText(HERE, AT, "3")), AgentFailure(HERE, AT, GONE)
    ) == [
        (
            "llm",
            "odd",
            "status 429: rate_limited: slow down",
            "failed",
            Cost(seconds=0.2),
        ),
        ("says", "", "3", None, COST),
        ("agent", "odd", "client_abort: client_disconnected: the agent left", "failed", Cost()),
    ]


def test_an_exchange_that_was_passed_through_is_a_line_for_what_was_answered() -> None:
    place = Place("r1")
    asked = UserTurn(place, AT, "recorded", "Hello?")
    text = [SideCall(place, AT, "recorded", CALL, ""), AssistantText(place, AT, "Hello.")]
    calls = [SideCall(place, AT, "recorded", CALL, ""), *[ToolCalled(place, AT, "f", "{}")] * 2]
    nothing = SideCall(place, AT, "recorded", CALL, "")
    assert compact(asked, *text, *calls, nothing, SideCall(place, AT, "recorded", LIMITED, "")) == [
        ("user", "", "Hello?", None, Cost()),
        ("says", "", "Hello.", None, COST),
        ("calls", "calls", "f ×2", None, COST),
        ("says", "odd", "(nothing)", None, COST),
        ("llm", "odd", "status 429: rate_limited: slow down", "failed", Cost(seconds=0.2)),
    ]


def test_wide_every_event_is_a_line_but_the_end_of_a_task_which_has_a_summary() -> None:
    assert wide(
        RunBegun(Place("r1"), AT, AT - 60, "nightly", {"mode": "play", "provider": "sim:x", "model": None}),
        ProxyStarted(Place(), AT),
        SessionOpened(SESSION, AT),
        UserTurn(HERE, AT, "task", "What is a lamp?"),
        *step(HERE, "observe", ToolCalled(HERE, AT, "f", '{"a":  1}'), Observed(HERE, AT, "3", "served")),
        UserTurn(HERE, AT, "reply", "The big one."),
        HistoryFinding(HERE, AT, 1, "lost_answer", "not in the request"),
        SideCall(HERE, AT, "without tools", CALL, "A title"),
        TaskEnded(TASK, AT, "closed"),
        TaskSummary(TASK, AT, "closed", "Single-Tool", 2, 2, SPENT, "right"),
    ) == [
        ("run", "run r1 (nightly) · play · sim:x"),
        ("proxy", "the proxy was started again"),
        ("begin", "the session begins"),
        ("user", "What is a lamp?"),
        ("llm", "gpt-x, first chunk 0.41s"),
        ("call", 'f {"a":  1}'),
        ("told", "3"),
        ("step", "1 observe"),
        ("reply", "The big one."),
        ("finding", "turn 1: lost_answer: not in the request"),
        ("side", "without tools: gpt-x, first chunk 0.41s → A title"),
        ("task", "right, 2/2 steps, Single"),
    ]


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (None, ("told", "3")),
        ("served", ("told", "3")),
        ("redundant", ("told", "(redundant) 3")),
        ("unknown_tool", ("error", "(unknown_tool) 3")),
        ("invalid_arguments", ("error", "(invalid_arguments) 3")),
        ("no_data", ("error", "(no_data) 3")),
    ],
)
def test_wide_an_answer_that_is_no_observation_of_its_own_says_what_it_is(
    outcome: str | None, shown: tuple[str, str]
) -> None:
    assert wide(Observed(HERE, AT, "3", outcome)) == [shown]


def summary(**values: Any) -> TaskSummary:
    given = {"ending": "closed", "label": "Mixed Multi-Tool", "steps": 3, "optimal": 2, "spent": SPENT}
    return TaskSummary(TASK, AT, **{**given, **values})


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"verdict": "right"}, ("right", "right, 3/2 steps, Mixed", "right")),
        (
            {"verdict": "right", "after_errors": True},
            ("erred", "right after errors, 3/2 steps, Mixed", "right"),
        ),
        (
            {"verdict": "wrong", "step": 3, "why": "f: is none of the tools"},
            ("wrong", "wrong at step 3/2: f: is none of the tools, Mixed", "wrong"),
        ),
        (
            {"verdict": "wrong", "step": 1, "why": "f: waits for g"},
            ("wrong", "wrong at step 1/2: f: waits for g, 3 steps, Mixed", "wrong"),
        ),
        (
            {"verdict": "right", "released": "wrong"},
            ("right", "right, 3/2 steps, Mixed, by the released rules wrong", "right"),
        ),
        (
            {"verdict": "unscored", "why": "infrastructure"},
            ("odd", "not scored: infrastructure, 3/2 steps, Mixed", "unscored"),
        ),
        ({"ending": "stopped"}, ("", "stopped, 3/2 steps, Mixed", None)),
    ],
)
def test_the_summary_of_a_task_says_how_it_went_in_how_many_steps_of_how_many_and_why(
    values: dict[str, Any], line: tuple[str, str, str | None]
) -> None:
    assert compact(summary(**values)) == [("task", *line, Cost(2000, 100, 3.5))]


@pytest.mark.parametrize(
    ("tasks", "line"),
    [
        (("right", "right"), ("right", "2/2 tasks right ✓✓", "right")),
        (("right", "wrong", "unscored"), ("odd", "1/3 tasks right ✓✗-", "unscored")),
        (("wrong", "right"), ("wrong", "1/2 tasks right ✗✓", "wrong")),
        ((None, None), ("", "the session is over", None)),
    ],
)
def test_the_summary_of_a_session_says_which_tasks_were_right(
    tasks: tuple[str | None, ...], line: tuple[str, str, str | None]
) -> None:
    assert compact(SessionSummary(SESSION, AT, tasks, SPENT)) == [("session", *line, Cost(2000, 100, 3.5))]


@pytest.mark.parametrize(
    ("tasks", "after_errors", "line"),
    [
        (("right", "right"), (1,), ("erred", "1/2 tasks right, 1 after errors ✓~", "right")),
        (("wrong", "right", "right"), (1,), ("wrong", "1/3 tasks right, 1 after errors ✗~✓", "wrong")),
    ],
)
def test_a_task_that_came_right_after_errors_is_counted_apart(
    tasks: tuple[str, ...], after_errors: tuple[int, ...], line: tuple[str, str, str]
) -> None:
    told = compact(SessionSummary(SESSION, AT, tasks, SPENT, after_errors))
    assert told == [("session", *line, Cost(2000, 100, 3.5))]


def test_a_failure_names_its_status_once() -> None:
    call = Call("m", 503, "provider_error", None, None, 1.0, None, "503: HTTP 503: overloaded")
    assert wide(ProviderCall(HERE, AT, call)) == [("llm", "status 503: overloaded")]
    bare = Call("m", 500, "provider_error", None, None, 1.0, None, None)
    assert wide(ProviderCall(HERE, AT, bare)) == [("llm", "status 500")]


def test_a_run_that_only_records_has_no_history_and_no_tools_of_its_own() -> None:
    config = {"mode": "record", "provider": "sim:x", "model": "m", "history": "gold", "tools": "intercept"}
    assert wide(RunBegun(Place("r1"), AT, AT, None, config)) == [("run", "run r1 · record · sim:x · m")]


def test_places_count_from_one() -> None:
    places = [Place("r1"), TASK, HERE, Place("r1", "x", None, 3)]
    assert [place_text(place) for place in places] == ["", "1", "1.2", "?.3"]
