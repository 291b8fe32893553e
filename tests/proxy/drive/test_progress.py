"""What a drive looks like: pure texts, plain lines, and the bar."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from proxy.drive.driver import DriveReport
from proxy.drive.plan import Planned
from proxy.drive.played import Failure, Played
from proxy.drive.progress import (
    Progress,
    Tally,
    bar_text,
    failure_line,
    session_line,
    summary,
    tally,
    time_left,
)
from proxy.drive.states import SessionState, TaskState


def state(session: str, *rights: bool | None, tokens: tuple[int, int] = (0, 0)) -> SessionState:
    tasks = tuple(
        TaskState(number, None if right is None else "closed" if right else "stopped", right)
        for number, right in enumerate(rights, 1)
    )
    scenario, _, epoch = session.rpartition(".e")
    return SessionState(
        session, scenario, int(epoch), 1, None not in rights, tasks, *tokens, provider_errors=0
    )


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
        "a.e1": state("a.e1", True, False, None, tokens=(10, 1)),
        "b.e1": state("b.e1", True, tokens=(5, 2)),
    }
    assert tally(Tally(3, 9, done=1, failures=2), states) == Tally(
        sessions=3, tasks=9, done=1, ended=3, names_right=2, input_tokens=15, output_tokens=3, failures=2
    )


def test_the_time_left_goes_by_the_tasks_played() -> None:
    assert time_left(Tally(3, 12), elapsed=5.0) is None
    assert time_left(Tally(3, 12, ended=3), elapsed=10.0) == 30.0
    assert time_left(Tally(3, 12, ended=12), elapsed=10.0) == 0.0


def test_the_text_beside_the_bar_names_all_that_is_known() -> None:
    now = Tally(18, 72, done=3, ended=12, names_right=10, input_tokens=12_000, output_tokens=345, failures=2)
    assert bar_text(now, 60.0) == "3/18 sessions, names right 10/12 tasks, 12.3k tokens, 2 failed, 5:00 left"


def test_the_text_beside_the_bar_does_not_guess_before_the_first_task() -> None:
    assert (
        bar_text(Tally(18, 72), 60.0) == "0/18 sessions, names right 0/0 tasks, 0 tokens, 0 failed, -:-- left"
    )


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(812, "812 "), (99_949, "99.9k "), (456_000, "456k "), (1_234_000, "1.2M "), (999_999_999, "1000M ")],
)
def test_tokens_beside_the_bar_are_rounded(tokens: int, text: str) -> None:
    assert f", {text}tokens," in bar_text(Tally(1, 1, input_tokens=tokens), 0.0)


def test_a_long_drive_shows_hours_left() -> None:
    assert bar_text(Tally(256, 1024, ended=1), 5.0).endswith("1:25:15 left")


def test_a_finished_session_is_one_line() -> None:
    line = session_line(played("a.e1", True, False), done=3, sessions=18, seconds=61.0)
    assert line == "[ 3/18] a.e1: over, names right 1/2 tasks, 1,234 tokens (1 min 1 s)"


def test_a_session_that_was_given_up_says_so() -> None:
    failure = Failure("a.e1", None, "proxy", "gone")
    given_up = Played(Planned("a", 1, 2), "a.e1", "failed", None, (failure,))
    assert session_line(given_up, 0, 5, 1.0) == "[0/5] a.e1: given up, 1 failure (1 s)"


def test_a_failure_is_one_line_with_its_turn_and_reason() -> None:
    assert failure_line(Failure("a.e1", 2, "timeout", "slow")) == "a.e1, turn 2 timed out: slow"
    assert failure_line(Failure("a.e1", None, "proxy", "gone")) == "a.e1 failed at the proxy: gone"


def test_the_summary_of_a_whole_drive_is_one_line() -> None:
    report = DriveReport((played("a.e1", True), played("b.e1", False)), ())
    now = Tally(2, 2, done=2, ended=2, names_right=1, input_tokens=2000, output_tokens=468)
    assert summary(report, now, 8.0) == [
        "2 of 2 sessions played in 8 s: names right in 1 of 2 tasks, 2,000 input and 468 output tokens"
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
    assert summary(report, Tally(8, 8), 1.0)[1:] == [
        "Interrupted.",
        "Given up: the proxy is gone",
        "Not finished: a.e1",
        "Not begun: s0.e1, s1.e1, s2.e1, s3.e1, s4.e1 and 2 more",
        "3 failures: HTTP 502: down (2); KeyError: 'x' (1)",
    ]


def test_ids_and_reasons_reach_the_terminal_spelt_out() -> None:
    evil = "\x1b]0;owned\x07.e1"
    lines = [
        failure_line(Failure(evil, 1, "agent", "\x1b[2J")),
        session_line(played(evil, True), 1, 1, 0.0),
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
        clock.seconds = 3.0
        progress.moved(state("a.e1", True))
        progress.failed(Failure("b.e1", 1, "agent", "no"))
        progress.finished(played("a.e1", True))
        clock.seconds = 5.0
        progress.finished(played("b.e1", None, end="failed"))
    assert out.getvalue().splitlines() == [
        "b.e1, turn 1 failed: no",
        "[1/2] a.e1: over, names right 1/1 tasks, 1,234 tokens (3 s)",
        "[1/2] b.e1: given up, names right 0/1 tasks, 1,234 tokens (5 s)",
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
        clock.seconds = 10.0
        progress.finished(played("b.e1", True, False))
    assert out.getvalue().splitlines() == [
        "[1/3] a.e1: already over, names right 2/2 tasks, 1,234 tokens (0 s)",
        "[2/3] b.e1: over, names right 1/2 tasks, 1,234 tokens (10 s)",
    ]
    report = DriveReport((before, played("b.e1", True, False)), (Planned("c", 1, 1),))
    assert progress.summary(report)[:2] == [
        "1 session was already over.",
        "1 of 2 sessions played in 10 s: names right in 1 of 3 tasks, 1,000 input and 234 output tokens",
    ]


def test_a_drive_that_finds_everything_over_says_only_that() -> None:
    out = io.StringIO()
    found = [replace(played(name, True), already=True) for name in ("a.e1", "b.e1")]
    with Progress(2, 2, out, Clock()) as progress:
        for item in found:
            progress.finished(item)
    assert progress.summary(DriveReport(tuple(found), ())) == ["2 sessions were already over."]


def test_the_bar_and_the_time_left_know_only_what_is_played_now(terminal: Any) -> None:
    clock = Clock()
    with Progress(3, 5, terminal, clock) as progress:
        progress.finished(replace(played("a.e1", True, True), already=True))
        assert "0/2 sessions, names right 0/0 tasks, 0 tokens, 0 failed, -:-- left" in terminal.getvalue()
        clock.seconds = 10.0
        progress.finished(played("b.e1", True, False))
    # Two of three tasks took ten seconds.
    assert "50%" in terminal.getvalue()
    assert "1/2 sessions, names right 1/2 tasks, 1.2k tokens, 0 failed, 0:05 left" in terminal.getvalue()


def test_a_bar_of_which_nothing_is_left_does_not_fail(terminal: Any) -> None:
    with Progress(1, 1, terminal, Clock()) as progress:
        progress.finished(replace(played("a.e1", True), already=True))
    assert "0/0 sessions" in terminal.getvalue()


def test_on_a_terminal_a_bar_moves_and_failures_stand_above_it(terminal: Any) -> None:
    clock = Clock()
    with Progress(2, 2, terminal, clock) as progress:
        clock.seconds = 4.0
        progress.failed(Failure("a.e1", 1, "agent", "no"))
        progress.finished(played("a.e1", True))
    shown = terminal.getvalue()
    assert "a.e1, turn 1 failed: no\n" in shown
    assert "1/2 sessions, names right 1/1 tasks, 1.2k tokens, 1 failed, 0:04 left" in shown
    assert "a.e1: over" not in shown


def test_the_bar_fits_a_terminal_of_80_columns(terminal: Any) -> None:
    with Progress(256, 1024, terminal, Clock()):
        pass
    widest = max(len(part) for part in terminal.getvalue().split("\r"))
    assert "-:-- left" in terminal.getvalue()
    assert widest <= 80
