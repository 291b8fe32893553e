"""`scenarios new` and `schema`: how a file of one's own begins."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support.fruit import run

from scenarios import load
from scenarios.record_schema import record_schema


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
