"""Checks of a Scenario that can be played: is it a fair exam, and does the scorer mark it as it should?

The loader refuses what cannot be played at all; what is found here is about meaning.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from scenarios.labels import derived_label
from scenarios.mutations import mutations, reference_replies, required_keys
from scenarios.reference import minimal_path
from scenarios.types import Node, Reply, Scenario, Task, Tool
from scenarios.validate_calls import Found, Level, about_calls, about_notes, ancestors

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What OpenAI-compatible providers accept as a function name."""

DATE = re.compile(r"(\d{4}-\d{2}-\d{2})\b.*?(\w+)\s*$", re.DOTALL)

WEEKDAYS = (
    ("Monday", "星期一"),
    ("Tuesday", "星期二"),
    ("Wednesday", "星期三"),
    ("Thursday", "星期四"),
    ("Friday", "星期五"),
    ("Saturday", "星期六"),
    ("Sunday", "星期日", "星期天"),
)

DEFAULT = re.compile(r"default|默认", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a Scenario.

    error: the Scenario does not measure what it should. warning: it does, but is likely to
    surprise. note: worth knowing. `task` counts from 1 and is None for what concerns the whole
    Scenario. `field` is a path in plain keys, whichever key form the file has.
    """

    level: Level
    scenario: str
    task: int | None
    field: str
    reason: str


class Verdict(Protocol):
    """What a judge says: `label` is "correct" or something else, `reason` why."""

    @property
    def label(self) -> str | None: ...

    @property
    def reason(self) -> str | None: ...


Judge = Callable[[Sequence[Tool], Sequence[Node], Sequence[Reply]], Verdict]


def validate(scenario: Scenario, judge: Judge | Mapping[str, Judge]) -> list[Finding]:
    """Every finding about one Scenario, first those about all of it, then task by task.

    `judge` is the scorer under which the References must be correct and their mutations wrong,
    or several by name, each of which must say so; findings then tell which does not.
    """
    judges = judge if isinstance(judge, Mapping) else {"": judge}
    findings = [
        Finding(level, scenario.id, None, field, reason) for level, field, reason in _about_scenario(scenario)
    ]
    for index, task in enumerate(scenario.tasks):
        found = list(_about_task(task, index, scenario.tools))
        if not any(level == "error" for level, _, _ in found):
            found += _about_scoring(task, index, scenario.tools, judges)
        findings += [Finding(level, scenario.id, index + 1, field, reason) for level, field, reason in found]
    return findings


def _about_scenario(scenario: Scenario) -> Iterator[Found]:
    weekday = _wrong_weekday(scenario.date)
    if weekday:
        yield "warning", "env_info", f"{scenario.date!r} is a {weekday}"
    for i, tool in enumerate(scenario.tools):
        field = f"tools[{i}].function"
        if not TOOL_NAME.fullmatch(tool.name):
            reason = f"{tool.name!r} is a name most providers refuse; use 1 to 64 letters, digits, _ and -"
            yield "warning", f"{field}.name", reason
        properties = tool.parameters.get("properties", {})
        for key in required_keys(tool):
            if isinstance(properties, dict) and key not in properties:
                yield "warning", f"{field}.parameters.required", f"{key!r} is required but not declared"
        for path, sentence in _prose_defaults(tool.parameters, f"{field}.parameters"):
            yield "note", path, f"gives its default in words: {sentence}"
    yield from about_notes(scenario)


def _wrong_weekday(date: str) -> str | None:
    """The true weekday, when `date` names another one."""
    match = DATE.match(date)
    if match is None or not any(match[2] in names for names in WEEKDAYS):
        return None
    try:
        names = WEEKDAYS[datetime.date.fromisoformat(match[1]).weekday()]
    except ValueError:
        return None
    return None if match[2] in names else names[0]


def _prose_defaults(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    """The (path, sentence) of every parameter, nested ones too, whose description speaks of a default."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    children = (
        [(f"properties.{key}", value) for key, value in properties.items()]
        if isinstance(properties, dict)
        else []
    )
    children += [("items", schema["items"])] if "items" in schema else []
    for name, child in children:
        description = child.get("description") if isinstance(child, dict) else None
        if isinstance(description, str) and "default" not in child:
            said = [sentence for sentence in SENTENCE_END.split(description) if DEFAULT.search(sentence)]
            if said:
                yield f"{path}.{name}.description", " ".join(said)
        yield from _prose_defaults(child, f"{path}.{name}")


def _about_task(task: Task, index: int, tools: Sequence[Tool]) -> Iterator[Found]:
    nodes, answer = task.nodes, f"answer_list[{index}]"
    fitting = derived_label(nodes)
    if fitting != task.label:
        yield "note", f"task_types[{index}]", f"is {task.label}, but the Reference has the shape of {fitting}"
    yield from _about_closing(nodes, answer)
    for batch in minimal_path(nodes):
        for i in batch:
            if len(batch) > 1 and not nodes[i].is_call:
                others = ", ".join(str(other) for other in batch if other != i)
                kind = "ask" if nodes[i].is_ask else "closing node"
                reason = f"the {kind} falls in one step with node {others}; link them by dependencies"
                yield "warning", f"{answer}[{i}].dependency_list", reason
    yield from about_calls(nodes, answer, tools)


def _about_closing(nodes: Sequence[Node], answer: str) -> Iterator[Found]:
    closing = [i for i, node in enumerate(nodes) if node.is_close]
    if len(closing) > 1:
        listed = ", ".join(str(i) for i in closing)
        yield "error", answer, f"has {len(closing)} closing nodes ({listed}); the first of them ends the task"
    for i, node in enumerate(nodes):
        after = [other for other in node.dependencies if nodes[other].is_close]
        if after and not node.is_close:
            reason = f"waits for the closing node {after[0]}, after which nothing is played"
            yield "error", f"{answer}[{i}].dependency_list", reason
    if len(closing) == 1:
        missed = sorted(set(range(len(nodes))) - ancestors(nodes, closing[0]) - set(closing))
        if missed:
            listed = ", ".join(str(i) for i in missed)
            reason = f"the closing node does not wait for node {listed}; add the dependency"
            yield "warning", f"{answer}[{closing[0]}].dependency_list", reason


def _about_scoring(
    task: Task, index: int, tools: Sequence[Tool], judges: Mapping[str, Judge]
) -> Iterator[Found]:
    answer = f"answer_list[{index}]"
    sound: dict[str, Judge] = {}
    for name, judge in judges.items():
        verdict = judge(tools, task.nodes, reference_replies(task.nodes))
        if verdict.label == "correct":
            sound[name] = judge
            continue
        reason = f"the Reference itself is not correct under {_scorer(name)}: {verdict.reason}"
        yield "error", answer, reason
    yield from _about_alternatives(task.nodes, answer, tools, sound)
    for mutation in mutations(tools, task.nodes) if sound else ():
        fooled = [
            name
            for name, judge in sound.items()
            if judge(tools, task.nodes, mutation.replies).label == "correct"
        ]
        if fooled:
            field = answer if mutation.node is None else f"{answer}[{mutation.node}]"
            under = f" (under {' and '.join(fooled)})" if any(fooled) else ""
            yield "error", field, f"scores correct with {mutation.what}{under}"


def _about_alternatives(
    nodes: Sequence[Node], answer: str, tools: Sequence[Tool], judges: Mapping[str, Judge]
) -> Iterator[Found]:
    """An alternative must be correct if it stood in place of the arguments."""
    for i, node in enumerate(nodes):
        for k, alternative in enumerate(node.alternatives):
            instead = replace(node, arguments=alternative, alternatives=())
            changed = (*nodes[:i], instead, *nodes[i + 1 :])
            for name, judge in judges.items():
                verdict = judge(tools, changed, reference_replies(changed))
                if verdict.label != "correct":
                    reason = f"is not correct under {_scorer(name)} even in place of the arguments"
                    yield "error", f"{answer}[{i}].alternatives[{k}]", f"{reason}: {verdict.reason}"


def _scorer(name: str) -> str:
    return f"the scorer {name}".strip()
