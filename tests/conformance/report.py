"""Results as a table for people, for a README, or as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance.probe import Result

Format = Callable[[Sequence[Result]], str]


def table(results: Sequence[Result]) -> str:
    width = max((len(it.probe.name) for it in results), default=0)
    lines = [f"{it.probe.name:<{width}}  {_verdict(it):<4}  {it.seen}" for it in results]
    return "\n".join([*lines, "", _sum(results)])


def markdown(results: Sequence[Result]) -> str:
    head = ["| probe | result | what was seen | what must be | source |", "|---|---|---|---|---|"]
    rows = [
        (it.probe.name, _verdict(it), _cell(it.seen), _cell(it.probe.claim), _cell(it.probe.source))
        for it in results
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*head, *lines, "", _sum(results)])


def as_json(results: Sequence[Result]) -> str:
    return json.dumps([_record(it) for it in results], ensure_ascii=False, indent=2)


FORMATS: dict[str, Format] = {"table": table, "markdown": markdown, "json": as_json}


def _verdict(result: Result) -> str:
    return "pass" if result.passed else "FAIL"


def _sum(results: Sequence[Result]) -> str:
    return f"{sum(it.passed for it in results)} of {len(results)} probes pass"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _record(result: Result) -> dict[str, Any]:
    return {
        "probe": result.probe.name,
        "mode": result.mode,
        "passed": result.passed,
        "seen": result.seen,
        "claim": result.probe.claim,
        "source": result.probe.source,
    }
