"""What a drive looks like: pure texts, plain lines, and the block that is drawn in place."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from support.playing import until
from support.screen import Screen

from proxy.drive.driver import DriveReport
from proxy.drive.plan import Planned
from proxy.drive.played import Failure, Played
from proxy.drive.progress import Progress, showing
from proxy.drive.progress_text import (
    Running,
    clock_time,
    failure_line,
    foot,
    running_line,
    session_line,
    summary,
)
from proxy.drive.states import SessionState, TaskState
from proxy.drive.tally import Tally, tally, time_left
from proxy.terminal.look import Look
from scenarios.text import width

PLAIN = Look()


def state(session: str, *rights: bool | None, tokens: tuple[int, int] = (0, 0), **more: Any) -> SessionState:
    tasks = tuple(
        TaskState(number, None if right is None else "closed" if right else "stopped", right)
        for number, right in enumerate(rights, 1)
    )
    scenario, _, epoch = session.rpartition(".e")
    over = None not in rights
    known = {"provider_errors": 0, **more}
    return SessionState(session, scenario, int(epoch), 1, over, tasks, *tokens, **known)


def played(
    session: str, *rights: bool | None, end: Any = "over", failures: tuple[Failure, ...] = ()
) -> Played:
    scenario, _, epoch = session.rpartition(".e")
    planned = Planned(scenario, int(epoch), len(rights))
    return Played(planned, session, end, state(session, *rights, tokens=(1000, 234)), failures)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_the_tally_adds_up_the_last_state_of_each_session() -> None:
    states = {
        "a.e1": state("a.e1", True, False, None, tokens=(10, 1), provider_retries=2),
        "b.e1": state("b.e1", True, tokens=(5, 2), provider_errors=1, provider_retries=1),
    }
    assert tally(Tally(3, 9, done=1, failures=2), states) == Tally(
        sessions=3,
        tasks=9,
        done=1,
        ended=3,
        names_right=2,
        sessions_right=1,
        input_tokens=15,
        output_tokens=3,
        failures=2,
        provider_errors=1,
        retries=3,
    )


def test_the_time_left_goes_by_the_tasks_played() -> None:
    assert time_left(Tally(3, 12), elapsed=5.0) is None
    assert time_left(Tally(3, 12, ended=3), elapsed=10.0) == 30.0
    assert time_left(Tally(3, 12, ended=12), elapsed=10.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0:00"), (8.4, "0:08"), (730, "12:10"), (3900, "1:05:00"), (100_000, "27:46:40")],
)
def test_clock_times(seconds: float, text: str) -> None:
    assert clock_time(seconds) == text


def running(session: str = "a.e1", *rights: bool | None, **more: Any) -> Running:
    known = state(session, *rights, **more) if rights else None
    return Running(session, 4, 12.4, known)


def test_a_running_session_says_where_it_is_and_what_it_waits_for() -> None:
    it = running("a.e1", True, False, None, None, steps=2, waits_for="provider", waited=4.2)
    [colored, text] = running_line(it, PLAIN, 80, 6)
    assert text == colored == "  a.e1   ✓✗·· task 3/4 step 3     12s  waits for the provider 4s"


@pytest.mark.parametrize(
    ("waits_for", "waited", "end"),
    [
        ("provider", 0.9, "waits for the provider"),
        ("retry", 2.0, "waits for a retry 2s"),
        ("agent", 61.0, "waits for the agent 61s"),
        ("tools", 0.0, "waits for the agent's tools"),
        ("", 0.0, "12s"),
        ("something of a later version", 9.0, "12s"),
    ],
)
def test_what_is_waited_for_is_told_with_its_time_from_a_second_on(
    waits_for: str, waited: float, end: str
) -> None:
    it = running("a.e1", None, None, None, None, waits_for=waits_for, waited=waited)
    assert running_line(it, PLAIN, 80, 4)[1].endswith("  " + end)


def test_a_running_session_of_which_nothing_is_known_yet_has_its_tasks_before_it() -> None:
    assert running_line(running(), PLAIN, 80, 4)[1] == "  a.e1 ···· task 1/4            12s"


def test_a_session_that_waits_to_ask_the_provider_again_stands_out() -> None:
    look = Look(color=True)
    calm, odd = (
        running_line(running("a.e1", None, waits_for=waits_for), look, 80, 4)[0]
        for waits_for in ("provider", "retry")
    )
    assert (calm[:4], odd[:5]) == ("\x1b[2m", "\x1b[33m")


def test_the_foot_tells_how_far_it_is_what_is_left_and_the_score() -> None:
    now = Tally(
        18, 72, done=3, ended=18, names_right=10, sessions_right=1, input_tokens=12_000, output_tokens=345
    )
    assert [text for _, text in foot(now, 60.0, PLAIN, 80)] == [
        "█████░░░░░░░░░░░░░░░ 3/18 sessions, 18/72 tasks, 1:00, about 3:00 left",
        "names right: 1/3 sessions, 10/18 tasks, 12.3k tokens",
    ]


def test_the_foot_does_not_guess_before_the_first_task_and_tells_of_what_fails() -> None:
    now = Tally(18, 72, failures=2, provider_errors=1, retries=3)
    assert [text for _, text in foot(now, 5.0, PLAIN, 100)] == [
        "░░░░░░░░░░░░░░░░░░░░ 0/18 sessions, 0/72 tasks, 0:05",
        "names right: 0/0 sessions, 0/0 tasks, 0 tokens, 3 retries, 1 provider error, 2 failed",
    ]


@pytest.mark.parametrize("columns", [20, 40, 80, 140])
def test_no_line_of_the_block_is_wider_than_the_terminal(columns: int) -> None:
    it = running("a_scenario_with_a_very_long_name_indeed.e1", True, None, waits_for="retry", waited=3.0)
    now = Tally(256, 1024, done=100, ended=400, failures=99, provider_errors=10, retries=1000)
    lines = [running_line(it, PLAIN, columns, 30), *foot(now, 9_999.0, PLAIN, columns)]
    assert all(width(text) <= columns for _, text in lines)


def test_a_finished_session_is_one_line() -> None:
    line = session_line(played("a.e1", True, False), 3, 18, 61.0, PLAIN)
    assert line == "[ 3/18] ✗ a.e1          1/2 names right      1,234 tokens   61.0s  ✓✗"
    right = session_line(played("a.e1", True, True), 18, 18, 250.0, PLAIN)
    assert right == "[18/18] ✓ a.e1          2/2 names right      1,234 tokens   4m10s  ✓✓"


def test_where_tasks_go_on_after_a_wrong_step_it_is_not_names_that_are_counted() -> None:
    went_on = played("a.e1", True, False)
    assert session_line(went_on, 1, 1, 1.0, PLAIN, goes_on=True) == (
        "[1/1] ✗ a.e1          1/2 without errors      1,234 tokens   1.00s  ✓✗"
    )
    now = tally(Tally(1, 2, done=1, goes_on=True), {"a.e1": state("a.e1", True, False, tokens=(1, 1))})
    assert foot(now, 1.0, PLAIN, 80)[1][1] == "without errors: 0/1 sessions, 1/2 tasks, 2 tokens"
    assert summary(DriveReport((went_on,), ()), now, 8.0)[0] == (
        "1 of 1 session played in 8 s: 1 of 2 tasks done without errors"
    )


def test_a_session_that_was_given_up_says_so_and_is_neither_right_nor_wrong() -> None:
    failure = Failure("a.e1", None, "proxy", "gone")
    given_up = Played(Planned("a", 1, 2), "a.e1", "failed", None, (failure,))
    assert session_line(given_up, 0, 5, 1.0, PLAIN) == (
        "[0/5] ! a.e1          0/2 names right          0 tokens   1.00s  ··  given up, 1 failure"
    )


def test_a_session_of_which_a_task_was_ended_by_infrastructure_is_neither_right_nor_wrong() -> None:
    tasks = (TaskState(1, "closed", True), TaskState(2, "infrastructure", False))
    failed = replace(played("a.e1", True, False), state=replace(state("a.e1"), tasks=tasks))
    line = session_line(failed, 1, 1, 1.0, PLAIN)
    assert line == "[1/1] ! a.e1          1/2 names right          0 tokens   1.00s  ✓!"


def test_every_line_on_a_session_has_its_columns_in_the_same_places() -> None:
    lines = [
        session_line(played("a.e1", True, False), 3, 18, 1.0, PLAIN, 10),
        session_line(replace(played("warehouse_8.e1", True), already=True), 4, 18, 0.0, PLAIN, 14),
        session_line(Played(Planned("b", 1, 2), "b.e1", "cancelled", None, ()), 4, 18, 100.0, PLAIN, 14),
    ]
    assert len({line.index(" names right") for line in lines[1:]}) == 1
    assert [line.split()[-1] for line in lines] == ["✓✗", "over", "cancelled"]


def test_a_failure_is_one_line_with_its_turn_and_reason() -> None:
    assert failure_line(Failure("a.e1", 2, "timeout", "slow"), PLAIN) == "! a.e1, turn 2 timed out: slow"
    assert failure_line(Failure("a.e1", None, "proxy", "x"), PLAIN) == "! a.e1 failed at the proxy: x"


def test_the_summary_of_a_whole_drive_is_two_lines() -> None:
    report = DriveReport((played("a.e1", True), played("b.e1", False)), ())
    now = Tally(2, 2, done=2, ended=2, names_right=1, input_tokens=2000, output_tokens=468)
    assert summary(report, now, 8.0) == [
        "2 of 2 sessions played in 8 s: names right in 1 of 2 tasks",
        "2,000 input and 468 output tokens",
    ]


def test_the_summary_says_what_was_not_played_and_groups_the_reasons() -> None:
    down = [Failure("a.e1", turn, "agent", "HTTP 502: down") for turn in (1, 2)]
    odd = Failure("a.e1", 3, "agent", "KeyError: 'x'")
    report = DriveReport(
        played=(played("a.e1", True, end="cancelled", failures=(*down, odd)),),
        not_started=tuple(Planned(f"s{n}", 1, 1) for n in range(7)),
        halted="the proxy is gone",
        interrupted=True,
    )
    assert summary(report, Tally(8, 8, provider_errors=2, retries=1), 1.0)[2:] == [
        "The provider failed 2 turns.",
        "1 request was sent to the provider again, having failed.",
        "Interrupted.",
        "Given up: the proxy is gone",
        "Not finished: a.e1",
        "Not begun: s0.e1, s1.e1, s2.e1, s3.e1, s4.e1 and 2 more",
        "3 failures: HTTP 502: down (2); KeyError: 'x' (1)",
    ]


def test_equal_causes_are_one_in_the_summary_whatever_the_last_words_and_addresses() -> None:
    silent = "no answer within 2 s; does it read OPENAI_BASE_URL? (http://x/s/{}/v1); its last words: turn {}"
    failures = (
        *(Failure(f"{name}.e1", 1, "timeout", silent.format(name, name)) for name in "abc"),
        Failure("d.e1", 1, "agent", "exited with code 1; its last words: no key"),
        *(Failure("d.e1", turn, "agent", "its process exited with code 1", follows=True) for turn in (2, 3)),
        Failure("e.e1", 1, "agent", "x" * 1000),
    )
    report = DriveReport((played("a.e1", True, failures=failures),), ())
    assert summary(report, Tally(1, 1), 1.0)[-1] == (
        "7 failures: no answer within 2 s; does it read OPENAI_BASE_URL? (3); "
        "exited with code 1; its last words: no key (1); "
        f"{'x' * 137}... (1); and for it 2 later turns"
    )


def test_a_failure_that_only_follows_from_an_earlier_one_has_no_line_of_its_own() -> None:
    out = io.StringIO()
    with Progress(1, 2, out, Clock()) as progress:
        progress.failed(Failure("a.e1", 1, "agent", "exited with code 1"))
        progress.failed(Failure("a.e1", 2, "agent", "its process exited with code 1", follows=True))
    assert out.getvalue().splitlines() == ["! a.e1, turn 1 failed: exited with code 1"]


def test_ids_and_reasons_reach_the_terminal_spelt_out() -> None:
    evil = "\x1b]0;owned\x07\u202e.e1"
    lines = [
        failure_line(Failure(evil, 1, "agent", "\x1b[2J"), PLAIN),
        session_line(played(evil, True), 1, 1, 0.0, PLAIN),
        running_line(running(evil, True, None), PLAIN, 80, 10)[0],
        *summary(
            DriveReport(
                (played(evil, True, end="failed", failures=(Failure(evil, 1, "agent", "\x07"),)),),
                (Planned("\x1b", 1, 1),),
                halted="\x1b",
            ),
            Tally(2, 2),
            0.0,
        ),
    ]
    assert all(line.isprintable() for line in lines)


def test_without_a_terminal_each_finished_session_and_failure_is_a_line() -> None:
    out, clock = io.StringIO(), Clock()
    with Progress(2, 2, out, clock) as progress:
        progress.began("a.e1", 1)
        progress.began("b.e1", 1)
        clock.seconds = 3.0
        progress.moved(state("a.e1", True))
        progress.failed(Failure("b.e1", 1, "agent", "no"))
        progress.finished(played("a.e1", True))
        clock.seconds = 5.0
        progress.finished(played("b.e1", None, end="failed"))
    assert out.getvalue().splitlines() == [
        "! b.e1, turn 1 failed: no",
        "[1/2] ✓ a.e1          1/1 names right      1,234 tokens   3.00s  ✓",
        "[1/2] ! b.e1          0/1 names right      1,234 tokens   5.00s  ·  given up",
    ]
    report = DriveReport((played("a.e1", True),), ())
    assert progress.summary(report)[0].startswith(
        "1 of 2 sessions played in 5 s: names right in 1 of 2 tasks"
    )


def test_sessions_that_were_over_before_are_told_apart_and_counted_apart() -> None:
    out, clock = io.StringIO(), Clock()
    before = replace(played("a.e1", True, True), already=True)
    with Progress(3, 5, out, clock) as progress:
        progress.finished(before)
        progress.began("b.e1", 2)
        clock.seconds = 10.0
        progress.finished(played("b.e1", True, False))
    assert out.getvalue().splitlines() == [
        "[1/3] ✓ a.e1          2/2 names right      1,234 tokens          ✓✓  already over",
        "[2/3] ✗ b.e1          1/2 names right      1,234 tokens   10.0s  ✓✗",
    ]
    report = DriveReport((before, played("b.e1", True, False)), (Planned("c", 1, 1),))
    assert progress.summary(report)[:3] == [
        "1 session was already over.",
        "1 of 2 sessions played in 10 s: names right in 1 of 3 tasks",
        "1,000 input and 234 output tokens",
    ]


def test_a_drive_that_finds_everything_over_says_only_that() -> None:
    out = io.StringIO()
    found = [replace(played(name, True), already=True) for name in ("a.e1", "b.e1")]
    with Progress(2, 2, out, Clock()) as progress:
        for item in found:
            progress.finished(item)
    assert progress.summary(DriveReport(tuple(found), ())) == ["2 sessions were already over."]


@pytest.fixture
def screen(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """screen(): the lines of a terminal of 80 columns and 12 rows to which all was written so far."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "12")
    return lambda: Screen(80).write(terminal.getvalue()).lines


def test_on_a_terminal_what_is_played_stands_below_what_is_over(terminal: Any, screen: Any) -> None:
    clock = Clock()
    with Progress(3, 12, terminal, clock, ["shop_1.e1", "b.e1", "c.e1"]) as progress:
        progress.began("shop_1.e1", 4)
        clock.seconds = 2.0
        progress.began("b.e1", 4)
        more = {"steps": 1, "waits_for": "provider", "waited": 3.0}
        progress.heard((state("b.e1", True, None, None, None, **more), state("of another drive.e1", True)))
        clock.seconds = 4.0
        progress.failed(Failure("b.e1", 1, "agent", "no"))
        progress.finished(played("shop_1.e1", True, True, False, True))
        assert screen() == [
            "! b.e1, turn 1 failed: no",
            "[1/3] ✗ shop_1.e1     3/4 names right      1,234 tokens   4.00s  ✓✓✗✓",
            "  b.e1      ✓··· task 2/4 step 2      2s  waits for the provider 3s",
            "████████░░░░░░░░░░░░ 1/3 sessions, 5/12 tasks, 0:04, about 0:06 left",
            "names right: 0/1 sessions, 4/5 tasks, 1,234 tokens, 1 failed",
        ]
    assert screen() == [
        "! b.e1, turn 1 failed: no",
        "[1/3] ✗ shop_1.e1     3/4 names right      1,234 tokens   4.00s  ✓✓✗✓",
    ]


def test_more_sessions_than_a_terminal_has_rows_are_counted(terminal: Any, screen: Any) -> None:
    with Progress(20, 20, terminal, Clock()) as progress:
        for number in range(20):
            progress.began(f"s{number}.e1", 1)
        lines = screen()
    # Of 12 rows, two are the foot's, one counts, and one is left.
    assert len(lines) == 11
    assert lines[-3] == "  and 12 more"
    assert [line.split()[0] for line in lines[:8]] == [f"s{number}.e1" for number in range(8)]


def test_a_session_that_was_given_up_keeps_what_was_heard_of_it_last(terminal: Any, screen: Any) -> None:
    with Progress(1, 2, terminal, Clock()) as progress:
        progress.began("a.e1", 2)
        progress.heard((state("a.e1", True, None, tokens=(5000, 10), provider_retries=7),))
        progress.finished(played("a.e1", True, None, end="cancelled"))
    report = DriveReport((played("a.e1", True, None, end="cancelled"),), (), interrupted=True)
    assert progress.summary(report)[1:3] == [
        "5,000 input and 10 output tokens",
        "7 requests were sent to the provider again, having failed.",
    ]


def test_a_bar_of_which_nothing_is_left_does_not_fail(terminal: Any, screen: Any) -> None:
    with Progress(1, 1, terminal, Clock()) as progress:
        progress.finished(replace(played("a.e1", True), already=True))
        assert screen()[1] == "████████████████████ 0/0 sessions, 0/0 tasks, 0:00"


async def test_a_proxy_that_cannot_say_what_is_played_is_asked_once_and_the_times_go_on(
    serve: Any, connect: Any, terminal: Any, screen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of an earlier version, which answers this request with an error."""
    monkeypatch.setattr("proxy.drive.progress.LOOK_S", 0.0)
    asked: list[tuple[str, str]] = []
    stand_in = await serve({"a": 1}, control=lambda method, path: asked.append((method, path)))
    clock = Clock()
    async with showing(await connect(stand_in), [Planned("a", 1, 1)], terminal, clock) as progress:
        progress.began("a.e1", 1)
        await until(lambda: asked)
        clock.seconds = 75.0
        await until(lambda: "75s" in terminal.getvalue())
        assert screen()[0] == "  a.e1 · task 1/1            75s"
        # It is drawn over and over again.
        drawn = terminal.getvalue().count("75s")
        await until(lambda: terminal.getvalue().count("75s") > drawn + 3)
    assert asked == [("GET", "/eval/sessions")]


async def test_what_the_proxy_says_of_what_is_played_is_shown(
    serve: Any, connect: Any, terminal: Any, screen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.drive.progress.LOOK_S", 0.0)
    said = {
        **{
            "session": "a.e1",
            "scenario": "a",
            "epoch": 1,
            "turn": 2,
            "over": False,
            "asked": 2,
            "answered": 1,
        },
        "failed_turn": 0,
        "tasks": [
            {"task": 1, "end": "closed", "names_right": True},
            {"task": 2, "end": None, "names_right": None},
        ],
        **{"input_tokens": 900, "output_tokens": 99, "provider_errors": 0, "provider_retries": 1},
        **{"steps": 2, "waits_for": "tools", "waited": 8.0},
    }
    stand_in = await serve({"a": 2}, control=lambda method, path: web.json_response({"sessions": [said]}))
    async with showing(await connect(stand_in), [Planned("a", 1, 2)], terminal, Clock()) as progress:
        progress.began("a.e1", 2)
        await until(lambda: "tools" in terminal.getvalue())
        assert screen() == [
            "  a.e1 ✓· task 2/2 step 3      0s  waits for the agent's tools 8s",
            "██████████░░░░░░░░░░ 0/1 sessions, 1/2 tasks, 0:00",
            "names right: 0/0 sessions, 1/1 tasks, 999 tokens, 1 retry",
        ]
