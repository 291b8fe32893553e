"""The evidence for what the released scorer finds wrong: which call, where in its arguments, why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes

from scenarios.load import parse_record
from scenarios.replies import read_reply
from scenarios.strict.faults import Fault
from scenarios.types import CLOSE, Reply, Scenario, ToolCall
from scoring.types import Evidence, Nearest, TaskTrajectory, Trajectory
from scoring.verdicts.released_evidence import RULES, explain, rule_of
from scoring.verdicts.wildtoolbench import score_session, score_task

TEXT = Reply("Some words.")
LAMP = ("getPrice", {"thing": "lamp"})
CHAIR = ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
WEIGHT = ("weigh", {"thing": "lamp", "kilos": 1.5})


def calls(*wanted: tuple[str, Any]) -> Reply:
    return Reply(
        None,
        tuple(
            ToolCall(f"c{i}", name, given if isinstance(given, str) else json.dumps(given))
            for i, (name, given) in enumerate(wanted)
        ),
    )


def explained(scenario: Scenario, task: int, *replies: Reply) -> Evidence | None:
    nodes = scenario.tasks[task].nodes
    return explain(nodes, replies, score_task(scenario.tools, nodes, replies))


def evidence(*replies: Reply, task: int = 0, record: scenes.Record = scenes.SHOP) -> Evidence:
    found = explained(scenes.scenario(record), task, *replies)
    assert found is not None
    return found


def deep(wanted: Any, given: Any) -> Fault:
    """The fault of one call whose argument `value` is `given` where `wanted` is annotated."""
    tool = scenes.tool("deep", value="any")
    tool["function"]["parameters"]["properties"]["value"]["additionalProperties"] = True
    nodes = [scenes.call("deep", {"value": wanted}, "ok"), scenes.close("Done.", 0)]
    record = {**scenes.record("deep", ("Do it.", nodes)), "tools": [tool]}
    found = evidence(calls(("deep", {"value": given})), TEXT, record=record)
    return found.faults[0]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("error: args invalid json format", "invalid_json"),
        ("error_crash: the arguments are not a string but dict", "crash"),
        ("error_schema: required args missing", "schema"),
        ("error_schema: nested args type inconsistent", "schema"),
        ("error_match: args keys mismatch at 'a' (missing: ['b'])", "keys"),
        ("error_match: value type inconsistent at 'a'", "type"),
        ("error_match: value mismatch at 'a'", "value"),
        ("error_match: array length mismatch at 'a'", "array_length"),
        ("error_match: string similarity too low at 'a' (rouge score: 0.10)", "text_similarity"),
        ("error_match: rouge calculation failed at 'a'", "rouge_failed"),
        ("error: comparison failed - 'str' object has no attribute 'get'", "comparison"),
        ("a message of no known kind", "crash"),
    ],
)
def test_each_message_of_the_released_checker_has_a_rule(message: str, kind: str) -> None:
    assert rule_of(message) == f"released.args.{kind}"
    assert rule_of(message) in RULES


def test_a_right_task_and_one_that_was_not_scored_have_no_evidence() -> None:
    scenario = scenes.scenario()
    assert explained(scenario, 0, calls(LAMP), TEXT) is None
    broken = TaskTrajectory((calls(STOCK),), finished=False)
    score = score_session(Trajectory("s", 1, scenario, (broken,) * len(scenario.tasks))).tasks[0]
    assert explain(scenario.tasks[0].nodes, broken.replies, score) is None


def test_a_task_that_was_not_reached_says_so() -> None:
    scenario = scenes.scenario(scenes.TWINS)
    left = TaskTrajectory((), "agent_stopped"), TaskTrajectory((), "not_reached")
    score = score_session(Trajectory("s", 1, scenario, left)).tasks[1]
    found = explain(scenario.tasks[1].nodes, (), score)
    assert found == Evidence(0, "released.not_reached", "not reached: the agent stopped in task 1")


def test_replies_that_run_out_are_told_from_an_empty_one() -> None:
    assert evidence(calls(LAMP)).rule == "released.no_reply"
    assert evidence(calls(LAMP), Reply("")).rule == "released.action_names"


def test_wrong_names_are_told_with_what_the_released_matcher_allows_there() -> None:
    found = evidence(calls(LAMP, CHAIR), calls(STOCK), record=scenes.TWINS)
    assert found == Evidence(
        step=1,
        rule="released.action_names",
        message="called countStock",
        allowed=(("weigh",),),
        nearest=Nearest("call", 2, "weigh", {"thing": "lamp", "kilos": 1.5}),
        call=0,
        tool="countStock",
    )


def test_of_a_batch_the_call_is_blamed_that_the_nearest_batch_has_no_place_for() -> None:
    found = evidence(calls(CHAIR, LAMP, STOCK), task=1)
    assert (found.call, found.tool) == (1, "getPrice")
    assert found.allowed == (("getPrice",), ("countStock",), ("getPrice", "countStock"))
    split = evidence(calls(LAMP, CHAIR), record=scenes.TRIPLETS)
    assert split.allowed == (("getPrice",), ("getPrice",) * 3)
    assert (split.call, split.nearest) == (1, Nearest("call", 1, "getPrice", {"thing": "chair"}))


def test_the_nearest_batch_is_the_one_with_the_fewest_calls_more_or_less() -> None:
    # Both calls that are due and one more: not one call that is due and two more.
    found = evidence(calls(CHAIR, STOCK, WEIGHT), task=1)
    assert (found.rule, found.call, found.tool) == ("released.action_names", 2, "weigh")
    # The one that shares an argument with the odd call.
    assert found.nearest == Nearest("call", 1, "countStock", {"thing": "lamp"})


def test_a_call_where_only_text_is_due_has_the_closing_node_as_nearest() -> None:
    found = evidence(calls(LAMP), task=3)
    assert (found.allowed, found.nearest) == (((CLOSE,),), Nearest("close", 0))


def test_a_wrong_argument_is_told_with_its_place_and_its_folded_forms() -> None:
    found = evidence(calls(("getPrice", {"thing": " SO fa"})), TEXT)
    message = "error_match: string similarity too low at 'thing' (edit score: 0.20)"
    assert found == Evidence(
        step=0,
        rule="released.args.text_similarity",
        message=f"getPrice: {message}",
        allowed=(("getPrice",),),
        nearest=Nearest("call", 0, "getPrice", {"thing": "lamp"}),
        call=0,
        tool="getPrice",
        faults=(
            Fault("released.args.text_similarity", "$.thing", message, "lamp", " SO fa", "lamp", "sofa"),
        ),
    )


def test_the_call_and_the_node_are_those_that_sorting_by_text_put_together() -> None:
    """As released: calls sorted by argument text, nodes likewise; here a key order turns the pairs round."""
    nodes = [
        scenes.call("book", {"thing": "lamp", "day": "Monday"}, "ok"),
        scenes.call("book", {"thing": "zebra", "day": "Friday"}, "ok"),
        scenes.close("Done.", 0, 1),
    ]
    reply = calls(
        ("book", '{"thing": "lamp", "day": "Monday"}'), ("book", '{"day": "Friday", "thing": "zebra"}')
    )
    found = evidence(reply, TEXT, record=scenes.record("turned", ("Book both.", nodes)))
    assert (found.call, found.nearest) == (
        1,
        Nearest("call", 0, "book", {"thing": "lamp", "day": "Monday"}),
    )
    assert found.message.startswith("call 2 of 2, book: error_match: ")
    (fault,) = found.faults
    assert (fault.path, fault.expected, fault.actual) == ("$.thing", "lamp", "zebra")


@pytest.mark.parametrize(
    ("wanted", "given", "kind", "path", "expected", "actual"),
    [
        ([1, {"a b": 2}], [1, {"a b": 3}], "value", '$.value[1]["a b"]', 2, 3),
        ({"x": [1, 2]}, {"x": [1]}, "array_length", "$.value.x", [1, 2], [1]),
        ({"x": {"y": 1}}, {"x": {}}, "keys", "$.value.x", {"y": 1}, {}),
        ([1.0], [1], "type", "$.value[0]", 1.0, 1),
        (True, False, "value", "$.value", True, False),
    ],
)
def test_the_path_of_a_fault_leads_to_both_values(
    wanted: Any, given: Any, kind: str, path: str, expected: Any, actual: Any
) -> None:
    fault = deep(wanted, given)
    assert (fault.rule, fault.path, fault.expected, fault.actual) == (
        f"released.args.{kind}",
        path,
        expected,
        actual,
    )


def test_nodes_are_paired_in_the_order_of_their_texts_and_not_of_the_annotation() -> None:
    # "bed" before "lamp", and the node with "chair", the second, before the one with "lamp".
    found = evidence(calls(LAMP, ("getPrice", {"thing": "bed"})), record=scenes.TWINS)
    assert (found.call, found.nearest) == (1, Nearest("call", 1, "getPrice", {"thing": "chair"}))


def test_of_nodes_that_agree_as_well_the_first_is_nearest() -> None:
    found = evidence(calls(("book", {})), record=scenes.TWINS)
    assert found.nearest == Nearest("call", 0, "getPrice", {"thing": "lamp"})


def test_missing_keys_of_the_call_itself_are_at_the_root() -> None:
    tool = scenes.tool("plain", x="integer", y="integer")
    tool["function"]["parameters"]["required"] = []
    nodes = [scenes.call("plain", {"x": 1, "y": 2}, "ok"), scenes.close("Done.", 0)]
    record = {**scenes.record("plain", ("Do it.", nodes)), "tools": [tool]}
    (fault,) = evidence(calls(("plain", {"x": 1})), TEXT, record=record).faults
    assert (fault.rule, fault.path) == ("released.args.keys", "$")
    assert (fault.expected, fault.actual) == ({"x": 1, "y": 2}, {"x": 1})


@pytest.mark.parametrize(
    ("arguments", "rule", "actual"),
    [
        ("{", "released.args.invalid_json", "{"),
        ('{"thing": 5}', "released.args.schema", {"thing": 5}),
        ("{}", "released.args.schema", {}),
    ],
)
def test_what_is_wrong_as_a_whole_has_the_whole_arguments(arguments: str, rule: str, actual: Any) -> None:
    (fault,) = evidence(calls(("getPrice", arguments)), TEXT).faults
    assert (fault.rule, fault.path, fault.expected, fault.actual) == (rule, "$", {"thing": "lamp"}, actual)


def test_arguments_that_are_no_text_are_a_crash_of_the_call_that_has_them() -> None:
    reply = Reply(None, (*calls(LAMP).calls, ToolCall("c", "getPrice", {"thing": "chair"})))
    found = evidence(reply, TEXT, record=scenes.TWINS)
    assert (found.rule, found.call, found.tool) == ("released.args.crash", 1, "getPrice")
    assert found.faults[0].actual == {"thing": "chair"}


def test_every_released_vector_that_is_wrong_has_evidence_at_the_step_that_failed(data: Path) -> None:
    """`argument_checks` has for each step null or the released messages, `correct` among them.

    It is missing where the released code raises.
    """
    by_names = by_arguments = 0
    for line in (data / "tasks.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        fields = {"id": "case", "env_info": "none", "tasks": ["none"]}
        scenario = parse_record({**fields, "tools": case["tools"], "answer_list": [case["answer_list"]]})
        found = explained(scenario, 0, *(read_reply(message) for message in case["replies"]))
        assert (found is None) == (case["expect"]["label"] == "correct"), case["case"]
        if found is None:
            continue
        assert found.allowed, case["case"]
        checks = case["expect"].get("argument_checks")
        messages = _first_wrong(checks or [])
        if messages is not None:
            step, message = messages
            assert (found.step, found.rule) == (step, rule_of(message)), case["case"]
            # What stands in brackets can come in the order of a set of strings.
            assert message.partition(" (")[0] in found.message, case["case"]
            by_arguments += 1
        elif checks is not None:
            assert found.rule in ("released.action_names", "released.no_reply"), case["case"]
            assert found.step == len(checks) - 1, case["case"]
            by_names += 1
    assert min(by_names, by_arguments) > 50


def _first_wrong(checks: list[list[str] | None]) -> tuple[int, str] | None:
    for step, messages in enumerate(checks):
        for message in messages or []:
            if message != "correct":
                return step, message
    return None
