"""The strict scorer on Tasks of our own: order, grouping, labels and what was matched."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support import scenes

from scenarios.types import CLOSE, Node, Reply, Scenario, Task, ToolCall
from scoring.types import Evidence, SessionScore, StepScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts import wildtoolbench
from scoring.verdicts.strict import ENDED_EARLY, score_session, score_task

TEXT = Reply("Some words.")
Wanted = tuple[str, Any]
LAMP: Wanted = ("getPrice", {"thing": "lamp"})
CHAIR: Wanted = ("getPrice", {"thing": "chair"})
BED: Wanted = ("getPrice", {"thing": "bed"})
SOFA: Wanted = ("getPrice", {"thing": "sofa"})
STOCK: Wanted = ("countStock", {"thing": "lamp"})
WEIGHT: Wanted = ("weigh", {"thing": "lamp", "kilos": 1.5})
BOOKING: Wanted = ("book", {"thing": "lamp", "day": "Monday"})


def call(*wanted: Wanted) -> Reply:
    return Reply(
        None,
        tuple(
            ToolCall(f"c{i}", name, given if isinstance(given, str) else json.dumps(given))
            for i, (name, given) in enumerate(wanted)
        ),
    )


def score(*replies: Reply, task: int = 0, record: scenes.Record = scenes.SHOP) -> TaskScore:
    scenario = scenes.scenario(record)
    return score_task(scenario.tools, scenario.tasks[task].nodes, replies, None, scenario.notes)


def labels(scored: TaskScore) -> tuple[str | None, str | None, str | None]:
    return scored.label, scored.action_name_label, scored.action_arguments_label


def test_a_right_task_has_no_reason_and_no_evidence() -> None:
    scored = score(call(STOCK, CHAIR), TEXT, task=1)
    assert scored == TaskScore(
        label="correct",
        action_name_label="correct",
        action_arguments_label="correct",
        is_optimal=True,
        requests=2,
        steps_kept=2,
        min_steps=2,
        steps=(
            StepScore(0, "call", "correct", (0, 1), checks=("correct", "correct")),
            StepScore(1, "close", "correct", (2,)),
        ),
        matched=3,
    )


def test_a_longer_right_way_is_correct_and_not_optimal() -> None:
    scored = score(call(STOCK), call(CHAIR), TEXT, task=1)
    assert (scored.label, scored.is_optimal, scored.requests, scored.matched) == ("correct", False, 3, 3)


@pytest.mark.parametrize(
    "replies",
    [
        (call(LAMP, CHAIR, BED),),
        (call(BED, LAMP, CHAIR),),
        (call(BED), call(LAMP, CHAIR)),
        (call(LAMP, BED), call(CHAIR)),
        (call(BED), call(CHAIR), call(LAMP)),
    ],
)
def test_independent_calls_of_one_tool_are_right_in_any_order_and_grouping(
    replies: tuple[Reply, ...],
) -> None:
    scored = score(*replies, TEXT, record=scenes.TRIPLETS)
    assert (scored.label, scored.is_optimal) == ("correct", len(replies) == 1)


def test_two_right_calls_of_one_tool_are_right_whatever_the_order_of_their_keys() -> None:
    nodes = [
        scenes.call("book", {"thing": "lamp", "day": "Monday"}, "ok"),
        scenes.call("book", {"thing": "chair", "day": "Friday"}, "ok"),
        scenes.close("Done.", 0, 1),
    ]
    record = scenes.record("keys", ("Book both.", nodes))
    turned = ("book", '{"day": "Monday", "thing": "lamp"}'), ("book", '{"thing": "chair", "day": "Friday"}')
    assert score(call(*turned), TEXT, record=record).label == "correct"
    assert score(call(*reversed(turned)), TEXT, record=record).label == "correct"


def test_a_call_without_arguments_does_not_stand_for_one_that_has_some() -> None:
    for given in ("{}", "", {"thing": "lamp"}):
        scored = score(TEXT, call(("book", given)), TEXT, task=2)
        assert labels(scored) == ("error", "correct", "error")


def test_an_argument_that_is_made_up_is_wrong() -> None:
    scored = score(call(("getPrice", {"thing": "lamp", "colour": "red"})), TEXT)
    assert labels(scored) == ("error", "correct", "error")


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_at_all_are_an_empty_object(arguments: str) -> None:
    plain = scenes.tool("ping")
    nodes = [scenes.call("ping", {}, "pong"), scenes.close("Done.", 0)]
    record = {**scenes.record("ping", ("Ping.", nodes)), "tools": [plain]}
    assert score(call(("ping", arguments)), TEXT, record=record).label == "correct"


@pytest.mark.parametrize("arguments", [5, [], "{", '"text"', "[1]"])
def test_arguments_that_cannot_be_read_are_an_argument_error(arguments: Any) -> None:
    scored = score(Reply(None, (ToolCall("c", "getPrice", arguments),)), TEXT)
    assert labels(scored) == ("error", "correct", "error")


def test_one_call_does_not_stand_for_two_nodes_and_a_second_is_no_gift() -> None:
    assert score(call(LAMP), TEXT, record=scenes.TWINS).label == "error"
    assert score(call(LAMP, LAMP), TEXT).label == "error"
    assert score(call(LAMP), call(LAMP), TEXT).label == "error"


def test_a_prudent_extra_call_is_an_error_that_says_so() -> None:
    scored = score(call(STOCK), call(LAMP), TEXT)
    assert labels(scored) == ("error", "error", "correct")
    assert scored.evidence is not None
    assert scored.evidence.rule == "step.wrong_tool"


def test_judging_stops_at_the_first_wrong_step() -> None:
    wrong = score(call(LAMP), call(SOFA), call(CHAIR), call(WEIGHT), TEXT, record=scenes.TWINS)
    assert labels(wrong) == ("error", "correct", "error")
    assert (wrong.requests, wrong.steps_kept, wrong.min_steps) == (2, 1, 3)
    assert wrong.evidence is not None
    message, (fault,) = wrong.evidence.message, wrong.evidence.faults
    assert wrong.steps == (
        StepScore(0, "call", "correct", (0,), checks=("correct",)),
        StepScore(1, "call", "argument_error", (1,), message, (f"{fault.rule}: {fault.message}",)),
    )
    assert wrong.reason == f"step 1: {message}"


def test_a_step_of_the_wrong_tools_stands_for_no_nodes_though_some_of_its_calls_are_right() -> None:
    found = score(call(LAMP, STOCK), record=scenes.TWINS)
    assert found.evidence is not None
    wrong = "step.wrong_tool: is of no use for what is left to do"
    message = found.evidence.message
    assert found.steps == (StepScore(0, "call", "name_error", (), message, ("correct", wrong)),)


def test_a_text_that_is_not_due_is_a_step_without_checks() -> None:
    found = score(call(LAMP), TEXT, record=scenes.TWINS)
    assert found.evidence is not None
    assert found.steps[1] == StepScore(1, "text", "name_error", reason=found.evidence.message)


def test_an_empty_reply_is_told_from_a_text_at_the_step_at_which_it_came() -> None:
    scored = score(call(LAMP, CHAIR), Reply(""), record=scenes.TWINS)
    assert scored.evidence is not None
    assert (scored.evidence.step, scored.evidence.rule) == (1, "step.empty_reply")
    assert scored.reason == "step 1: replied with neither text nor tool calls"


def test_what_comes_after_the_end_is_not_looked_at() -> None:
    assert score(call(LAMP), TEXT, call(STOCK)) == score(call(LAMP), TEXT)


# What was matched


@pytest.mark.parametrize(
    ("replies", "matched"),
    [
        ((), 0),
        ((TEXT,), 0),
        ((call(SOFA),), 0),
        ((call(LAMP, SOFA),), 1),
        ((call(LAMP), call(SOFA)), 1),
        ((call(LAMP, CHAIR), TEXT), 2),
        ((call(CHAIR), call(LAMP, WEIGHT)), 2),
        ((call(LAMP, CHAIR), call(WEIGHT)), 3),
        ((call(LAMP, CHAIR), call(WEIGHT), TEXT), 4),
        ((call(LAMP, CHAIR), Reply("")), 2),
    ],
)
def test_matched_are_the_nodes_of_right_steps_and_the_right_calls_of_the_wrong_one(
    replies: tuple[Reply, ...], matched: int
) -> None:
    assert score(*replies, record=scenes.TWINS).matched == matched


def test_a_batch_counts_its_nodes_and_a_wrong_step_none() -> None:
    """The released record counts steps, the failed one too: two for this Task of three nodes."""
    replies = (call(CHAIR, STOCK), call(STOCK))
    scenario = scenes.scenario()
    released = wildtoolbench.score_task(scenario.tools, scenario.tasks[1].nodes, replies)
    scored = score(*replies, task=1)
    assert (released.steps_kept, scored.steps_kept, scored.matched) == (2, 1, 2)


# Replies that run out, Tasks that were not played


@pytest.mark.parametrize(
    ("ending", "who"), [(None, "the replies ended"), ("agent_stopped", "the agent stopped")]
)
def test_replies_that_run_out_are_an_error_after_the_last_right_step(ending: str | None, who: str) -> None:
    scenario = scenes.scenario(scenes.TWINS)
    scored = score_task(scenario.tools, scenario.tasks[0].nodes, [call(LAMP, CHAIR)], ending)
    assert labels(scored) == ("error", "error", "correct")
    assert (scored.requests, scored.steps_kept, scored.matched) == (1, 1, 2)
    assert scored.reason == f"step 1: {who} before the task was over"
    assert scored.evidence is not None
    assert (scored.evidence.rule, scored.evidence.step) == ("step.no_reply", 1)
    assert scored.steps[1:] == (StepScore(1, "none", "name_error", reason=scored.evidence.message),)


def trajectory(*tasks: TaskTrajectory, scenario: Scenario | None = None) -> Trajectory:
    return Trajectory("twins.e1", 1, scenario or scenes.scenario(scenes.TWINS), tasks)


RIGHT = TaskTrajectory((call(LAMP, CHAIR), call(WEIGHT), TEXT), "closed")


def test_a_session_is_scored_task_by_task() -> None:
    scored = score_session(trajectory(RIGHT, TaskTrajectory((TEXT,))))
    assert isinstance(scored, SessionScore)
    assert (scored.session, scored.epoch, scored.correct) == ("twins.e1", 1, True)
    assert scored.tasks[0] == score(*RIGHT.replies, record=scenes.TWINS)


def test_a_task_that_an_older_proxy_ended_at_a_right_step_is_not_scored() -> None:
    cut = TaskTrajectory((call(CHAIR),), "stopped")
    scored = score_session(trajectory(cut, TaskTrajectory((TEXT,)))).tasks[0]
    assert scored == TaskScore(
        label=None,
        action_name_label=None,
        action_arguments_label=None,
        is_optimal=False,
        requests=1,
        steps_kept=1,
        min_steps=3,
        reason=ENDED_EARLY,
        steps=(StepScore(0, "call", "correct", (1,), checks=("correct",)),),
    )
    wrong = TaskTrajectory((call(STOCK),), "stopped")
    assert score_session(trajectory(wrong, TaskTrajectory((TEXT,)))).tasks[0].label == "error"


def test_a_task_that_was_not_finished_is_not_scored_whatever_it_did() -> None:
    broken = TaskTrajectory((call(STOCK),), finished=False, unfinished_reason="provider_error: status 500")
    scored = score_session(trajectory(broken, TaskTrajectory((TEXT,)))).tasks[0]
    assert (scored.label, scored.reason, scored.evidence) == (None, "provider_error: status 500", None)


def test_a_task_that_was_not_reached_is_an_error_with_its_evidence() -> None:
    left, never = TaskTrajectory((), "agent_stopped"), TaskTrajectory((), "not_reached")
    scored = score_session(trajectory(left, never)).tasks[1]
    assert labels(scored) == ("error", None, None)
    assert scored.reason == "not reached: the agent stopped in task 1"
    assert scored.evidence is not None
    assert scored.evidence == Evidence(0, "step.not_reached", scored.reason)
    assert scored.matched == 0


def test_two_scenarios_of_different_content_have_rules_of_their_own() -> None:
    """The rules are kept from one epoch to the next; another Scenario must not get them."""
    first = scenes.scenario(scenes.TWINS)
    strings = scenes.tool("weigh", thing="string", kilos="string")
    other = scenes.scenario({**scenes.TWINS, "tools": [*scenes.TOOLS[:3], strings]})
    right = replace(RIGHT, replies=RIGHT.replies)
    for scenario in (first, other, first):
        scored = score_session(trajectory(right, TaskTrajectory((TEXT,)), scenario=scenario))
        direct = score_task(scenario.tools, scenario.tasks[0].nodes, right.replies, "closed", scenario.notes)
        assert scored.tasks[0] == direct


def test_an_alternative_of_a_node_is_as_right_as_its_arguments() -> None:
    scenario = scenes.scenario()
    task: Task = scenario.tasks[0]
    nodes = (replace(task.nodes[0], alternatives=({"thing": "sofa"},)), task.nodes[1])
    assert score_task(scenario.tools, nodes, [call(SOFA), TEXT]).label == "correct"
    assert score_task(scenario.tools, nodes, [call(SOFA), call(LAMP), TEXT]).label == "error"


def test_evidence_is_against_the_likeliest_alternative() -> None:
    task: Task = scenes.scenario(scenes.TWINS).tasks[0]
    heavy = replace(task.nodes[2], dependencies=(), alternatives=({"thing": "bed", "kilos": 90},))
    nodes = (heavy, Node(CLOSE, {}, "Done.", (0,)))
    wrong = call(("weigh", {"thing": "bed", "kilos": "90"}))
    found = score_task(scenes.scenario(scenes.TWINS).tools, nodes, [wrong]).evidence
    assert found is not None and found.nearest is not None
    assert found.nearest.arguments == {"thing": "bed", "kilos": 90}
    assert [(it.path, it.expected, it.actual) for it in found.faults] == [("$.kilos", 90, "90")]


def test_the_nearest_of_a_call_too_many_is_what_is_left_beside_the_right_ones() -> None:
    scenario = scenes.scenario()
    nodes = scenario.tasks[0].nodes
    found = score_task(scenario.tools, nodes, [call(LAMP, ("countStock", {"thing": "lamp"}))]).evidence
    assert found is not None and found.nearest is not None
    assert (found.rule, found.call, found.nearest.action) == ("step.wrong_tool", 1, "close")


@pytest.mark.parametrize("name", ["countStock", "weigh"])
def test_wrong_arguments_are_told_whichever_of_two_equal_calls_came_first(name: str) -> None:
    """What waits for the second of two equal nodes is as ready as what waits for the first."""
    twin = scenes.call("getPrice", {"thing": "lamp"}, "3")
    after = [
        scenes.call("countStock", {"thing": "lamp"}, "12", 0),
        scenes.call("weigh", {"thing": "lamp", "kilos": 1}, "light", 1),
    ]
    record = scenes.record("own", ("Do it.", [twin, twin, *after, scenes.close("Done.", 0, 1, 2, 3)]))
    found = score(call(LAMP), call((name, {"thing": "sofa", "kilos": 9})), record=record)
    assert (found.action_name_label, found.action_arguments_label) == ("correct", "error")


# Size


@pytest.mark.parametrize("count", [12, 20])
def test_many_independent_calls_are_right_at_once_and_one_by_one(count: int) -> None:
    tools = [scenes.tool(f"tool{n}", x="string") for n in range(count)]
    nodes = [scenes.call(f"tool{n}", {"x": "a"}, n) for n in range(count)]
    record = {
        **scenes.record("wide", ("All.", [*nodes, scenes.close("Done.", *range(count))])),
        "tools": tools,
    }
    every = [(f"tool{n}", {"x": "a"}) for n in reversed(range(count))]
    assert score(call(*every), TEXT, record=record).is_optimal
    one_by_one = score(*(call(it) for it in every), TEXT, record=record)
    assert (one_by_one.label, one_by_one.is_optimal) == ("correct", False)


def test_half_of_many_equal_calls_and_then_the_other_half_are_right() -> None:
    nodes = [scenes.call("getPrice", {"thing": "lamp"}, n) for n in range(24)]
    record = scenes.record("many", ("All.", [*nodes, scenes.close("Done.", *range(24))]))
    half = call(*[LAMP] * 12)
    assert score(half, half, TEXT, record=record).label == "correct"
    left_out = score(half, call(*[LAMP] * 11), TEXT, record=record)
    assert (left_out.label, left_out.matched) == ("error", 23)
