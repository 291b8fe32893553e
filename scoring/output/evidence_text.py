"""Why Tasks are wrong, and where scorers disagree, as lines of text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from scenarios.strict.faults import Fault
from scenarios.text import clip, visible
from scoring.output.tables import from_one, worded
from scoring.report import RunReport, TaskRow, task_rows
from scoring.types import CORRECT, Evidence, TaskScore

LINE = 160
VALUE = 60


def disagreement_lines(report: RunReport, limit: int | None) -> list[str]:
    """The Tasks on which two scorers have different verdicts, each with the reason of the stricter one."""
    if len(report.scored) < 2:
        return []
    rows = [row for row in task_rows(report) if row.disagrees]
    if not rows:
        return ["The scorers agree on every task."]
    shown = rows if limit is None else rows[:limit]
    lines = [f"The scorers disagree on {len(rows)} of {sum(1 for _ in task_rows(report))} tasks"]
    lines += [f"  {line}" for row in shown for line in _disagreement(row)]
    if len(rows) > len(shown):
        lines.append(f"  and {len(rows) - len(shown)} more: --verbose, or --format json, has them all")
    return lines


def evidence_lines(report: RunReport) -> list[str]:
    """For every wrong Task what diverged first, by each scorer that calls it wrong."""
    rows = wrong_rows(report)
    return [wrong_title(report, rows), *(line for row in rows for line in _wrong(row))] if rows else []


def wrong_rows(report: RunReport) -> list[TaskRow]:
    """The Tasks that a scorer calls wrong, or right after errors alone."""
    return [row for row in task_rows(report) if any(map(is_wrong, row.scores.values()))]


def wrong_title(report: RunReport, rows: Sequence[TaskRow]) -> str:
    """What is true of all these Tasks: some were brought to their end, some are right for one scorer."""
    title = "Wrong tasks" if report.modes.banner is None else "Wrong tasks, and others with a wrong step"
    agreed = all(is_wrong(score) for row in rows for score in row.scores.values())
    return title if agreed else f"{title}, by at least one scorer"


def is_wrong(score: TaskScore) -> bool:
    return score.label not in (None, CORRECT)


def place_of(row: TaskRow) -> str:
    return f"{visible(row.session.session)}, task {row.position + 1}"


def evidence_line(evidence: Evidence) -> str:
    """`step 2, args.number at $.amount: ...` in one line; steps count from 1."""
    path = f" at {visible(evidence.faults[0].path)}" if evidence.faults else ""
    return f"step {evidence.step + 1}, {evidence.rule}{path}: {_short(evidence.message)}"


def why_wrong(score: TaskScore) -> str:
    """What its evidence says in one line, else its reason; Steps count from 1."""
    return from_one(score.reason or "") if score.evidence is None else evidence_line(score.evidence)


def _disagreement(row: TaskRow) -> Iterator[str]:
    labels = ", ".join(f"{name} {score.label or 'not scored'}" for name, score in row.scores.items())
    yield f"{place_of(row)}: {labels}"
    for name, score in row.scores.items():
        if score.label != CORRECT:
            yield f"  {name}: {_short(why_wrong(score))}"


def _wrong(row: TaskRow) -> Iterator[str]:
    wrong = {name: score for name, score in row.scores.items() if is_wrong(score)}
    yield f"  {place_of(row)} ({visible(row.task.label)})"
    for name, score in wrong.items():
        error_class = row.classes[name]
        yield f"    {name}{_verdict(score)}" + (f" ({error_class.name})" if error_class else "")
        if score.evidence is None:
            yield f"      {_short(why_wrong(score))}"
        else:
            yield from (f"      {line}" for line in _evidence(score.evidence))


def _verdict(score: TaskScore) -> str:
    """The verdict of a Task that goes on after a wrong Step; its label too where the two differ."""
    if score.verdict is None:
        return ""
    told = worded(score.verdict).lower()
    return f": {told} as played, but its label is {score.label}" if score.verdict == CORRECT else f": {told}"


def _evidence(evidence: Evidence) -> Iterator[str]:
    yield evidence_line(evidence)
    if evidence.allowed:
        yield "allowed: " + _short(" or ".join(" + ".join(names) for names in evidence.allowed))
    if evidence.nearest is not None:
        nearest = evidence.nearest
        named = nearest.action if nearest.name is None else f"{nearest.name}({_value(nearest.arguments)})"
        yield _short(f"nearest: node {nearest.node}, {named}")
    for fault in evidence.faults:
        yield from _fault(fault)


def _fault(fault: Fault) -> Iterator[str]:
    values = f"expected {_value(fault.expected)}, got {_value(fault.actual)}"
    yield f"{visible(fault.path)}: {values} [{fault.rule}]"
    forms = (fault.expected_form, fault.actual_form)
    if forms != (fault.expected, fault.actual) and forms != (None, None):
        yield f"  compared as {_value(forms[0])} and {_value(forms[1])}"


def _value(value: Any) -> str:
    return clip(visible(json.dumps(value, ensure_ascii=False, default=str)), VALUE)


def _short(text: str) -> str:
    return clip(visible(text), LINE)
