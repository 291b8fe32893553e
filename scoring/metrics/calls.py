"""What calls cost in vain: those made twice, and those made one by one that could be made at once. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.assign import parse_arguments
from scenarios.labels import multi_tool_label
from scenarios.strict.arguments import Rules, judge_call
from scenarios.strict.rulebooks import rulebook_of
from scenarios.types import Node, Scenario, Task, ToolCall
from scoring.metrics.accuracy import SEQUENTIAL, is_whole
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import mean, rate_of_tasks, share, total
from scoring.types import CORRECT, SessionScore, Trajectory

REDUNDANT, REDUNDANT_EACH, REDUNDANT_RATE = (
    "redundant_calls",
    "redundant_calls_per_session",
    "redundant_call_rate",
)
MISSED, LOST, BATCHES = "missed_parallelism", "steps_lost", "parallel_batches"

OWN = "a definition of this project"

NEVER_PARALLEL = (
    "The agent never made two calls in one reply, so an optimal path rate of 0 says nothing about planning."
)
"""What a table says where `never_parallel` holds."""

_REPEAT = (
    "a call made before in the Session (in an earlier Task, an earlier Step, or earlier in the same reply), "
    "same tool and arguments equal as JSON values, beyond as many as this Task's Reference wants of it"
)
_AT_ONCE = "correct Tasks whose Reference has two calls that do not wait for each other"

DEFINITIONS: Definitions = {
    REDUNDANT: Definition(
        title="Redundant calls",
        unit="count",
        text=f"Calls that repeat {_REPEAT}. All such calls in the Sessions that were scored.",
        source=f"{OWN}; the paper has a class of errors by this name, which this is not",
        better="lower",
    ),
    REDUNDANT_EACH: Definition(
        title="Redundant calls a session",
        unit="ratio",
        text="Redundant calls over Sessions that were scored.",
        source=OWN,
        better="lower",
    ),
    REDUNDANT_RATE: Definition(
        title="Redundant calls among all",
        unit="rate",
        text="Redundant calls over all calls made in the Sessions that were scored. Without interval, as the "
        "calls of one Session are not draws of their own.",
        source=OWN,
        better="lower",
    ),
    MISSED: Definition(
        title="Missed parallelism",
        unit="rate",
        text=f"Tasks done in more Steps than the least number, over {_AT_ONCE}.",
        source=f"{OWN}, after the paper's optimal path rate, which counts failed Tasks too",
        better="lower",
        by_verdict=True,
    ),
    LOST: Definition(
        title="Steps lost",
        unit="ratio",
        text=f"Mean number of Steps above the least, over {_AT_ONCE}.",
        source=OWN,
        better="lower",
        by_verdict=True,
    ),
    BATCHES: Definition(
        title="Replies with several calls",
        unit="rate",
        text="Replies with two calls or more over replies with calls, in scored Tasks, right or wrong. "
        "Without interval, as the replies of one Task are not draws of their own.",
        source=OWN,
        better=None,
    ),
}

_SORTED = json.JSONEncoder(sort_keys=True)
"""To make one costs more than what it writes of a call."""

CallKey = tuple[str, str]
"""A tool's name and arguments, written in one way."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call that the agent made: in which Task, Step and place of its reply, all from 0."""

    task: int
    step: int
    place: int
    call: ToolCall
    key: CallKey


@dataclass(frozen=True, slots=True)
class Answers:
    """Which calls answer which nodes in the Tasks of a Scenario. `rules` are those of its tools, by name."""

    rules: Mapping[str, Rules]

    def answers(self, made: Made, node: Node) -> bool:
        """Same tool, and arguments that equal the node's (or an alternative's), or are right by the rules."""
        if made.call.name != node.name or not node.is_call:
            return False
        wanted = (node.arguments, *node.alternatives)
        if any(made.key == call_key(node.name, arguments) for arguments in wanted):
            return True
        rules = self.rules.get(node.name)
        return rules is not None and judge_call(rules, made.call.arguments, node).right

    def wanted(self, made: Made, tasks: Sequence[Task]) -> int:
        """How many nodes of these Tasks the call would answer."""
        return sum(self.answers(made, node) for task in tasks for node in task.nodes)


def answers_of(scenario: Scenario) -> Answers:
    return Answers(rulebook_of(scenario))


def call_key(name: str, arguments: Any) -> CallKey:
    """Equal for calls of one tool whose arguments are equal as JSON values.

    The order of keys does not matter, numbers count by value, a bool is no number, text must be equal
    to the letter. None and blank text are `{}`; what is not JSON is itself.
    """
    try:
        value = parse_arguments("" if arguments is None else arguments)
        if value is not None:
            return name, _SORTED.encode(_by_value(value))
    except RecursionError:
        pass  # too deep to be written again: compared as it came
    return name, str(arguments)


def calls_made(trajectory: Trajectory, names: Container[str] | None = None) -> list[Made]:
    """All calls of a Session, or those of these tools, in order; also those of a Step that ended its Task."""
    return [
        Made(task, step, place, call, call_key(call.name, call.arguments))
        for task, played in enumerate(trajectory.tasks)
        for step, reply in enumerate(played.replies)
        for place, call in enumerate(reply.calls)
        if names is None or call.name in names
    ]


def redundant_calls(trajectory: Trajectory) -> list[Made]:
    """Calls made before in the Session, beyond as many in this Task as its Reference wants."""
    calls = calls_made(trajectory)
    if len({made.key for made in calls}) == len(calls):
        return []  # rules are costly to prepare
    answers = answers_of(trajectory.scenario)
    seen: set[CallKey] = set()
    in_task: Counter[tuple[int, CallKey]] = Counter()
    found = []
    for made in calls:
        task = trajectory.scenario.tasks[made.task]
        if made.key in seen and in_task[made.task, made.key] >= answers.wanted(made, [task]):
            found.append(made)
        seen.add(made.key)
        in_task[made.task, made.key] += 1
    return found


def allows_parallel(nodes: Sequence[Node]) -> bool:
    """Are there two calls that do not wait for each other, so that a shortest path makes two at once?"""
    return sum(node.is_call for node in nodes) > 1 and multi_tool_label(nodes) != SEQUENTIAL


def never_parallel(trajectories: Sequence[Trajectory]) -> bool:
    """Did the agent never make two calls in one reply, though it called where the Reference allows it?"""
    called = [
        (task, [len(reply.calls) for reply in played.replies if reply.calls])
        for trajectory in trajectories
        for task, played in zip(trajectory.scenario.tasks, trajectory.tasks, strict=False)
    ]
    alone = all(size == 1 for _, sizes in called for size in sizes)
    return alone and any(sizes and allows_parallel(task.nodes) for task, sizes in called)


def call_figures(trajectories: Sequence[Trajectory], sessions: Sequence[SessionScore]) -> list[Figure]:
    """All figures of this module; a Trajectory without a score is left out."""
    pairs = list(scored_pairs(trajectories, sessions))
    return [*_redundant_figures(pairs), *_parallel_figures(sessions), _batch_figure(pairs)]


def scored_pairs(
    trajectories: Sequence[Trajectory], sessions: Sequence[SessionScore]
) -> Iterator[tuple[Trajectory, SessionScore]]:
    """Each Trajectory with its score, by session and epoch."""
    by_name = {(session.session, session.epoch): session for session in sessions}
    for trajectory in trajectories:
        score = by_name.get((trajectory.session, trajectory.epoch))
        if score is not None:
            yield trajectory, score


def _redundant_figures(pairs: Sequence[tuple[Trajectory, SessionScore]]) -> list[Figure]:
    whole = [trajectory for trajectory, score in pairs if is_whole(score)]
    redundant = sum(len(redundant_calls(trajectory)) for trajectory in whole)
    replies = (reply for trajectory in whole for played in trajectory.tasks for reply in played.replies)
    calls = sum(len(reply.calls) for reply in replies)
    return [
        total(REDUNDANT, redundant, len(whole)),
        mean(REDUNDANT_EACH, redundant, len(whole)),
        share(REDUNDANT_RATE, None, redundant, calls),
    ]


def _parallel_figures(sessions: Sequence[SessionScore]) -> list[Figure]:
    lost = [
        (session.scenario.id, score.requests - score.min_steps)
        for session in sessions
        for task, score in zip(session.scenario.tasks, session.tasks, strict=False)
        if score.label == CORRECT and allows_parallel(task.nodes)
    ]
    return [
        rate_of_tasks(MISSED, None, [(scenario, steps > 0) for scenario, steps in lost]),
        mean(LOST, sum(steps for _, steps in lost), len(lost)),
    ]


def _batch_figure(pairs: Sequence[tuple[Trajectory, SessionScore]]) -> Figure:
    sizes = [
        len(reply.calls)
        for trajectory, session in pairs
        for played, score in zip(trajectory.tasks, session.tasks, strict=False)
        if score.label is not None
        for reply in played.replies
        if reply.calls
    ]
    return share(BATCHES, None, sum(size > 1 for size in sizes), len(sizes))


def _by_value(value: Any) -> Any:
    """The same JSON value with whole numbers written as integers, so that 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _by_value(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_by_value(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
