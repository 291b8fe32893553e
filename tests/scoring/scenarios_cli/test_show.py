"""`scenarios show`: what should happen in a session."""

from __future__ import annotations

import json
from typing import Any

from support.fruit import IDS, annotated, record, run

from scenarios import load


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
