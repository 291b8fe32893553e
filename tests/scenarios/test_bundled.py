"""The bundled sessions are fair exams: complete, sound, and varied enough to show every metric."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence

import pytest

from scenarios import BUNDLED, LABELS, SUBTYPES, Node, Scenario, Tool, load, validate
from scenarios.labels import derived_label
from scenarios.mutations import PlainReply
from scoring.types import Reply, TaskScore
from scoring.wildtoolbench import score_task

(FILE,) = load(["bundled"])
IDENTIFIER = re.compile(r"[A-Z]+-[A-Z0-9-]+|\d{4}(-\d\d){3}|\d+\.\d\d|\S+\.beancount|[A-Z]\w+ [A-Z]\w+")
"""Ids, amounts, files and names: what an agent could only invent if nobody had said it."""

each_session = pytest.mark.parametrize("scenario", FILE.scenarios, ids=lambda scenario: scenario.id)


def released(tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[PlainReply]) -> TaskScore:
    return score_task(tools, nodes, [Reply(content, calls) for content, calls in replies])


def test_there_are_at_least_five_sessions_and_two_keep_a_ledger() -> None:
    ids = [scenario.id for scenario in FILE.scenarios]
    assert len(ids) >= 5
    assert len([name for name in ids if name.startswith("ledger_")]) == 2


def test_together_they_cover_all_labels_and_subtypes() -> None:
    tasks = [task for scenario in FILE.scenarios for task in scenario.tasks]
    assert {task.label for task in tasks} == set(LABELS)
    assert {task.subtype for task in tasks} == {None, *SUBTYPES}


@each_session
def test_a_session_has_four_tasks_and_a_subtype_for_each_later_one(scenario: Scenario) -> None:
    assert len(scenario.tasks) == 4
    assert scenario.tasks[0].subtype is None
    assert None not in [task.subtype for task in scenario.tasks[1:]]


@each_session
def test_validation_finds_nothing_at_all(scenario: Scenario) -> None:
    assert validate(scenario, released) == []


@each_session
def test_the_date_has_a_time_and_its_weekday(scenario: Scenario) -> None:
    moment = datetime.datetime.strptime(scenario.date, "%Y-%m-%d %H:%M:%S %A")
    assert moment.strftime("%Y-%m-%d %H:%M:%S %A") == scenario.date


@each_session
def test_labels_fit_the_references(scenario: Scenario) -> None:
    assert [task.label for task in scenario.tasks] == [derived_label(task.nodes) for task in scenario.tasks]


@each_session
def test_every_closing_node_is_last_and_waits_for_everything(scenario: Scenario) -> None:
    for task in scenario.tasks:
        assert task.nodes[-1].is_close
        assert task.nodes[-1].dependencies == tuple(range(len(task.nodes) - 1))


@each_session
def test_every_tool_and_parameter_is_described_and_typed(scenario: Scenario) -> None:
    for tool in scenario.tools:
        assert tool.description
        for schema in tool.parameters["properties"].values():
            assert schema["description"]
            assert schema["type"] in ("string", "integer")


@each_session
def test_arguments_are_settled_by_what_was_said_before(scenario: Scenario) -> None:
    """Every id, amount, file and name in an argument stands in an earlier turn or observation."""
    known = ""
    for task in scenario.tasks:
        known += task.text
        for node in task.nodes:
            if node.is_call:
                values = [v for v in node.arguments.values() if isinstance(v, str)]
                identifiers = [v for v in values if IDENTIFIER.fullmatch(v)]
                assert [v for v in identifiers if v not in known] == []
            known += json.dumps(node.observation) + (node.user_input or "")


@each_session
def test_calls_of_one_tool_in_one_task_differ(scenario: Scenario) -> None:
    for task in scenario.tasks:
        calls = [(node.name, json.dumps(node.arguments)) for node in task.nodes if node.is_call]
        repeated = {call for call in calls if calls.count(call) > 1}
        assert not repeated


def test_the_file_has_plain_keys_and_one_record_per_line() -> None:
    lines = BUNDLED.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(FILE.scenarios)
    for line in lines:
        assert list(json.loads(line)) == [
            "id",
            "env_info",
            "tools",
            "tasks",
            "answer_list",
            "task_types",
            "turn_subtypes",
        ]
