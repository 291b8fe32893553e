"""Agents that need no model: what they come to is the floor and the ceiling of a set of Scenarios.

They are played as a Run with gold history is in which a wrong Step ends its Task: the released rules
say which Step is wrong (`scenarios.steps`), and every scorer gets the same Trajectories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scenarios.matcher import start
from scenarios.mutations import UNKNOWN_TOOL, reference_replies
from scenarios.steps import Mismatch, take_step
from scenarios.types import Node, Reply, Scenario, ToolCall
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import share
from scoring.types import CORRECT, STOPPED, SessionScore, TaskTrajectory, Trajectory

TEXT = "This is a scripted reply."
CLOSED = "closed"
"""How the log says that a Task ended with its closing text."""

TASK_ACCURACY, SESSION_ACCURACY = "null_task_accuracy", "null_session_accuracy"

_SOURCE = "null baselines: what a scorer gives for nothing, and for the References themselves"

DEFINITIONS: Definitions = {
    SESSION_ACCURACY: Definition(
        "Session accuracy of agents without a model",
        "rate",
        "Scenarios of which an agent without a model gets every task right, over the distinct scenarios "
        "of the run. Exact, as such an agent leaves nothing to chance.",
        _SOURCE,
        better=None,
    ),
    TASK_ACCURACY: Definition(
        "Task accuracy of agents without a model",
        "rate",
        "Tasks that an agent without a model gets right, over the tasks of the distinct scenarios of the "
        "run. Exact, as such an agent leaves nothing to chance.",
        _SOURCE,
        better=None,
    ),
}


class Scorer(Protocol):
    """A named scorer, as far as it is needed here."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def score(self) -> Callable[[Trajectory], SessionScore]: ...


@dataclass(frozen=True, slots=True)
class NullFigures:
    """What one scorer gives an agent: Figures with n and successes; an interval there is none."""

    scorer: str
    version: str
    session_accuracy: Figure
    task_accuracy: Figure


@dataclass(frozen=True, slots=True)
class NullAgent:
    """An agent without a model: `name` is the group of its figures, `text` says what it does."""

    name: str
    text: str
    figures: tuple[NullFigures, ...]


def null_agents(scenarios: Iterable[Scenario], scorers: Sequence[Scorer]) -> tuple[NullAgent, ...]:
    """Every agent without a model, over the distinct Scenarios (by hash), under each scorer in turn."""
    distinct = tuple({scenario.hash: scenario for scenario in scenarios}.values())
    agents = []
    for name, (play, text) in AGENTS.items():
        played = [_trajectory(scenario, play) for scenario in distinct]
        agents.append(NullAgent(name, text, tuple(_figures(name, scorer, played) for scorer in scorers)))
    return tuple(agents)


def text_only(scenario: Scenario, nodes: Sequence[Node]) -> TaskTrajectory:
    """Answers everything, the question for a parameter too, with a text."""
    return _stopped(nodes, Reply(TEXT))


def always_call(scenario: Scenario, nodes: Sequence[Node]) -> TaskTrajectory:
    """Calls the Scenario's first tool, or one that it does not have where it has none, without arguments."""
    name = scenario.tools[0].name if scenario.tools else UNKNOWN_TOOL
    return _stopped(nodes, Reply(None, (ToolCall("call_0", name, "{}"),)))


def say_nothing(scenario: Scenario, nodes: Sequence[Node]) -> TaskTrajectory:
    """Replies with neither a text nor a call, which is no Step anywhere."""
    return TaskTrajectory((Reply(None),), ending=STOPPED)


def replay(scenario: Scenario, nodes: Sequence[Node]) -> TaskTrajectory:
    """Does exactly what the Reference says, in the fewest Steps.

    The released rules can refuse even that where names repeat, or an ask stands beside calls: they take
    a call for the first node of its name. No Task that is known has such a Reference.
    """
    return TaskTrajectory(reference_replies(nodes), ending=CLOSED)


Play = Callable[[Scenario, Sequence[Node]], TaskTrajectory]

AGENTS: Mapping[str, tuple[Play, str]] = {
    "text-only": (text_only, "a text at every step"),
    "always-call": (always_call, "at every step a call of the scenario's first tool, without arguments"),
    "empty": (say_nothing, "a reply with neither text nor calls"),
    "reference": (replay, "the references themselves"),
}
"""By name: how a Task is played, and what that is in words. The first three bound from below, the last
from above; the names are those of the policies of `simulate`, where it has them."""


def _stopped(nodes: Sequence[Node], reply: Reply) -> TaskTrajectory:
    """The same reply over and over, to the closing text or the first wrong Step.

    Every Step that is taken does a node at least, so that one more than there are nodes is wrong.
    """
    state = start(nodes)
    for steps in range(1, len(nodes) + 1):
        taken = take_step(state, reply)
        if isinstance(taken, Mismatch):
            return TaskTrajectory((reply,) * steps, ending=STOPPED)
        if taken.kind == "close":
            return TaskTrajectory((reply,) * steps, ending=CLOSED)
        state = taken.state
    return TaskTrajectory((reply,) * (len(nodes) + 1), ending=STOPPED)


def _trajectory(scenario: Scenario, play: Play) -> Trajectory:
    tasks = tuple(play(scenario, task.nodes) for task in scenario.tasks)
    return Trajectory(scenario.id, 1, scenario, tasks)


def _figures(agent: str, scorer: Scorer, played: Sequence[Trajectory]) -> NullFigures:
    sessions = [scorer.score(trajectory) for trajectory in played]
    tasks = [task.label == CORRECT for session in sessions for task in session.tasks]
    return NullFigures(
        scorer.name,
        scorer.version,
        share(SESSION_ACCURACY, agent, sum(it.correct for it in sessions), len(sessions)),
        share(TASK_ACCURACY, agent, sum(tasks), len(tasks)),
    )
