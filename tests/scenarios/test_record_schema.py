"""The JSON Schema of scenario files and the loader agree, as far as a schema can say it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scenarios.packs import packs
from scenarios.record import read_record
from scenarios.record_schema import record_schema

Record = dict[str, Any]
Path_ = tuple[str | int, ...]

VALIDATOR = Draft202012Validator(record_schema())

COLUMNS = ("env_info", "tools", "tasks", "answer_list")

VALUES: tuple[Any, ...] = (..., None, True, 7, 1.5, "", "x", [], [None], ["x"], [7], [{}], {}, {"x": 1})
"""What is put in a place; `...` takes it away."""

FEW = VALUES[::4]

BETWEEN_PLACES = re.compile(
    "is not among the tools|is the name of an earlier tool|answers for|entries instead of|is out of range"
    "|is the node itself|cyclic dependency|is no parameter of|is of type|has no side effects"
)
"""What is said of something that is wrong only beside something else, which no schema can tell."""


def sound() -> Record:
    """A record with everything that may be in one."""
    parameters = {
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "note": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["item"],
    }
    return {
        "id": "fruit_1",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": [
            {"type": "function", "function": {"name": "weigh", "description": "d", "parameters": parameters}},
            {"type": "function", "function": {"name": "undo"}},
        ],
        "tasks": ["Weigh it.", "Thanks."],
        "answer_list": [
            [
                {
                    "action": {"name": "ask_user_for_required_parameters", "arguments": {}},
                    "observation": "Which?",
                    "dependency_list": [],
                    "user_input": "The pear.",
                },
                {
                    "action": {"name": "weigh", "arguments": {"item": "pear"}},
                    "observation": {"grams": 180},
                    "dependency_list": [0],
                    "alternatives": [{"item": "the pear"}],
                },
                {
                    "action": {"name": "prepare_to_answer"},
                    "observation": "180 grams.",
                    "dependency_list": [0, 1],
                },
            ],
            [{"action": {"name": "prepare_to_answer"}, "observation": "Sure.", "dependency_list": []}],
        ],
        "task_types": ["Clarify", None],
        "turn_subtypes": ["Partial Information"],
        "annotations": {
            "weigh": {
                "side_effects": True,
                "free_text": ["note"],
                "unordered": ["tags"],
                "defaults": {"note": "none"},
                "undoes": ["weigh"],
            }
        },
    }


def in_both_languages() -> Record:
    plain = {**sound(), "task_types": ["澄清", "闲聊"], "turn_subtypes": ["指代理解"]}
    return {
        **plain,
        **{f"english_{k}": v for k, v in sound().items() if k in (*COLUMNS, "task_types", "turn_subtypes")},
    }


def in_english_keys() -> Record:
    return {
        k: v for k, v in in_both_languages().items() if k.startswith("english_") or k in ("id", "annotations")
    }


BASES = ((sound, VALUES), (in_both_languages, FEW), (in_english_keys, FEW))


def places(value: Any, way: Path_ = ()) -> Iterator[Path_]:
    """Every place in a record but those within a tool's schema and within an observation."""
    if way:
        yield way
    if way and way[-1] in ("parameters", "observation", "arguments", "defaults"):
        return
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from places(child, (*way, key))


def mutations(record: Record, values: tuple[Any, ...]) -> Iterator[tuple[str, Record]]:
    for way in places(record):
        for value in values:
            changed = copy.deepcopy(record)
            inner: Any = changed
            for key in way[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[way[-1]]
            else:
                inner[way[-1]] = value
            yield f"{way}: {'deleted' if value is ... else json.dumps(value)}", changed


def refusals(record: Record) -> list[str]:
    """What the loader says of a record in every language whose columns it has."""
    languages = ["en", *(["zh"] if all(name in record for name in COLUMNS) else [])]
    return [f"{field}: {reason}" for name in languages for field, reason in read_record(record, name)[1]]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(record_schema())


@pytest.mark.parametrize("base", [base for base, _ in BASES])
def test_a_sound_record_is_valid_and_accepted_alone_and_in_a_list(base: Any) -> None:
    assert refusals(base()) == []
    assert VALIDATOR.is_valid(base()) and VALIDATOR.is_valid([base(), base()])
    assert not VALIDATOR.is_valid([]) and not VALIDATOR.is_valid([base(), {}])


@pytest.mark.parametrize(("base", "values"), BASES)
def test_the_loader_refuses_a_record_if_and_only_if_the_schema_does(base: Any, values: Any) -> None:
    differing, both = [], 0
    for what, record in mutations(base(), values):
        said = refusals(record)
        if VALIDATOR.is_valid(record):
            differing += [(what, it) for it in said if not BETWEEN_PLACES.search(it)]
        elif said:
            both += 1
        else:
            differing.append((what, "is accepted by the loader alone"))
    assert differing == []
    assert both > 100


def test_every_session_of_the_packs_is_valid() -> None:
    lines = [line for path in packs().values() for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line[:40] for line in lines if not VALIDATOR.is_valid(json.loads(line))] == []


def test_the_real_sessions_are_valid(real_session_files: list[Path]) -> None:
    lines = [line for path in real_session_files for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 18
    assert [line[:40] for line in lines if not VALIDATOR.is_valid(json.loads(line))] == []
