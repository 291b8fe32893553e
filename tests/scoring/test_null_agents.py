from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.references import orderly_reference
from support.scenes import SHOP, TWINS, chat, scenario

from scenarios.load import load
from scenarios.matcher import start
from scenarios.steps import Mismatch, take_step
from scenarios.types import Node, Reply, Scenario, Task, Tool, ToolCall
from scoring.metrics.null_agents import DEFINITIONS, Scorer, null_agents
from scoring.types import SessionScore, Trajectory
from scoring.verdicts.scorers import SCORERS

ALL = tuple(SCORERS.values())
RELEASED = SCORERS["wildtoolbench"]
NAMES = ("text-only", "always-call", "empty", "reference")


def told(scenarios: Sequence[Scenario], scorer: Scorer) -> dict[str, tuple[int | None, int, int | None, int]]:
    """By agent: correct Tasks, Tasks, correct Sessions, Sessions."""
    return {
        agent.name: (tasks.successes, tasks.n, sessions.successes, sessions.n)
        for agent in null_agents(scenarios, [scorer])
        for tasks, sessions in [(it.task_accuracy, it.session_accuracy) for it in agent.figures]
    }


def of_references(*references: Sequence[Node]) -> Scenario:
    """A Scenario of random References: every tool takes a number, as their nodes have it."""
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "description": "A number."}}}
    names = dict.fromkeys(it.name for nodes in references for it in nodes if it.is_call)
    tools = tuple(
        Tool(name, "", parameters, {"function": {"name": name, "parameters": parameters}})
        for name in names or ["unused"]
    )
    tasks = tuple(Task("hello", "Single-Tool", None, tuple(nodes)) for nodes in references)
    return replace(scenario(SHOP), tasks=tasks, tools=tools, hash="random")


def played(one: Scenario) -> dict[str, Trajectory]:
    """What each agent's Trajectory is, as a scorer sees it."""
    seen: list[Trajectory] = []

    class Listener:
        name, version = "listener", "1"

        def score(self, trajectory: Trajectory) -> SessionScore:
            seen.append(trajectory)
            return RELEASED.score(trajectory)

    return dict(zip([agent.name for agent in null_agents([one], [Listener()])], seen, strict=True))


@pytest.fixture(scope="module", params=["real", "bundled"])
def scenarios(request: pytest.FixtureRequest) -> list[Scenario]:
    paths = ["bundled"] if request.param == "bundled" else request.getfixturevalue("real_session_files")
    return [one for file in load(paths) for one in file.scenarios]


@pytest.mark.parametrize("scorer", ALL, ids=lambda scorer: scorer.name)
def test_text_is_right_exactly_where_chat_is_due_calls_and_silence_nowhere_the_reference_always(
    scenarios: list[Scenario], scorer: Scorer
) -> None:
    tasks = [task for one in scenarios for task in one.tasks]
    chats = sum(task.label == "Chat" for task in tasks)
    all_chat = sum(all(task.label == "Chat" for task in one.tasks) for one in scenarios)
    assert 0 < chats < len(tasks)
    assert told(scenarios, scorer) == {
        "text-only": (chats, len(tasks), all_chat, len(scenarios)),
        "always-call": (0, len(tasks), 0, len(scenarios)),
        "empty": (0, len(tasks), 0, len(scenarios)),
        "reference": (len(tasks), len(tasks), len(scenarios), len(scenarios)),
    }


@given(orderly_reference())
def test_text_is_right_on_any_reference_without_calls_and_on_no_other(nodes: tuple[Node, ...]) -> None:
    without_calls = not any(it.is_call for it in nodes)
    figures = told([of_references(nodes)], RELEASED)
    assert [figures[name][0] for name in ("text-only", "always-call", "empty")] == [int(without_calls), 0, 0]


@pytest.mark.parametrize("scorer", ALL, ids=lambda scorer: scorer.name)
def test_a_reference_is_right_when_it_is_replayed(scorer: Scorer) -> None:
    """Of calls with names of their own: the released rules can take a call for another of its name."""

    @given(orderly_reference())
    def check(nodes: tuple[Node, ...]) -> None:
        own = [replace(it, name=f"{it.name}{i}") if it.is_call else it for i, it in enumerate(nodes)]
        assert told([of_references(own)], scorer)["reference"] == (1, 1, 1, 1)

    check()


@given(st.lists(orderly_reference(), min_size=1, max_size=3), st.sampled_from(NAMES[:3]))
def test_a_task_has_no_reply_after_its_closing_text_or_its_wrong_step(
    references: list[tuple[Node, ...]], name: str
) -> None:
    trajectory = played(of_references(*references))[name]
    for task, nodes in zip(trajectory.tasks, references, strict=True):
        state, endings = start(nodes), []
        for reply in task.replies:
            taken = take_step(state, reply)
            endings.append("stopped" if isinstance(taken, Mismatch) else taken.kind)
            state = state if isinstance(taken, Mismatch) else taken.state
        assert {"close": "closed"}.get(endings[-1], endings[-1]) == task.ending
        assert not {"stopped", "close"} & set(endings[:-1])


def test_the_trajectories_are_those_that_a_log_would_have() -> None:
    # SHOP: one call; two calls at once; an ask, then a call; chat. Its first tool is getPrice.
    shop = played(scenario(SHOP))
    call = Reply(None, (ToolCall("call_0", "getPrice", "{}"),))
    said = {name: [(it.replies, it.ending) for it in shop[name].tasks] for name in NAMES[:3]}
    (text,) = {reply for task in shop["text-only"].tasks for reply in task.replies}
    assert text.content
    assert said == {
        "text-only": [
            ((text,), "stopped"),
            ((text,), "stopped"),
            ((text, text), "stopped"),
            ((text,), "closed"),
        ],
        "always-call": [
            ((call, call), "stopped"),
            ((call, call), "stopped"),
            ((call,), "stopped"),
            ((call,), "stopped"),
        ],
        "empty": [((Reply(None),), "stopped")] * 4,
    }


def test_the_same_scenario_counts_once_and_epochs_do_not_count() -> None:
    shop, twins = scenario(SHOP), scenario(TWINS)
    assert told([shop, twins, shop, replace(shop, id="other name")], RELEASED) == told(
        [shop, twins], RELEASED
    )
    assert told([shop, twins], RELEASED)["empty"] == (0, 6, 0, 2)


def test_a_scenario_of_chat_alone_is_a_whole_session_for_a_text() -> None:
    assert told([scenario(chat("talk"))], RELEASED) == {
        "text-only": (2, 2, 1, 1),
        "always-call": (0, 2, 0, 1),
        "empty": (0, 2, 0, 1),
        "reference": (2, 2, 1, 1),
    }


def test_a_scenario_without_tools_can_be_called_wrong_as_well() -> None:
    bare = replace(scenario(chat("talk")), tools=())
    assert told([bare], RELEASED)["always-call"] == (0, 2, 0, 1)


def test_figures_have_counts_no_interval_and_no_value_where_there_is_nothing() -> None:
    (agent, *_) = null_agents([scenario(chat("talk", tasks=4)), scenario(SHOP)], [RELEASED])
    (figures,) = agent.figures
    assert (figures.scorer, figures.version) == (RELEASED.name, RELEASED.version)
    assert figures.task_accuracy.key == "null_task_accuracy[text-only]"
    assert (figures.task_accuracy.value, figures.task_accuracy.low, figures.task_accuracy.high) == (
        5 / 8,
        None,
        None,
    )
    assert figures.session_accuracy.value == 1 / 2
    assert [it.figures[0].session_accuracy.value for it in null_agents([], [RELEASED])] == [None] * 4


def test_every_figure_that_is_made_has_a_definition_and_every_definition_a_figure() -> None:
    agents = null_agents([scenario(SHOP)], ALL)
    made = {
        it.name for agent in agents for f in agent.figures for it in (f.session_accuracy, f.task_accuracy)
    }
    assert made == set(DEFINITIONS)
    assert [agent.name for agent in agents] == list(NAMES)
    assert {tuple(f.scorer for f in agent.figures) for agent in agents} == {tuple(SCORERS)}
