"""What an author says of tools and calls is read strictly, kept, and told to no LLM."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from scenarios import Scenario, ScenarioError, load, parse_record
from scenarios.history import gold_history, released_tools
from scenarios.parameters import schemas_at
from scenarios.record import read_record
from scenarios.types import Tool, ToolNotes

Record = dict[str, Any]

REAL_HASHES = "aafd6e742c8aacc38d3cd397cc65c2ba2651c75cd85a9799e5c375847fc195a6"
"""The sha256 of the sorted hashes of the real sessions, from before there were annotations."""

PEOPLE = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "days": {"type": "array", "items": {"type": "string"}}},
    },
}


def tool(name: str, **properties: Any) -> Record:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


TOOLS = [
    tool(
        "book",
        title={"type": "string"},
        minutes={"type": "integer"},
        weight={"type": "float"},
        people=PEOPLE,
        options={"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
    ),
    tool("cancel", id={"type": "string"}),
    tool("look"),
]

WHOLE: Record = {
    "book": {
        "side_effects": True,
        "free_text": ["title", "people[].name", "options.tags[]"],
        "unordered": ["people", "people[].days", "options.tags"],
        "defaults": {"minutes": 30, "options.tags": []},
    },
    "cancel": {"side_effects": True, "undoes": ["book"]},
}


def call(*dependencies: int, name: str = "book", **more: Any) -> Record:
    action = {"name": name, "arguments": more.pop("arguments", {"title": "Review"})}
    return {"action": action, "observation": "ok", "dependency_list": list(dependencies), **more}


def close(*dependencies: int, **more: Any) -> Record:
    return call(*dependencies, name="prepare_to_answer", arguments={}, **more)


def ask(**more: Any) -> Record:
    return call(name="ask_user_for_required_parameters", arguments={}, user_input="Yes.", **more)


def record(annotations: Any = ..., **changes: Any) -> Record:
    """A sound record with two tasks, with these annotations; `changes` replace its columns."""
    sound = {
        "id": "room_1",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": TOOLS,
        "tasks": ["Book it.", "And the other one."],
        "answer_list": [[call(), close(0)], [ask(), call(0), close(0, 1)]],
        "task_types": ["Single-Tool", "Clarify"],
        "turn_subtypes": ["Partial Information"],
    }
    said = {} if annotations is ... else {"annotations": annotations}
    return copy.deepcopy({**sound, **said, **changes})


def with_alternatives(*alternatives: Any, node: int = 0) -> Record:
    changed = record()
    changed["answer_list"][0][node]["alternatives"] = list(alternatives)
    return changed


def problems(broken: Record, language: str = "en") -> list[tuple[str, str]]:
    scenario, found = read_record(broken, language)
    assert (scenario is None) == bool(found)
    return found


# What they become


def test_annotations_become_notes() -> None:
    assert parse_record(record(WHOLE)).notes == {
        "book": ToolNotes(
            side_effects=True,
            free_text=frozenset({"title", "people[].name", "options.tags[]"}),
            unordered=frozenset({"people", "people[].days", "options.tags"}),
            defaults={"minutes": 30, "options.tags": []},
        ),
        "cancel": ToolNotes(side_effects=True, undoes=frozenset({"book"})),
    }


def test_alternatives_become_part_of_the_node() -> None:
    other: list[Record] = [{"title": "Revue"}, {}]
    nodes = parse_record(with_alternatives(*other)).tasks[0].nodes
    assert [node.alternatives for node in nodes] == [tuple(other), ()]


def test_a_tool_of_which_nothing_is_said_has_no_notes() -> None:
    silent = {"side_effects": False, "free_text": [], "unordered": [], "defaults": {}, "undoes": []}
    assert parse_record(record({"book": silent, "look": {}})).notes == {}


def test_a_tool_may_undo_itself() -> None:
    notes = parse_record(record({"book": {"side_effects": True, "undoes": ["book"]}})).notes
    assert notes["book"].undoes == {"book"}


# The record and its hash


def test_a_record_without_annotations_has_the_hash_that_it_always_had() -> None:
    plain = {**record(), "answer_list": [[call(), close(0)], [ask(), call(0), close(0, 1)]]}
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert parse_record(record()).hash == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_real_sessions_keep_the_hashes_under_which_older_logs_have_them(
    real_session_files: list[Path],
) -> None:
    hashes = {s.id: s.hash for file in load(real_session_files) for s in file.scenarios}
    assert len(hashes) == 18
    assert hashlib.sha256("".join(sorted(hashes.values())).encode()).hexdigest() == REAL_HASHES


@pytest.mark.parametrize("empty", [{}, {"book": {}}, {"book": {"side_effects": False, "undoes": []}}])
def test_annotations_that_say_nothing_leave_the_scenario_as_it_is(empty: Record) -> None:
    assert parse_record(record(empty)) == parse_record(record())
    assert parse_record(with_alternatives()) == parse_record(record())


def test_an_annotation_is_part_of_the_record_and_changes_the_hash() -> None:
    scenario = parse_record(record(WHOLE))
    assert scenario.record["annotations"]["cancel"] == {"side_effects": True, "undoes": ["book"]}
    assert scenario.hash != parse_record(record()).hash


def test_an_alternative_is_part_of_the_record_and_changes_the_hash() -> None:
    scenario = parse_record(with_alternatives({"title": "Revue"}))
    assert scenario.record["answer_list"][0][0]["alternatives"] == [{"title": "Revue"}]
    assert scenario.hash != parse_record(record()).hash


def test_the_order_in_which_things_are_said_does_not_change_the_hash() -> None:
    turned = {
        "cancel": {"undoes": ["book"], "side_effects": True},
        "book": {**WHOLE["book"], "free_text": WHOLE["book"]["free_text"][::-1], "undoes": []},
    }
    assert parse_record(record(turned)) == parse_record(record(WHOLE))
    assert parse_record(record(turned)).hash == parse_record(record(WHOLE)).hash


def test_an_annotated_scenario_is_read_back_from_its_record() -> None:
    scenario = parse_record({**with_alternatives({"title": "Revue"}), "annotations": WHOLE})
    assert parse_record(scenario.record) == scenario
    assert parse_record(json.loads(json.dumps(scenario.record))) == scenario


def test_one_key_serves_both_forms_and_both_languages() -> None:
    english = {key if key == "id" else f"english_{key}": value for key, value in record().items()}
    assert parse_record({**english, "annotations": WHOLE}) == parse_record(record(WHOLE))
    both = {**record(WHOLE, env_info="2025-03-14 星期五"), **english}
    chinese = parse_record(both, "zh")
    assert (chinese.date, chinese.notes) == ("2025-03-14 星期五", parse_record(record(WHOLE)).notes)


def test_annotations_hold_for_the_tools_of_the_language_that_is_read() -> None:
    both = {**record({"look": {"side_effects": True}}), "english_tools": TOOLS[:2]}
    assert problems(both, "zh") == []
    assert problems(both) == [
        ("annotations.look", '"look" is not among the tools (book, cancel); did you mean book?')
    ]


# What the LLM gets


def test_no_annotation_reaches_the_llm() -> None:
    bare, annotated = parse_record(record()), record(WHOLE)
    for nodes in annotated["answer_list"]:
        for node in nodes:
            if node["action"]["name"] == "book":
                node["alternatives"] = [{"title": "Revue"}]
    noted = parse_record(annotated)
    assert noted != bare
    assert released_tools(noted) == released_tools(bare)
    for task in range(len(bare.tasks) + 1):
        assert gold_history(noted, task) == gold_history(bare, task)


# What is refused

BROKEN: list[tuple[Any, str, str]] = [
    ([], "annotations", "must be an object, not a list"),
    (None, "annotations", "must be an object, not null"),
    ({"bok": {}}, "annotations.bok", '"bok" is not among the tools (book, cancel, look); did you mean book?'),
    ({"xyz": {}}, "annotations.xyz", '"xyz" is not among the tools (book, cancel, look)'),
    ({"book": True}, "annotations.book", "must be an object, not true or false"),
    (
        {"book": {"free_txt": []}},
        "annotations.book.free_txt",
        '"free_txt" is not among the annotations (defaults, free_text, side_effects, undoes, unordered); '
        "did you mean free_text?",
    ),
    ({"book": {"side_effects": "yes"}}, "annotations.book.side_effects", "must be true or false, not text"),
    ({"book": {"side_effects": 1}}, "annotations.book.side_effects", "must be true or false, not a number"),
    ({"book": {"free_text": "title"}}, "annotations.book.free_text", "must be a list, not text"),
    ({"book": {"free_text": [3]}}, "annotations.book.free_text[0]", "must be text, not a number"),
    ({"book": {"free_text": [""]}}, "annotations.book.free_text[0]", "must not be empty"),
    (
        {"book": {"free_text": ["titel"]}},
        "annotations.book.free_text[0]",
        '"titel" is no parameter of book, which has minutes, options, people, title, weight; '
        "did you mean title?",
    ),
    (
        {"book": {"free_text": ["title", "people.name"]}},
        "annotations.book.free_text[1]",
        '"people.name" is no parameter of book, which has people[]; did you mean people[]?',
    ),
    (
        {"book": {"unordered": ["people[].day"]}},
        "annotations.book.unordered[0]",
        '"people[].day" is no parameter of book, which has people[].days, people[].name; '
        "did you mean people[].days?",
    ),
    (
        {"book": {"unordered": ["title.x"]}},
        "annotations.book.unordered[0]",
        '"title.x" is no parameter of book, which has nothing below "title"',
    ),
    (
        {"look": {"free_text": ["x"]}},
        "annotations.look.free_text[0]",
        '"x" is no parameter of look, which declares no parameters',
    ),
    (
        {"book": {"free_text": ["minutes"]}},
        "annotations.book.free_text[0]",
        '"minutes" is of type integer, but free_text is for type string',
    ),
    (
        {"book": {"free_text": ["options.tags"]}},
        "annotations.book.free_text[0]",
        '"options.tags" is of type array, but free_text is for type string; '
        'write "options.tags[]" for its items',
    ),
    (
        {"book": {"unordered": ["title"]}},
        "annotations.book.unordered[0]",
        '"title" is of type string, but unordered is for type array',
    ),
    ({"book": {"defaults": ["minutes"]}}, "annotations.book.defaults", "must be an object, not a list"),
    (
        {"book": {"defaults": {"minute": 5}}},
        "annotations.book.defaults",
        '"minute" is no parameter of book, which has minutes, options, people, title, weight; '
        "did you mean minutes?",
    ),
    (
        {"book": {"defaults": {"minutes": "5"}}},
        "annotations.book.defaults",
        '"minutes" is of type integer, but its default is text',
    ),
    (
        {"book": {"defaults": {"weight": True}}},
        "annotations.book.defaults",
        '"weight" is of type float, but its default is true or false',
    ),
    ({"cancel": {"side_effects": True, "undoes": "book"}}, "annotations.cancel.undoes", "must be a list"),
    (
        {"book": {"side_effects": True}, "cancel": {"side_effects": True, "undoes": ["boot"]}},
        "annotations.cancel.undoes[0]",
        '"boot" is not among the tools (book, cancel, look); did you mean book?',
    ),
    (
        {"book": {"side_effects": True}, "cancel": {"undoes": ["book"]}},
        "annotations.cancel.undoes",
        'cancel has no side effects, so it can take none back; add "side_effects": true',
    ),
    (
        {"cancel": {"side_effects": True, "undoes": ["look"]}},
        "annotations.cancel.undoes[0]",
        '"look" has no side effects to take back; add "side_effects": true to annotations.look',
    ),
]


@pytest.mark.parametrize(("annotations", "field", "reason"), BROKEN)
def test_a_broken_annotation_is_one_line_that_says_how_to_mend_it(
    annotations: Any, field: str, reason: str
) -> None:
    ((where, why),) = problems(record(annotations))
    assert (where, why.startswith(reason)) == (field, True), why
    assert "\n" not in why


@pytest.mark.parametrize(
    ("broken", "field", "reason"),
    [
        (
            {"node": 1},
            "answer_list[0][1].alternatives",
            "belongs to a call, but this node is done in plain text; remove it",
        ),
        ({"alternatives": {}}, "answer_list[0][0].alternatives", "must be a list, not an object"),
        ({"alternatives": None}, "answer_list[0][0].alternatives", "must be a list, not null"),
        (
            {"alternatives": [{}, "x"]},
            "answer_list[0][0].alternatives[1]",
            "must be an object, not text",
        ),
    ],
)
def test_broken_alternatives_are_refused(broken: Record, field: str, reason: str) -> None:
    changed = record()
    node = changed["answer_list"][0][broken.get("node", 0)]
    node["alternatives"] = broken.get("alternatives", [])
    assert problems(changed) == [(field, reason)]


def test_alternatives_of_an_ask_are_refused() -> None:
    changed = record(answer_list=[[close()], [ask(alternatives=[{}]), close(0)]])
    ((field, _),) = problems(changed)
    assert field == "answer_list[1][0].alternatives"


def test_all_problems_are_found_at_once() -> None:
    said = {
        "bok": {},
        "book": {"side_effects": 1, "x": 2, "free_text": ["a", "minutes"]},
        "cancel": {"undoes": [3]},
    }
    changed = {**with_alternatives("x"), "annotations": said}
    assert [field for field, _ in problems(changed)] == [
        "answer_list[0][0].alternatives[0]",
        "annotations.bok",
        "annotations.book.x",
        "annotations.book.side_effects",
        "annotations.book.free_text[0]",
        "annotations.book.free_text[1]",
        "annotations.cancel.undoes[0]",
    ]


def test_a_key_for_one_language_alone_is_refused() -> None:
    assert problems({**record(), "english_annotations": WHOLE}) == [
        ("english_annotations", "is not read; annotations hold for both languages: write annotations")
    ]


def test_a_broken_tool_is_not_reported_again_for_its_annotations() -> None:
    broken = [*TOOLS[:2], {"type": "function", "function": {"name": "look", "parameters": []}}]
    found = problems(record({"look": {"free_text": ["x"], "undoes": ["y"]}}, tools=broken))
    assert found == [("tools[2].function.parameters", "must be an object, not a list")]


# Paths


def declared(path: str, **parameters: Any) -> list[Any]:
    return schemas_at(Tool("t", "", parameters, {}), path)[0]


def test_a_path_leads_through_references_and_choices() -> None:
    person = {"type": "object", "properties": {"note": {"type": "string"}, "boss": {"$ref": "#/$defs/p~1q"}}}
    root = {
        "$defs": {"p/q": person},
        "properties": {"who": {"anyOf": [{"$ref": "#/$defs/p~1q"}, {"type": "null"}]}},
    }
    assert declared("who.note", **root) == [{"type": "string"}]
    assert declared("who.boss.boss.note", **root) == [{"type": "string"}]
    assert declared("who.boss.name", **root) == []


def test_a_key_may_hold_a_dot_or_brackets() -> None:
    text, number = {"type": "string"}, {"type": "number"}
    root = {"properties": {"a.b": text, "a": {"properties": {"b": number, "c": number}}, "x[]": text}}
    assert declared("a.b", **root) == [text, number]
    assert declared("a.c", **root) == [number]
    assert declared("x[]", **root) == [text]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"properties": 3},
        {"properties": {"a": None}},
        {"$ref": "#"},
        {"$ref": "#/x"},
        {"$ref": "other.json"},
        {"anyOf": 5},
    ],
)
def test_a_misshapen_schema_declares_nothing(parameters: Record) -> None:
    assert declared("a", **parameters) == []


@pytest.mark.parametrize("schema", [{}, {"type": "fruit"}, {"type": ["string", "null"]}, {"type": 3}])
def test_a_parameter_of_no_type_that_is_known_takes_any_default(schema: Record) -> None:
    said = {"book": {"defaults": {"a": "x"}}}
    assert problems(record(said, tools=[tool("book", a=schema)])) == []


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("integer", 5.0, True),
        ("integer", 5.5, False),
        ("number", 5, True),
        ("float", 5.5, True),
        ("boolean", False, True),
        ("boolean", 0, False),
        ("null", None, True),
        ("string", None, False),
        ("array", [], True),
        ("object", {}, True),
        ("object", [], False),
    ],
)
def test_a_default_has_the_type_of_its_parameter(kind: str, value: Any, fits: bool) -> None:
    said = {"book": {"defaults": {"a": value}}}
    assert (problems(record(said, tools=[tool("book", a={"type": kind})])) == []) is fits


# Properties

NAMES = st.sampled_from(["book", "cancel", "look", "bok"])
PATHS = st.sampled_from(["title", "people", "people[]", "people[].name", "options.tags", "a", "."])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | NAMES | PATHS
LISTS = st.lists(NAMES | PATHS, max_size=3)
SAID = st.dictionaries(
    st.sampled_from(["side_effects", "free_text", "unordered", "defaults", "undoes", "other"]),
    LEAVES | LISTS | st.dictionaries(PATHS, LEAVES | LISTS, max_size=3),
    max_size=4,
)


@given(st.dictionaries(NAMES, SAID | LEAVES, max_size=3) | LEAVES | LISTS)
@examples(80)
def test_whatever_is_annotated_it_is_read_back_or_refused(annotations: Any) -> None:
    try:
        scenario: Scenario = parse_record(record(annotations))
    except ScenarioError as error:
        assert error.field.startswith("annotations")
    else:
        assert parse_record(scenario.record) == scenario
