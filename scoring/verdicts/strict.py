"""The scorer as it should be: any order and grouping that the Reference allows, arguments by meaning. Pure.

Judging stops at the first wrong Step, in live Runs too: what an agent makes of a Task after that is the
live verdict's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scenarios.reference import depth
from scenarios.strict.frontier import Frontier, Refused, begin, rulebook, take
from scenarios.strict.frontier_places import Rulebook
from scenarios.strict.rulebooks import rulebook_of
from scenarios.types import Node, Reply, Tool, ToolNotes
from scoring.types import (
    CORRECT,
    ERROR,
    NOT_REACHED,
    STOPPED,
    Evidence,
    SessionScore,
    StepScore,
    TaskScore,
    Trajectory,
)
from scoring.verdicts.evidence import diverge, no_reply, not_reached
from scoring.verdicts.wildtoolbench import ARGUMENT_ERROR, ENDED_EARLY, NAME_ERROR, score_each

NAME = "strict"
VERSION = "1"


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judged Steps of a Task; `evidence` is None if none was wrong."""

    steps: tuple[StepScore, ...]
    frontier: Frontier
    closed: bool = False
    evidence: Evidence | None = None
    right: int = 0


def score_session(trajectory: Trajectory) -> SessionScore:
    """Scores each Task of a Session; one that was not played to its end is left unscored."""
    book = rulebook_of(trajectory.scenario)

    def scorer(
        tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply], ending: str | None
    ) -> TaskScore:
        return _score(book, nodes, replies, ending)

    score = score_each(trajectory, scorer)
    tasks = tuple(
        replace(task, evidence=not_reached(task.reason or NOT_REACHED), matched=0)
        if played.finished and played.ending == NOT_REACHED
        else task
        for task, played in zip(score.tasks, trajectory.tasks, strict=True)
    )
    return replace(score, tasks=tasks)


def score_task(
    tools: Sequence[Tool],
    nodes: Sequence[Node],
    replies: Sequence[Reply],
    ending: str | None = None,
    notes: Mapping[str, ToolNotes] = {},
) -> TaskScore:
    """Scores the replies to one Task; `ending` is how it ended, if that is known.

    A name label of `error` tells a Step that is wrong by its tools, its order or its number of calls,
    an argument label of `error` one whose calls are the right ones with wrong arguments.
    """
    return _score(rulebook(tools, notes), nodes, replies, ending)


def _score(book: Rulebook, nodes: Sequence[Node], replies: Sequence[Reply], ending: str | None) -> TaskScore:
    judged = _judge(book, nodes, replies)
    if not judged.closed and judged.evidence is None:
        if ending == STOPPED:
            return _ended_early(nodes, judged)
        judged = _ran_out(judged, ending)
    evidence, least = judged.evidence, depth(nodes)
    accepted = [step for step in judged.steps if step.verdict == CORRECT]
    of_names = evidence is not None and judged.steps[-1].verdict == NAME_ERROR
    return TaskScore(
        label=CORRECT if evidence is None else ERROR,
        action_name_label=ERROR if of_names else CORRECT,
        action_arguments_label=CORRECT if of_names or evidence is None else ERROR,
        is_optimal=evidence is None and len(accepted) == least,
        requests=min(len(judged.steps), len(replies)),
        steps_kept=len(accepted),
        min_steps=least,
        reason=None if evidence is None else f"step {evidence.step}: {evidence.message}",
        steps=judged.steps,
        evidence=evidence,
        matched=min(judged.frontier.done_count + judged.right, len(nodes)),
    )


def _judge(book: Rulebook, nodes: Sequence[Node], replies: Sequence[Reply]) -> _Judged:
    frontier = begin(nodes)
    steps: list[StepScore] = []
    for i, reply in enumerate(replies):
        taken = take(frontier, book, reply)
        if isinstance(taken, Refused):
            return _refused(tuple(steps), taken, book, reply)
        checks = (CORRECT,) * len(reply.calls) if taken.kind == "call" else None
        steps.append(StepScore(i, taken.kind, CORRECT, tuple(sorted(taken.nodes)), checks=checks))
        frontier = taken.frontier
        if taken.kind == "close":
            return _Judged(tuple(steps), frontier, closed=True)
    return _Judged(tuple(steps), frontier)


def _refused(steps: tuple[StepScore, ...], refused: Refused, book: Rulebook, reply: Reply) -> _Judged:
    found = diverge(refused, book, reply.calls, len(steps))
    of_names = found.evidence.rule.startswith("step.")
    step = StepScore(
        step=len(steps),
        action=refused.did,
        verdict=NAME_ERROR if of_names else ARGUMENT_ERROR,
        nodes=() if of_names else tuple(sorted(it.node for it in refused.placed if it.node is not None)),
        reason=found.evidence.message,
        checks=found.checks if reply.calls else None,
    )
    return _Judged((*steps, step), refused.frontier, evidence=found.evidence, right=found.right)


def _ran_out(judged: _Judged, ending: str | None) -> _Judged:
    evidence = no_reply(judged.frontier, len(judged.steps), ending)
    step = StepScore(evidence.step, "none", NAME_ERROR, reason=evidence.message)
    return replace(judged, steps=(*judged.steps, step), evidence=evidence)


def _ended_early(nodes: Sequence[Node], judged: _Judged) -> TaskScore:
    return TaskScore(
        label=None,
        action_name_label=None,
        action_arguments_label=None,
        is_optimal=False,
        requests=len(judged.steps),
        steps_kept=len(judged.steps),
        min_steps=depth(nodes),
        reason=ENDED_EARLY,
        steps=judged.steps,
    )
