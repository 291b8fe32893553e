"""The packs are fair exams, each balanced as the documentation promises."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from scenarios import LABELS, SUBTYPES, Node, Scenario, load, validate
from scenarios.mutations import reference_replies
from scenarios.packs import BUNDLED_WORD, packs
from scenarios.parameters import schemas_at
from scenarios.types import NO_NOTES, Reply, Tool
from scoring.scenarios_balance import SHAPES, balance, language_of
from scoring.scenarios_cli import judges_of

FURTHER = [name for name in packs() if name != BUNDLED_WORD]
SESSIONS = {name: load([name])[0].scenarios for name in FURTHER}
ALL = [scenario for name in FURTHER for scenario in SESSIONS[name]]

PAGE = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
READING = ("get_", "list_", "find_", "search_", "check_", "track_")
"""How the names of tools begin that change nothing, in the packs whose tools are named so."""

AMOUNT = re.compile(r"-?\d+\.\d\d")
DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")
TIME = re.compile(r"\d\d:\d\d")
WEEKDAYS = "一二三四五六日"

each_pack = pytest.mark.parametrize("pack", FURTHER)


def calls(scenario: Scenario) -> Iterator[tuple[Tool, Node]]:
    tools = {tool.name: tool for tool in scenario.tools}
    yield from ((tools[n.name], n) for task in scenario.tasks for n in task.nodes if n.is_call)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All that is neither an object nor an array, each with its path as annotations have it."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, f"{path}[]")
    else:
        yield path, value


# The balance that is promised


def promised() -> dict[str, list[int]]:
    """For each pack of the table in docs/scenarios.md its numbers."""
    rows = PAGE.partition("<!-- table: packs -->\n")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]
    return {name: [int(number) for number in numbers] for name, *numbers, _ in cells}


def test_the_documentation_describes_every_pack() -> None:
    assert list(promised()) == [BUNDLED_WORD, *FURTHER]


@pytest.mark.parametrize("pack", packs())
def test_a_pack_holds_at_least_what_is_promised_of_it(pack: str) -> None:
    sessions, each_label, each_subtype, writing = promised()[pack]
    counted = balance(load([pack])[0].scenarios)
    assert counted["sessions"] == sessions
    assert min(counted["labels"].values()) >= each_label
    assert min(counted["subtypes"][name] for name in SUBTYPES) >= each_subtype
    assert counted["writing_tasks"] >= writing


def test_together_the_packs_have_each_label_with_each_subtype_and_at_each_place() -> None:
    counted = balance(ALL)
    assert [
        (label, subtype)
        for label in LABELS
        for subtype in SUBTYPES
        if not counted["labels_by_subtype"][label].get(subtype)
    ] == []
    assert [
        (label, place)
        for label in LABELS
        for place in "1234"
        if not counted["labels_by_position"][label].get(place)
    ] == []


def test_together_the_packs_have_each_shape_and_those_in_which_agents_go_wrong() -> None:
    steps = balance(ALL)["steps_by_shape"]
    assert [shape for shape in SHAPES if not steps[shape]] == []
    assert {"1-1", "1-1-1"} <= set(steps["chain"])
    assert {"1-2", "2-1", "1-2-1"} <= set(steps["mixed"])
    assert {"ask-1", "ask-1-1"} <= set(steps["ask first"])


# Fair exams


@each_pack
def test_validation_finds_nothing_at_all_under_either_scorer(pack: str) -> None:
    found = [finding for scenario in SESSIONS[pack] for finding in validate(scenario, judges_of(scenario))]
    assert found == []


def one_at_a_time(replies: tuple[Reply, ...]) -> tuple[Reply, ...]:
    return tuple(
        part
        for reply in replies
        for part in ([replace(reply, calls=(call,)) for call in reply.calls] or [reply])
    )


@each_pack
def test_whoever_makes_the_calls_one_at_a_time_is_right_too(pack: str) -> None:
    wrong = [
        (scenario.id, number, scorer)
        for scenario in SESSIONS[pack]
        for scorer, judge in judges_of(scenario).items()
        for number, task in enumerate(scenario.tasks, start=1)
        if judge(scenario.tools, task.nodes, one_at_a_time(reference_replies(task.nodes))).label != "correct"
    ]
    assert wrong == []


@each_pack
def test_a_session_has_four_tasks_a_subtype_for_each_later_one_and_four_to_eight_tools(pack: str) -> None:
    for scenario in SESSIONS[pack]:
        assert len(scenario.tasks) == 4
        assert [task.subtype is None for task in scenario.tasks] == [True, False, False, False]
        assert 4 <= len(scenario.tools) <= 8


@each_pack
def test_each_id_ends_in_a_number_of_its_own_within_the_pack(pack: str) -> None:
    """The released evaluation code knows a session by that number alone."""
    numbers = [int(scenario.id.rpartition("_")[2]) for scenario in SESSIONS[pack]]
    assert numbers == list(range(1, len(numbers) + 1))


@each_pack
def test_the_date_has_a_time_and_the_weekday_in_the_words_of_the_session(pack: str) -> None:
    for scenario in SESSIONS[pack]:
        day, time, weekday = scenario.date.split(" ")
        moment = datetime.datetime.strptime(f"{day} {time}", "%Y-%m-%d %H:%M:%S")
        chinese = "星期" + WEEKDAYS[moment.weekday()]
        assert weekday == (chinese if language_of(scenario) == "zh" else moment.strftime("%A"))


@each_pack
def test_every_closing_node_is_last_and_waits_for_everything(pack: str) -> None:
    for scenario in SESSIONS[pack]:
        for task in scenario.tasks:
            assert task.nodes[-1].is_close
            assert task.nodes[-1].dependencies == tuple(range(len(task.nodes) - 1))


@each_pack
def test_every_tool_and_parameter_is_described(pack: str) -> None:
    for scenario in SESSIONS[pack]:
        for tool in scenario.tools:
            assert tool.description
            for schema in tool.parameters["properties"].values():
                assert schema["description"] and schema["type"]


@each_pack
def test_argument_keys_stand_in_the_order_of_the_schema(pack: str) -> None:
    """The released scorer pairs calls of one tool by their argument texts, in which the order shows."""
    for scenario in SESSIONS[pack]:
        for tool, node in calls(scenario):
            for arguments in (node.arguments, *node.alternatives):
                assert list(arguments) == [key for key in tool.parameters["properties"] if key in arguments]


def folded(text: str) -> str:
    return "".join(text.split()).casefold()


@each_pack
def test_arguments_are_settled_by_what_was_said_before(pack: str) -> None:
    """Every name, id and wording of an argument stands in an earlier turn or observation.

    What an agent chooses (`enum`) or works out (a date, a time, an amount) need not be there to the letter.
    """
    unsaid = []
    for scenario in SESSIONS[pack]:
        tools = {tool.name: tool for tool in scenario.tools}
        known = ""
        for task in scenario.tasks:
            known += task.text
            for node in task.nodes:
                if node.is_call:
                    unsaid += [
                        (scenario.id, value)
                        for value in _to_the_letter(tools[node.name], scenario, node.arguments)
                        if folded(value) not in folded(known)
                    ]
                known += json.dumps(node.observation, ensure_ascii=False) + (node.user_input or "")
    assert unsaid == []


def _to_the_letter(tool: Tool, scenario: Scenario, arguments: Mapping[str, Any]) -> Iterator[str]:
    free = scenario.notes.get(tool.name, NO_NOTES).free_text
    for path, value in leaves(dict(arguments)):
        chosen = any("enum" in schema for schema in schemas_at(tool, path)[0])
        worked_out = [it for it in (AMOUNT, DATE, TIME) if isinstance(value, str) and it.fullmatch(value)]
        if isinstance(value, str) and not chosen and not worked_out and path not in free:
            yield value


@pytest.mark.parametrize("pack", ["ledger", "zh"])
def test_the_tools_that_write_are_annotated_and_no_tool_that_only_reads(pack: str) -> None:
    for scenario in SESSIONS[pack]:
        writing = {tool.name for tool in scenario.tools if not tool.name.startswith(READING)}
        assert {name for name, notes in scenario.notes.items() if notes.side_effects} == writing


def test_a_pack_in_chinese_has_chinese_words_alone() -> None:
    """Names of tools, ids and codes are no words."""
    for scenario in SESSIONS["zh"]:
        said = [task.text for task in scenario.tasks] + [tool.description for tool in scenario.tools]
        said += [
            words
            for task in scenario.tasks
            for node in task.nodes
            if not node.is_call
            for words in (node.observation, node.user_input or "")
        ]
        assert re.findall("[A-Za-z]{3,}", " ".join(said)) == []


# The ledger


def transactions() -> Iterator[list[Any]]:
    for scenario in SESSIONS["ledger"]:
        yield from (node.arguments["postings"] for _, node in calls(scenario) if "postings" in node.arguments)


def test_the_postings_of_every_transaction_add_up_to_zero() -> None:
    sums = [sum(Decimal(posting["amount"]) for posting in postings) for postings in transactions()]
    assert len(sums) >= 5
    assert [total for total in sums if total] == []


def test_a_corrected_entry_was_written_before_and_is_not_written_again() -> None:
    """A call that corrects names an entry of an observation; no other call of its Task has its amount."""
    corrected = 0
    for scenario in SESSIONS["ledger"]:
        seen = ""
        for task in scenario.tasks:
            made = [node for node in task.nodes if node.is_call]
            for node in made:
                if node.name.startswith(("correct_", "update_")):
                    corrected += 1
                    entry, amount = node.arguments.values()
                    assert json.dumps(entry) in seen
                    assert [other for other in made if other.arguments.get("amount") == amount] == [node]
            seen += "".join(json.dumps(node.observation) for node in made)
    assert corrected == 4
