"""Laws of the strict scorer over random References and random replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.references import orderly_reference

from scenarios.history import encode
from scenarios.load import parse_record
from scenarios.matcher import Match, allowed, start
from scenarios.reference import depth, ready
from scenarios.replies import read_reply
from scenarios.steps import take_step
from scenarios.strict.by_name import takes_by_name
from scenarios.types import PSEUDO_ACTIONS, Node, Reply, Scenario, Tool, ToolCall
from scoring.types import CORRECT, TaskScore
from scoring.verdicts import wildtoolbench
from scoring.verdicts.strict import score_task

Nodes = tuple[Node, ...]
TEXT = Reply("Some words.")
PARAMETERS = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "m": {"type": "string"}},
    "required": ["n"],
}
TOOLS = [Tool(name, "", PARAMETERS, {}) for name in ("a", "b", "c")]


@st.composite
def references(draw: st.DrawFn, max_layer: int = 5) -> Nodes:
    """Asks and the closing node stand alone; calls of one name can have equal arguments."""
    nodes = draw(orderly_reference(max_layer))
    return tuple(
        replace(node, arguments={"n": draw(st.integers(0, 2)), "m": "x"}) if node.is_call else node
        for node in nodes
    )


def said(calls: Sequence[tuple[str, dict[str, Any]]]) -> Reply:
    return Reply(None, tuple(ToolCall(f"c{i}", name, json.dumps(it)) for i, (name, it) in enumerate(calls)))


def exactly(draw: st.DrawFn, nodes: Nodes, batch: Sequence[int]) -> Reply:
    """The calls of these nodes with their own arguments, in any order; text for an ask or the end."""
    if nodes[batch[0]].name in PSEUDO_ACTIONS:
        return TEXT
    return said([(nodes[i].name, nodes[i].arguments) for i in draw(st.permutations(batch))])


@st.composite
def released_walks(draw: st.DrawFn) -> tuple[Nodes, tuple[Reply, ...]]:
    """Replies that the released harness takes, each with the arguments of the nodes it is taken for."""
    nodes = draw(references())
    state, replies, closed = start(nodes), list[Reply](), False
    while not closed:
        names = draw(st.sampled_from(allowed(state, 32)))
        pseudo = names[0] in PSEUDO_ACTIONS
        taken = take_step(state, TEXT if pseudo else said([(name, {}) for name in names]))
        assert isinstance(taken, Match)
        replies.append(exactly(draw, nodes, taken.nodes))
        state, closed = taken.state, taken.kind == "close"
    return nodes, tuple(replies)


@st.composite
def legal_schedules(draw: st.DrawFn) -> tuple[Nodes, tuple[Reply, ...]]:
    """Every node once it is ready, in random batches; asks and the closing node alone."""
    nodes = draw(references())
    done, replies = frozenset[int](), list[Reply]()
    while len(done) < len(nodes):
        batch = draw(st.lists(st.sampled_from(ready(nodes, done)), min_size=1, unique=True))
        replies.append(exactly(draw, nodes, batch))
        done |= frozenset(batch)
    return nodes, tuple(replies)


@settings(max_examples=40)
@given(released_walks())
def test_what_the_released_scorer_takes_with_the_very_arguments_is_right(
    walk: tuple[Nodes, tuple[Reply, ...]],
) -> None:
    nodes, replies = walk
    scored = score_task(TOOLS, nodes, replies)
    assert scored.label == CORRECT, scored.reason
    assert scored.requests == len(replies)
    released = wildtoolbench.score_task(TOOLS, nodes, replies)
    if released.label == CORRECT:
        assert (scored.is_optimal, scored.min_steps) == (released.is_optimal, released.min_steps)


@settings(max_examples=25)
@given(released_walks(), st.data())
def test_no_step_that_the_released_scorer_takes_with_the_very_arguments_is_refused(
    walk: tuple[Nodes, tuple[Reply, ...]], data: st.DataObject
) -> None:
    nodes, replies = walk
    count = data.draw(st.integers(0, len(replies) - 1))
    scored = score_task(TOOLS, nodes, replies[:count])
    assert scored.evidence is not None
    assert (scored.evidence.rule, scored.evidence.step) == ("step.no_reply", count)
    assert scored.matched == sum(max(1, len(reply.calls)) for reply in replies[:count])


@settings(max_examples=40)
@given(legal_schedules())
def test_any_schedule_that_the_graph_allows_is_right_and_optimal_in_depth_steps(
    schedule: tuple[Nodes, tuple[Reply, ...]],
) -> None:
    nodes, replies = schedule
    scored = score_task(TOOLS, nodes, replies)
    assert scored.label == CORRECT, scored.reason
    assert scored.is_optimal == (len(replies) == depth(nodes))
    assert (scored.matched, scored.min_steps, scored.evidence) == (len(nodes), depth(nodes), None)


@settings(max_examples=30)
@given(legal_schedules())
def test_no_step_that_is_right_is_one_at_which_names_alone_would_end_the_task(
    schedule: tuple[Nodes, tuple[Reply, ...]],
) -> None:
    nodes, replies = schedule
    done = frozenset[int]()
    for reply in replies:
        taken = takes_by_name(nodes, done, reply)
        assert taken is not None
        assert not done & set(taken[1])
        done |= frozenset(taken[1])
    assert len(done) == len(nodes)


# The order of calls, keys and ids

ANY_CALL = st.tuples(
    st.sampled_from(["a", "b", "c", "nothing"]),
    st.fixed_dictionaries({}, optional={"n": st.integers(0, 3), "m": st.sampled_from(["x", "y"])}),
)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[Nodes, tuple[Reply, ...], tuple[Reply, ...]]:
    """The beginning of a right schedule, then replies of any calls; and the same in another order."""
    nodes, right = draw(legal_schedules())
    kept = right[: draw(st.integers(0, len(right)))]
    batches = draw(st.lists(st.lists(ANY_CALL, min_size=1, max_size=5), max_size=2))
    replies = (*kept, *map(said, batches))
    return nodes, replies, tuple(_shuffled(draw, reply) for reply in replies)


def _shuffled(draw: st.DrawFn, reply: Reply) -> Reply:
    calls = []
    for number, call in enumerate(draw(st.permutations(reply.calls))):
        items = draw(st.permutations(list(json.loads(call.arguments).items())))
        calls.append(ToolCall(f"other{number}", call.name, json.dumps(dict(items), indent=1)))
    return replace(reply, calls=tuple(calls))


def essence(scored: TaskScore) -> tuple[Any, ...]:
    """What must not depend on the order of calls; the blamed call by its name, not by its position."""
    found = scored.evidence
    told = found and (found.step, found.rule, found.allowed, found.nearest, found.tool, found.faults)
    return (
        scored.label,
        scored.action_name_label,
        scored.action_arguments_label,
        scored.is_optimal,
        scored.matched,
        scored.steps_kept,
        told,
    )


@settings(max_examples=60)
@given(shuffled())
def test_the_order_of_calls_and_keys_and_the_ids_do_not_matter(
    case: tuple[Nodes, tuple[Reply, ...], tuple[Reply, ...]],
) -> None:
    nodes, replies, others = case
    assert essence(score_task(TOOLS, nodes, others)) == essence(score_task(TOOLS, nodes, replies))


# Released vectors


def test_where_the_released_scorer_is_content_with_the_very_arguments_so_is_this_one(data: Path) -> None:
    """Vectors made by the released code; the Reference's own arguments must be in at least half of them."""
    cases = [json.loads(line) for line in (data / "tasks.jsonl").read_text("utf-8").splitlines()]
    exact = refused = 0
    for case in cases:
        if case["expect"]["label"] != CORRECT:
            continue
        scenario, replies = _scenario(case), [read_reply(message) for message in case["replies"]]
        nodes = scenario.tasks[0].nodes
        if _has_the_very_arguments(nodes, replies):
            exact += 1
            refused += score_task(scenario.tools, nodes, replies).label != CORRECT
    assert refused == 0
    assert exact > len(cases) / 2


def _scenario(case: dict[str, Any]) -> Scenario:
    fields = {"id": "case", "env_info": "none", "tasks": ["none"]}
    return parse_record({**fields, "tools": case["tools"], "answer_list": [case["answer_list"]]})


def _has_the_very_arguments(nodes: Nodes, replies: Sequence[Reply]) -> bool:
    state = start(nodes)
    for reply in replies:
        taken = take_step(state, reply)
        assert isinstance(taken, Match)
        wanted = sorted((nodes[i].name, encode(nodes[i].arguments)) for i in taken.nodes)
        given_now = sorted((call.name, encode(json.loads(call.arguments))) for call in reply.calls)
        if taken.kind == "call" and given_now != wanted:
            return False
        if taken.kind == "close":
            break
        state = taken.state
    return True
