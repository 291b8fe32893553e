"""Verdicts at a glance, on a Session as far as it was played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support import logs

from scenarios.load import ScenarioError
from scoring.glance import Glance, glance

LAMP = logs.call_message(("findPrice", '{"thing": "lamp"}'))
CHAIR = logs.call_message(("findPrice", '{"thing": "chair"}'))
DONE = logs.text_message("It is 3.")
OPEN = Glance(None, False, None, "not played to its end")
GOES_ON = {"history": "gold", "on_mismatch": "continue"}


def judged(*tasks: tuple[Sequence[Any], str | None], **config: str) -> tuple[Glance, ...]:
    return glance(logs.RECORD, config, tasks)


def test_a_task_that_is_over_is_judged_while_the_next_is_played() -> None:
    assert judged(([LAMP, DONE], "closed"), ([CHAIR], None)) == (Glance(True, False, True, None), OPEN)


def test_tasks_that_nobody_came_to_yet_are_not_scored() -> None:
    assert judged() == (OPEN, OPEN)


def test_a_wrong_task_says_which_step_diverged_and_how() -> None:
    [first, _] = judged(([CHAIR, DONE], "closed"))
    assert (first.right, first.released, first.step) == (False, False, 1)
    assert first.why is not None and first.why.startswith("findPrice: $.thing: ")
    [second, _] = judged(([LAMP, LAMP], "stopped"))
    assert (second.right, second.step) == (False, 2)
    assert second.why == "findPrice: called where only the closing text was left"


def test_what_the_released_rules_say_otherwise_is_told() -> None:
    """Arguments that are an empty text mean none to `strict`, and are refused by the released rules."""
    tool = {"type": "function", "function": {"name": "ping", "description": "x", "parameters": {}}}
    nodes = [
        {
            "action": {"name": "ping", "arguments": {}},
            "observation": "pong",
            "dependency_list": [],
            "idx": 0,
        },
        {
            "action": {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}},
            "observation": "Done.",
            "dependency_list": [0],
            "idx": 1,
        },
    ]
    record = {**logs.RECORD, "tools": [tool], "tasks": ["Ping."], "answer_list": [nodes]}
    played = [([logs.call_message(("ping", "")), DONE], "closed")]
    assert glance(record, {}, played) == (Glance(True, False, False, None),)


@pytest.mark.parametrize(
    ("endings", "rights"),
    [
        (("infrastructure", None), [None, None]),
        (("agent_stopped", None), [False, None]),
        # What the agent left is its own doing, and so is what was not reached for it.
        (("agent_stopped", "not_reached"), [False, False]),
        (("infrastructure", "not_reached"), [None, None]),
    ],
)
def test_only_what_is_the_agent_s_doing_is_scored(
    endings: tuple[Any, ...], rights: list[bool | None]
) -> None:
    assert [it.right for it in judged(([LAMP], endings[0]), ([], endings[1]))] == rights


def test_a_task_that_was_brought_to_its_end_after_an_error_is_right_and_says_so() -> None:
    unknown = logs.call_message(("fly", "{}"))
    [first, _] = judged(([unknown, LAMP, DONE], "closed"), **GOES_ON)
    assert (first.right, first.after_errors, first.step) == (True, True, 1)


def test_a_record_that_is_broken_is_refused() -> None:
    with pytest.raises(ScenarioError):
        glance({**logs.RECORD, "tasks": "none"}, {}, [])
