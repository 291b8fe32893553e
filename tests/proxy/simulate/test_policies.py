"""What each policy answers, and that nothing but the request decides it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.simulate.place import Index, build_index
from proxy.simulate.policies import (
    FIXED_TEXT,
    NO_TOOLS_TEXT,
    POLICIES,
    Answer,
    NoPlace,
    PolicyError,
    parse_policy,
    respond,
    serial_order,
)
from scenarios.history import gold_history, released_tools
from scenarios.load import BUNDLED_WORD, load
from scenarios.matcher import match_calls, match_text, start
from scenarios.reference import depth
from scenarios.types import Node, Scenario
from scoring.types import Reply
from scoring.verdicts.wildtoolbench import score_task

Play = Callable[..., Any]


def score(scenario: Scenario, task: int, answers: list[Answer]) -> Any:
    replies = [Reply(a.text, a.calls) for a in answers]
    return score_task(scenario.tools, scenario.tasks[task].nodes, replies)


def tasks_of(scenarios: tuple[Scenario, ...]) -> list[tuple[Scenario, int]]:
    return [(scenario, task) for scenario in scenarios for task in range(len(scenario.tasks))]


# oracle and serial


def test_oracle_gets_every_real_task_right_in_the_fewest_steps(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    for scenario, task in tasks_of(real):
        played = play("oracle", real_index, scenario, task)
        verdict = score(scenario, task, played.answers)
        assert (verdict.label, verdict.is_optimal) == ("correct", True)
        assert len(played.answers) == depth(scenario.tasks[task].nodes)


def test_serial_gets_every_real_task_right_with_one_call_per_step(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    for scenario, task in tasks_of(real):
        played = play("serial", real_index, scenario, task)
        assert score(scenario, task, played.answers).label == "correct"
        assert len(played.answers) == len(scenario.tasks[task].nodes)
        assert all(len(answer.calls) <= 1 for answer in played.answers)


@pytest.mark.parametrize("policy", ["oracle", "serial"])
def test_every_bundled_task_is_played_right(policy: str, play: Play) -> None:
    bundled = tuple(scenario for file in load([BUNDLED_WORD]) for scenario in file.scenarios)
    index = build_index(bundled)
    for scenario, task in tasks_of(bundled):
        played = play(policy, index, scenario, task)
        verdict = score(scenario, task, played.answers)
        assert verdict.label == "correct"
        assert verdict.is_optimal or policy == "serial"


def test_oracle_says_the_gold_question_and_the_gold_answer(library: Scenario, play: Play) -> None:
    played = play("oracle", build_index([library]), library, 1)
    assert [answer.text for answer in played.answers] == ["Of which book?", "", "I will remind you."]
    assert [(c.name, c.arguments) for c in played.answers[1].calls] == [("remind", '{"book": "2"}')]


def test_oracle_gives_the_closing_text_again_when_asked_again(library: Scenario, write: Any) -> None:
    index, policy = build_index([library]), parse_policy("oracle")
    messages = gold_history(library, 2)
    for again in ([], [write.user("Hello?")]):
        assert respond(policy, index, messages + again, None).text == "I will remind you."


def test_oracle_calls_again_what_was_refused(library: Scenario, write: Any) -> None:
    messages = [
        write.user(library.tasks[0].text),
        write.calls(("c1", "find", '{"title": "Dune"}'), ("c2", "find", '{"title": "Emily"}')),
        write.told("c1", '{"book": 1}'),
        write.told("c2", '{"error": "no data for these arguments"}'),
    ]
    answer = respond(parse_policy("oracle"), build_index([library]), messages, released_tools(library))
    assert [(c.name, c.arguments) for c in answer.calls] == [("find", '{"title": "Emma"}')]


def test_calls_carry_the_names_under_which_the_request_offers_the_tools(
    library: Scenario, write: Any, start_of: Any
) -> None:
    renamed = [write.tool(f"mcp__books__{tool.name}") for tool in library.tools]
    answer = respond(parse_policy("oracle"), build_index([library]), start_of(library, 0), renamed)
    assert [call.name for call in answer.calls] == ["mcp__books__find", "mcp__books__find"]


def test_a_run_of_equal_names_is_finished_before_what_has_become_ready(library: Scenario) -> None:
    behind_the_first = (library.tasks[0].nodes[0], library.tasks[0].nodes[2], library.tasks[0].nodes[1])
    nodes = (
        behind_the_first[0],
        Node("lend", {}, None, (0,)),
        behind_the_first[2],
        Node("prepare_to_answer", {}, "Done.", (1, 2)),
    )
    assert serial_order(nodes) == (0, 2, 1, 3)


@st.composite
def references(draw: st.DrawFn) -> tuple[Node, ...]:
    """References of up to seven calls of three tools in any acyclic order, and a closing node."""
    size = draw(st.integers(0, 7))
    places = draw(st.permutations(range(size)))
    nodes = []
    for i in range(size):
        before = [j for j in range(size) if places[j] < places[i]]
        after = draw(st.lists(st.sampled_from(before), unique=True, max_size=2)) if before else []
        nodes.append(Node(draw(st.sampled_from("abc")), {"n": i}, i, tuple(after)))
    return (*nodes, Node("prepare_to_answer", {}, "Done.", tuple(range(size))))


@settings(deadline=None)
@given(nodes=references())
def test_the_serial_order_is_accepted_by_the_released_matcher(nodes: tuple[Node, ...]) -> None:
    state = start(nodes)
    for position in serial_order(nodes):
        node = nodes[position]
        match = match_calls(state, [node.name]) if node.is_call else match_text(state)
        assert match is not None and match.nodes == (position,)
        state = match.state


# noisy


def test_noisy_with_probability_zero_is_the_oracle(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    for scenario, task in tasks_of(real):
        noisy = play("noisy:0:5", real_index, scenario, task, "run.1")
        assert noisy.answers == play("oracle", real_index, scenario, task, "run.1").answers


def test_noisy_with_probability_one_never_says_what_the_oracle_says(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    for scenario, task in tasks_of(real):
        right = play("oracle", real_index, scenario, task)
        for request, answer in zip(right.requests, right.answers, strict=True):
            wrong = respond(parse_policy("noisy:1"), real_index, request, released_tools(scenario))
            assert wrong.way
            assert (wrong.text, [(c.name, c.arguments) for c in wrong.calls]) != (
                answer.text,
                [(c.name, c.arguments) for c in answer.calls],
            )


def test_the_same_session_gets_the_same_draws_in_whatever_order_it_asks(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    policy = parse_policy("noisy:0.5:3")
    asked = []
    for scenario, task in tasks_of(real):
        for request in play("oracle", real_index, scenario, task).requests:
            asked += [(request, released_tools(scenario), f"{scenario.id}.{epoch}") for epoch in (1, 2)]
    first = [respond(policy, real_index, *one) for one in asked]
    order = list(range(len(asked)))
    random.Random(1).shuffle(order)
    rebuilt = build_index(tuple(reversed(real)))
    again = {i: respond(parse_policy("noisy:0.5:3"), rebuilt, *asked[i]) for i in order}
    assert [again[i] for i in range(len(asked))] == first


def test_epochs_and_seeds_get_draws_of_their_own(
    real: tuple[Scenario, ...], real_index: Index, start_of: Any
) -> None:
    def draws(policy: str, session: str | None) -> list[str]:
        parsed = parse_policy(policy)
        return [
            respond(parsed, real_index, start_of(s, t), released_tools(s), session).way
            for s, t in tasks_of(real)
        ]

    assert draws("noisy:0.5", "run.1") != draws("noisy:0.5", "run.2")
    assert draws("noisy:0.5:1", "run.1") != draws("noisy:0.5:2", "run.1")
    assert draws("noisy:0.5", None) == draws("noisy:0.5:0", None)


def test_decisions_are_wrong_as_often_as_the_probability_says(library: Scenario, start_of: Any) -> None:
    index, policy, tools = build_index([library]), parse_policy("noisy:0.3"), released_tools(library)
    opening = start_of(library, 0)
    wrong = Counter(bool(respond(policy, index, opening, tools, f"s{i}").way) for i in range(2000))
    assert 0.25 < wrong[True] / 2000 < 0.35


# The policies that never change


def test_text_only_always_says_its_sentence(library: Scenario, start_of: Any, write: Any) -> None:
    index, policy = build_index([library]), parse_policy("text-only")
    for messages in (start_of(library, 0), [write.user("Who are you?")]):
        answer = respond(policy, index, messages, released_tools(library))
        assert answer == Answer(FIXED_TEXT, (), "")


def test_always_call_calls_the_first_tool_of_the_request_without_arguments(
    library: Scenario, start_of: Any, write: Any
) -> None:
    index, policy = build_index([library]), parse_policy("always-call")
    for messages in (start_of(library, 0), [write.user("Who are you?")]):
        answer = respond(policy, index, messages, [write.tool("first"), write.tool("second")])
        assert [(call.name, call.arguments) for call in answer.calls] == [("first", "{}")]


def test_a_request_without_tools_is_never_answered_with_calls(
    library: Scenario, start_of: Any, write: Any
) -> None:
    index = build_index([library])
    title = [write.user(f"Write a title for this: {library.tasks[0].text}")]
    for policy in ("oracle", "serial", "always-call"):
        for tools in (None, []):
            answer = respond(parse_policy(policy), index, title, tools)
            assert answer == Answer(NO_TOOLS_TEXT, (), "")


def test_empty_says_nothing(library: Scenario, start_of: Any) -> None:
    answer = respond(parse_policy("empty"), build_index([library]), start_of(library, 0), None)
    assert answer == Answer("", (), "")


@pytest.mark.parametrize("policy", ["oracle", "serial", "noisy:0.5"])
def test_policies_that_need_a_place_say_that_there_is_none(
    policy: str, library: Scenario, write: Any
) -> None:
    with pytest.raises(NoPlace, match="matches no scenario"):
        respond(
            parse_policy(policy), build_index([library]), [write.user("Who are you?")], [write.tool("fly")]
        )


@pytest.mark.parametrize("policy", ["oracle", "serial", "noisy:0.5"])
def test_a_call_on_the_side_gets_a_text(policy: str, library: Scenario, write: Any) -> None:
    messages = [write.user("A title for: Who are you?")]
    answer = respond(parse_policy(policy), build_index([library]), messages, None)
    assert (answer.calls, bool(answer.text)) == ((), True)


# Ids


def test_call_ids_are_short_plain_unique_and_always_the_same(
    real: tuple[Scenario, ...], real_index: Index, play: Play
) -> None:
    def ids() -> list[str]:
        plays = [play("oracle", real_index, scenario, task) for scenario, task in tasks_of(real)]
        return [call.id for played in plays for answer in played.answers for call in answer.calls]

    found = ids()
    assert ids() == found
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{1,35}", call_id) for call_id in found)


def test_a_call_id_that_the_conversation_already_has_is_not_given_again(
    library: Scenario, write: Any
) -> None:
    index, policy = build_index([library]), parse_policy("oracle")
    first, tools = write.user(library.tasks[0].text), released_tools(library)
    given = [call.id for call in respond(policy, index, [first], tools).calls]
    # An agent that lost the assistant message but kept the results is at the same step.
    orphans = [write.told(call_id, "lost") for call_id in given]
    again = [call.id for call in respond(policy, index, [first, *orphans], tools).calls]
    assert len(set(given + again)) == 4


# Reading a policy


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_can_be_read_back_from_its_spec(name: str) -> None:
    spec = {"noisy": "noisy:0.25:7"}.get(name, name)
    policy = parse_policy(spec)
    assert policy.spec == spec
    assert parse_policy(policy.spec) == policy


def test_probability_and_seed_are_read() -> None:
    assert [parse_policy(spec).probability for spec in ("noisy:0", "noisy:1", "noisy:0.3")] == [0, 1, 0.3]
    assert [parse_policy(spec).seed for spec in ("noisy:1", "noisy:1:7", "noisy:1:-2")] == [0, 7, -2]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("orcale", "there is no such policy"),
        ("", "there is no such policy"),
        ("oracle:1", "oracle takes no settings"),
        ("noisy", "write noisy:P[:SEED]"),
        ("noisy:0.1:2:3", "write noisy:P[:SEED]"),
        ("noisy:1.1", "'1.1' is not a number from 0 to 1"),
        ("noisy:-0.1", "'-0.1' is not a number from 0 to 1"),
        ("noisy:nan", "'nan' is not a number from 0 to 1"),
        ("noisy:often", "'often' is not a number from 0 to 1"),
        ("noisy:0.5:x", "'x' is not a whole number"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused_with_the_allowed_ones(spec: str, reason: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        parse_policy(spec)
    assert reason in str(refusal.value)
    assert "use one of oracle, serial, noisy:P[:SEED], text-only, always-call, empty" in str(refusal.value)
    assert "\n" not in str(refusal.value)
