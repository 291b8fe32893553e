"""`scenarios list`: the packs, and how a file is balanced."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from support.fruit import IDS, node, record, run

from scenarios import LABELS, load
from scenarios.packs import packs
from scoring.scenarios_balance import SHAPES


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
