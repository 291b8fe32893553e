"""Verdicts on replies and on conversations that were recorded elsewhere, one case per line. Pure.

A case is a JSON object. One Task has `tools` (as a request carries them), `answer_list` (the
Reference's nodes, as a scenario file has them), `replies` (assistant messages in order) and, if
wanted, `annotations` (as in a scenario file). A conversation has `scenario` (an id) and `messages`
(OpenAI chat form), and `task` (from 1) if it is of that Task alone. `case` names it in the output, or
else `session`. Everything else in it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from scenarios.annotations import ANNOTATIONS
from scenarios.load import ScenarioError, parse_record
from scenarios.problems import kind_of, short
from scenarios.replies import read_reply
from scenarios.types import Reply, Scenario
from scoring.conversations import ConversationError, trajectory
from scoring.output.document import verdict
from scoring.report import explained
from scoring.types import JSON, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts.live import with_verdicts
from scoring.verdicts.scorers import DEFAULT, SCORERS

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TOO_DEEP = "nested too deeply to be read"
KINDS = "a case has tools, answer_list and replies, or scenario and messages"
IDS_SHOWN = 8


class CaseError(Exception):
    """A case that cannot be judged: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def judge_lines(
    lines: Iterable[bytes],
    scorers: Sequence[str] = DEFAULT,
    scenarios: Mapping[str, Scenario] = {},
) -> Iterator[JSON]:
    """One verdict or error for each line that is not blank, as the lines come.

    `scorers` are names, `scenarios` by id those that conversations may be of.
    """
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if text.strip():
            yield judge_line(text, number, scorers, scenarios)


def judge_line(
    line: bytes,
    number: int,
    scorers: Sequence[str] = DEFAULT,
    scenarios: Mapping[str, Scenario] = {},
) -> JSON:
    """The verdict on one line, or `{case, line, error}` if it is broken. Never raises."""
    case: JSON = {}
    try:
        case = _read_object(line)
        return judge_case(case, scorers, scenarios)
    except CaseError as error:
        return {"case": _name(case), "line": number, "error": str(error)}


def judge_case(
    case: Mapping[str, Any],
    scorers: Sequence[str] = DEFAULT,
    scenarios: Mapping[str, Scenario] = {},
) -> JSON:
    """The verdict on one case, ready to be written as JSON. Raises CaseError.

    Under `scores` stands what each scorer says; of a conversation Task by Task, with the `verdict` of
    a Task that was brought to its end after errors.
    """
    if "replies" in case and "messages" in case:
        raise CaseError("", "has both replies and messages; " + KINDS)
    try:
        if "messages" in case:
            return _judge_conversation(case, scorers, scenarios)
        return _judge_task(case, scorers)
    except RecursionError as error:
        raise CaseError("", TOO_DEEP) from error


def _judge_task(case: Mapping[str, Any], scorers: Sequence[str]) -> JSON:
    scenario, replies = _scenario(case), _replies(case)
    played = Trajectory("case", 1, scenario, (TaskTrajectory(tuple(replies)),))
    scores = {name: verdict(explained(SCORERS[name], played).tasks[0]) for name in scorers}
    return {"case": _name(case), "scores": scores}


def _judge_conversation(
    case: Mapping[str, Any], scorers: Sequence[str], scenarios: Mapping[str, Scenario]
) -> JSON:
    scenario = _named_scenario(case, scenarios)
    task = _task_number(case, scenario)
    try:
        played = trajectory(scenario, case["messages"], case=str(_name(case)), task=task)
    except ConversationError as error:
        raise CaseError(error.field, error.reason) from error
    scores = {
        name: with_verdicts(played, explained(SCORERS[name], played), goes_on=True, rule=SCORERS[name].rule)
        for name in scorers
    }
    numbers = range(1, len(scenario.tasks) + 1) if task is None else (task,)
    return {
        "case": _name(case),
        "scenario": scenario.id,
        "tasks": [
            {
                "task": number,
                "scores": {name: _task_verdict(score.tasks[number - 1]) for name, score in scores.items()},
            }
            for number in numbers
        ],
        "session_correct": {name: score.correct if score.scored else None for name, score in scores.items()},
    }


def _task_verdict(score: TaskScore) -> JSON:
    """What is said of a Task that nobody stopped at a wrong Step."""
    return {
        **verdict(score),
        "verdict": score.verdict,
        "redundant_calls": score.live and score.live.redundant,
        "unmatched_calls": score.live and score.live.unmatched,
        "steps_taken": score.live and score.live.steps,
    }


def _named_scenario(case: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> Scenario:
    name = _field(case, "scenario")
    if not isinstance(name, str):
        raise CaseError("scenario", f"must be the id of a scenario, not {kind_of(name)}")
    if name not in scenarios:
        near = get_close_matches(name, scenarios, n=3)
        known = sorted(scenarios)[:IDS_SHOWN]
        more = ", ..." if len(scenarios) > IDS_SHOWN else ""
        hint = (
            f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known) or 'none'}{more}"
        )
        raise CaseError("scenario", f"{short(name)} is in no file of --scenarios; {hint}")
    return scenarios[name]


def _task_number(case: Mapping[str, Any], scenario: Scenario) -> int | None:
    number, count = case.get("task"), len(scenario.tasks)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= count:
        raise CaseError("task", f"must be a number from 1 to {count}: {scenario.id} has so many tasks")
    return number


def _scenario(case: Mapping[str, Any]) -> Scenario:
    """The case as a Scenario of one Task, so that the loader checks tools and nodes."""
    record = {
        "id": "case",
        "env_info": "none",
        "tools": _field(case, "tools"),
        "tasks": ["none"],
        "answer_list": [_field(case, "answer_list")],
    }
    if ANNOTATIONS in case:
        record[ANNOTATIONS] = case[ANNOTATIONS]
    try:
        return parse_record(record)
    except ScenarioError as error:
        raise CaseError(error.field.replace("answer_list[0]", "answer_list", 1), error.reason) from error


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
        raise CaseError("", f"not a JSON object; {KINDS}")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _field(case: Mapping[str, Any], field: str) -> Any:
    if field not in case:
        raise CaseError(field, f"is missing; {KINDS}")
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
    """What the case goes by; an exported chat by its Session."""
    names = (case.get(key) for key in ("case", "session"))
    return next((name for name in names if isinstance(name, str | int)), None)
