"""Events as lines for a terminal: time, session, place, who, what.

The place is TASK.TURN, both from 1. Whatever comes from outside is made visible, so that a
terminal obeys nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any, assert_never

import click

from proxy.tail.events import (
    RECORDED,
    AgentFailure,
    AssistantText,
    Call,
    Event,
    HistoryFinding,
    Observed,
    ProviderCall,
    RunBegun,
    SessionOpened,
    SideCall,
    TaskEnded,
    ToolCalled,
    UserTurn,
    Verdict,
)
from proxy.tail.text import duration, moment, one_line, padded
from scenarios.text import width

WHO_COLUMNS = 11
SESSION_COLUMNS = 40
PLACE_COLUMNS = 4
SERVED, REDUNDANT = "served", "redundant"
_CONFIG = ("mode", "provider", "model", "history", "tools", "on_mismatch")


@dataclass(frozen=True, slots=True)
class Style:
    """How lines look. `session`: say whose a line is. Columns are where a text is cut.

    `zone` None is the local time zone.
    """

    color: bool = False
    session: bool = True
    text_columns: int = 300
    observation_columns: int = 160
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """One line's content: who, in which colour (of `click.style`), what."""

    who: str
    what: str
    color: dict[str, Any]


_DIM: dict[str, Any] = {"dim": True}
_GOOD: dict[str, Any] = {"fg": "green"}
_BAD: dict[str, Any] = {"fg": "red"}
_BOLD: dict[str, Any] = {"bold": True}
_ASIDE: dict[str, Any] = {"fg": "magenta"}


class Printer:
    """Makes lines of events, which must come in order: a new day is a line of its own.

    `sessions` are names that are known to come: their column is made wide enough at once.
    """

    def __init__(self, style: Style, sessions: Iterable[str] = ()) -> None:
        self._style = style
        self._day: date | None = None
        self._session_columns = max((width(_name(session)) for session in sessions), default=0)

    def lines(self, event: Event) -> list[str]:
        when = moment(event.at, self._style.zone)
        said = _said(event, self._style)
        who = self._paint(padded(said.who, WHO_COLUMNS), said.color)
        dull = said.color in (_DIM, _BAD)
        what = self._paint(said.what, said.color if dull else {})
        head = self._paint(f"{when:%H:%M:%S} {self._session(event)}{_place(event)}", _DIM)
        line = f"{head} {who} {what}".rstrip()
        if when.date() == self._day:
            return [line]
        self._day = when.date()
        return [self._paint(f"{self._day:%Y-%m-%d}", _DIM), line]

    def _session(self, event: Event) -> str:
        if not self._style.session:
            return ""
        name = _name(event.place.session or "")
        self._session_columns = max(self._session_columns, width(name))
        return padded(name, self._session_columns) + " "

    def _paint(self, text: str, color: dict[str, Any]) -> str:
        return click.style(text, **color) if self._style.color and color else text


def _name(session: str) -> str:
    return one_line(session, SESSION_COLUMNS)


def _place(event: Event) -> str:
    task, turn = event.place.task, event.place.turn
    if task is None and turn is None:
        return " " * PLACE_COLUMNS
    names = ["?" if task is None else str(task + 1), *([] if turn is None else [str(turn)])]
    return padded(".".join(names), PLACE_COLUMNS)


def _said(event: Event, style: Style) -> _Said:
    columns = style.text_columns
    match event:
        case RunBegun():
            return _Said("run", _run_text(event, style), _BOLD)
        case SessionOpened(place):
            return _Said("session", one_line(place.session or "", columns), _BOLD)
        case UserTurn(_, _, kind, text):
            who = "user reply" if kind == "reply" else "user"
            return _Said(who, one_line(text, columns), {"fg": "cyan", "bold": True})
        case AssistantText(_, _, text):
            return _Said("assistant", one_line(text, columns), _GOOD)
        case ToolCalled(_, _, name, arguments):
            called = f"{one_line(name, columns)} {one_line(arguments or '', columns)}".rstrip()
            return _Said("call", called, {"fg": "yellow"})
        case Observed():
            return _observed(event, style)
        case Verdict():
            return _verdict(event, columns)
        case TaskEnded(_, _, ending):
            return _Said("task", one_line(ending, columns), _GOOD if ending == "closed" else _BAD)
        case ProviderCall(_, _, call):
            return _Said("provider", _call_text(call, columns), _BAD if call.failed else _DIM)
        case HistoryFinding(_, _, turn, kind, detail):
            found = f"turn {turn}: {one_line(kind, columns)}: {one_line(detail, columns)}"
            return _Said("finding", found, _ASIDE)
        case SideCall(_, _, reason, call, answer):
            what = "" if reason == RECORDED else f"{one_line(reason, columns)}; "
            ending = f" → {one_line(answer, style.observation_columns)}" if answer else ""
            who = RECORDED if reason == RECORDED else "side call"
            return _Said(who, f"{what}{_call_text(call, columns)}{ending}", _BAD if call.failed else _ASIDE)
        case AgentFailure(_, _, call):
            return _Said("agent", _call_text(call, columns), _BAD)
        case _:
            assert_never(event)


def _observed(event: Observed, style: Style) -> _Said:
    """An observation; anything but a call's own for the first time says what it is, and errors are errors."""
    text = one_line(event.text, style.observation_columns)
    if event.outcome in (None, SERVED):
        return _Said("observation", text, _DIM)
    marked = f"({one_line(event.outcome, style.observation_columns)}) {text}"
    return _Said("observation", marked, _DIM) if event.outcome == REDUNDANT else _Said("error", marked, _BAD)


def _verdict(event: Verdict, columns: int) -> _Said:
    reason = "" if event.reason is None else f": {one_line(event.reason, columns)}"
    color = {"observe": _DIM, "stop": _BAD}.get(event.decision, _GOOD)
    return _Said(f"step {event.step + 1}", f"{one_line(event.decision, columns)}{reason}", color)


def _run_text(event: RunBegun, style: Style) -> str:
    begun = f"{moment(event.created_at, style.zone):%Y-%m-%d %H:%M:%S}"
    name = "" if event.name is None else f" ({event.name})"
    config = [str(event.config[key]) for key in _CONFIG if event.config.get(key) is not None]
    played = f": {', '.join(config)}" if config else ""
    return one_line(f"{event.place.run}{name} begun {begun}{played}", style.text_columns)


def _call_text(call: Call, columns: int) -> str:
    """`gpt-x 1,234→56 tokens 1.20 s (first 0.41 s)`, or how it failed."""
    parts = [] if call.model is None else [one_line(call.model, columns)]
    if call.failed:
        parts += [] if call.state == "complete" else [one_line(call.state, columns)]
        parts += [] if call.status is None else [f"status {call.status}"]
    if call.input_tokens is not None or call.output_tokens is not None:
        parts.append(f"{_number(call.input_tokens)}→{_number(call.output_tokens)} tokens")
    if call.seconds is not None:
        parts.append(duration(call.seconds))
    if call.first_chunk is not None:
        parts.append(f"(first {duration(call.first_chunk)})")
    if call.error:
        parts.append(f"- {one_line(call.error, columns)}")
    return " ".join(parts)


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
