"""The released scorer on Tasks of our own; the released vectors are in test_judge.py."""

from __future__ import annotations

import json
from time import thread_time
from typing import Any

import pytest
from support import scenes

from scenarios.types import Reply, Scenario, ToolCall
from scoring.types import StepScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts.wildtoolbench import score_session, score_task


def call(*wanted: tuple[str, Any]) -> Reply:
    return Reply(
        None,
        tuple(
            ToolCall(f"c{i}", name, given if isinstance(given, str) else json.dumps(given))
            for i, (name, given) in enumerate(wanted)
        ),
    )


TEXT = Reply("Some words.")
LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})
PRICE, STOCK = CHAIR, ("countStock", {"thing": "lamp"})
SOFA = ("getPrice", {"thing": "sofa"})
WEIGHT = ("weigh", {"thing": "lamp", "kilos": 1.5})


def score(*replies: Reply, task: int = 0, record: scenes.Record = scenes.SHOP) -> TaskScore:
    scenario = scenes.scenario(record)
    return score_task(scenario.tools, scenario.tasks[task].nodes, replies)


def labels(scored: TaskScore) -> tuple[str | None, str | None, str | None]:
    return scored.label, scored.action_name_label, scored.action_arguments_label


def test_the_shortest_right_way_is_correct_and_optimal() -> None:
    scored = score(call(PRICE, STOCK), TEXT, task=1)
    assert labels(scored) == ("correct", "correct", "correct")
    assert (scored.is_optimal, scored.requests, scored.min_steps, scored.steps_kept) == (True, 2, 2, 2)
    assert scored.reason is None


def test_a_longer_right_way_is_correct_and_not_optimal() -> None:
    scored = score(call(STOCK), call(PRICE), TEXT, task=1)
    assert (scored.label, scored.is_optimal, scored.requests) == ("correct", False, 3)


def test_an_ask_is_a_step_of_its_own() -> None:
    booking = call(("book", {"thing": "lamp", "day": "Monday"}))
    scored = score(TEXT, booking, TEXT, task=2)
    assert (scored.label, scored.is_optimal, scored.min_steps) == ("correct", True, 3)
    assert [step.action for step in scored.steps] == ["ask", "call", "close"]


def test_a_wrong_name_is_an_error_of_names_alone() -> None:
    scored = score(call(STOCK), TEXT)
    assert labels(scored) == ("error", "error", "correct")
    assert (scored.requests, scored.is_optimal) == (1, False)
    assert scored.reason is not None
    assert "countStock" in scored.reason
    assert "getPrice" in scored.reason


def test_a_wrong_argument_lets_the_play_go_on_and_is_judged_afterwards() -> None:
    scored = score(call(SOFA), TEXT)
    assert labels(scored) == ("error", "correct", "error")
    assert scored.requests == 2
    # The step behind the wrong argument is struck from the record.
    assert scored.steps_kept == 1


def test_the_steps_of_a_wrong_task_are_those_up_to_the_wrong_one() -> None:
    """Of a wrong argument, too, though the play went on."""
    replies = call(LAMP), call(SOFA), call(WEIGHT), TEXT
    one, two = score(*replies, record=scenes.TWINS).steps
    assert one == StepScore(0, "call", "correct", (0,), checks=("correct",))
    assert two.checks is not None
    assert two == StepScore(1, "call", "argument_error", (1,), "; ".join(two.checks), two.checks)


@pytest.mark.parametrize(
    ("reply", "action"), [(call(STOCK), "call"), (Reply("Hm."), "text"), (Reply(""), "none")]
)
def test_a_step_that_is_not_allowed_says_what_was_done(reply: Reply, action: str) -> None:
    scored = score(reply, record=scenes.TWINS)
    (step,) = scored.steps
    assert step == StepScore(0, action, "name_error", reason=step.reason)
    assert scored.reason == f"step 0: {step.reason}"


def test_each_wrong_call_of_a_step_is_told() -> None:
    (step,) = score(call(SOFA, SOFA), record=scenes.TWINS).steps
    assert step.checks is not None and len(step.checks) == 2
    assert step.reason == f"{step.checks[0]}; {step.checks[1]}"


def test_a_name_error_behind_an_argument_error_is_forgotten_as_released() -> None:
    scored = score(call(SOFA), call(STOCK))
    assert labels(scored) == ("error", "correct", "error")


def test_of_the_steps_behind_an_argument_error_only_the_next_is_struck() -> None:
    scored = score(call(SOFA), call(LAMP), call(WEIGHT), TEXT, record=scenes.TWINS)
    assert labels(scored) == ("error", "correct", "error")
    assert (scored.requests, scored.steps_kept) == (4, 3)


@pytest.mark.parametrize(
    ("replies", "label"),
    [
        ((call(LAMP, CHAIR), call(WEIGHT), TEXT), "correct"),
        ((call(CHAIR, LAMP), call(WEIGHT), TEXT), "correct"),
        ((call(LAMP), call(CHAIR), call(WEIGHT), TEXT), "correct"),
        # One by one the released harness wants equal names in the order of the Reference.
        ((call(CHAIR), call(LAMP), call(WEIGHT), TEXT), "error"),
    ],
)
def test_calls_of_one_name_may_come_at_once_in_any_order_but_one_by_one_in_theirs(
    replies: tuple[Reply, ...], label: str
) -> None:
    assert score(*replies, record=scenes.TWINS).label == label


def test_replies_that_run_out_count_as_an_empty_one() -> None:
    scored = score(call(LAMP))
    assert labels(scored) == ("error", "error", "correct")
    assert (scored.requests, scored.is_optimal) == (2, False)
    assert scored.steps[1] == StepScore(1, "none", "name_error", reason=scored.steps[1].reason)


def test_no_reply_at_all_is_an_error() -> None:
    assert labels(score()) == ("error", "error", "correct")


def test_what_comes_after_the_end_is_not_looked_at() -> None:
    assert score(call(LAMP), TEXT, call(STOCK)) == score(call(LAMP), TEXT)


@pytest.mark.parametrize("arguments", [None, 5, {"thing": "lamp"}, []])
def test_arguments_that_are_no_text_are_an_error_with_a_reason(arguments: Any) -> None:
    scored = score(Reply(None, (ToolCall("c", "getPrice", arguments),)), TEXT)
    assert labels(scored) == ("error", "correct", "error")
    assert scored.reason == "step 0: error_crash: arguments are not a string"


def test_a_node_whose_tool_does_not_exist_is_an_error_and_no_crash() -> None:
    nodes = scenes.scenario().tasks[0].nodes
    scored = score_task([], nodes, [call(LAMP), TEXT])
    assert labels(scored) == ("error", "correct", "error")
    assert scored.reason == "step 0: error_crash: no tool is called getPrice"


def test_a_tool_whose_type_is_a_list_is_an_error_and_no_crash() -> None:
    tool = scenes.tool("odd", value="string")
    tool["function"]["parameters"]["properties"]["value"]["type"] = ["string", "null"]
    record = scenes.record("odd", ("Do it.", [scenes.call("odd", {"value": "x"}, 1), scenes.close("ok", 0)]))
    scored = score(call(("odd", {"value": "x"})), TEXT, record={**record, "tools": [tool]})
    assert (scored.label, scored.action_name_label) == ("error", "correct")


# Sessions


def trajectory(*tasks: TaskTrajectory, scenario: Scenario | None = None) -> Trajectory:
    return Trajectory("twins.e1", 1, scenario or scenes.scenario(scenes.TWINS), tasks)


RIGHT = TaskTrajectory((call(LAMP, CHAIR), call(WEIGHT), TEXT))


def test_a_session_is_correct_when_all_its_tasks_are() -> None:
    played = trajectory(RIGHT, TaskTrajectory((TEXT,)))
    scored = score_session(played)
    assert scored.scenario is played.scenario
    assert (scored.session, scored.epoch, scored.scored, scored.correct) == ("twins.e1", 1, True, True)
    assert not score_session(trajectory(RIGHT, TaskTrajectory((call(LAMP),)))).correct


def test_a_task_that_was_not_played_to_its_end_is_left_unscored_with_its_reason() -> None:
    broken = TaskTrajectory((call(LAMP),), finished=False, unfinished_reason="provider_error: status 500")
    scored = score_session(trajectory(RIGHT, broken))
    assert (scored.scored, scored.correct) == (False, False)
    right, left = scored.tasks
    assert right.label == "correct"
    assert left == TaskScore(None, None, None, False, 1, 0, 1, "provider_error: status 500")
    silent = score_session(trajectory(RIGHT, TaskTrajectory((), finished=False))).tasks[1]
    assert silent == TaskScore(None, None, None, False, 0, 0, 1, "not played to its end")


def test_a_task_that_was_not_reached_is_wrong_and_says_where_the_agent_stopped() -> None:
    left, never = TaskTrajectory((), "agent_stopped"), TaskTrajectory((), "not_reached")
    for before, reason in ((left, "not reached: the agent stopped in task 1"), (RIGHT, "not reached")):
        scored = score_session(trajectory(before, never)).tasks[1]
        assert scored == TaskScore("error", None, None, False, 0, 0, 1, reason)


def test_a_task_that_the_agent_left_says_so_and_counts_as_released() -> None:
    left = TaskTrajectory((call(LAMP, CHAIR),), "agent_stopped")
    scored = score_session(trajectory(left, TaskTrajectory((TEXT,)))).tasks[0]
    assert scored.reason == "step 1: the agent stopped before the task was over; allowed here: weigh"
    as_released = score(*left.replies, Reply(""), record=scenes.TWINS)
    assert (scored.label, scored.action_name_label, scored.requests, scored.steps_kept) == (
        as_released.label,
        as_released.action_name_label,
        as_released.requests,
        as_released.steps_kept,
    )
    assert [step.action for step in scored.steps] == ["call", "none"]


def test_an_empty_reply_is_told_from_no_reply_at_all() -> None:
    spoken, missing = score(Reply("")).reason, score().reason
    assert spoken == "step 0: replied with neither text nor tool calls; allowed here: getPrice"
    assert missing == "step 0: the replies ended before the task was over; allowed here: getPrice"


# Speed


@pytest.mark.parametrize("count", [12, 14])
def test_many_independent_calls_are_scored_in_milliseconds(count: int) -> None:
    tools = [scenes.tool(f"tool{n}", x="string") for n in range(count)]
    nodes = [scenes.call(f"tool{n}", {"x": "a"}, n) for n in range(count)]
    record = scenes.record("wide", ("All.", [*nodes, scenes.close("Done.", *range(count))]))
    scenario = scenes.scenario({**record, "tools": tools})
    every = [(f"tool{n}", {"x": "a"}) for n in reversed(range(count))]
    for replies in ([call(*every), TEXT], [*(call(it) for it in every), TEXT]):
        began = thread_time()
        scored = score_task(scenario.tools, scenario.tasks[0].nodes, replies)
        assert (thread_time() - began) / len(replies) < 0.05
        assert scored.label == "correct"


def test_twenty_calls_of_one_tool_are_scored_in_milliseconds() -> None:
    nodes = [scenes.call("getPrice", {"thing": f"t{n:02}"}, n) for n in range(20)]
    record = scenes.record("many", ("All.", [*nodes, scenes.close("Done.", *range(20))]))
    every = [("getPrice", {"thing": f"t{n:02}"}) for n in range(20)]
    began = thread_time()
    assert score(call(*reversed(every)), TEXT, record=record).is_optimal
    assert score(*(call(it) for it in every), TEXT, record=record).label == "correct"
    assert (thread_time() - began) / 23 < 0.05
