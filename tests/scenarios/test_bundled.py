"""The bundled sessions are fair exams: complete, sound, and varied enough to show every metric."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from scenarios import BUNDLED, LABELS, SUBTYPES, Node, Scenario, Task, load, parse_record, validate
from scenarios.labels import derived_label
from scenarios.reference import minimal_path
from scoring.verdicts.wildtoolbench import score_task

(FILE,) = load(["bundled"])
TASKS = [task for scenario in FILE.scenarios for task in scenario.tasks]
CHINESE = re.compile("[\u4e00-\u9fff]")
CHINESE_WEEKDAYS = "一二三四五六日"
TYPES: dict[str, type] = {"string": str, "integer": int, "float": float, "boolean": bool}

each_session = pytest.mark.parametrize("scenario", FILE.scenarios, ids=lambda scenario: scenario.id)


def is_chinese(scenario: Scenario) -> bool:
    return bool(CHINESE.search(scenario.tasks[0].text))


def shape(task: Task) -> list[str]:
    """The steps of the shortest path: how many calls each holds, or `ask`, or `close`."""
    steps = []
    for batch in minimal_path(task.nodes):
        first = task.nodes[batch[0]]
        steps.append("ask" if first.is_ask else "close" if first.is_close else str(len(batch)))
    return steps


def shapes(label: str) -> list[list[str]]:
    return [shape(task) for task in TASKS if task.label == label]


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from strings(child)


def is_date(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None


def declared(scenario: Scenario, node: Node) -> dict[str, Any]:
    (tool,) = [tool for tool in scenario.tools if tool.name == node.name]
    properties: dict[str, Any] = tool.parameters["properties"]
    return properties


def arguments(scenario: Scenario) -> Iterator[tuple[dict[str, Any], Any]]:
    """The (schema, value) of every argument in the References."""
    for task in scenario.tasks:
        for node in task.nodes:
            if node.is_call:
                for key, value in node.arguments.items():
                    yield declared(scenario, node)[key], value


def test_there_are_at_least_nine_sessions_two_keep_a_ledger_and_one_is_chinese() -> None:
    ids = [scenario.id for scenario in FILE.scenarios]
    assert len(ids) >= 9
    assert len([name for name in ids if name.startswith("ledger_")]) == 2
    assert len([scenario for scenario in FILE.scenarios if is_chinese(scenario)]) == 1


def test_each_id_ends_in_a_number_of_its_own() -> None:
    """The released evaluation code knows a session by that number alone."""
    numbers = [int(scenario.id.rpartition("_")[2]) for scenario in FILE.scenarios]
    assert numbers == list(range(1, len(FILE.scenarios) + 1))


def test_together_they_have_each_label_and_subtype_several_times() -> None:
    labels = Counter(task.label for task in TASKS)
    subtypes = Counter(task.subtype for task in TASKS)
    assert set(labels) == set(LABELS)
    assert set(subtypes) == {None, *SUBTYPES}
    assert min(labels.values()) >= 3
    assert min(subtypes.values()) >= 3


def test_together_they_have_the_shapes_in_which_agents_go_wrong() -> None:
    assert ["1", "1", "1", "close"] in shapes("Sequential Multi-Tool")
    assert ["2", "1", "close"] in shapes("Mixed Multi-Tool")
    assert ["1", "2", "close"] in shapes("Mixed Multi-Tool")
    assert ["1", "ask", "1", "close"] in shapes("Clarify")
    assert ["ask", "ask", "1", "close"] in shapes("Clarify")


def test_some_parallel_tasks_call_one_tool_several_times_in_a_step() -> None:
    names = [
        Counter(node.name for node in task.nodes if node.is_call)
        for task in TASKS
        if task.label == "Parallel Multi-Tool"
    ]
    assert len([counts for counts in names if max(counts.values()) > 1]) >= 3
    assert len([counts for counts in names if len(counts) > 1]) >= 3


@each_session
def test_a_session_has_four_tasks_and_a_subtype_for_each_later_one(scenario: Scenario) -> None:
    assert len(scenario.tasks) == 4
    assert scenario.tasks[0].subtype is None
    assert None not in [task.subtype for task in scenario.tasks[1:]]


@each_session
def test_validation_finds_nothing_at_all(scenario: Scenario) -> None:
    assert validate(scenario, score_task) == []


@each_session
def test_the_date_has_a_time_and_its_weekday(scenario: Scenario) -> None:
    day, time, weekday = scenario.date.split(" ")
    moment = datetime.datetime.strptime(f"{day} {time}", "%Y-%m-%d %H:%M:%S")
    chinese = "星期" + CHINESE_WEEKDAYS[moment.weekday()]
    assert weekday == (chinese if is_chinese(scenario) else moment.strftime("%A"))
    assert f"{moment:%Y-%m-%d %H:%M:%S}" == f"{day} {time}"


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
            assert schema["type"] in TYPES


@each_session
def test_arguments_have_the_declared_type_and_dates_exist(scenario: Scenario) -> None:
    for schema, value in arguments(scenario):
        assert type(value) is TYPES[schema["type"]]
        assert value in schema.get("enum", [value])
        if isinstance(value, str) and is_date(value):
            datetime.date.fromisoformat(value)


@each_session
def test_argument_keys_stand_in_the_order_of_the_schema(scenario: Scenario) -> None:
    """The released scorer pairs calls of one tool by their argument texts, in which the order shows."""
    for task in scenario.tasks:
        for node in task.nodes:
            if node.is_call:
                keys = [key for key in declared(scenario, node) if key in node.arguments]
                assert list(node.arguments) == keys


@each_session
def test_arguments_are_settled_by_what_was_said_before(scenario: Scenario) -> None:
    """Every id, amount, file and name in an argument stands in an earlier turn or observation.

    What an agent can choose (`enum`) or work out (a date) need not be there to the letter.
    """
    known = ""
    for task in scenario.tasks:
        known += task.text
        for node in task.nodes:
            if node.is_call:
                schemas = declared(scenario, node)
                free = {
                    value
                    for key, value in node.arguments.items()
                    if isinstance(value, str) and "enum" not in schemas[key] and not is_date(value)
                }
                assert {value for value in free if value not in known} == set()
            known += json.dumps(node.observation, ensure_ascii=False) + (node.user_input or "")


@each_session
def test_calls_of_one_tool_in_one_task_differ(scenario: Scenario) -> None:
    for task in scenario.tasks:
        calls = [(node.name, json.dumps(node.arguments)) for node in task.nodes if node.is_call]
        repeated = {call for call in calls if calls.count(call) > 1}
        assert not repeated


@each_session
def test_a_session_is_in_one_language(scenario: Scenario) -> None:
    """Chinese words and Latin ones do not mix; names of tools and keys are no words."""
    said = [scenario.date, *strings([tool.spec["function"]["description"] for tool in scenario.tools])]
    for tool in scenario.tools:
        for schema in tool.parameters["properties"].values():
            said += [schema["description"], *schema.get("enum", [])]
    for task in scenario.tasks:
        said.append(task.text)
        for node in task.nodes:
            said += [*strings(node.observation), node.user_input or ""]
    text = " ".join(said).replace("YYYY-MM-DD", "")
    if is_chinese(scenario):
        assert re.findall("[A-Za-z]{2,}", text) == []
    else:
        assert CHINESE.findall(text) == []


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
            "annotations",
        ]


# Annotations


@each_session
def test_the_tools_that_write_are_annotated_and_no_tool_that_only_reads(scenario: Scenario) -> None:
    """By their names: what does not get, list, find, search, check or quote changes something."""
    reading = ("get_", "list_", "find_", "search_", "check_", "quote_")
    writing = {tool.name for tool in scenario.tools if not tool.name.startswith(reading)}
    assert {name for name, notes in scenario.notes.items() if notes.side_effects} == writing


def test_what_is_cancelled_is_undone() -> None:
    undone = {
        name: set(notes.undoes)
        for scenario in FILE.scenarios
        for name, notes in scenario.notes.items()
        if notes.undoes
    }
    assert undone == {
        "cancel_booking": {"book_train", "book_hotel"},
        "cancel_appointment": {"book_appointment"},
        "cancel_reservation": {"reserve_book"},
    }


@each_session
def test_without_its_annotations_a_session_is_the_same_exam(scenario: Scenario) -> None:
    record = json.loads(json.dumps(scenario.record))
    del record["annotations"]
    for nodes in record["answer_list"]:
        for node in nodes:
            node.pop("alternatives", None)
    bare = parse_record(record)
    assert (bare.notes, bare.hash == scenario.hash) == ({}, False)
    assert bare.tools == scenario.tools
    for task, plain in zip(scenario.tasks, bare.tasks, strict=True):
        assert replace(task, nodes=()) == replace(plain, nodes=())
        assert tuple(replace(node, alternatives=()) for node in task.nodes) == plain.nodes


@each_session
def test_alternatives_differ_from_the_arguments_and_from_each_other(scenario: Scenario) -> None:
    for task in scenario.tasks:
        for node in task.nodes:
            whole = [node.arguments, *node.alternatives]
            assert [other for i, other in enumerate(whole) if other in whole[:i]] == []
