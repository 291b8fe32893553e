"""`scenarios list`, `show`, `validate`, `new` and `schema`: what they print, and how they refuse."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scenarios import BUNDLED, LABELS, load
from scenarios.mutations import reference_replies
from scenarios.packs import packs
from scenarios.record_schema import record_schema
from scoring.scenarios_balance import SHAPES
from scoring.scenarios_cli import judges_of, scenarios
from scoring.scenarios_text import json_text

IDS = [scenario.id for scenario in load(["bundled"])[0].scenarios]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(scenarios, [str(argument) for argument in arguments])


def node(name: str, *dependencies: int, observation: Any = "Done.", **more: Any) -> dict[str, Any]:
    action = {"name": name, "arguments": more.pop("arguments", {})}
    return {"action": action, "observation": observation, "dependency_list": list(dependencies), **more}


def record(**changes: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {
            "item": {"type": "string", "enum": ["pear", "fig"]},
            "tags": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["item"],
    }
    function = {"name": "weigh", "description": "Weigh a fruit.", "parameters": parameters}
    sound = {
        "id": "fruit_1",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": [{"type": "function", "function": function}],
        "tasks": ["Weigh it.", "Thank you."],
        "answer_list": [
            [
                node("ask_user_for_required_parameters", observation="Which fruit?", user_input="The pear."),
                node("weigh", 0, arguments={"item": "pear"}, observation={"grams": 180}),
                node("prepare_to_answer", 1, observation="180 grams.\nAnything else?"),
            ],
            [node("prepare_to_answer", observation="You are welcome.")],
        ],
        "task_types": ["Clarify", "Chat"],
        "turn_subtypes": ["Partial Information"],
    }
    return {**sound, **changes}


def cyclic(**changes: Any) -> dict[str, Any]:
    nodes = [node("weigh", 1, arguments={"item": "fig"}), node("prepare_to_answer", 0)]
    return record(answer_list=[nodes, record()["answer_list"][1]], **changes)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(*records: Any, name: str = "fruit.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in records))
        return path

    return write


# list


def test_list_prints_sizes_labels_subtypes_and_the_sha256(write: Any) -> None:
    path = write(record())
    result = run("list", path)
    assert result.exit_code == 0
    title, header, row, *_ = result.stdout.splitlines()
    assert title == f"{path}  1 session  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert header.split() == ["id", "tasks", "tools", "nodes", "labels", "subtypes", "hash"]
    (scenario,) = load([path])[0].scenarios
    assert row.split() == ["fruit_1", "2", "1", "4", "Clarify", "Chat", "-", "Partial", scenario.hash[:12]]


def test_list_takes_several_files_and_the_word_bundled(write: Any) -> None:
    result = run("list", write(record()), "bundled")
    assert result.exit_code == 0
    assert [name for name in ["fruit_1", *IDS] if f"\n  {name} " not in result.stdout] == []


def test_list_as_json_has_full_names(write: Any) -> None:
    path = write(record())
    (file,) = json.loads(run("list", path, "--format", "json").stdout)["files"]
    (scenario,) = load([path])[0].scenarios
    del file["balance"]
    assert file == {
        "file": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "language": "en",
        "sessions": [
            {
                "id": "fruit_1",
                "line": 1,
                "date": "2025-03-14 09:00:00 Friday",
                "labels": ["Clarify", "Chat"],
                "subtypes": [None, "Partial Information"],
                "tasks": 2,
                "tools": 1,
                "nodes": 4,
                "annotated": False,
                "hash": scenario.hash,
            }
        ],
    }


def test_list_reads_the_language_asked_for(write: Any) -> None:
    both = {**record(env_info="2025-03-14 星期五"), "english_env_info": "2025-03-14 Friday"}
    path = write(both)
    dates = [
        json.loads(run("list", path, "--language", language, "--format", "json").stdout)["files"][0][
            "sessions"
        ][0]
        for language in ("en", "zh")
    ]
    assert [session["date"] for session in dates] == ["2025-03-14 Friday", "2025-03-14 星期五"]


def two_calls() -> dict[str, Any]:
    """Two fruits at once and then one again, written into a book; in Chinese, with a subtype left out."""
    nodes = [
        node("weigh", arguments={"item": "pear"}),
        node("weigh", arguments={"item": "fig"}),
        node("weigh", 0, 1, arguments={"item": "pear", "tags": [1]}),
        node("prepare_to_answer", 0, 1, 2),
    ]
    return record(
        id="fruit_2",
        tasks=["称一下。", "谢谢。"],
        answer_list=[nodes, record()["answer_list"][1]],
        task_types=["Mixed Multi-Tool", "Chat"],
        turn_subtypes=[None],
        annotations={"weigh": {"side_effects": True}},
    )


def test_list_as_json_has_the_balance_of_each_file(write: Any) -> None:
    (file,) = json.loads(run("list", write(record(), two_calls()), "--format", "json").stdout)["files"]
    none = dict.fromkeys(LABELS, 0)
    assert file["balance"] == {
        "sessions": 2,
        "tasks": 4,
        "languages": {"en": 1, "zh": 1},
        "annotated": 1,
        "tools": {"fewest": 1, "most": 1, "names": 1, "with_side_effects": 1},
        "labels": {**none, "Mixed Multi-Tool": 1, "Clarify": 1, "Chat": 2},
        "subtypes": {
            "First Turn": 2,
            "Coreferential Reference": 0,
            "Partial Information": 1,
            "Long-Range Dependency": 0,
            "none": 1,
        },
        "labels_by_subtype": {
            **{label: {} for label in LABELS},
            "Mixed Multi-Tool": {"First Turn": 1},
            "Clarify": {"First Turn": 1},
            "Chat": {"Partial Information": 1, "none": 1},
        },
        "labels_by_position": {
            **{label: {} for label in LABELS},
            "Mixed Multi-Tool": {"1": 1},
            "Clarify": {"1": 1},
            "Chat": {"2": 2},
        },
        "shapes": {**dict.fromkeys(SHAPES, 0), "no call": 2, "mixed": 1, "ask first": 1},
        "steps_by_shape": {
            **{shape: {} for shape in SHAPES},
            "no call": {"": 2},
            "mixed": {"2-1": 1},
            "ask first": {"ask-1": 1},
        },
        "parallel_tasks": 1,
        "writing_tasks": 1,
        "writes": 3,
    }


def test_list_prints_the_balance_under_the_sessions(write: Any) -> None:
    lines = run("list", write(record(), two_calls())).stdout.splitlines()
    after = [" ".join(line.split()) for line in lines[lines.index("") + 1 :]]
    assert after == [
        "label all first coreferential partial long-range none task 1 task 2",
        "Single-Tool . . . . . . . .",
        "Parallel Multi-Tool . . . . . . . .",
        "Sequential Multi-Tool . . . . . . . .",
        "Mixed Multi-Tool 1 1 . . . . 1 .",
        "Clarify 1 1 . . . . 1 .",
        "Chat 2 . . 1 . 1 . 2",
        "all 4 2 . 1 . 1 2 2",
        "",
        "shape all steps",
        "no call 2",
        "single .",
        "parallel .",
        "chain .",
        "mixed 1 2-1: 1",
        "ask first 1 ask-1: 1",
        "ask later .",
        "",
        "tasks with several calls in one step: 1",
        "tasks with side effects: 1; calls: 3",
        "tools in a session: 1; in all: 1; with side effects: 1",
        "sessions by language: 1 en, 1 zh; annotated: 1",
    ]


def test_a_question_after_a_call_is_a_shape_of_its_own(write: Any) -> None:
    later = record()
    later["answer_list"][0] = [
        node("weigh", arguments={"item": "fig"}),
        node("ask_user_for_required_parameters", 0, observation="Which?", user_input="The pear."),
        node("weigh", 1, arguments={"item": "pear"}),
        node("prepare_to_answer", 0, 1, 2),
    ]
    (file,) = json.loads(run("list", write(later), "--format", "json").stdout)["files"]
    assert file["balance"]["steps_by_shape"]["ask later"] == {"1-ask-1": 1}


def test_list_without_a_file_lists_the_packs_with_their_counts() -> None:
    lines = run("list").stdout.splitlines()
    rows = [line.split() for line in lines[2 : lines.index("")]]
    files = {name: load([name])[0].scenarios for name in packs()}
    assert [row[:3] for row in rows] == [
        [name, str(len(held)), str(sum(len(s.tasks) for s in held))] for name, held in files.items()
    ]
    document = json.loads(run("list", "--format", "json").stdout)
    assert [pack["pack"] for pack in document["packs"]] == list(packs())
    assert [pack["labels"] for pack in document["packs"]] == [
        {label: [t.label for s in held for t in s.tasks].count(label) for label in LABELS}
        for held in files.values()
    ]


def test_a_name_that_is_no_pack_suggests_the_nearest() -> None:
    result = run("show", "legder")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: legder: no such file, and no pack of that name; did you mean ledger? "
        f"the packs are {', '.join(packs())}\n"
    )


# new and schema


@pytest.mark.parametrize("name", ["my sessions.json", "mine.jsonl", "-x", "...", "é"])
def test_a_new_file_is_sound_and_named_after_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("new", "--", name)
    assert (made.exit_code, made.stderr) == (0, "")
    assert run("validate", "--", name).stdout == "1 file, 1 session, 0 errors, 0 warnings, 0 notes\n"
    text = Path(name).read_text(encoding="utf-8")
    assert text.startswith("// ")
    assert (text.count("\n") < 5) == name.endswith(".jsonl")


def test_both_forms_of_a_new_file_hold_the_same_session(tmp_path: Path) -> None:
    one, other = tmp_path / "a.x", tmp_path / "b" / "a.x"
    other.parent.mkdir()
    run("new", one, "--format", "jsonl")
    run("new", other, "--format", "json")
    assert one.read_text() != other.read_text()
    assert load([one])[0].scenarios == load([other])[0].scenarios
    assert load([one])[0].scenarios[0].id == "a_1"


def test_new_ends_by_saying_what_to_do_next(tmp_path: Path) -> None:
    path = tmp_path / "my file.json"
    first, *commands = run("new", path).stdout.splitlines()
    assert first.startswith(f"Wrote {path}: ")
    assert [shlex.split(command)[:3] for command in commands] == [
        ["wildproxy", "scenarios", "validate"],
        ["wildproxy", "drive", "--agent"],
        ["wildproxy", "score", "my file.db"],
    ]
    assert all(str(path) in shlex.split(command) for command in commands[:2])


def test_new_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    path.write_text("mine")
    result = run("new", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {path} is there already and was left alone; choose another name\n"
    assert path.read_text() == "mine"


def test_new_in_a_folder_that_is_missing_is_one_line(tmp_path: Path) -> None:
    result = run("new", tmp_path / "none" / "my.json")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"there is no folder {tmp_path / 'none'}; make it first\n")


def test_schema_prints_the_json_schema() -> None:
    result = run("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == record_schema()


# show


def test_show_prints_a_session_along_its_shortest_path(write: Any) -> None:
    path = write(record())
    result = run("show", path, "fruit_1")
    assert result.exit_code == 0
    (scenario,) = load([path])[0].scenarios
    assert result.stdout == (
        f"fruit_1  hash {scenario.hash[:12]}\n"
        "Date: 2025-03-14 09:00:00 Friday\n"
        "\n"
        "Tools\n"
        '  weigh(item: "pear"|"fig", tags?: array of integer)\n'
        "      Weigh a fruit.\n"
        "\n"
        "Task 1: Clarify\n"
        "  User: Weigh it.\n"
        "  Step 1\n"
        "    [0] ask\n"
        "        Assistant: Which fruit?\n"
        "        User: The pear.\n"
        "  Step 2\n"
        '    [1] weigh(item="pear")  after 0\n'
        '        -> {"grams": 180}\n'
        "  Step 3\n"
        "    [2] close  after 1\n"
        "        Assistant: 180 grams.\n"
        "                   Anything else?\n"
        "\n"
        "Task 2: Chat, Partial Information\n"
        "  User: Thank you.\n"
        "  Step 1\n"
        "    [0] close\n"
        "        Assistant: You are welcome.\n"
    )


def test_show_of_one_task_leaves_the_others_out(write: Any) -> None:
    result = run("show", write(record()), "--task", "2")
    assert "Task 2: Chat" in result.stdout
    assert "Task 1" not in result.stdout


def test_show_without_an_id_prints_the_first_session_and_names_the_others() -> None:
    result = run("show", "bundled")
    assert result.stdout.startswith(f"{IDS[0]}  hash ")
    assert result.stderr == f"(the first of {len(IDS)} sessions; others: {', '.join(IDS[1:])})\n"


def test_show_shortens_observations_unless_full(write: Any) -> None:
    long = record()
    long["answer_list"][0][1]["observation"] = "x" * 500
    path = write(long)
    assert "x" * 500 not in run("show", path).stdout
    assert "(302 more characters)" in run("show", path).stdout
    assert "x" * 500 in run("show", path, "--full").stdout


def test_show_as_json_has_the_steps(write: Any) -> None:
    shown = json.loads(run("show", write(record()), "--format", "json", "--task", "1").stdout)
    (task,) = shown["tasks"]
    assert (shown["id"], task["task"], task["label"]) == ("fruit_1", 1, "Clarify")
    assert [[each["node"] for each in step] for step in task["steps"]] == [[0], [1], [2]]
    assert task["steps"][0][0]["user_input"] == "The pear."
    assert task["steps"][1][0] == {
        "node": 1,
        "name": "weigh",
        "arguments": {"item": "pear"},
        "dependencies": [0],
        "observation": {"grams": 180},
    }


def annotated() -> dict[str, Any]:
    """The record with annotations for its one tool, and another right call."""
    noted = record(
        annotations={
            "weigh": {
                "side_effects": True,
                "unordered": ["tags"],
                "free_text": ["note", "by"],
                "defaults": {"tags": [1], "by": "me"},
                "undoes": ["weigh"],
            }
        }
    )
    properties = noted["tools"][0]["function"]["parameters"]["properties"]
    properties.update(note={"type": "string"}, by={"type": "string"})
    noted["answer_list"][0][1]["alternatives"] = [{"item": "pear", "note": "ü"}]
    return noted


def test_show_prints_annotations_under_their_tool_and_alternatives_under_their_call(write: Any) -> None:
    lines = run("show", write(annotated())).stdout.splitlines()
    after = lines.index("      Weigh a fruit.") + 1
    assert lines[after] == (
        "      Annotations: side effects; free text by, note; unordered tags; "
        'defaults tags=[1], by="me"; undoes weigh'
    )
    after = lines.index('    [1] weigh(item="pear")  after 0') + 1
    assert lines[after : after + 2] == [
        '        or weigh(item="pear", note="ü")',
        '        -> {"grams": 180}',
    ]


def test_show_as_json_has_annotations_and_alternatives(write: Any) -> None:
    shown = json.loads(run("show", write(annotated()), "--format", "json").stdout)
    said = annotated()["annotations"]["weigh"]
    assert shown["annotations"] == {"weigh": {**said, "free_text": ["by", "note"]}}
    assert shown["tasks"][0]["steps"][1][0]["alternatives"] == [{"item": "pear", "note": "ü"}]


def test_list_as_json_tells_which_sessions_are_annotated(write: Any) -> None:
    other = record(id="b")
    other["answer_list"][0][1]["alternatives"] = [{"item": "fig"}]
    path = write(annotated(), other, record(id="c"))
    (file,) = json.loads(run("list", path, "--format", "json").stdout)["files"]
    assert [session["annotated"] for session in file["sessions"]] == [True, True, False]


def test_show_of_an_unknown_session_names_those_there_are(write: Any) -> None:
    result = run("show", write(record()), "fruit_2")
    assert result.exit_code == 2
    assert result.stderr.strip().endswith("has no session fruit_2 (did you mean 'fruit_1'?); it has fruit_1")


def test_show_of_an_unknown_task_says_how_many_there_are(write: Any) -> None:
    result = run("show", write(record()), "--task", "3")
    assert (result.exit_code, result.stderr) == (2, "Error: fruit_1 has 2 tasks; there is no task 3\n")


HOSTILE = "a\x1b[31mred\x9b1m\u202eevil\x07\u2028b\rc"


def hostile() -> dict[str, Any]:
    bad = record(env_info=HOSTILE, tasks=[HOSTILE, HOSTILE])
    bad["tools"][0]["function"]["description"] = HOSTILE
    properties = bad["tools"][0]["function"]["parameters"]["properties"]
    properties["item"]["description"] = f"The default is {HOSTILE}"
    bad["answer_list"][0][0]["observation"] = HOSTILE
    bad["answer_list"][0][0]["user_input"] = HOSTILE
    bad["answer_list"][0][1]["observation"] = {HOSTILE: HOSTILE}
    bad["answer_list"][0][2]["observation"] = HOSTILE
    return bad


@pytest.mark.parametrize("arguments", [["show"], ["show", "--format", "json"], ["list"], ["validate"]])
def test_a_hostile_file_sends_nothing_to_the_terminal_that_it_would_obey(
    write: Any, arguments: list[str]
) -> None:
    command, *options = arguments
    result = run(command, write(hostile()), *options)
    assert [char for char in "\x1b\x9b\u202e\x07\u2028\r" if char in result.output] == []


def test_a_hostile_value_in_an_error_is_made_visible(write: Any) -> None:
    result = run("list", write(record(task_types=["\x1b[31m\u202e", "Chat"])))
    assert result.exit_code == 2
    assert [char for char in "\x1b\u202e" if char in result.stderr] == []


def test_json_text_escapes_what_a_terminal_obeys_and_stays_the_same_value() -> None:
    assert json_text("\x1b\x9b\u202e\x7f").isascii()
    assert json.loads(json_text({"é": HOSTILE})) == {"é": HOSTILE}


# validate


def test_validate_of_the_bundled_sessions_finds_nothing() -> None:
    result = run("validate", "bundled")
    assert result.exit_code == 0
    assert result.stdout == f"1 file, {len(IDS)} sessions, 0 errors, 0 warnings, 0 notes\n"


def test_validate_prints_every_finding_with_file_line_task_and_field(write: Any) -> None:
    wrong = record(id="wrong")
    wrong["answer_list"][0][1]["action"]["arguments"] = {}
    wrong["task_types"] = ["Chat", "Chat"]
    path = write(record(), cyclic(id="cyclic", env_info=7), wrong)
    result = run("validate", path)
    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        f"{path}:2: error: env_info: must be text, not a number",
        f"{path}:2: error: answer_list[0]: has a cyclic dependency: node 0 -> 1 -> 0 "
        "(each waits for the next); remove one of them",
        f"{path}:3: note: task 1: task_types[0]: is Chat, but the Reference has the shape of Clarify",
        f"{path}:3: error: task 1: answer_list[0][1].action.arguments: lack 'item', which weigh requires",
        "1 file, 2 sessions, 3 errors, 0 warnings, 1 note",
    ]


def test_validate_of_an_unlinked_closing_node_shows_what_survives(write: Any) -> None:
    loose = record()
    loose["answer_list"][0][2]["dependency_list"] = []
    result = run("validate", write(loose))
    assert result.exit_code == 2
    assert (
        "warning: task 1: answer_list[0][2].dependency_list: the closing node does not wait for"
        in result.stdout
    )
    assert (
        "error: task 1: answer_list[0][1]: scores correct with text instead of the call (under wildtoolbench)"
        in result.stdout
    )


def test_validate_says_under_which_scorer_a_reference_is_wrong(write: Any) -> None:
    """5.0 is an integer in JSON Schema, but no int in Python, which the released scorer asks for."""
    whole = record()
    whole["answer_list"][0][1]["action"]["arguments"]["tags"] = [5.0]
    result = run("validate", write(whole))
    assert result.exit_code == 2
    (line, _) = result.stdout.splitlines()
    assert "the Reference itself is not correct under the scorer wildtoolbench: step 1: " in line


def test_a_reference_is_judged_by_both_scorers_and_by_its_annotations_where_they_count(write: Any) -> None:
    """The Reference spells a default out and the reply leaves it out: wrong as released, else right."""
    noted = annotated()
    noted["answer_list"][0][1]["action"]["arguments"] = {"item": "pear", "by": "me"}
    (scenario,) = load([write(noted)])[0].scenarios
    nodes = scenario.tasks[0].nodes
    asked, called, closed = reference_replies(nodes)
    shorter = replace(called, calls=(replace(called.calls[0], arguments='{"item": "pear"}'),))
    verdicts = {
        name: judge(scenario.tools, nodes, (asked, shorter, closed)).label
        for name, judge in judges_of(scenario).items()
    }
    assert verdicts == {"wildtoolbench": "error", "strict": "correct"}


def test_validate_of_an_alternative_that_the_tool_refuses(write: Any) -> None:
    refused = record()
    refused["answer_list"][0][1]["alternatives"] = [{"item": "fig"}, {"item": "plum"}]
    path = write(refused)
    result = run("validate", path)
    assert result.exit_code == 2
    assert result.stdout.startswith(
        f"{path}:1: error: task 1: answer_list[0][1].alternatives[1]: "
        "is not correct under the scorer wildtoolbench even in place of the arguments: step 1: "
    )


def test_validate_with_warnings_alone_exits_with_0(write: Any) -> None:
    result = run("validate", write(record(env_info="2025-03-14 Monday")))
    assert result.exit_code == 0
    assert "1 warning" in result.stdout


def test_a_level_leaves_out_what_is_less_grave_but_counts_it(write: Any) -> None:
    path = write(record(env_info="2025-03-14 Monday", task_types=["Chat", "Chat"]))
    assert [
        len(run("validate", path, "--level", level).stdout.splitlines()) for level in ("note", "warning")
    ] == [
        3,
        2,
    ]
    assert (
        run("validate", path, "--level", "error").stdout == "1 file, 1 session, 0 errors, 1 warning, 1 note\n"
    )


def test_validate_as_json(write: Any) -> None:
    path = write(cyclic())
    result = run("validate", path, "--format", "json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert [document[key] for key in ("errors", "warnings", "notes")] == [1, 0, 0]
    (finding,) = document["findings"]
    assert {key: finding[key] for key in ("file", "line", "level", "scenario", "task", "field")} == {
        "file": str(path),
        "line": 1,
        "level": "error",
        "scenario": None,
        "task": None,
        "field": "answer_list[0]",
    }


def test_a_session_in_two_files_is_a_warning(write: Any) -> None:
    first, second = write(record(), name="a.jsonl"), write(record(), name="b.jsonl")
    result = run("validate", first, second)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith(
        f"{second}:1: warning: id: fruit_1 is a session of {first} too"
    )


def test_validate_of_the_real_sessions_has_no_errors(real_session_files: list[Path]) -> None:
    result = run("validate", *real_session_files, "--level", "warning")
    assert result.exit_code == 0
    assert result.stdout == "2 files, 18 sessions, 0 errors, 0 warnings, 108 notes\n"


# The example of the documentation


def documented(mark: str) -> str:
    """The code block of docs/scenarios.md under `<!-- MARK -->`."""
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    return page.partition(f"<!-- {mark} -->\n```")[2].partition("\n")[2].partition("```")[0]


def test_the_annotated_example_is_sound_and_shown_as_said(write: Any) -> None:
    path = write(json.loads(documented("file: rooms.json")))
    assert run("validate", path).stdout == "1 file, 1 session, 0 errors, 0 warnings, 0 notes\n"
    printed = iter(run("show", path, "--task", "1").stdout.splitlines())
    command, *shown = documented("run: rooms").splitlines()
    assert command == "$ wildproxy scenarios show rooms.jsonl --task 1"
    assert [line for line in shown if line != "..." and line not in printed] == []


def test_the_annotated_example_is_judged_as_said(write: Any) -> None:
    (scenario,) = load([write(json.loads(documented("file: rooms.json")))])[0].scenarios
    nodes = scenario.tasks[0].nodes
    called, closed = reference_replies(nodes)
    said = {
        "room": "Green",
        "start": "2025-05-14 10:00",
        "minutes": 30,
        "title": "Planning the budget",
        "guests": ["Grace", "Ada"],
    }
    verdicts = []
    for other in ({}, {"room": "Red"}, {"minutes": 45}, {"guests": ["Ada"]}, {"title": "Lunch"}):
        call = replace(called.calls[0], arguments=json.dumps({**said, **other}))
        replies = (replace(called, calls=(call,)), closed)
        verdicts.append(judges_of(scenario)["strict"](scenario.tools, nodes, replies).label)
    assert verdicts == ["correct", "error", "error", "error", "error"]


# Broken input, in every command


@pytest.mark.parametrize("command", ["list", "show", "validate"])
def test_a_missing_file_is_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    result = run(command, tmp_path / "none.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {tmp_path / 'none.jsonl'}: no such file")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "show", "validate"])
def test_a_folder_is_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    result = run(command, tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {tmp_path}: is a directory; name a .jsonl file in it\n"


@pytest.mark.parametrize("command", ["list", "show"])
@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("# Notes\nText\n", ":1: not JSON"),
        (json.dumps(cyclic()), ":1: answer_list[0]: has a cyclic dependency"),
    ],
)
def test_a_broken_file_is_one_line_and_exit_code_2(
    command: str, content: str, where: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    result = run(command, path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {path}{where}")
    assert result.stderr.count("\n") == 1


def test_validate_of_a_file_that_is_not_json_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("# Notes\nText\n")
    result = run("validate", path)
    assert result.exit_code == 2
    assert result.stdout.startswith(f"{path}:1: error: not JSON")
    assert result.stdout.count("\n") == 1


def test_list_tells_how_many_more_errors_there_are(write: Any) -> None:
    result = run("list", write(cyclic(), cyclic(id="x")))
    assert result.stderr.strip().endswith("(and 1 more; 'scenarios validate' lists them)")


@pytest.mark.parametrize("arguments", [[], ["list"], ["show"], ["validate"], ["new"]])
def test_help_is_there_for_the_group_and_each_command(arguments: list[str]) -> None:
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert "FILE" in result.stdout


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, scoring.scenarios_cli\n"
        "heavy = {'aiohttp', 'openai', 'sqlite_utils', 'jieba', 'rouge', 'orjson'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=BUNDLED.parents[2]
    )
    assert done.stdout == "[]\n"
