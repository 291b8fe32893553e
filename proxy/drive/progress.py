"""What a drive looks like on the terminal: a bar, or plain lines where there is no terminal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TextIO

from tqdm import tqdm

from proxy.drive.driver import DriveReport
from proxy.drive.played import Failure, Played
from proxy.drive.states import SessionState
from proxy.tail.text import duration
from scenarios.text import visible

REASONS_SHOWN = 5
DEFAULT_COLUMNS = 80


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a drive is. Tasks `ended` and `names_right` are as the proxy sees them while
    it plays: by tool names alone. Only `score` judges arguments.

    Sessions that were over before the drive began are counted as `already`, and nowhere else.
    """

    sessions: int
    tasks: int
    already: int = 0
    done: int = 0
    ended: int = 0
    names_right: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: int = 0


def tally(total: Tally, states: dict[str, SessionState]) -> Tally:
    """`total` with what the Sessions' last states add up to."""
    tasks = [task for state in states.values() for task in state.tasks]
    return replace(
        total,
        ended=sum(task.end is not None for task in tasks),
        names_right=sum(task.names_right is True for task in tasks),
        input_tokens=sum(state.input_tokens for state in states.values()),
        output_tokens=sum(state.output_tokens for state in states.values()),
    )


def time_left(now: Tally, elapsed: float) -> float | None:
    """Seconds until all Tasks are played at the pace so far; None before the first."""
    return elapsed * (now.tasks - now.ended) / now.ended if now.ended else None


def bar_text(now: Tally, elapsed: float) -> str:
    """What stands beside the bar: short enough for 80 columns in all."""
    left = time_left(now, elapsed)
    return ", ".join(
        [
            f"{now.done}/{now.sessions} sessions",
            f"names right {now.names_right}/{now.ended} tasks",
            f"{_rounded(now.input_tokens + now.output_tokens)} tokens",
            f"{now.failures} failed",
            "-:-- left" if left is None else f"{_clock_time(left)} left",
        ]
    )


def session_line(played: Played, done: int, sessions: int, seconds: float) -> str:
    """One line on a Session that is over or was given up, `seconds` after the start."""
    ends = {"over": "over", "failed": "given up", "cancelled": "cancelled"}
    parts = ["already over" if played.already else ends[played.end]]
    if state := played.state:
        right = sum(task.names_right is True for task in state.tasks)
        parts.append(f"names right {right}/{played.planned.tasks} tasks")
        parts.append(f"{_thousands(state.input_tokens + state.output_tokens)} tokens")
    if played.failures:
        parts.append(_count(len(played.failures), "failure"))
    place = f"{done:>{len(str(sessions))}}/{sessions}"
    return f"[{place}] {visible(played.session)}: {', '.join(parts)} ({duration(seconds, whole=True)})"


def failure_line(failure: Failure) -> str:
    where = "" if failure.turn is None else f", turn {failure.turn}"
    kinds = {"agent": "failed", "timeout": "timed out", "proxy": "failed at the proxy"}
    return f"{visible(failure.session)}{where} {kinds[failure.kind]}: {visible(failure.reason)}"


def summary(report: DriveReport, now: Tally, elapsed: float) -> list[str]:
    """The last lines: what was played, what was not, and why."""
    over = sum(played.end == "over" and not played.already for played in report.played)
    lines = []
    if now.already:
        were = "was" if now.already == 1 else "were"
        lines.append(f"{_count(now.already, 'session')} {were} already over.")
    if now.sessions or not now.already:
        lines.append(
            f"{over} of {_count(now.sessions, 'session')} played in {duration(elapsed, whole=True)}: "
            f"names right in {now.names_right} of {_count(now.tasks, 'task')}, "
            f"{_thousands(now.input_tokens)} input and {_thousands(now.output_tokens)} output tokens"
        )
    if report.interrupted:
        lines.append("Interrupted.")
    if report.halted:
        lines.append(f"Given up: {visible(report.halted)}")
    if report.unfinished:
        names = [played.session for played in report.unfinished]
        lines.append(f"Not finished: {_some(names)}")
    if report.not_started:
        names = [f"{planned.scenario}.e{planned.epoch}" for planned in report.not_started]
        lines.append(f"Not begun: {_some(names)}")
    if failed := [failure.reason for failure in report.failures]:
        lines.append(f"{_count(len(failed), 'failure')}: {_reasons(failed)}")
    if noted := [note.text for note in report.notes]:
        lines.append(f"{_count(len(noted), 'note')}: {_reasons(noted)}")
    return lines


class Progress:
    """Shows a drive on `out` while it runs. A context manager; a Watcher for `drive`.

    A bar where `out` is a terminal, else a line for each finished Session and failure.
    `clock` gives seconds from any start.
    """

    def __init__(self, sessions: int, tasks: int, out: TextIO, clock: Callable[[], float]) -> None:
        self._total = Tally(sessions, tasks)
        self._out = out
        self._clock = clock
        self._started = clock()
        self._states: dict[str, SessionState] = {}
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._started = self._clock()
        if self._out.isatty():
            self._bar = _Bar(
                total=self._total.sessions,
                file=self._out,
                bar_format="{percentage:3.0f}%|{bar}| {desc}",
                desc=bar_text(self._now(), 0.0),
                leave=False,
                # A terminal that does not say how wide it is would get a bar of no width.
                dynamic_ncols=_has_width(self._out),
                ncols=None if _has_width(self._out) else DEFAULT_COLUMNS,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def moved(self, state: SessionState) -> None:
        self._states[state.session] = state
        self._show()

    def failed(self, failure: Failure) -> None:
        self._total = replace(self._total, failures=self._total.failures + 1)
        self._line(failure_line(failure))

    def finished(self, played: Played) -> None:
        self._count(played)
        total = self._total
        if self._bar is None:
            done, sessions = total.done + total.already, total.sessions + total.already
            self._line(session_line(played, done, sessions, self._elapsed()))
        else:
            self._bar.total = total.sessions
            self._bar.update(total.done - self._bar.n)
        self._show()

    def summary(self, report: DriveReport) -> list[str]:
        """The lines to print at the end."""
        return summary(report, self._now(), self._elapsed())

    def _now(self) -> Tally:
        return tally(self._total, self._states)

    def _count(self, played: Played) -> None:
        total = self._total
        if played.already:
            self._total = replace(
                total,
                sessions=total.sessions - 1,
                tasks=total.tasks - played.planned.tasks,
                already=total.already + 1,
            )
            return
        self._total = replace(total, done=total.done + (played.end == "over"))
        if played.state:
            self._states[played.state.session] = played.state

    def _elapsed(self) -> float:
        return self._clock() - self._started

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.set_description_str(bar_text(self._now(), self._elapsed()))

    def _line(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(line, file=self._out)
        else:
            print(line, file=self._out, flush=True)


class _Bar(tqdm):  # type: ignore[misc]
    # No thread that redraws: whatever changes, changes by a call.
    monitor_interval = 0


def _has_width(out: TextIO) -> bool:
    try:
        return os.get_terminal_size(out.fileno()).columns > 0
    except OSError:
        return False


def _rounded(number: int) -> str:
    """Three digits or so: `812`, `12.3k`, `456k`, `1.2M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            return f"{number / size:.{1 if number < 100 * size else 0}f}{unit}"
    return str(number)


def _clock_time(seconds: float) -> str:
    """`0:08`, `12:10`, `1:05:00`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _thousands(number: int) -> str:
    return f"{number:,}"


def _count(number: int, noun: str) -> str:
    return f"{_thousands(number)} {noun}{'' if number == 1 else 's'}"


def _some(names: list[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:REASONS_SHOWN])
    more = len(names) - REASONS_SHOWN
    return f"{shown} and {_thousands(more)} more" if more > 0 else shown


def _reasons(reasons: list[str]) -> str:
    counted = Counter(reasons).most_common()
    shown = "; ".join(f"{visible(reason)} ({_thousands(n)})" for reason, n in counted[:REASONS_SHOWN])
    more = len(counted) - REASONS_SHOWN
    return f"{shown}; and {_count(more, 'other reason')}" if more > 0 else shown
