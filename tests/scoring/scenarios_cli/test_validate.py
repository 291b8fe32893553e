"""`scenarios validate`: what it finds, and what the documentation says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.fruit import IDS, annotated, cyclic, record, run

from scenarios import load
from scenarios.mutations import reference_replies
from scoring.scenarios_cli import judges_of


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
    assert "the Reference itself is not correct under the scorer wildtoolbench: step 2: " in line


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
        "is not correct under the scorer wildtoolbench even in place of the arguments: step 2: "
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
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    return page.partition(f"<!-- {mark} -->\n```")[2].partition("\n")[2].partition("```")[0]


def test_the_annotated_example_is_sound(write: Any) -> None:
    path = write(json.loads(documented("file: rooms.json")))
    assert run("validate", path).stdout == "1 file, 1 session, 0 errors, 0 warnings, 0 notes\n"


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
