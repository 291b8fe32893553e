"""What a drive says of itself, line by line. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proxy.drive.agent import LAST_WORDS
from proxy.drive.states import SessionState, TaskState
from proxy.drive.tally import Tally, is_right, time_left
from proxy.terminal.look import Look
from proxy.terminal.text import count, duration, padded, seconds_text
from scenarios.text import clip, counted, visible

if TYPE_CHECKING:
    from proxy.drive.driver import DriveReport
    from proxy.drive.played import Failure, Played

REASONS_SHOWN = 5
CAUSE_LENGTH = 140
"""Characters of a reason in the summary: those that begin so have one cause."""
REASON_ROOM = 300
"""How many all reasons of the summary may take, if they are longer than that."""
BAR_COLUMNS = 20
LONGEST_NAME = 24
LEAST_NAME = 12
_WAITING = {
    "agent": "the agent",
    "tools": "the agent's tools",
    "provider": "the provider",
    "retry": "a retry",
}


@dataclass(frozen=True, slots=True)
class Running:
    """A Session that is being played, `seconds` after it began. `state` is None until it is known."""

    session: str
    tasks: int
    seconds: float
    state: SessionState | None = None


Colored = tuple[str, str]
"""(What is written, its text without colours.)"""


def running_line(running: Running, look: Look, columns: int, named: int) -> Colored:
    """`  home_6.e1  ✓✗·· task 3/4 step 2     12s  waits for the provider 4s`, in at most `columns`."""
    name = padded(look.fit(running.session, LONGEST_NAME), min(named, LONGEST_NAME))
    state = running.state
    tasks = state.tasks if state else ()
    marks = "".join(look.mark(_mark(task)) for task in tasks) or look.mark("open") * running.tasks
    number = min(sum(task.end is not None for task in tasks) + 1, running.tasks)
    step = f"step {state.steps + 1}" if state else ""
    waits = ""
    if state and state.waits_for in _WAITING:
        since = f" {seconds_text(state.waited, whole=True)}" if state.waited >= 1 else ""
        waits = f"waits for {_WAITING[state.waits_for]}{since}"
    time = seconds_text(running.seconds, whole=True)
    text = f"  {name} {marks} task {number}/{running.tasks} {step:<7} {time:>6}  {waits}".rstrip()
    text = look.fit(text, columns)
    return look.paint(text, "odd" if state and state.waits_for == "retry" else "dim"), text


def more_line(number: int, look: Look, columns: int) -> Colored:
    text = look.fit(f"  and {number:,} more", columns)
    return look.paint(text, "dim"), text


def foot(now: Tally, elapsed: float, look: Look, columns: int) -> list[Colored]:
    """The last two lines of the block: how far it is, and the running score."""
    left = time_left(now, elapsed)
    rest = "" if left is None or not left else f", about {clock_time(left)} left"
    full = round(now.ended / now.tasks * BAR_COLUMNS) if now.tasks else BAR_COLUMNS
    bar = look.held("█" * full + "░" * (BAR_COLUMNS - full))
    first = f" {now.done}/{now.sessions} sessions, {now.ended}/{now.tasks} tasks, {clock_time(elapsed)}{rest}"
    parts = [
        f"{_figure(now.goes_on)}: {now.sessions_right}/{now.done} sessions, "
        f"{now.names_right}/{now.ended} tasks",
        f"{count(now.input_tokens + now.output_tokens)} tokens",
        *([counted(now.retries, "retry", "retries")] if now.retries else []),
        *([counted(now.provider_errors, "provider error")] if now.provider_errors else []),
        *([f"{now.failures} failed"] if now.failures else []),
    ]
    if columns < BAR_COLUMNS * 2:
        bar = ""
    texts = [look.fit(f"{bar}{first}", columns), look.fit(", ".join(parts), columns)]
    painted = look.paint(texts[0][: len(bar)], "good") + texts[0][len(bar) :]
    bad = bool(now.failures or now.provider_errors)
    return [(painted, texts[0]), (look.paint(texts[1], "odd" if bad or now.retries else ""), texts[1])]


def session_line(
    played: Played,
    done: int,
    sessions: int,
    seconds: float,
    look: Look,
    named: int = 0,
    *,
    goes_on: bool = False,
) -> str:
    """One line on a Session that is over or was given up, `seconds` after it began.

    `[ 3/18] ✗ a.e1          3/4 names right     1,234 tokens  12.3s  ✓✓✗✓`
    """
    mark, color = _session_mark(played)
    name = padded(visible(played.session), max(min(named, LONGEST_NAME), LEAST_NAME))
    parts = [
        f"[{done:>{len(str(sessions))}}/{sessions}] {look.paint(look.mark(mark), color)} {look.held(name)}"
    ]
    tasks = played.state.tasks if played.state else ()
    tokens = played.state.input_tokens + played.state.output_tokens if played.state else 0
    right = sum(task.names_right is True for task in tasks)
    parts.append(f"{right}/{played.planned.tasks} {_figure(goes_on)}")
    parts.append(f"{tokens:>9,} tokens")
    parts.append(f"{'' if played.already else seconds_text(seconds):>6}")
    marks = "".join(look.paint(look.mark(_mark(task)), _color(task)) for task in tasks)
    parts.append(marks or look.mark("open") * played.planned.tasks)
    ends = {"over": "", "failed": "given up", "cancelled": "cancelled"}
    notes = ["already over" if played.already else ends[played.end]]
    if played.failures:
        notes.append(counted(len(played.failures), "failure"))
    if said := ", ".join(note for note in notes if note):
        parts.append(look.paint(said, "odd"))
    return "  ".join(parts)


def _figure(goes_on: bool) -> str:
    """What is counted of Tasks: of one that goes on after a wrong step, it is not names alone."""
    return "without errors" if goes_on else "names right"


def failure_line(failure: Failure, look: Look) -> str:
    where = "" if failure.turn is None else f", turn {failure.turn}"
    kinds = {"agent": "failed", "timeout": "timed out", "proxy": "failed at the proxy"}
    text = f"{visible(failure.session)}{where} {kinds[failure.kind]}: {visible(failure.reason)}"
    return look.paint(f"{look.mark('odd')} {look.held(text)}", "bad")


def summary(report: DriveReport, now: Tally, elapsed: float) -> list[str]:
    """The last lines: what was played, what was not, and why."""
    over = sum(played.end == "over" and not played.already for played in report.played)
    lines = []
    if now.already:
        were = "was" if now.already == 1 else "were"
        lines.append(f"{counted(now.already, 'session')} {were} already over.")
    if now.sessions or not now.already:
        lines.append(
            f"{over} of {counted(now.sessions, 'session')} played in {duration(elapsed, whole=True)}: "
            f"{_tasks_right(now)}"
        )
        lines.append(f"{now.input_tokens:,} input and {now.output_tokens:,} output tokens")
    if now.provider_errors:
        lines.append(f"The provider failed {counted(now.provider_errors, 'turn')}.")
    if now.retries:
        again = counted(now.retries, "request was", "requests were")
        lines.append(f"{again} sent to the provider again, having failed.")
    if report.interrupted:
        lines.append("Interrupted.")
    if report.halted:
        lines.append(f"Given up: {visible(report.halted)}")
    if report.unfinished:
        lines.append(f"Not finished: {_some([played.session for played in report.unfinished])}")
    if report.not_started:
        names = [f"{planned.scenario}.e{planned.epoch}" for planned in report.not_started]
        lines.append(f"Not begun: {_some(names)}")
    if failures := report.failures:
        told = [failure.reason for failure in failures if not failure.follows]
        lines.append(f"{counted(len(failures), 'failure')}: {_reasons(told, len(failures) - len(told))}")
    if noted := [note.text for note in report.notes]:
        lines.append(f"{counted(len(noted), 'note')}: {_reasons(noted)}")
    return lines


def clock_time(seconds: float) -> str:
    """`0:08`, `12:10`, `1:05:00`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _tasks_right(now: Tally) -> str:
    tasks = counted(now.tasks, "task")
    if now.goes_on:
        return f"{now.names_right} of {tasks} done without errors"
    return f"names right in {now.names_right} of {tasks}"


def _session_mark(played: Played) -> tuple[str, str]:
    """(Mark, colour) by names alone; what the agent did not end, or not alone, is neither right nor wrong."""
    if played.end != "over" or played.state is None or "odd" in map(_mark, played.state.tasks):
        return "odd", "odd"
    return ("right", "good") if is_right(played.state) else ("wrong", "bad")


def _mark(task: TaskState) -> str:
    if task.end is None:
        return "open"
    if task.names_right is None or task.end == "infrastructure":
        return "odd"
    return "right" if task.names_right else "wrong"


def _color(task: TaskState) -> str:
    return {"right": "good", "wrong": "bad", "odd": "odd", "open": "dim"}[_mark(task)]


def _some(names: list[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:REASONS_SHOWN])
    more = len(names) - REASONS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _reasons(reasons: list[str], later: int = 0) -> str:
    """Each cause once, with how often it was met; `later` are turns that a cause of these left unplayed."""
    shown, other = causes(reasons, REASONS_SHOWN)
    parts = [f"{visible(text)} ({n:,})" for text, n in shown]
    parts += [f"and {counted(other, 'other reason')}"] if other else []
    parts += [f"and for it {counted(later, 'later turn')}"] if later else []
    return "; ".join(parts)


def causes(reasons: list[str], most: int) -> tuple[list[tuple[str, int]], int]:
    """The `most` frequent causes with their numbers, and how many more there are.

    What is another one in each Session (last words, an address) is left out where it differs.
    """
    found: dict[str, Counter[str]] = {}
    for reason in reasons:
        cause = clip(_SESSIONS_OWN.split(reason, maxsplit=1)[0], CAUSE_LENGTH)
        found.setdefault(cause, Counter())[reason] += 1
    often = sorted(found.items(), key=lambda it: -it[1].total())
    room = max(CAUSE_LENGTH, REASON_ROOM // min(most, len(often) or 1))
    shown = [
        (clip(next(iter(said)), room) if len(said) == 1 else cause, said.total())
        for cause, said in often[:most]
    ]
    return shown, len(often) - len(shown)


_SESSIONS_OWN = re.compile(rf"{LAST_WORDS}| \(http")
