"""Thresholds on figures: what was asked for, and whether a Run keeps it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, NoReturn

from scenarios.text import clip, visible
from scoring.metrics.accuracy import unscored
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure, Unit
from scoring.metrics.writes import count_name
from scoring.output.tables import quantity
from scoring.report import RunReport
from scoring.verdicts.scorers import EXPERIMENTAL, SCORERS

Kind = Literal["under", "over"]
"""On which side of its threshold a figure misses it."""

EXAMPLE = "session_accuracy=0.10"

_FIGURE = re.compile(r"(?:(?P<scorer>[^:\[\]]*):)?(?P<name>[^:\[\]]*)(?:\[(?P<group>.*)\])?", re.DOTALL)
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d+\.?\d*|\.\d+))(?:e(?P<exponent>[+-]?\d{1,4}))?\s*(?P<percent>%)?",
    re.ASCII | re.IGNORECASE,
)
_SHOWN = 80
_KEYS_SHOWN = 20


class GateError(Exception):
    """A threshold that cannot be judged. One line: what, where, how to mend."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and the threshold that it must not be under, or over; a rate's is a fraction of 0 to 1."""

    scorer: str | None
    name: str
    group: str | None
    threshold: float
    kind: Kind

    @property
    def key(self) -> str:
        """`strict:accuracy_by_label[Chat]`, as it was asked for."""
        scorer = "" if self.scorer is None else f"{self.scorer}:"
        return scorer + Figure(self.name, self.group, None, 0).key


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a Gate in one Run; `passed` is None where the figure has nothing to tell.

    `unscored` Tasks of the Run are in no rate. `beyond` are write faults of the figure's kind in Sessions
    that were not scored: the figure leaves them out, but they were made, and count against the threshold.
    """

    gate: Gate
    log: str
    run: str
    figure: Figure
    passed: bool | None
    unscored: int = 0
    beyond: int = 0


def parse_gate(text: str, kind: Kind) -> Gate:
    """`session_accuracy=0.10`, `strict:accuracy_by_label[Chat]=90%`. Raises GateError."""
    figure, equals, threshold = text.rpartition("=")
    found = _FIGURE.fullmatch(figure.strip())
    if not equals or found is None or not found["name"].strip():
        _refuse(kind, text, f"is no threshold: write FIGURE=VALUE, such as {EXAMPLE}")
    name = found["name"].strip()
    scorer = None if found["scorer"] is None else found["scorer"].strip()
    if scorer is not None:
        _check_scorer(kind, text, scorer)
    if name not in DEFINITIONS:
        near = get_close_matches(name[:_SHOWN], DEFINITIONS, 1)
        cure = f"did you mean {near[0]}?" if near else "--format csv lists them"
        _refuse(kind, text, f"there is no figure {_shown(name)}: {cure}")
    gate = Gate(scorer, name, found["group"], _threshold(kind, text, threshold, DEFINITIONS[name].unit), kind)
    if kind == "under" and DEFINITIONS[name].better == "lower":
        _refuse(kind, text, f"{name} is better when it is lower: use --fail-over")
    return gate


def check(gates: Sequence[Gate], reports: Iterable[RunReport]) -> tuple[Outcome, ...]:
    """Every Gate in every Run. A figure that is exactly at its threshold keeps it.

    A Gate without a scorer means the first scorer's figures, then the Run's own. Raises GateError for
    a figure, a group or a scorer that a Run does not have.
    """
    return tuple(_outcome(gate, report) for report in reports for gate in gates)


def outcome_line(outcome: Outcome) -> str:
    """`session_accuracy is 8.0 % (2 of 25), under the threshold of 10.0 %`."""
    gate, figure = outcome.gate, outcome.figure
    unit = DEFINITIONS[gate.name].unit
    bound, key = Figure(gate.name, None, gate.threshold, 1), visible(gate.key)
    if figure.value is None or outcome.passed is None:
        return f"{key} has nothing to tell, as it is over none; the threshold is {quantity(bound, unit)}"
    value, threshold = quantity(figure, unit), quantity(bound, unit)
    if value == threshold and figure.value != gate.threshold:
        value, threshold = _in_full(figure.value, unit), _in_full(gate.threshold, unit)
    counts = f"n = {figure.n}" if figure.successes is None else f"{figure.successes} of {figure.n}"
    more = f", and {outcome.beyond} in sessions that were not scored" if outcome.beyond else ""
    side = f"not {gate.kind}" if outcome.passed else gate.kind
    missing = ""
    if outcome.unscored:
        missing = f"; {outcome.unscored} {'task was' if outcome.unscored == 1 else 'tasks were'} not scored"
    return f"{key} is {value} ({counts}){more}, {side} the threshold of {threshold}{missing}"


def outcome_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each; which Run it is about stands before it where there are several."""
    several = len({(it.log, it.run) for it in outcomes}) > 1
    return [
        (f"{visible(it.log)}, run {visible(it.run)}: " if several else "") + outcome_line(it)
        for it in outcomes
    ]


def _check_scorer(kind: Kind, text: str, scorer: str) -> None:
    usable = [name for name in SCORERS if name not in EXPERIMENTAL]
    if scorer in EXPERIMENTAL:
        _refuse(kind, text, f"{_why_experimental(scorer)}: choose {' or '.join(usable)}")
    if scorer not in SCORERS:
        _refuse(kind, text, f"there is no scorer {_shown(scorer)}: choose {' or '.join(usable)}")


def _threshold(kind: Kind, text: str, told: str, unit: Unit) -> float:
    found = _NUMBER.fullmatch(told.strip())
    number = math.inf
    if found is not None:
        shift = -2 if found["percent"] else 0
        number = float(f"{found['digits']}e{int(found['exponent'] or 0) + shift}")
    if found is None or not math.isfinite(number):
        _refuse(kind, text, f"{_shown(told.strip())!r} is no finite number: write it as 0.10 or 10%")
    if found["percent"] and unit not in ("rate", "ratio"):
        _refuse(kind, text, f"the figure is in {unit}, not in per cent: leave the % away")
    if unit == "rate" and not 0 <= number <= 1:
        _refuse(kind, text, "the figure is a rate, from 0 to 1: write 0.10 or 10%")
    return number


def _outcome(gate: Gate, report: RunReport) -> Outcome:
    figure, beyond = _figure(gate, report), _beyond(gate, report)
    if beyond and figure.value is None:
        figure = replace(figure, value=0.0)
    passed: bool | None = None
    if figure.value is not None:
        value = figure.value + beyond
        missed = value < gate.threshold if gate.kind == "under" else value > gate.threshold
        passed = not missed
    left_out = max(unscored(scored.sessions).tasks for scored in report.scored)
    return Outcome(gate, report.log, report.run, figure, passed, left_out, beyond)


def _beyond(gate: Gate, report: RunReport) -> int:
    left_out = report.unscored_sessions
    return sum(
        count_name(it.kind) == gate.name and (it.session, it.epoch) in left_out for it in report.writes
    )


def _figure(gate: Gate, report: RunReport) -> Figure:
    figures = {it.group: it for it in _pool(gate, report) if it.name == gate.name}
    if gate.group in figures:
        return figures[gate.group]
    where = f"run {_shown(report.run)} of {_shown(report.log)}"
    if figures:
        keys = [_shown(it.key) for it in figures.values()]
        more = [f"{len(keys) - _KEYS_SHOWN} more"] if len(keys) > _KEYS_SHOWN else []
        listed = ", ".join([*keys[:_KEYS_SHOWN], *more])
        _refuse(gate.kind, gate.key, f"{where} does not have it; it has {listed}")
    if gate.scorer is not None and any(it.name == gate.name for it in report.figures):
        _refuse(gate.kind, gate.key, f"{gate.name} is of no scorer: leave {gate.scorer}: away")
    _refuse(gate.kind, gate.key, f"{where} does not have this figure; --format csv lists those that it has")


def _pool(gate: Gate, report: RunReport) -> Sequence[Figure]:
    """The figures that a Gate can mean."""
    if gate.scorer is None:
        first = report.scored[0]
        if first.scorer.name in EXPERIMENTAL:
            reason = _why_experimental(first.scorer.name)
            _refuse(gate.kind, gate.key, f"{reason}: name another --scorer before it")
        return (*first.figures, *report.figures, *_null_figures(report, first.scorer.name))
    for scored in report.scored:
        if scored.scorer.name == gate.scorer:
            return (*scored.figures, *_null_figures(report, gate.scorer))
    _refuse(gate.kind, gate.key, f"the run is not scored by {gate.scorer}: add --scorer {gate.scorer}")


def _null_figures(report: RunReport, scorer: str) -> Sequence[Figure]:
    own = [it for agent in report.null_agents for it in agent.figures if it.scorer == scorer]
    return [figure for it in own for figure in (it.session_accuracy, it.task_accuracy)]


def _why_experimental(scorer: str) -> str:
    return f"{scorer} is a reconstruction that nobody has confirmed, so that nothing is gated on it"


def _in_full(value: float, unit: Unit) -> str:
    return f"{100 * value:.10g} %" if unit == "rate" else f"{value:.12g}"


def _shown(text: str) -> str:
    return clip(visible(text), _SHOWN)


def _refuse(kind: Kind, text: str, why: str) -> NoReturn:
    raise GateError(f"--fail-{kind} {_shown(text)}: {why}")
