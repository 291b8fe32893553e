"""Events as lines, a line for each Step whatever its events, or one for each event. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from proxy.tail.events import (
    RECORDED,
    AssistantText,
    Call,
    Observed,
    ProviderCall,
    SideCall,
    ToolCalled,
    Verdict,
)
from proxy.tail.lines import SERVED, Cost, Line, Told, cost_of, provider_line, whole_lines

NAMELESS, NOTHING = "(no name)", "(nothing)"


@dataclass(slots=True)
class _Step:
    """What there is of a Step so far."""

    call: Call | None = None
    text: str = ""
    names: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)


class Compact:
    """A line for each Step, user turn, summary, failure and finding."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str | None, str | None], _Step] = {}
        self._recorded: tuple[SideCall, _Step] | None = None

    def lines(self, event: Told) -> Iterator[Line]:
        """The lines that are due; those of a Step when it is decided."""
        if not isinstance(event, AssistantText | ToolCalled):
            yield from self.rest()
        key = (event.place.run, event.place.session)
        match event:
            case AssistantText(_, _, text):
                self._step(key).text = text
            case ToolCalled(_, _, name, _):
                self._step(key).names.append(name)
            case Observed(_, _, _, outcome):
                if key in self._steps:
                    self._steps[key].outcomes.append(outcome or SERVED)
            case ProviderCall(_, _, call) if not call.failed:
                if (before := self._steps.pop(key, None)) and before.call:
                    yield provider_line(event.place, event.at, before.call)
                self._steps[key] = _Step(call)
            case Verdict():
                yield _step_line(event, self._steps.pop(key, _Step()))
            case SideCall(_, _, reason, call, _) if reason == RECORDED and not call.failed:
                self._recorded = (event, self._steps.setdefault(key, _Step(call)))
            case _:
                yield from whole_lines(event)

    def rest(self) -> Iterator[Line]:
        """What was held back: an exchange that was passed through has no event at its end."""
        if self._recorded is not None:
            event, step = self._recorded
            self._recorded = None
            self._steps.pop((event.place.run, event.place.session), None)
            yield _recorded_line(event, step)

    def _step(self, key: tuple[str | None, str | None]) -> _Step:
        return self._steps.setdefault(key, _Step())


class Wide:
    """A line for each event."""

    def lines(self, event: Told) -> Iterator[Line]:
        yield from whole_lines(event)

    def rest(self) -> Iterator[Line]:
        yield from ()


def _step_line(event: Verdict, step: _Step) -> Line:
    cost = Cost() if step.call is None else cost_of(step.call)
    names = _counted(name or NAMELESS for name in step.names)
    if odd := _counted(it for it in step.outcomes if it != SERVED):
        names = f"{names}; {odd}"
    kind, text = (
        ("calls", names) if step.names else ("asks" if event.decision == "ask" else "says", step.text)
    )
    if event.decision == "stop":
        return Line(event.at, event.place, kind, text or NOTHING, "wrong", "bad", "wrong", cost)
    if not step.names and not event.reason:
        return Line(event.at, event.place, kind, text, "asks" if kind == "asks" else "", cost=cost)
    mark, color = ("odd", "odd") if odd or event.reason else ("calls", "")
    return Line(event.at, event.place, kind, text, mark, color, cost=cost)


def _recorded_line(event: SideCall, step: _Step) -> Line:
    cost = cost_of(event.call)
    if step.names:
        names = _counted(name or NAMELESS for name in step.names)
        return Line(event.at, event.place, "calls", names, "calls", cost=cost)
    if step.text:
        return Line(event.at, event.place, "says", step.text, cost=cost)
    return Line(event.at, event.place, "says", NOTHING, "odd", "odd", cost=cost)


def _counted(words: Iterable[str]) -> str:
    """`a, b ×2`: each word once, in the order in which it first came."""
    return ", ".join(f"{word} ×{n}" if n > 1 else word for word, n in Counter(words).items())
