"""Whatever stands in a scenario file: it is loaded, or one line says what is wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.anything import changed, damaged, json_values
from support.commands import run
from support.examples import examples
from support.fruit import annotated, cyclic, record

from scenarios.load import parse_record, read_file
from scenarios.reference import depth, minimal_path
from scenarios.validate import validate
from scoring.scenarios_cli import judges_of

NAMES = ["weigh", "ask_user_for_required_parameters", "prepare_to_answer", "fruit_1", "Chat", "澄清"]
KEYS = st.sampled_from(
    [
        *("id", "env_info", "tools", "tasks", "answer_list", "task_types", "turn_subtypes", "annotations"),
        *("english_tasks", "english_answer_list", "function", "name", "parameters", "type", "properties"),
        *("action", "arguments", "observation", "dependency_list", "user_input", "alternatives", "idx"),
        *("defaults", "free_text", "unordered", "side_effects", "undoes", "$ref", "enum", "anyOf", "default"),
        *NAMES,
    ]
)
VALUES = json_values(KEYS)
SOUND = [record(), annotated(), cyclic(), {f"english_{key}": value for key, value in record().items()}]
FILE = "\n".join(json.dumps(it, ensure_ascii=False) for it in SOUND[:2]).encode()
FRAGMENTS = st.sampled_from(
    [
        *(
            b"\n",
            b"\r",
            b"\x00",
            b"\xff",
            b"\xef\xbb\xbf",
            b"//",
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b"\\",
            b",",
            b":",
        ),
        *(b"NaN", b"1e999", b"\\ud800", b"null", b"true"),
    ]
) | st.sampled_from([b"9", b"[", b'{"a":']).map(lambda it: it * 5000)


def told(data: bytes) -> None:
    """Reads a file of these bytes, and holds what comes of it to what is promised."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_bytes(data)
        file = read_file(path)
    assert file.scenarios or file.errors
    assert all(error.reason and len(str(error).splitlines()) == 1 for error in file.errors)
    for scenario in file.scenarios:
        assert parse_record(scenario.record) == scenario
        for task in scenario.tasks:
            assert len(minimal_path(task.nodes)) == depth(task.nodes)


def text_of(value: Any) -> bytes:
    """JSON text; a half of a surrogate pair is written as an escape."""
    return json.dumps(value, ensure_ascii=True).encode()


@examples(60)
@given(st.binary() | st.lists(FRAGMENTS).map(b"".join) | VALUES.map(text_of))
def test_any_bytes_load_or_are_told_of_in_one_line(data: bytes) -> None:
    told(data)


@examples(60, large=True)
@given(damaged(FILE, FRAGMENTS))
def test_a_file_with_bytes_changed_loads_or_is_told_of_in_one_line(data: bytes) -> None:
    told(data)


@examples(80, large=True)
@given(st.sampled_from(SOUND).flatmap(lambda sound: changed(sound, VALUES, KEYS)))
def test_a_record_with_any_values_changed_loads_or_is_told_of_in_one_line(value: Any) -> None:
    told(text_of(value))


@examples(20, large=True)
@given(st.sampled_from(SOUND).flatmap(lambda sound: changed(sound, VALUES, KEYS, most=1)))
def test_what_is_loaded_can_be_validated(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_bytes(text_of(value))
        file = read_file(path)
    for scenario in file.scenarios:
        findings = validate(scenario, judges_of(scenario))
        assert all(it.level in ("error", "warning", "note") and it.reason for it in findings)


@examples(10, large=True)
@given(
    st.sampled_from(SOUND).flatmap(lambda sound: changed(sound, VALUES, KEYS, most=1)).map(text_of)
    | damaged(FILE, FRAGMENTS, most=2)
)
def test_the_commands_say_in_one_line_why_they_cannot_read_a_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_bytes(data)
        for words in (("list",), ("validate",), ("show",), ("validate", "--format", "json")):
            done = run("scenarios", *words, path)
            assert done.exception is None or isinstance(done.exception, SystemExit), words
            assert done.exit_code in (0, 1, 2), words
            done.output.encode()


def test_the_sound_files_are_what_the_changes_begin_with() -> None:
    """Otherwise all that is tried would be what is refused at once."""
    assert parse_record(SOUND[0]) == parse_record(record())
    assert parse_record(annotated()).notes
