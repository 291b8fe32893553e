"""Scenario records are read strictly: what is returned can be played, what is not says why."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.records import Record, ask, call, changed, close, english, record, refused, tool, write

from scenarios import LABELS, SUBTYPES, ScenarioError, load, parse_record, read_file

# What a record becomes


def test_a_record_becomes_a_scenario() -> None:
    scenario = parse_record(record())
    assert (scenario.id, scenario.date) == ("fruit_1", "2025-03-14 09:00:00 Friday")
    assert [t.name for t in scenario.tools] == ["weigh"]
    first, second = scenario.tasks
    assert (first.text, first.label, first.subtype) == ("How heavy is the pear?", "Single-Tool", None)
    assert (second.label, second.subtype) == ("Clarify", "Coreferential Reference")
    asked, called, closed = second.nodes
    assert (asked.is_ask, asked.observation, asked.user_input) == (True, "Which one?", "The left one.")
    assert (called.name, called.arguments, called.dependencies) == ("weigh", {"item": "pear"}, (0,))
    assert (closed.is_close, closed.dependencies) == (True, (0, 1))


def test_the_hash_is_that_of_the_canonical_plain_record() -> None:
    scenario = parse_record(record())
    canonical = json.dumps(scenario.record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert scenario.hash == hashlib.sha256(canonical.encode()).hexdigest()


def test_both_key_forms_of_one_content_are_one_scenario() -> None:
    assert parse_record(english(record())) == parse_record(record())


def test_what_is_not_played_does_not_change_the_hash() -> None:
    shown = record(messages=["=====", {"role": "user", "content": "hi"}], turn_types=[False, True])
    assert parse_record(shown) == parse_record(record())


def test_a_word_changed_changes_the_hash() -> None:
    assert parse_record(record(env_info="2025-03-15 09:00:00 Saturday")).hash != parse_record(record()).hash


def test_the_file_oddities_of_the_released_data_load() -> None:
    odd = record(
        tools=[tool(), {"type": "function", "function": {"name": "price", "parameters": {"type": "float"}}}],
        messages=["================"],
        tasks=["One task only."],
        answer_list=[[{**call(), "observation": [{"grams": 180}], "idx": 7}, close(0)]],
        task_types=["Single-Tool"],
        turn_subtypes=[],
    )
    scenario = parse_record(odd)
    assert len(scenario.tasks) == 1
    assert scenario.tasks[0].nodes[0].observation == [{"grams": 180}]
    assert scenario.tools[1].parameters == {"type": "float"}


def test_a_tool_without_description_or_parameters_has_empty_ones() -> None:
    scenario = parse_record(record(tools=[tool(), {"type": "function", "function": {"name": "tare"}}]))
    assert (scenario.tools[1].description, scenario.tools[1].parameters) == ("", {})


def test_a_dependency_listed_twice_counts_once() -> None:
    twice = record(answer_list=[[call(), close(0, 0)], [ask(), call(0), close(0, 1)]])
    assert parse_record(twice).tasks[0].nodes[1].dependencies == (0,)


# Languages


def both_languages() -> Record:
    chinese = record(
        env_info="2025-03-14 09:00:00 星期五",
        tasks=["梨有多重？", "那个呢？"],
        task_types=["单工具", "澄清"],
        turn_subtypes=["指代理解"],
    )
    return {**chinese, **english(record())}


def test_language_chooses_the_column() -> None:
    assert parse_record(both_languages(), "en") == parse_record(record())
    chinese = parse_record(both_languages(), "zh")
    assert chinese.date == "2025-03-14 09:00:00 星期五"
    assert chinese.tasks[1].text == "那个呢？"
    assert (chinese.tasks[1].label, chinese.tasks[1].subtype) == ("Clarify", "Coreferential Reference")


def test_plain_keys_are_read_in_either_language() -> None:
    assert parse_record(record(), "zh") == parse_record(record(), "en")


def test_a_record_without_the_chinese_columns_says_what_it_has() -> None:
    error = refused({**english(record()), "answer_list": record()["answer_list"]}, "zh")
    assert error.field == "env_info"
    assert "also missing: tools, tasks" in error.reason
    assert "english_env_info" in error.reason
    assert "language en" in error.reason


def test_labels_may_stand_in_the_other_languages_column() -> None:
    mixed = {**both_languages()}
    del mixed["task_types"], mixed["english_turn_subtypes"]
    assert parse_record(mixed, "zh").tasks[0].label == "Single-Tool"
    assert parse_record(mixed, "en").tasks[1].subtype == "Coreferential Reference"


def test_an_unknown_language_is_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="fr"):
        parse_record(record(), "fr")


@pytest.mark.parametrize(
    ("chinese", "label"),
    [
        ("单工具", "Single-Tool"),
        ("多工具-并行", "Parallel Multi-Tool"),
        ("多工具-串行", "Sequential Multi-Tool"),
        ("多工具-串并行", "Mixed Multi-Tool"),
        ("多工具 － 串并行", "Mixed Multi-Tool"),
        ("澄清", "Clarify"),
        ("反问", "Clarify"),
        ("反", "Clarify"),
        ("闲聊", "Chat"),
        ("拒", "Chat"),
        ("单", "Single-Tool"),
        *((label, label) for label in LABELS),
    ],
)
def test_chinese_labels_are_read_as_the_english_ones(chinese: str, label: str) -> None:
    assert parse_record(record(task_types=[chinese, "Clarify"])).tasks[0].label == label


@pytest.mark.parametrize(
    ("chinese", "subtype"), list(zip(("指代理解", "省略成分", "长期记忆"), SUBTYPES, strict=True))
)
def test_chinese_subtypes_are_read_as_the_english_ones(chinese: str, subtype: str) -> None:
    assert parse_record(record(turn_subtypes=[chinese])).tasks[1].subtype == subtype


@pytest.mark.parametrize("name", ["多工具", "多", "Multi-Tool"])
def test_an_unspecific_multi_tool_label_is_settled_by_the_calls(name: str) -> None:
    answers = [[call(), call(), close(0, 1)], [call(), call(0), close(1)]]
    first, second = parse_record(record(answer_list=answers, task_types=[name, name])).tasks
    assert (first.label, second.label) == ("Parallel Multi-Tool", "Sequential Multi-Tool")


# Labels that are missing


@pytest.mark.parametrize(
    ("nodes", "label"),
    [
        ([close()], "Chat"),
        ([ask(), call(0), close(1)], "Clarify"),
        ([call(), ask(0), close(1)], "Clarify"),
        ([call(), close(0)], "Single-Tool"),
        ([call(), call(), close(0, 1)], "Parallel Multi-Tool"),
        ([call(), call(0), call(1), close(2)], "Sequential Multi-Tool"),
        ([call(2), close(0), call()], "Sequential Multi-Tool"),
        ([call(), call(0), call(0), close(1, 2)], "Mixed Multi-Tool"),
        ([call(), call(), call(0), close(1, 2)], "Mixed Multi-Tool"),
    ],
)
def test_a_missing_label_is_derived_from_the_reference(nodes: list[Record], label: str) -> None:
    bare = record(tasks=["t"], answer_list=[nodes])
    del bare["task_types"], bare["turn_subtypes"]
    (task,) = parse_record(bare).tasks
    assert (task.label, task.subtype) == (label, None)


def test_a_null_among_the_labels_is_derived_and_a_null_subtype_is_none() -> None:
    scenario = parse_record(record(task_types=[None, "Clarify"], turn_subtypes=[None]))
    assert [task.label for task in scenario.tasks] == ["Single-Tool", "Clarify"]
    assert scenario.tasks[1].subtype is None


@pytest.mark.parametrize("first", [None, "", "First Turn"])
def test_subtypes_may_have_an_entry_for_the_first_task(first: str | None) -> None:
    assert parse_record(record(turn_subtypes=[first, "Partial Information"])).tasks[1].subtype == SUBTYPES[1]


# What cannot be played


NODE = ["answer_list", 1, 1]

BROKEN: list[tuple[list[Any], Any, str, str]] = [
    (["id"], ..., "id", "is missing"),
    (["id"], 7, "id", "must be text, not a number"),
    (["id"], "a b", "id", "cannot stand in a URL"),
    (["id"], "", "id", "cannot stand in a URL"),
    (["id"], "..", "id", "cannot stand in a URL"),
    (["id"], "x/y", "id", "cannot stand in a URL"),
    (["env_info"], ..., "env_info", "is missing"),
    (["env_info"], None, "env_info", "must be text, not null"),
    (["env_info"], " ", "env_info", "must not be empty"),
    (["tools"], {}, "tools", "must be a list, not an object"),
    (["tools", 0], "weigh", "tools[0]", "must be an object, not text"),
    (["tools", 0, "function"], ..., "tools[0].function", "is missing"),
    (["tools", 0, "function", "name"], ..., "tools[0].function.name", "is missing"),
    (["tools", 0, "function", "name"], "prepare_to_answer", "tools[0].function.name", "cannot be a tool"),
    (["tools", 0, "function", "description"], 5, "tools[0].function.description", "must be text"),
    (["tools", 0, "function", "parameters"], [], "tools[0].function.parameters", "must be an object"),
    (["tools"], [tool(), tool()], "tools[1].function.name", "earlier tool"),
    (["tasks"], "words", "tasks", "must be a list, not text"),
    (["tasks"], [], "tasks", "at least one task"),
    (["tasks", 1], {"text": "x"}, "tasks[1]", "must be text, not an object"),
    (["tasks", 0], "", "tasks[0]", "must not be empty"),
    (["answer_list"], [[close()]], "answer_list", "1 answers for 2 tasks"),
    (["answer_list", 1], {}, "answer_list[1]", "must be a list"),
    (["answer_list", 1], [], "answer_list[1]", "no closing node"),
    (["answer_list", 1], [call()], "answer_list[1]", "no closing node"),
    (NODE, "call", "answer_list[1][1]", "must be an object, not text"),
    ([*NODE, "action"], ..., "answer_list[1][1].action", "is missing"),
    ([*NODE, "action"], "weigh", "answer_list[1][1].action", "must be an object"),
    ([*NODE, "action", "name"], ..., "answer_list[1][1].action.name", "must be text, not null"),
    (
        [*NODE, "action", "name"],
        "fly",
        "answer_list[1][1].action.name",
        '"fly" is not among the tools (weigh)',
    ),
    ([*NODE, "action", "arguments"], "{}", "answer_list[1][1].action.arguments", "must be an object"),
    ([*NODE, "observation"], ..., "answer_list[1][1].observation", "is missing"),
    (["answer_list", 0, 1, "observation"], {}, "answer_list[0][1].observation", "must be text"),
    (["answer_list", 0, 1, "observation"], "", "answer_list[0][1].observation", "must not be empty"),
    (["answer_list", 1, 0, "user_input"], ..., "answer_list[1][0].user_input", "scripted reply"),
    (["answer_list", 1, 0, "user_input"], "", "answer_list[1][0].user_input", "must not be empty"),
    ([*NODE, "dependency_list"], ..., "answer_list[1][1].dependency_list", "write []"),
    ([*NODE, "dependency_list"], 0, "answer_list[1][1].dependency_list", "must be a list"),
    ([*NODE, "dependency_list"], [True], "answer_list[1][1].dependency_list[0]", "true or false"),
    ([*NODE, "dependency_list"], [0.0], "answer_list[1][1].dependency_list[0]", "position of a node"),
    ([*NODE, "dependency_list"], [0, 3], "answer_list[1][1].dependency_list[1]", "nodes 0 to 2"),
    ([*NODE, "dependency_list"], [-1], "answer_list[1][1].dependency_list[0]", "out of range"),
    ([*NODE, "dependency_list"], [1], "answer_list[1][1].dependency_list[0]", "cannot wait for itself"),
    ([*NODE, "dependency_list"], [2], "answer_list[1]", "cyclic dependency: node 1 -> 2 -> 1"),
    (["task_types"], ["Single-Tool"], "task_types", "1 entries instead of 2 (one per task)"),
    (["task_types"], "Chat", "task_types", "must be a list"),
    (["task_types", 1], "Hard", "task_types[1]", "Single-Tool, Parallel Multi-Tool"),
    (["task_types", 1], 3, "task_types[1]", "is not a task label"),
    (["turn_subtypes"], ["Partial Information"] * 2, "turn_subtypes", "2 entries instead of 1"),
    (["turn_subtypes", 0], "Vague", "turn_subtypes[0]", "Coreferential Reference, Partial Information"),
    (["env_info"], "\ud800", "env_info", "surrogate"),
    (["annotations"], [], "annotations", "must be an object, not a list"),
    (["annotations"], {"weigh": {"free_text": ["itme"]}}, "annotations.weigh.free_text[0]", "mean item?"),
    (["annotations"], {"weigh": {"defaults": {"item": "\ud800"}}}, "annotations", "surrogate"),
    ([*NODE, "alternatives"], {}, "answer_list[1][1].alternatives", "must be a list, not an object"),
    (["answer_list", 1, 0, "alternatives"], [], "answer_list[1][0].alternatives", "belongs to a call"),
]


@pytest.mark.parametrize(("path", "value", "field", "reason"), BROKEN)
def test_a_broken_record_names_the_field_and_the_reason(
    path: list[Any], value: Any, field: str, reason: str
) -> None:
    error = refused(changed(path, value))
    assert (error.path, error.line, error.field) == ("", 0, field)
    assert reason in error.reason
    assert "\n" not in str(error)


def test_the_field_is_named_by_the_key_that_was_read() -> None:
    broken = english(changed(["answer_list", 1, 1, "dependency_list"], [0, 9]))
    assert refused(broken).field == "english_answer_list[1][1].dependency_list[1]"


def test_a_broken_tool_is_not_reported_again_for_each_call_of_it(tmp_path: Path) -> None:
    file = read_file(write(tmp_path / "f.jsonl", changed(["tools", 0, "function"], [])))
    assert [error.field for error in file.errors] == ["tools[0].function"]


# Properties

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def references(draw: st.DrawFn) -> list[Record]:
    nodes: list[Record] = []
    for i in range(draw(st.integers(0, 5))):
        earlier = draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else []
        node = ask(*earlier) if draw(st.integers(0, 4)) == 0 else call(*earlier)
        if "user_input" not in node:
            node["observation"] = draw(JSON)
            node["action"]["arguments"] = draw(st.dictionaries(TEXT, JSON, max_size=3))
            node["alternatives"] = draw(st.lists(st.dictionaries(TEXT, JSON, max_size=2), max_size=2))
        nodes.append(node)
    return [*nodes, close(*range(len(nodes)))]


@st.composite
def records(draw: st.DrawFn) -> Record:
    answers = draw(st.lists(references(), min_size=1, max_size=4))
    return record(
        tasks=[draw(TEXT) for _ in answers],
        answer_list=answers,
        task_types=[draw(st.sampled_from([None, *LABELS])) for _ in answers],
        turn_subtypes=[draw(st.sampled_from([None, *SUBTYPES])) for _ in answers[1:]],
        annotations={"weigh": draw(st.dictionaries(st.just("defaults"), st.just({"item": "fig"})))},
    )


@given(records())
@examples(60)
def test_a_scenario_is_read_back_from_its_record(drawn: Record) -> None:
    scenario = parse_record(drawn)
    stored = json.loads(json.dumps(scenario.record, allow_nan=False))
    assert parse_record(scenario.record) == scenario
    assert parse_record(stored) == scenario
    assert parse_record(english(drawn)) == scenario


@given(st.data())
@examples(60)
def test_whatever_stands_in_a_record_it_loads_or_says_why(data: st.DataObject) -> None:
    """No value at any place brings anything but a Scenario or a ScenarioError."""
    path, _, _, _ = data.draw(st.sampled_from(BROKEN))
    try:
        parse_record(changed(path, data.draw(JSON)))
    except ScenarioError as error:
        assert error.reason


# Real sessions


def test_the_real_sessions_load_and_are_read_back(real_session_files: list[Path]) -> None:
    files = load(real_session_files)
    sessions = [scenario for file in files for scenario in file.scenarios]
    assert [int(s.id.rsplit("_", 1)[1]) for s in sessions] == [*range(8), *range(79, 89)]
    assert sum(len(s.tasks) for s in sessions) == 72
    for scenario in sessions:
        assert parse_record(json.loads(json.dumps(scenario.record))) == scenario


def test_the_real_sessions_with_english_keys_have_no_chinese_words(real_session_files: list[Path]) -> None:
    plain, english_keys = real_session_files
    assert len(read_file(plain, "zh").scenarios) == 8
    read = read_file(english_keys, "zh")
    assert read.scenarios == ()
    assert [error.line for error in read.errors] == list(range(1, 11))
