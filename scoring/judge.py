"""Verdicts on replies that were recorded elsewhere, one case per line. Pure.

A case is a JSON object with `tools` (as a request carries them), `answer_list` (the
Reference's nodes, as a scenario file has them) and `replies` (assistant messages in
order); `case` names it in the output. Everything else in it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from scenarios.load import ScenarioError, parse_record
from scenarios.replies import read_reply
from scenarios.types import Reply, Scenario
from scoring.report import verdict
from scoring.types import JSON
from scoring.wildtoolbench import score_task

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TOO_DEEP = "nested too deeply to be read"


class CaseError(Exception):
    """A case that cannot be judged: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def judge_lines(lines: Iterable[bytes]) -> Iterator[JSON]:
    """One verdict or error for each line that is not blank, as the lines come."""
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if text.strip():
            yield judge_line(text, number)


def judge_line(line: bytes, number: int) -> JSON:
    """The verdict on one line, or `{case, line, error}` if it is broken. Never raises."""
    case: JSON = {}
    try:
        case = _read_object(line)
        return judge_case(case)
    except CaseError as error:
        return {"case": _name(case), "line": number, "error": str(error)}


def judge_case(case: Mapping[str, Any]) -> JSON:
    """The verdict on one case, ready to be written as JSON. Raises CaseError."""
    scenario = _scenario(case)
    score = score_task(scenario.tools, scenario.tasks[0].nodes, _replies(case))
    return {"case": _name(case), **verdict(score)}


def _scenario(case: Mapping[str, Any]) -> Scenario:
    """The case as a Scenario of one Task, so that the loader checks tools and nodes."""
    record = {
        "id": "case",
        "env_info": "none",
        "tools": _field(case, "tools"),
        "tasks": ["none"],
        "answer_list": [_field(case, "answer_list")],
    }
    try:
        return parse_record(record)
    except ScenarioError as error:
        raise CaseError(error.field.replace("answer_list[0]", "answer_list", 1), error.reason) from error
    except RecursionError as error:
        raise CaseError("", TOO_DEEP) from error


def _read_object(line: bytes) -> JSON:
    try:
        value = json.loads(line.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise CaseError("", f"not UTF-8 text: {error.reason} at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise CaseError("", f"not JSON (column {error.colno}: {error.msg})") from error
    except ValueError as error:
        raise CaseError("", f"not usable: {error}") from error
    except RecursionError as error:
        raise CaseError("", TOO_DEEP) from error
    if not isinstance(value, dict):
        raise CaseError("", "not a JSON object; a case has tools, answer_list and replies")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _field(case: Mapping[str, Any], field: str) -> Any:
    if field not in case:
        raise CaseError(field, "is missing; a case has tools, answer_list and replies")
    return case[field]


def _replies(case: Mapping[str, Any]) -> list[Reply]:
    messages = _field(case, "replies")
    if not isinstance(messages, list):
        raise CaseError("replies", "must be a list of assistant messages")
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            raise CaseError(f"replies[{i}]", "must be an assistant message (a JSON object)")
    return [read_reply(message) for message in messages]


def _name(case: Mapping[str, Any]) -> str | int | None:
    name = case.get("case")
    return name if isinstance(name, str | int) else None
