"""Events as lines, one by one: who, what, what it cost. Pure; `shapes` makes text of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from proxy.tail.events import (
    RECORDED,
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
from proxy.tail.summary import SessionSummary, TaskSummary
from proxy.terminal.text import count, seconds_text

SERVED, REDUNDANT = "served", "redundant"
_CONFIG = ("mode", "provider", "model", "history", "tools", "on_mismatch")

Told = Event | TaskSummary | SessionSummary


@dataclass(frozen=True, slots=True)
class Cost:
    """None: not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `kind` is one word; `mark` and `color` are meanings (of `terminal.look`).

    `verdict`: `right`, `wrong`, `unscored`, `failed`, or None. `text` is whole, and anybody's.
    """

    at: float
    place: Place
    kind: str
    text: str
    mark: str = ""
    color: str = ""
    verdict: str | None = None
    cost: Cost = Cost()


_MARKS = {"right": "✓", "wrong": "✗", "unscored": "-", None: "?"}
_ERRED = "~"

RULES = frozenset({"run", "proxy"})
"""Kinds of lines that are about all Sessions that follow."""


def whole_lines(event: Told) -> Iterator[Line]:
    """An event by itself; nothing for the end of a Task, which has a summary."""
    if not isinstance(event, TaskEnded):
        yield _whole(event)


def _whole(event: Told) -> Line:
    place, at = event.place, event.at
    match event:
        case RunBegun():
            return Line(at, place, "run", _run_text(event), color="rule")
        case ProxyStarted():
            return Line(at, place, "proxy", "the proxy was started again", color="rule")
        case SessionOpened():
            return Line(at, place, "begin", "the session begins", color="dim")
        case UserTurn(_, _, kind, text):
            return Line(at, place, "reply" if kind == "reply" else "user", text, color="user")
        case AssistantText(_, _, text):
            return Line(at, place, "says", text)
        case ToolCalled(_, _, name, arguments):
            return Line(at, place, "call", f"{name} {arguments or ''}".rstrip(), "calls")
        case Observed():
            return _observed(event)
        case Verdict():
            return _verdict(event)
        case ProviderCall(_, _, call):
            return provider_line(place, at, call)
        case HistoryFinding(_, _, turn, what, detail):
            return Line(at, place, "finding", f"turn {turn}: {what}: {detail}", "odd", "odd")
        case SideCall(_, _, reason, call, answer):
            if reason == RECORDED:
                return provider_line(place, at, call)
            return _called(place, at, "side", call, f"{reason}: ", f" → {answer}" if answer else "")
        case AgentFailure(_, _, call):
            return _called(place, at, "agent", call, "", "")
        case TaskSummary():
            return _task(event)
        case SessionSummary():
            return _session(event)
        case TaskEnded(_, _, ending):
            return Line(at, place, "task", ending)
        case _:
            assert_never(event)


def _observed(event: Observed) -> Line:
    """Anything but a call's own observation for the first time says what it is, and errors are errors."""
    if event.outcome in (None, SERVED):
        return Line(event.at, event.place, "told", event.text, "told", "dim")
    text = f"({event.outcome}) {event.text}"
    if event.outcome == REDUNDANT:
        return Line(event.at, event.place, "told", text, "odd", "dim")
    return Line(event.at, event.place, "error", text, "odd", "odd")


def _verdict(event: Verdict) -> Line:
    reason = "" if event.reason is None else f": {event.reason}"
    text = f"{event.step + 1} {event.decision}{reason}"
    if event.decision == "stop":
        return Line(event.at, event.place, "step", text, "wrong", "bad", "wrong")
    if event.reason:
        return Line(event.at, event.place, "step", text, "odd", "odd")
    return Line(event.at, event.place, "step", text, "asks" if event.decision == "ask" else "", "dim")


def provider_line(place: Place, at: float, call: Call) -> Line:
    return _called(place, at, "llm", call, "", "", color="dim")


def _called(
    place: Place, at: float, kind: str, call: Call, before: str, after: str, color: str = "odd"
) -> Line:
    text = f"{before}{_call_text(call)}{after}"
    if call.failed:
        return Line(at, place, kind, text, "odd", "bad", "failed", cost_of(call))
    return Line(at, place, kind, text, "", color, None, cost_of(call))


def _call_text(call: Call) -> str:
    """`gpt-x, first chunk 0.41s`; `status 429: ...` or `client_abort: ...` if it failed."""
    parts = [] if call.model is None or call.failed else [call.model]
    if call.status is not None and call.status >= 400:
        parts.append(f"status {call.status}")
    elif call.failed:
        parts.append(call.state)
    if call.first_chunk is not None and not call.failed:
        parts.append(f"first chunk {seconds_text(call.first_chunk)}")
    return ": ".join([", ".join(parts), *([_error(call, call.error)] if call.error else [])])


def _error(call: Call, text: str) -> str:
    """What is said of a failure, without the status once more: providers name it in their own words."""
    for again in (f"{call.status}: ", f"HTTP {call.status}: "):
        text = text.removeprefix(again)
    return text


def _task(event: TaskSummary) -> Line:
    """`right, 3/2 steps, Parallel`: three were taken, two would do; `wrong at step 2/3: why, Mixed`."""
    word = {None: event.ending, "unscored": "not scored"}.get(event.verdict, event.verdict or "")
    if event.after_errors:
        word += " after errors"
    taken = "" if event.optimal is None else f"{event.steps}/{event.optimal} steps"
    if event.step is not None:
        word += f" at step {event.step}/{event.optimal}"
        taken = "" if event.step == event.steps else f"{event.steps} steps"
    released = "" if event.released is None else f"by the released rules {event.released}"
    label = event.label.removesuffix("-Tool").removesuffix(" Multi")
    if event.why:
        word += f": {event.why}"
    return _summed(event, "task", ", ".join(it for it in (word, taken, label, released) if it))


def _session(event: SessionSummary) -> Line:
    marks = [_MARKS[it] for it in event.tasks]
    for number in event.after_errors:
        marks[number] = _ERRED
    more = f", {len(event.after_errors)} after errors" if event.after_errors else ""
    text = f"{event.right}/{len(event.tasks)} tasks right{more} {''.join(marks)}"
    if event.verdict is None:
        text = "the session is over"
    return _summed(event, "session", text)


def _summed(event: TaskSummary | SessionSummary, kind: str, text: str) -> Line:
    mark, color = {"right": ("right", "good"), "wrong": ("wrong", "bad")}.get(
        event.verdict or "", ("odd", "odd")
    )
    if event.verdict is None:
        mark, color = "", ""
    if event.verdict == "right" and event.after_errors:
        mark, color = "erred", "odd"
    spent = event.spent
    cost = Cost() if spent is None else Cost(spent.input_tokens, spent.output_tokens, spent.seconds)
    return Line(event.at, event.place, kind, text, mark, color, event.verdict, cost)


def cost_of(call: Call) -> Cost:
    return Cost(call.input_tokens, call.output_tokens, call.seconds)


def _run_text(event: RunBegun) -> str:
    name = "" if event.name is None else f" ({event.name})"
    names = _CONFIG[:3] if event.config.get("mode") == "record" else _CONFIG
    config = [str(event.config[name]) for name in names if event.config.get(name) is not None]
    return " ".join(["run", f"{event.place.run}{name}", *(["· " + " · ".join(config)] if config else [])])


def cost_text(cost: Cost, *, whole: bool) -> tuple[str, str]:
    """(tokens, seconds) in short; `whole`: tokens in all, not in and out."""
    tokens = (cost.input_tokens, cost.output_tokens)
    seconds = "" if cost.seconds is None else seconds_text(cost.seconds)
    if tokens == (None, None):
        return "", seconds
    if whole:
        return count((tokens[0] or 0) + (tokens[1] or 0)), seconds
    return "→".join("?" if it is None else count(it) for it in tokens), seconds


def place_text(place: Place) -> str:
    """TASK.TURN, both from 1; `` if it is in none."""
    if place.task is None and place.turn is None:
        return ""
    return ".".join(
        [
            "?" if place.task is None else str(place.task + 1),
            *([] if place.turn is None else [str(place.turn)]),
        ]
    )
