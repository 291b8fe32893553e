from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import scenes

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


def released(case: dict[str, Any]) -> dict[str, Any]:
    """What the released scorer says of a case of one Task."""
    verdict: dict[str, Any] = judge_case(case, ["wildtoolbench"])["scores"]["wildtoolbench"]
    return verdict


def labels(case: dict[str, Any], *scorers: str) -> dict[str, str]:
    entry = judge_case(case, scorers) if scorers else judge_case(case)
    return {name: score["label"] for name, score in entry["scores"].items()}


def test_every_vector_of_the_released_scorer_agrees(data: Path) -> None:
    cases = [json.loads(line) for line in (data / "tasks.jsonl").read_text("utf-8").splitlines()]
    assert len(cases) == 900
    figures = ("label", "action_name_label", "is_optimal", "requests")
    with_arguments = 0
    for case in cases:
        verdict, expected = released(case), case["expect"]
        assert {name: verdict[name] for name in figures} == {name: expected[name] for name in figures}
        if "action_arguments_label" in expected:
            with_arguments += 1
            assert verdict["action_arguments_label"] == expected["action_arguments_label"], case["case"]
    assert with_arguments == 859


def test_a_verdict_has_its_evidence_step_by_step() -> None:
    verdict = released(case_of(call('{"room": "red"}'), TEXT))
    assert (verdict["label"], verdict["action_name_label"]) == ("error", "correct")
    assert verdict["action_arguments_label"] == "error"
    [step] = verdict["steps"]
    assert (step["action"], step["verdict"], step["nodes"]) == ("call", "argument_error", [0])
    assert step["checks"] == [step["reason"]]
    assert step["reason"] in verdict["reason"]


def test_what_else_a_case_holds_is_ignored() -> None:
    assert released(case_of(call(), TEXT, expect={"label": "error"}, note=1))["label"] == "correct"


def test_a_case_without_name_is_judged_under_null() -> None:
    case = case_of(call(), TEXT)
    del case["case"]
    assert judge_case(case)["case"] is None
    assert judge_case(case | {"case": ["x"]})["case"] is None
    assert judge_case(case | {"case": 7})["case"] == 7
    assert judge_case(case | {"session": "home_6.e1"})["case"] == "home_6.e1"


def test_both_scorers_are_asked_unless_others_are_named() -> None:
    case = case_of(call(), TEXT)
    assert labels(case) == {"wildtoolbench": "correct", "strict": "correct"}
    assert labels(case, "published") == {"published": "correct"}
    assert list(labels(case, "strict", "wildtoolbench")) == ["strict", "wildtoolbench"]


def test_alternatives_and_annotations_count_for_the_strict_scorer_alone() -> None:
    other = case_of(call('{"room": "the azure one"}'), TEXT)
    assert labels(other) == {"wildtoolbench": "error", "strict": "error"}
    nodes = [CALL_NODE | {"alternatives": [{"room": "the azure one"}]}, CLOSE_NODE]
    assert labels(other | {"answer_list": nodes}) == {"wildtoolbench": "error", "strict": "correct"}

    parameters = {"type": "object", "properties": {"room": {"type": "string"}}}
    tool = {"type": "function", "function": TOOL["function"] | {"parameters": parameters}}
    left_out = case_of(call("{}"), TEXT, tools=[tool])
    assert labels(left_out) == {"wildtoolbench": "error", "strict": "error"}
    notes = {"book": {"defaults": {"room": "blue"}}}
    assert labels(left_out | {"annotations": notes}) == {"wildtoolbench": "error", "strict": "correct"}


def test_a_wrong_task_has_evidence_from_every_scorer() -> None:
    scores = judge_case(case_of(call('{"room": "red"}'), TEXT))["scores"]
    for name, score in scores.items():
        evidence = score["evidence"]
        assert (evidence["step"], evidence["call"], evidence["tool"]) == (0, 0, "book"), name
        assert [(it["path"], it["actual"], it["expected"]) for it in evidence["faults"]] == [
            ("$.room", "red", "blue")
        ], name


@pytest.mark.parametrize(
    "message", [{"content": "", "tool_calls": None}, {}, {"content": None, "tool_calls": []}]
)
def test_an_empty_reply_is_an_error_and_not_a_crash(message: dict[str, Any]) -> None:
    assert labels(case_of(message)) == {"wildtoolbench": "error", "strict": "error"}


@pytest.mark.parametrize(
    "arguments", [None, {}, {"room": "blue"}, [], 1, "", "{", "null", '{"room": "\\ud800"}']
)
def test_malformed_arguments_are_an_error_and_not_a_crash(arguments: Any) -> None:
    assert released(case_of(call(arguments), TEXT))["label"] == "error"


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
        ("annotations", {"boook": {}}, "annotations.boook"),
        ("messages", [], ""),
    ],
)
def test_a_broken_case_names_the_field(field: str, value: Any, where: str) -> None:
    with pytest.raises(CaseError) as caught:
        judge_case(case_of(call(), TEXT, **{field: value}))
    assert caught.value.field == where
    assert str(caught.value) == (f"{where}: {caught.value.reason}" if where else caught.value.reason)


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
        "error": "answer_list: is missing; a case has tools, answer_list and replies, "
        "or scenario and messages",
    }


def test_lines_are_judged_one_by_one_as_they_come() -> None:
    good = json.dumps(case_of(call(), TEXT)).encode()
    taken: list[int] = []

    def lines() -> Any:
        for number, line in enumerate([b"\xef\xbb\xbf" + good, b"\n", b"  \n", b"{", good], start=1):
            taken.append(number)
            yield line

    verdicts = judge_lines(lines())
    assert next(verdicts)["scores"]["strict"]["label"] == "correct"
    assert taken == [1]
    assert next(verdicts)["line"] == 4
    assert next(verdicts)["scores"]["strict"]["label"] == "correct"
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
    assert {name: score["label"] in ("correct", "error") for name, score in entry["scores"].items()} == {
        "wildtoolbench": True,
        "strict": True,
    }


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["case", "tools", "answer_list", "replies"]), json_values))
def test_whatever_a_case_holds_gets_a_verdict_or_one_line_of_error(changes: dict[str, Any]) -> None:
    entry = judge_line(json.dumps(case_of(call(), TEXT, **changes)).encode(), 1)
    assert ("scores" in entry) != ("error" in entry)
    assert "\n" not in entry.get("error", "")


@pytest.mark.parametrize("calls", ["x", {"name": "book"}, 5, [None], [[]], [{}], [{"function": "book"}]])
def test_text_beside_malformed_tool_calls_closes_no_task(calls: Any) -> None:
    chat = [CLOSE_NODE | {"dependency_list": []}]
    case = case_of({"content": "hello", "tool_calls": calls}, answer_list=chat)
    assert labels(case) == {"wildtoolbench": "error", "strict": "error"}


# Conversations

SHOP = {"shop": scenes.scenario(), "shelf": scenes.scenario(scenes.chat("shelf"))}
BOTH = ("wildtoolbench", "strict")
PRICE = ("getPrice", {"thing": "lamp"})


def chat_of(*said: Any, **changes: Any) -> dict[str, Any]:
    """A conversation: a text in brackets is the user's, other text or (name, arguments) the agent's."""
    messages: list[dict[str, Any]] = []
    for item in said:
        if isinstance(item, list):
            messages.append({"role": "user", "content": item[0]})
        elif isinstance(item, str):
            messages.append({"role": "assistant", "content": item})
        else:
            messages.append({"role": "assistant", **call(json.dumps(item[1]), item[0])})
            messages.append({"role": "tool", "tool_call_id": "c0", "content": "{}"})
    return {"case": "chat", "scenario": "shop", "messages": messages} | changes


def judged(case: dict[str, Any]) -> dict[str, Any]:
    return judge_case(case, BOTH, SHOP)


def verdicts(entry: dict[str, Any], scorer: str = "strict") -> list[tuple[int, Any, Any]]:
    return [
        (it["task"], it["scores"][scorer]["label"], it["scores"][scorer]["verdict"]) for it in entry["tasks"]
    ]


def asked(task: int) -> list[str]:
    return [scenes.scenario().tasks[task - 1].text]


def test_a_conversation_is_judged_task_by_task() -> None:
    entry = judged(chat_of(asked(1), PRICE, "It costs 3.", asked(2), "No idea."))
    assert list(entry) == ["case", "scenario", "tasks", "session_correct"]
    assert (entry["case"], entry["scenario"]) == ("chat", "shop")
    for scorer in BOTH:
        assert verdicts(entry, scorer) == [
            (1, "correct", "correct"),
            (2, "error", "wrong"),
            (3, None, None),
            (4, None, None),
        ]
        reasons = [it["scores"][scorer]["reason"] for it in entry["tasks"]]
        assert (reasons[0], *reasons[2:]) == (None, "not in the conversation", "not in the conversation")
    assert entry["session_correct"] == {"wildtoolbench": None, "strict": None}


def test_a_task_that_recovered_is_told_apart_from_one_that_did_not() -> None:
    wrong = ("getPrice", {"thing": "sofa"})
    entry = judged(chat_of(asked(1), wrong, PRICE, "It costs 3."))
    assert verdicts(entry)[0] == (1, "error", "correct_after_errors")
    score = entry["tasks"][0]["scores"]["strict"]
    assert (score["unmatched_calls"], score["redundant_calls"], score["steps_taken"]) == (1, 0, 3)
    assert score["evidence"]["step"] == 0
    assert verdicts(judged(chat_of(asked(1), wrong, "It costs 3.")))[0] == (1, "error", "wrong")


def test_a_task_that_breaks_off_was_stopped_by_the_agent() -> None:
    score = judged(chat_of(asked(1), PRICE))["tasks"][0]["scores"]["wildtoolbench"]
    assert score["label"] == "error"
    assert score["reason"].startswith("step 1: the agent stopped before the task was over")


def test_a_session_is_correct_if_all_its_tasks_are() -> None:
    whole = chat_of(["shelf asks 1"], "a", ["shelf asks 2"], "b", scenario="shelf")
    assert judged(whole)["session_correct"] == {"wildtoolbench": True, "strict": True}
    broken = chat_of(["shelf asks 1"], "a", ["shelf asks 2"], PRICE, scenario="shelf")
    assert judged(broken)["session_correct"] == {"wildtoolbench": False, "strict": False}


def test_of_one_task_alone_nothing_is_said_of_the_others() -> None:
    entry = judged(chat_of(asked(1), "old", asked(4), "You are welcome.", task=4))
    assert verdicts(entry) == [(4, "correct", "correct")]
    assert entry["session_correct"] == {"wildtoolbench": None, "strict": None}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"scenario": "shp"}, 'scenario: "shp" is in no file of --scenarios; did you mean shop?'),
        ({"scenario": "zoo"}, 'scenario: "zoo" is in no file of --scenarios; known are shelf, shop'),
        ({"scenario": 1}, "scenario: must be the id of a scenario, not a number"),
        ({"messages": "hello"}, "messages: must be a list of chat messages, not text"),
        ({"messages": []}, "messages: has no user message, so no task is begun"),
        (
            {"replies": []},
            "has both replies and messages; a case has tools, answer_list and replies, "
            "or scenario and messages",
        ),
        ({"task": 0}, "task: must be a number from 1 to 4: shop has so many tasks"),
        ({"task": 5}, "task: must be a number from 1 to 4: shop has so many tasks"),
        ({"task": True}, "task: must be a number from 1 to 4: shop has so many tasks"),
        ({"task": "2"}, "task: must be a number from 1 to 4: shop has so many tasks"),
    ],
)
def test_a_broken_conversation_is_one_line_of_error(changes: dict[str, Any], error: str) -> None:
    line = json.dumps(chat_of(asked(1), PRICE, **changes)).encode()
    assert judge_line(line, 4, BOTH, SHOP) == {"case": "chat", "line": 4, "error": error}


def test_a_conversation_needs_its_scenario() -> None:
    case = chat_of(asked(1))
    del case["scenario"]
    with pytest.raises(CaseError, match=r"^scenario: is missing; a case has"):
        judged(case)


chat_messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"])},
        optional={
            "content": st.sampled_from([asked(1)[0], asked(2)[0], "On Monday.", ""]) | json_values,
            "tool_calls": json_values | st.lists(calls | json_values, max_size=3),
            "tool_call_id": json_values,
        },
    )
    | json_values,
    max_size=5,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chat_messages | json_values)
def test_whatever_was_recorded_gets_verdicts_or_one_line_of_error(messages: Any) -> None:
    entry = judge_line(json.dumps(chat_of() | {"messages": messages}).encode(), 1, BOTH, SHOP)
    assert ("tasks" in entry) != ("error" in entry)
    assert "\n" not in entry.get("error", "")
