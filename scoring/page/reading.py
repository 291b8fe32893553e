"""How one scorer reads the replies of a Task, call by call: which node each did, what is wrong with it. Pure.

Nothing is decided here: verdicts and messages are those of the scores. What they do not keep of the calls
that are right, and of all but the first that is wrong, is asked of the matcher that the scorer asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.live import LiveStep, Progress, Rule, begin_task
from scenarios.live import take as take_live
from scenarios.strict.arguments import judge_call
from scenarios.strict.faults import Fault
from scenarios.strict.frontier import Refused, Taken, begin, take
from scenarios.strict.rulebooks import rulebook_of
from scenarios.types import Node, Reply, Scenario, ToolCall
from scoring.types import CORRECT, STOPPED, Evidence, StepScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts import strict, wildtoolbench
from scoring.verdicts.released_evidence import pairs
from scoring.verdicts.scorers import Scorer

RIGHT, WRONG, REDUNDANT, UNJUDGED = "right", "wrong", "redundant", "unjudged"


@dataclass(frozen=True, slots=True)
class CallReading:
    """A call: `node` is the position of what it did, or was measured against by `expected`."""

    verdict: str = UNJUDGED
    node: int | None = None
    expected: Mapping[str, Any] | None = None
    faults: tuple[Fault, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class StepReading:
    """A Step. `kind` is calls, ask, close, text (where none was due) or nothing; `node` what a text did."""

    kind: str
    verdict: str = UNJUDGED
    node: int | None = None
    calls: tuple[CallReading, ...] = ()


Reading = tuple[StepReading, ...]
"""One entry for each reply of a Task."""


def read_session(
    scorer: Scorer, trajectory: Trajectory, scores: Sequence[TaskScore], *, goes_on: bool
) -> tuple[Reading, ...]:
    """How the scorer reads each Task of a Session; `goes_on`: a wrong Step did not end its Task."""
    if goes_on:
        return tuple(_live(trajectory, scores, scorer.rule))
    read = _strict if scorer.name == strict.NAME else _scored
    return tuple(
        _whole(read(scorer, trajectory.scenario, task.nodes, played.replies, score), played.replies)
        for task, played, score in zip(trajectory.scenario.tasks, trajectory.tasks, scores, strict=True)
    )


def judged_otherwise(mine: StepReading, other: StepReading) -> tuple[str | None, ...]:
    """For each call the other's verdict, where both have one and they differ on whether it is right."""
    both = zip(mine.calls, other.calls, strict=True)
    return tuple(_otherwise(own.verdict, theirs.verdict) for own, theirs in both)


def _otherwise(mine: str, other: str) -> str | None:
    if UNJUDGED in (mine, other) or (mine == RIGHT) == (other == RIGHT):
        return None
    return RIGHT if other == RIGHT else WRONG


def done_by(reading: Reading) -> dict[int, tuple[int, int | None]]:
    """By node, the Step and call (None: a text) that did it, both from 0; the first if several did."""
    found: dict[int, tuple[int, int | None]] = {}
    for number, step in enumerate(reading):
        if step.node is not None and step.verdict == RIGHT:
            found.setdefault(step.node, (number, None))
        for position, call in enumerate(step.calls):
            if call.node is not None and call.verdict == RIGHT:
                found.setdefault(call.node, (number, position))
    return found


def _whole(read: Iterator[StepReading], replies: Sequence[Reply]) -> Reading:
    """With an entry for each reply: what comes after the judging is unjudged."""
    steps = tuple(read)[: len(replies)]
    return (*steps, *(_unjudged(reply) for reply in replies[len(steps) :]))


def _unjudged(reply: Reply) -> StepReading:
    kind = "calls" if reply.calls else "text" if reply.content else "nothing"
    return StepReading(kind, calls=(CallReading(),) * len(reply.calls))


# --- A wrong Step ends its Task ----------------------------------------------


def _strict(
    scorer: Scorer, scenario: Scenario, nodes: Sequence[Node], replies: Sequence[Reply], score: TaskScore
) -> Iterator[StepReading]:
    book, frontier = rulebook_of(scenario), begin(nodes)
    for reply, step in zip(replies, score.steps, strict=False):
        taken = take(frontier, book, reply)
        if isinstance(taken, Refused):
            yield _refused(taken, nodes, step, score.evidence)
            return
        yield _taken(taken)
        frontier = taken.frontier


def _taken(taken: Taken) -> StepReading:
    if taken.kind == "call":
        return StepReading("calls", RIGHT, calls=tuple(CallReading(RIGHT, node) for node in taken.nodes))
    return StepReading(taken.kind, RIGHT, taken.nodes[0])


def _refused(
    refused: Refused, nodes: Sequence[Node], step: StepScore, evidence: Evidence | None
) -> StepReading:
    if refused.did != "call":
        return StepReading("nothing" if refused.did == "none" else "text", WRONG)
    calls = []
    for number, (placed, check) in enumerate(zip(refused.placed, step.checks or (), strict=False)):
        rule, _, message = check.partition(": ")
        if check == CORRECT:
            calls.append(CallReading(RIGHT, placed.node))
        elif rule.startswith("step.") or placed.node is None or placed.comparison is None:
            verdict = REDUNDANT if rule == "step.redundant_call" else WRONG
            calls.append(_nearest(verdict, message, number, evidence))
        else:
            found = placed.comparison
            expected = nodes[placed.node].arguments if found.expected is None else found.expected
            calls.append(CallReading(WRONG, placed.node, expected, found.faults, message))
    return StepReading("calls", WRONG, calls=tuple(calls))


def _nearest(verdict: str, message: str, number: int, evidence: Evidence | None) -> CallReading:
    """A call that nothing is due for; beside it, if the evidence is about it, a call that is."""
    near = evidence.nearest if evidence is not None and evidence.call == number else None
    if near is None or near.action != "call":
        return CallReading(verdict, message=message)
    return CallReading(verdict, near.node, near.arguments, message=message)


def _scored(
    scorer: Scorer, scenario: Scenario, nodes: Sequence[Node], replies: Sequence[Reply], score: TaskScore
) -> Iterator[StepReading]:
    """By the Steps that any scorer keeps."""
    for reply, step in zip(replies, score.steps, strict=False):
        verdict = RIGHT if step.verdict == CORRECT else WRONG
        if not reply.calls:
            kind = step.action if step.action in ("ask", "close") else "text" if reply.content else "nothing"
            yield StepReading(kind, verdict, step.nodes[0] if step.nodes else None)
            continue
        found = tuple(_checked(scorer, nodes, reply.calls, step, score.evidence))
        yield StepReading("calls", verdict, calls=found)


def _checked(
    scorer: Scorer,
    nodes: Sequence[Node],
    calls: Sequence[ToolCall],
    step: StepScore,
    evidence: Evidence | None,
) -> Iterator[CallReading]:
    checks, places = _by_call(scorer, nodes, calls, step)
    blamed = evidence if evidence is not None and evidence.step == step.step else None
    for number in range(len(calls)):
        node, check = places.get(number), checks.get(number)
        own = blamed if blamed is not None and blamed.call == number else None
        if check == CORRECT or (check is None and step.verdict == CORRECT):
            yield CallReading(RIGHT, node)
        elif own is not None:
            near = own.nearest if own.nearest is not None and own.nearest.action == "call" else None
            node, expected = (None, None) if near is None else (near.node, near.arguments)
            yield CallReading(WRONG, node, expected, own.faults, own.message)
        elif check is not None:
            yield CallReading(WRONG, node, None if node is None else nodes[node].arguments, (), check)
        else:
            yield CallReading()


def _by_call(
    scorer: Scorer, nodes: Sequence[Node], calls: Sequence[ToolCall], step: StepScore
) -> tuple[dict[int, str], dict[int, int]]:
    """What was checked of each call, and the node that it was paired with, by position of the call."""
    checks = step.checks or ()
    if scorer.name != wildtoolbench.NAME:
        return dict(enumerate(checks)), {}
    paired = pairs(nodes, calls, step) if len(step.nodes) == len(calls) else None
    if paired is None:
        return {}, {}
    by_call = {number: check for (number, _), check in zip(paired, checks, strict=False)}
    return by_call, dict(paired)


# --- A wrong Step does not end its Task --------------------------------------


def _live(trajectory: Trajectory, scores: Sequence[TaskScore], rule: Rule) -> Iterator[Reading]:
    scenario = trajectory.scenario
    before: Progress | None = None
    for task, played, score in zip(scenario.tasks, trajectory.tasks, scores, strict=True):
        progress = begin_task(scenario.tools, task.nodes, before, notes=scenario.notes, rule=rule)
        read, before = _live_task(scenario, progress, played, score)
        yield read


def _live_task(
    scenario: Scenario, progress: Progress, played: TaskTrajectory, score: TaskScore
) -> tuple[Reading, Progress]:
    """As `scoring.verdicts.live` walks through it."""
    steps: list[StepReading] = []
    for number, reply in enumerate(played.replies):
        if played.ending == STOPPED and number == len(played.replies) - 1:
            break
        step = take_live(progress, reply)
        steps.append(_live_step(scenario, progress, step, reply, number, score.evidence))
        progress = step.progress
    return _whole(iter(steps), played.replies), progress


def _live_step(
    scenario: Scenario,
    before: Progress,
    step: LiveStep,
    reply: Reply,
    number: int,
    evidence: Evidence | None,
) -> StepReading:
    if step.kind != "calls":
        right = step.kind == "ask" or (step.kind == "close" and before.complete)
        return StepReading(step.kind, RIGHT if right else WRONG, step.nodes[0] if step.nodes else None)
    calls = []
    for position, (call, answer) in enumerate(zip(reply.calls, step.answers, strict=True)):
        if answer.text is not None:
            calls.append(CallReading(REDUNDANT if answer.redundant else RIGHT, answer.node))
        else:
            own = evidence if evidence and (evidence.step, evidence.call) == (number, position) else None
            calls.append(_unmatched(scenario, step.progress, call, own))
    wrong = any(call.verdict != RIGHT for call in calls)
    return StepReading("calls", WRONG if wrong else RIGHT, calls=tuple(calls))


def _unmatched(
    scenario: Scenario, progress: Progress, call: ToolCall, evidence: Evidence | None
) -> CallReading:
    """A call that nothing was there for, beside the open one of its name that it is most like."""
    rules = rulebook_of(scenario).get(call.name)
    message = None if evidence is None else _without_name(evidence.message, call.name)
    if rules is None:
        return CallReading(WRONG, message=message or "is none of the tools")
    open_nodes = [i for i, it in enumerate(progress.nodes) if it.name == call.name and i not in progress.done]
    if not open_nodes:
        return CallReading(WRONG, message=message or "nothing in this task is left that this tool is for")
    compared = {i: judge_call(rules, call.arguments, progress.nodes[i]) for i in open_nodes}
    node = max(open_nodes, key=lambda i: (compared[i].likeness, -i))
    found = compared[node]
    expected = progress.nodes[node].arguments if found.expected is None else found.expected
    said = message or (found.faults[0].message if found.faults else None)
    return CallReading(WRONG, node, expected, found.faults, said)


def _without_name(message: str, name: str) -> str:
    """What a message says of a call, without which call that is."""
    _, found, said = message.partition(f"{name}: ")
    return said if found else message
