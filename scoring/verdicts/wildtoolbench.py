"""The released scorer, to the bit: action names decide first, arguments afterwards.

Facts: section 4 (the loop), section 5 (its quirks). Where the released code crashes, the
Task's verdict is `error` with the reason, and nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scenarios.arguments import check_arguments
from scenarios.history import as_sent, encode
from scenarios.matcher import start
from scenarios.reference import depth
from scenarios.steps import Mismatch, mismatch, take_step
from scenarios.types import PSEUDO_ACTIONS, Node, Reply, Tool, ToolCall
from scoring.types import (
    AGENT_STOPPED,
    CORRECT,
    ERROR,
    JSON,
    NOT_REACHED,
    STOPPED,
    SessionScore,
    StepScore,
    TaskScore,
    TaskTrajectory,
    Trajectory,
)

NAME = "wildtoolbench"
VERSION = "1"

NAME_ERROR = "name_error"
ARGUMENT_ERROR = "argument_error"

ENDED_EARLY = "ended by the proxy at a step that is allowed"
"""Why a Task is not scored whose replies are all accepted, though the last of them ended it: the proxy
went by another version of the Reference or of the rules, or its --max-steps were used up."""

NO_REPLY = {AGENT_STOPPED: "the agent stopped before the task was over"}
"""What is said of a Task, by its ending, whose replies ran out; the released scorer counts an empty one."""
REPLIES_ENDED = "the replies ended before the task was over"
"""The same of a Task of which the ending is not known."""


TaskScorer = Callable[[Sequence[Tool], Sequence[Node], Sequence[Reply], str | None], TaskScore]
"""What scores one Task: (tools, nodes, replies, ending) -> TaskScore."""


@dataclass(frozen=True, slots=True)
class Played:
    """A Task played on names alone: its Steps, the replies behind them, whether it was closed."""

    steps: tuple[StepScore, ...]
    replies: tuple[Reply, ...]
    closed: bool


def score_session(trajectory: Trajectory) -> SessionScore:
    """Scores each Task of a Session; one that was not played to its end is left unscored."""
    return score_each(trajectory, score_task)


def score_each(trajectory: Trajectory, scorer: TaskScorer) -> SessionScore:
    """What `scorer` says of each Task that was played to its end."""
    scenario = trajectory.scenario
    scores = tuple(_score(trajectory, number, scorer) for number in range(len(scenario.tasks)))
    return SessionScore(trajectory.session, trajectory.epoch, scenario, scores)


def score_task(
    tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply], ending: str | None = None
) -> TaskScore:
    """Scores the replies to one Task; when they run out, the next reply counts as empty.

    `ending` is how the Task ended, if that is known; it has a say in the reason alone.
    """
    played = play(nodes, replies, ending)
    steps, name_label, argument_label, kept = _check_arguments(tools, nodes, played)
    optimal = played.closed and argument_label == CORRECT and len(played.steps) == depth(nodes)
    wrong = next((step for step in steps if step.verdict != CORRECT), None)
    return TaskScore(
        label=CORRECT if name_label == argument_label == CORRECT else ERROR,
        action_name_label=name_label,
        action_arguments_label=argument_label,
        is_optimal=optimal,
        requests=len(played.steps),
        steps_kept=kept,
        min_steps=depth(nodes),
        reason=None if wrong is None else f"step {wrong.step}: {wrong.reason}",
        steps=steps,
    )


def _score(trajectory: Trajectory, number: int, scorer: TaskScorer) -> TaskScore:
    nodes, played = trajectory.scenario.tasks[number].nodes, trajectory.tasks[number]
    if not played.finished:
        return _unscored(nodes, played)
    if played.ending == NOT_REACHED:
        return _not_reached(nodes, trajectory.tasks[:number])
    score = scorer(trajectory.scenario.tools, nodes, played.replies, played.ending)
    if played.ending == STOPPED and score.steps and score.steps[-1].step >= len(played.replies):
        return _unscored(nodes, replace(played, unfinished_reason=ENDED_EARLY))
    return score


def _not_reached(nodes: Sequence[Node], before: Sequence[TaskTrajectory]) -> TaskScore:
    """A Task that the agent did not come to: wrong, though nothing in it was asked or judged."""
    left = next((n for n, task in enumerate(before, start=1) if task.ending == AGENT_STOPPED), None)
    return TaskScore(
        label=ERROR,
        action_name_label=None,
        action_arguments_label=None,
        is_optimal=False,
        requests=0,
        steps_kept=0,
        min_steps=depth(nodes),
        reason="not reached" if left is None else f"not reached: the agent stopped in task {left}",
    )


def _unscored(nodes: Sequence[Node], played: TaskTrajectory) -> TaskScore:
    return TaskScore(
        label=None,
        action_name_label=None,
        action_arguments_label=None,
        is_optimal=False,
        requests=len(played.replies),
        steps_kept=0,
        min_steps=depth(nodes),
        reason=played.unfinished_reason or "not played to its end",
    )


def play(nodes: Sequence[Node], replies: Sequence[Reply], ending: str | None) -> Played:
    """The Steps that the released harness takes the replies for, up to the first that it does not allow."""
    state = start(nodes)
    steps: list[StepScore] = []
    for i, reply in enumerate(replies):
        taken = take_step(state, reply)
        if isinstance(taken, Mismatch):
            steps.append(StepScore(i, _intent(reply), NAME_ERROR, reason=taken.reason))
            return Played(tuple(steps), tuple(replies[: i + 1]), closed=False)
        steps.append(StepScore(i, taken.kind, CORRECT, taken.nodes))
        if taken.kind == "close":
            return Played(tuple(steps), tuple(replies[: i + 1]), closed=True)
        state = taken.state
    missing = Reply(None)
    reason = mismatch(state, NO_REPLY.get(ending or "", REPLIES_ENDED)).reason
    steps.append(StepScore(len(replies), _intent(missing), NAME_ERROR, reason=reason))
    return Played(tuple(steps), (*replies, missing), closed=False)


def _intent(reply: Reply) -> str:
    return "call" if reply.calls else "text" if reply.content else "none"


def _check_arguments(
    tools: Sequence[Tool], nodes: Sequence[Node], played: Played
) -> tuple[tuple[StepScore, ...], str, str, int]:
    """Judges arguments step by step: (steps, name label, argument label, step records kept).

    The first Step with a wrong argument ends the judging; the one after it (there always is
    one: no play ends with accepted calls) is struck from the record, and whatever its names
    were, the name label then reads `correct` (facts: section 5, row 19).
    """
    wanted = {node.name for node in nodes}
    schemas = {tool.name: as_sent(tool.parameters) for tool in tools if tool.name in wanted}
    steps = list(played.steps)
    for i, (step, reply) in enumerate(zip(played.steps, played.replies, strict=True)):
        if step.action != "call" or step.verdict != CORRECT:
            continue
        checks = _step_checks(schemas, [nodes[k] for k in step.nodes], reply.calls)
        steps[i] = replace(step, checks=checks)
        wrong = [check for check in checks if check != CORRECT]
        if wrong:
            steps[i] = replace(steps[i], verdict=ARGUMENT_ERROR, reason="; ".join(wrong))
            return tuple(steps[: i + 1]), CORRECT, ERROR, len(steps) - 1
    return tuple(steps), CORRECT if played.closed else ERROR, CORRECT, len(steps)


def _step_checks(
    schemas: dict[str, JSON], nodes: Sequence[Node], calls: Sequence[ToolCall]
) -> tuple[str, ...]:
    """Pairs both sides sorted by (name, arguments as text), as released, and checks each pair."""
    if min(node.name for node in nodes) in PSEUDO_ACTIONS:
        # The released code looks at the first name in sorted order and skips the whole Step.
        return ()
    if not all(isinstance(call.arguments, str) for call in calls):
        return ("error_crash: arguments are not a string",)
    expected = sorted(nodes, key=lambda node: (node.name, encode(node.arguments)))
    given = sorted(calls, key=lambda call: (call.name, call.arguments))
    return tuple(
        check_arguments(schemas[node.name], call.arguments, node.arguments)
        if node.name in schemas
        else f"error_crash: no tool is called {node.name}"
        for node, call in zip(expected, given, strict=True)
    )
