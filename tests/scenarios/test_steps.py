"""What a reply is taken for, and what is said of one that is no Step."""

from __future__ import annotations

import pytest
from support import scenes

from scenarios.matcher import Match, State, start
from scenarios.steps import Mismatch, take_step
from scenarios.types import Reply, ToolCall


def at_start() -> State:
    """A price is due, then a text that closes the Task."""
    return start(scenes.scenario(scenes.SHOP).tasks[0].nodes)


def calling(*names: str) -> Reply:
    return Reply("Words beside calls.", tuple(ToolCall(None, name, "{}") for name in names))


def test_calls_that_are_due_are_a_step_whatever_the_text_beside_them() -> None:
    taken = take_step(at_start(), calling("getPrice"))
    assert isinstance(taken, Match)
    assert (taken.kind, taken.nodes) == ("call", (0,))
    closing = take_step(taken.state, Reply("It costs 3."))
    assert isinstance(closing, Match)
    assert (closing.kind, closing.nodes) == ("close", (1,))


@pytest.mark.parametrize(
    ("reply", "did"),
    [
        (calling("countStock"), "called countStock"),
        (calling("getPrice", "getPrice"), "called getPrice, getPrice"),
        (calling("", "getPrice"), "called something without a name, getPrice"),
        (Reply("I do not know."), "replied in text"),
        (Reply(""), "replied with neither text nor tool calls"),
        (Reply(None), "replied with neither text nor tool calls"),
    ],
)
def test_what_is_no_step_is_told_apart_from_what_would_have_been_one(reply: Reply, did: str) -> None:
    taken = take_step(at_start(), reply)
    assert taken == Mismatch(did, (("getPrice",),))
    assert isinstance(taken, Mismatch)
    assert taken.reason == f"{did}; allowed here: getPrice"


def test_where_several_batches_would_do_each_is_named() -> None:
    assert Mismatch("did it", (("a",), ("a", "b"))).reason == "did it; allowed here: a or a + b"
    assert Mismatch("did it", ()).reason == "did it; nothing was left to do"
