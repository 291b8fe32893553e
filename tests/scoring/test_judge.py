from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoring.judge import CaseError, judge_case, judge_line, judge_lines

TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room.",
        "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    },
}
CALL_NODE = {
    "action": {"name": "book", "arguments": {"room": "blue"}},
    "observation": {"ok": True},
    "dependency_list": [],
}
CLOSE_NODE = {
    "action": {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}},
    "observation": "Booked.",
    "dependency_list": [0],
}


def call(arguments: Any = '{"room": "blue"}', name: str = "book") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "c0", "type": "function", "function": function}]}


TEXT = {"content": "Done.", "tool_calls": None}


def case_of(*replies: Any, **changes: Any) -> dict[str, Any]:
    case: dict[str, Any] = {
        "case": "mine",
        "tools": [TOOL],
        "answer_list": [CALL_NODE, CLOSE_NODE],
        "replies": list(replies),
    }
    return case | changes


def test_every_vector_of_the_released_scorer_agrees(data: Path) -> None:
    cases = [json.loads(line) for line in (data / "tasks.jsonl").read_text("utf-8").splitlines()]
    assert len(cases) == 900
    figures = ("label", "action_name_label", "is_optimal", "requests")
    with_arguments = 0
    for case in cases:
        verdict, expected = judge_case(case), case["expect"]
        assert verdict["case"] == case["case"]
        assert {name: verdict[name] for name in figures} == {name: expected[name] for name in figures}
        if "action_arguments_label" in expected:
            with_arguments += 1
            assert verdict["action_arguments_label"] == expected["action_arguments_label"], case["case"]
    assert with_arguments == 859


def test_a_verdict_has_its_evidence_step_by_step() -> None:
    verdict = judge_case(case_of(call('{"room": "red"}'), TEXT))
    assert (verdict["label"], verdict["action_name_label"]) == ("error", "correct")
    assert verdict["action_arguments_label"] == "error"
    [step] = verdict["steps"]
    assert (step["action"], step["verdict"], step["nodes"]) == ("call", "argument_error", [0])
    assert step["checks"] == [step["reason"]]
    assert step["reason"] in verdict["reason"]


def test_what_else_a_case_holds_is_ignored() -> None:
    assert judge_case(case_of(call(), TEXT, expect={"label": "error"}, note=1))["label"] == "correct"


def test_a_case_without_name_is_judged_under_null() -> None:
    case = case_of(call(), TEXT)
    del case["case"]
    assert judge_case(case)["case"] is None
    assert judge_case(case | {"case": ["x"]})["case"] is None
    assert judge_case(case | {"case": 7})["case"] == 7


@pytest.mark.parametrize(
    "message", [{"content": "", "tool_calls": None}, {}, {"content": None, "tool_calls": []}]
)
def test_an_empty_reply_is_an_error_and_not_a_crash(message: dict[str, Any]) -> None:
    assert judge_case(case_of(message))["label"] == "error"


@pytest.mark.parametrize(
    "arguments", [None, {}, {"room": "blue"}, [], 1, "", "{", "null", '{"room": "\\ud800"}']
)
def test_malformed_arguments_are_an_error_and_not_a_crash(arguments: Any) -> None:
    assert judge_case(case_of(call(arguments), TEXT))["label"] == "error"


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("tools", None, "tools"),
        ("tools", [{"type": "function"}], "tools[0].function"),
        ("answer_list", {}, "answer_list"),
        ("answer_list", [CALL_NODE], "answer_list"),
        ("answer_list", [CALL_NODE, 1], "answer_list[1]"),
        (
            "answer_list",
            [CALL_NODE, CLOSE_NODE | {"dependency_list": [5]}],
            "answer_list[1].dependency_list[0]",
        ),
        ("answer_list", [CALL_NODE | {"dependency_list": [1]}, CLOSE_NODE], "answer_list"),
        ("replies", "hello", "replies"),
        ("replies", [TEXT, "hello"], "replies[1]"),
    ],
)
def test_a_broken_case_names_the_field(field: str, value: Any, where: str) -> None:
    with pytest.raises(CaseError) as caught:
        judge_case(case_of(call(), TEXT, **{field: value}))
    assert caught.value.field == where
    assert str(caught.value) == f"{where}: {caught.value.reason}"


@pytest.mark.parametrize("field", ["tools", "answer_list", "replies"])
def test_a_missing_field_is_named(field: str) -> None:
    case = case_of(call(), TEXT)
    del case[field]
    with pytest.raises(CaseError, match=f"^{field}: is missing"):
        judge_case(case)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"case": "a"', "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff{}", "not UTF-8"),
        (b'{"case": NaN}', "NaN"),
        (b'{"case": ' + b"9" * 5000 + b"}", "not usable"),
        (b'{"tools": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_case_says_why(line: bytes, error: str) -> None:
    entry = judge_line(line, 3)
    assert (entry["case"], entry["line"]) == (None, 3)
    assert error in entry["error"]
    assert "\n" not in entry["error"]


def test_a_broken_line_keeps_the_name_of_its_case() -> None:
    line = json.dumps({"case": "half", "tools": []}).encode()
    assert judge_line(line, 1) == {
        "case": "half",
        "line": 1,
        "error": "answer_list: is missing; a case has tools, answer_list and replies",
    }


def test_lines_are_judged_one_by_one_as_they_come() -> None:
    good = json.dumps(case_of(call(), TEXT)).encode()
    taken: list[int] = []

    def lines() -> Any:
        for number, line in enumerate([b"\xef\xbb\xbf" + good, b"\n", b"  \n", b"{", good], start=1):
            taken.append(number)
            yield line

    verdicts = judge_lines(lines())
    assert next(verdicts)["label"] == "correct"
    assert taken == [1]
    assert next(verdicts)["line"] == 4
    assert next(verdicts)["label"] == "correct"
    assert list(verdicts) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
calls = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "function": json_values
        | st.fixed_dictionaries(
            {}, optional={"name": st.just("book") | json_values, "arguments": json_values}
        ),
    },
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "content": json_values,
        "tool_calls": json_values | st.lists(calls | json_values, max_size=3),
        "function_call": json_values,
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(messages, max_size=3))
def test_whatever_a_provider_sent_gets_a_verdict(replies: list[dict[str, Any]]) -> None:
    entry = judge_line(json.dumps(case_of(*replies)).encode(), 1)
    assert entry["label"] in ("correct", "error")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["case", "tools", "answer_list", "replies"]), json_values))
def test_whatever_a_case_holds_gets_a_verdict_or_one_line_of_error(changes: dict[str, Any]) -> None:
    entry = judge_line(json.dumps(case_of(call(), TEXT, **changes)).encode(), 1)
    assert ("label" in entry) != ("error" in entry)
    assert "\n" not in entry.get("error", "")


@pytest.mark.parametrize("calls", ["x", {"name": "book"}, 5, [None], [[]], [{}], [{"function": "book"}]])
def test_text_beside_malformed_tool_calls_closes_no_task(calls: Any) -> None:
    chat = [CLOSE_NODE | {"dependency_list": []}]
    case = case_of({"content": "hello", "tool_calls": calls}, answer_list=chat)
    assert judge_case(case)["label"] == "error"
