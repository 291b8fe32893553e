"""Task verdicts as JUnit XML, for the test reports of CI servers. Pure: values in, text out.

A Session is a test suite and a Task a test case. A wrong Task is a failure; one that was not scored,
for a reason that is not the agent's, is an error, so that the two are never mixed up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree

from scenarios.text import clip, visible
from scoring.gates import Outcome, outcome_lines
from scoring.output.document import evidence_document
from scoring.output.evidence_text import why_wrong
from scoring.output.faulty_writes import write_lines
from scoring.output.tables import from_one
from scoring.report import RunReport, Scored, TaskRow, task_rows
from scoring.types import CORRECT, TaskScore

NOT_SCORED = "infrastructure"
"""The type of an error."""

WRONG = "wrong"
"""The type of a failure that no rule is named for."""

_LINE = 300


def junit_text(reports: Sequence[RunReport], outcomes: Sequence[Outcome] = ()) -> str:
    """One XML document for all Runs, by the verdicts of the first scorer; a suite for the thresholds.

    There are no times: what a Task took is the provider's.
    """
    root = ElementTree.Element("testsuites", {"name": "wildproxy score"})
    for report in reports:
        root.extend(_suite(report, report.scored[0], rows) for rows in _by_session(report))
    if outcomes:
        root.append(_thresholds(outcomes))
    totals = {
        what: sum(int(suite.get(what, 0)) for suite in root) for what in ("tests", "failures", "errors")
    }
    root.attrib.update({what: str(total) for what, total in totals.items()})
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _thresholds(outcomes: Sequence[Outcome]) -> ElementTree.Element:
    counts = {
        "tests": len(outcomes),
        "failures": sum(it.passed is False for it in outcomes),
        "errors": sum(it.passed is None for it in outcomes),
        "skipped": 0,
    }
    suite = ElementTree.Element("testsuite", {"name": "thresholds", **{k: str(v) for k, v in counts.items()}})
    for it, line in zip(outcomes, outcome_lines(outcomes), strict=True):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": "thresholds", "name": _line(f"--fail-{it.gate.kind} {it.gate.key}")},
        )
        if it.passed is not True:
            kind, attributes = "failure", {"type": "threshold", "message": _line(line)}
            if it.passed is None:
                kind, attributes = "error", attributes | {"type": NOT_SCORED}
            ElementTree.SubElement(case, kind, attributes)
    return suite


def _by_session(report: RunReport) -> list[list[TaskRow]]:
    sessions: list[list[TaskRow]] = []
    for row in task_rows(report):
        if row.position == 0:
            sessions.append([])
        sessions[-1].append(row)
    return sessions


def _suite(report: RunReport, scored: Scored, rows: Sequence[TaskRow]) -> ElementTree.Element:
    name, session = scored.scorer.name, rows[0].session
    labels = [row.scores[name].label for row in rows]
    counts = {
        "tests": len(labels),
        "failures": sum(label not in (None, CORRECT) for label in labels),
        "errors": labels.count(None),
    }
    suite = ElementTree.Element(
        "testsuite",
        {"name": visible(session.session), **{what: str(n) for what, n in counts.items()}, "skipped": "0"},
    )
    properties = ElementTree.SubElement(suite, "properties")
    told = {
        "log": report.log,
        "run": report.run,
        "scenario": session.scenario.id,
        "hash": session.scenario.hash,
        "epoch": str(session.epoch),
        "scorer": f"{name} {scored.scorer.version}",
    }
    if report.modes.banner is not None:
        told["note"] = report.modes.banner
    for key, value in told.items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": visible(value)})
    for row in rows:
        case = _case(row, row.scores[name])
        place = session.session, session.epoch, row.position
        writes = [it for it in report.writes if (it.session, it.epoch, it.task) == place]
        if writes:
            ElementTree.SubElement(case, "system-out").text = "\n".join(write_lines(writes, None))
        suite.append(case)
    return suite


def _case(row: TaskRow, score: TaskScore) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        {
            "classname": visible(row.session.scenario.id),
            "name": f"task {row.position + 1}: {visible(row.task.label)}",
        },
    )
    if score.label is None:
        reason = _line(score.reason or "not scored")
        ElementTree.SubElement(case, "error", {"type": NOT_SCORED, "message": reason})
    elif score.label != CORRECT:
        rule = WRONG if score.evidence is None else visible(score.evidence.rule)
        failure = ElementTree.SubElement(case, "failure", {"type": rule, "message": _message(score)})
        failure.text = _details(score)
    return case


def _message(score: TaskScore) -> str:
    return _line(why_wrong(score) or WRONG)


def _details(score: TaskScore) -> str:
    """All that is known; the evidence as in the JSON document, but with steps and calls counted from 1."""
    parts = [from_one(score.reason or "")]
    if score.verdict is not None:
        parts.append(f"verdict: {score.verdict}")
    if score.evidence is not None:
        told = evidence_document(score.evidence)
        told |= {key: told[key] + 1 for key in ("step", "call") if told[key] is not None}
        parts.append(json.dumps(told, ensure_ascii=False, indent=2))
    return "\n".join(visible(part, keep="\n") for part in parts if part)


def _line(text: str) -> str:
    return clip(visible(text), _LINE)
