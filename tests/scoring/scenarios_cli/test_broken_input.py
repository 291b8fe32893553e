"""The commands `scenarios`: files that cannot be read, that mean harm; help."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fruit import cyclic, record, run

from scenarios import BUNDLED
from scoring.scenarios_text import json_text


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


# Files that mean harm


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
