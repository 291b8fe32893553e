"""Each named mistake is one: the released scorer does not accept what it says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.simulate.mistakes import MISTAKES, Decision, another_value, make_mistake, sample_arguments
from proxy.simulate.place import Index, build_index, find_place
from proxy.simulate.policies import parse_policy, respond
from proxy.simulate.reply import Call, Draw, Reply
from scenarios.arguments import check_arguments
from scenarios.history import released_tools
from scenarios.load import parse_record
from scenarios.types import Scenario, Tool, ToolCall
from scoring.types import Reply as ScoredReply
from scoring.verdicts.wildtoolbench import score_task

DETOURS = {"drop_call", "one_at_a_time"}


@pytest.fixture(scope="module")
def crossroads(
    real: tuple[Scenario, ...], real_index: Index, play: Callable[..., Any]
) -> list[tuple[Decision, list[ScoredReply]]]:
    """Every decision of the oracle on the real sessions, with the replies before it."""
    found = []
    for scenario in real:
        for task in range(len(scenario.tasks)):
            played = play("oracle", real_index, scenario, task)
            before: list[ScoredReply] = []
            for request, answer in zip(played.requests, played.answers, strict=True):
                place = find_place(real_index, request, released_tools(scenario))
                assert place is not None
                right = Reply(answer.text, tuple(Call(c.name, c.arguments) for c in answer.calls))
                found.append((Decision(place, right, Draw((scenario.id, task))), list(before)))
                before.append(ScoredReply(answer.text, answer.calls))
    return found


def verdict(decision: Decision, before: list[ScoredReply], reply: Reply) -> str:
    """What the released scorer says of the step in which `reply` is given."""
    calls = tuple(ToolCall(f"c{i}", c.name, c.arguments) for i, c in enumerate(reply.calls))
    nodes = decision.place.nodes
    score = score_task(decision.place.scenario.tools, nodes, [*before, ScoredReply(reply.text, calls)])
    return score.steps[len(before)].verdict


@pytest.mark.parametrize("way", [way for way in MISTAKES if way not in DETOURS])
def test_the_released_scorer_does_not_accept_the_mistake_anywhere(
    way: str, crossroads: list[tuple[Decision, list[ScoredReply]]]
) -> None:
    applied = 0
    for decision, before in crossroads:
        for seed in range(2):
            drawn = replace(decision, draw=Draw((seed,)))
            wrong = MISTAKES[way](drawn)
            if wrong is not None:
                applied += 1
                assert verdict(drawn, before, wrong) != "correct"
    assert applied


@pytest.mark.parametrize("way", sorted(DETOURS))
def test_a_split_batch_is_a_smaller_batch_of_the_same_calls(
    way: str, crossroads: list[tuple[Decision, list[ScoredReply]]]
) -> None:
    split = [(d, wrong) for d, _ in crossroads if (wrong := MISTAKES[way](d)) is not None]
    assert split
    for decision, wrong in split:
        assert 0 < len(wrong.calls) < len(decision.right.calls)
        assert not Counter(wrong.calls) - Counter(decision.right.calls)


def test_every_way_is_taken_and_named(library: Scenario, start_of: Any, write: Any) -> None:
    index, policy, tools = build_index([library]), parse_policy("noisy:1"), released_tools(library)
    openings = [start_of(library, task) for task in range(3)]
    ways = {respond(policy, index, m, tools, f"s{i}").way for i in range(300) for m in openings}
    assert ways == set(MISTAKES)


def test_a_way_that_does_not_apply_gives_way_to_another(library: Scenario, start_of: Any) -> None:
    place = find_place(build_index([library]), start_of(library, 2), None)
    assert place is not None
    right = Reply(text="You are welcome.")
    ways = Counter(make_mistake(Decision(place, right, Draw((i,)))).way for i in range(400))
    assert set(ways) == {"call_instead_of_text", "empty"}
    assert min(ways.values()) > 100


def test_where_a_text_would_be_accepted_none_is_given_instead_of_a_call(write: Any) -> None:
    nodes = [write.call("go"), write.ask("Where to?", "Rome", []), write.close("Gone.", 0, 1)]
    scenario = write.scenario("s", [write.tool("go")], ("Go somewhere.", nodes))
    place = find_place(build_index([scenario]), [write.user("Go somewhere.")], None)
    assert place is not None
    decision = Decision(place, Reply(calls=(Call("go", "{}"),)), Draw(()))
    assert MISTAKES["text_instead_of_call"](decision) is None
    assert MISTAKES["ask_instead_of_call"](decision) is None


def test_a_scenario_of_one_tool_still_offers_mistakes(write: Any) -> None:
    nodes = [write.call("go"), write.close("Gone.", 0)]
    scenario = write.scenario("s", [write.tool("go")], ("Go somewhere.", nodes))
    place = find_place(build_index([scenario]), [write.user("Go somewhere.")], None)
    assert place is not None
    decision = Decision(place, Reply(calls=(Call("go", "{}"),)), Draw(()))
    possible = {way: wrong for way, mistake in MISTAKES.items() if (wrong := mistake(decision))}
    assert set(possible) == {
        "extra_call",
        "unknown_tool",
        "text_instead_of_call",
        "ask_instead_of_call",
        "empty",
    }
    assert [c.name for c in possible["extra_call"].calls] == ["go", "go"]
    assert [c.name for c in possible["unknown_tool"].calls] == ["goV2"]


_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(value=_values | st.sampled_from(["something else entirely", "none of these"]))
def test_another_value_has_the_same_type_and_is_judged_wrong(value: Any) -> None:
    other = another_value(value)
    assert type(other) is type(value)
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    schema = {"type": "object", "properties": {"x": {"type": kinds[type(value)]}}, "required": ["x"]}
    assert check_arguments(schema, json.dumps({"x": other}), {"x": value}) != "correct"


def test_sample_arguments_fit_the_schema() -> None:
    properties = {
        "unit": {"type": "string", "enum": ["C", "F"]},
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "exact": {"type": "boolean"},
        "where": {"type": "object", "properties": {}},
        "odd": True,
    }
    parameters = {"type": "object", "properties": properties, "required": [*properties, "unlisted"]}
    assert sample_arguments(Tool("t", "", parameters, {})) == {
        "unit": "C",
        "city": "example",
        "days": 1,
        "exact": True,
        "where": {},
        "odd": "example",
        "unlisted": "example",
    }
    assert sample_arguments(Tool("t", "", {}, {})) == {}


def test_a_tool_already_called_like_the_unknown_one_is_not_taken_for_it(write: Any) -> None:
    nodes = [write.call("go"), write.close("Gone.", 0)]
    record = write.scenario("s", [write.tool("go"), write.tool("goV2")], ("Go somewhere.", nodes)).record
    place = find_place(build_index([parse_record(record)]), [write.user("Go somewhere.")], None)
    assert place is not None
    wrong = MISTAKES["unknown_tool"](Decision(place, Reply(calls=(Call("go", "{}"),)), Draw(())))
    assert wrong is not None and [c.name for c in wrong.calls] == ["goV2V2"]
