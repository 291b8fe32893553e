"""The JSON document of a scored Run: values that JSON has no words for, and what it says of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import logs, scored
from support.scored import rate, right, session, wrong

from proxy.log.writer import LogWriter
from scenarios.strict.faults import Fault
from scoring.metrics.writes import WriteFinding
from scoring.output.document import UNSAYABLE, document, evidence_document
from scoring.output.json_text import json_bytes
from scoring.types import Evidence, Nearest

PLAIN: list[Any] = [None, True, 1, 1.5, "blue", ["a", {"b": None}], {"room": "blue"}]


def nested(levels: int, inside: Any = "x") -> Any:
    for _ in range(levels):
        inside = [inside]
    return inside


def told(value: Any) -> tuple[Any, Any]:
    """How evidence tells a value of the Reference, and of what was sent."""
    fault = Fault("args.value", "$.room", "words", value, value, value, value)
    nearest = Nearest("call", 0, "book", value)
    found = evidence_document(Evidence(0, "args.value", "words", nearest=nearest, faults=(fault,)))
    [shown] = found["faults"]
    keys = ("expected", "actual", "expected_form", "actual_form")
    [*values] = (shown[key] for key in keys)
    assert all(repr(it) == repr(values[0]) for it in values)
    assert json.loads(json_bytes(found)) == found
    return found["nearest"]["arguments"], values[0]


@pytest.mark.parametrize("value", PLAIN)
def test_a_value_that_json_can_say_is_told_as_it_is(value: Any) -> None:
    assert told(value) == (value, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ({"kilos": float("inf")}, "{'kilos': inf}"),
        (nested(100_000), "nested too deeply to be told"),
    ],
    ids=["nan", "infinity", "within", "deep"],
)
def test_a_value_that_json_cannot_say_is_told_as_text(value: Any, text: str) -> None:
    assert told(value) == (text, text)


def test_the_text_of_a_long_value_is_cut_short() -> None:
    nearest, fault = told(["x" * 1000, float("nan")])
    assert len(nearest) == len(fault) == UNSAYABLE


@pytest.mark.parametrize("given", ['{"thing": "sofa"}', f'{{"thing": {"[" * 990}1{"]" * 990}}}', "{"])
@pytest.mark.parametrize("levels", [50, 700])
def test_a_reference_nested_deep_is_told_in_every_format(tmp_path: Path, levels: int, given: str) -> None:
    record = json.loads(json.dumps(logs.RECORD))
    record["tools"][0]["function"]["parameters"]["properties"]["thing"] = {"type": "array"}
    record["answer_list"][0][0]["action"]["arguments"]["thing"] = nested(levels)
    message, log = logs.call_message(("findPrice", given)), tmp_path / "a.db"
    with LogWriter.open(log) as writer:
        writer.commit_blocking(
            *(logs.run(history="gold"), logs.scenario("shop_1", record), logs.session(), logs.turn()),
            *(logs.start(), logs.finish(message=message), logs.step(message=message), logs.end(0, "stopped")),
        )
    result = scored.run_score(log, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    score = json.loads(result.stdout)["tasks"][0]["scores"]["strict"]
    assert (score["label"], score["evidence"]["nearest"]["name"]) == ("error", "findPrice")
    for options in (["-v"], ["--format", "junit"], ["--format", "markdown"], ["--format", "csv"], ["--save"]):
        assert scored.run_score(log, *options).exit_code == 0


def test_a_run_says_by_what_it_was_judged_after_its_notes() -> None:
    report = scored.report(notes=("no price for model m",), judged_by="later scenarios: 1 of 2 changed")
    found = document(report)
    assert (found["notes"], found["judged_by"]) == (
        ["no price for model m"],
        "later scenarios: 1 of 2 changed",
    )
    keys = list(found)
    assert keys[keys.index("notes") + 1] == "judged_by"
    assert document(replace(report, judged_by=None))["judged_by"] is None


def test_what_correct_tasks_took_is_among_the_figures_of_each_scorer() -> None:
    figures = [rate("missed_parallelism", 1, 4)]
    report = scored.report(
        scored.scored(session(right(), wrong()), figures=figures), figures=[rate("redundant_call_rate", 1, 2)]
    )
    found = document(report)
    assert list(found["scorers"]["wildtoolbench"]["figures"]) == ["missed_parallelism"]
    assert list(found["figures"]) == ["redundant_call_rate"]


def test_a_write_at_fault_is_told_once_for_each_thing_that_is_wrong_with_it() -> None:
    repeated = WriteFinding("shop.e1", 1, 2, 3, 0, "book", "repeated_write", '{"day": 1}', "was made before")
    found = document(scored.report(writes=(repeated, replace(repeated, kind="wrong_write"))))["writes"]
    assert [it["kind"] for it in found] == ["repeated_write", "wrong_write"]
    assert found[0] == {
        "session": "shop.e1",
        "epoch": 1,
        "task": 3,
        "step": 3,
        "call": 0,
        "tool": "book",
        "kind": "repeated_write",
        "detail": 'book {"day": 1} was made before',
    }
