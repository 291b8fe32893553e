"""An experimental reconstruction of how the published table was scored: looser on arguments than the release.

The table cannot have been made with the released argument checker (facts: section 1, "Published
scores"): it counts far fewer argument errors than that does, and progress rates that the released
metric cannot give. The rules here are those of the analysis code that was released with the
benchmark's predecessor, C3-Benchmark. That they are the ones is an inference.

- Names decide as in `scoring.verdicts.wildtoolbench`, and have the same evidence.
- Arguments are looked at where the names were right to the end. Calls are paired with nodes of their
  name over the whole Task, one call after another, each with the node left that it agrees with best.
  A call is right where the mean score of its arguments (`published_arguments`) is 0.7 or more.
- A Step with a tool call of a pseudo-action is not looked at, as in the released scorer.
- Progress (`steps_kept`) is all nodes of a correct Task; of another one the calls and texts of all
  replies but the last, and those of the last where only arguments were wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scenarios.history import as_sent
from scenarios.reference import depth
from scenarios.types import Node, Reply, Tool, ToolCall
from scoring.types import CORRECT, ERROR, Evidence, Nearest, SessionScore, StepScore, TaskScore, Trajectory
from scoring.verdicts import released_evidence
from scoring.verdicts.published_arguments import CallScore, score_arguments
from scoring.verdicts.wildtoolbench import ARGUMENT_ERROR, Played, play, score_each

NAME = "published"
VERSION = "1"
NOTE = (
    "Experimental: a reconstruction of the scoring behind the published table, from the benchmark's "
    "older code. It is no proof that a figure compares with that table."
)

THRESHOLD = 0.7
"""The least mean score of a call's arguments that is right."""

RULE = "published.args.score"

RULES: Mapping[str, str] = {
    RULE: f"The mean score of the call's arguments is less than {THRESHOLD}; a required one that is missing, "
    "or arguments that are no JSON object, make it 0.",
}
"""Rule id -> what it says. Those of names are among `released_evidence.RULES`."""


@dataclass(frozen=True, slots=True)
class _Paired:
    """A call, where it stands, and the node that it was paired with."""

    step: int
    position: int
    call: ToolCall
    node: int
    found: CallScore

    @property
    def right(self) -> bool:
        return self.found.score >= THRESHOLD

    @property
    def check(self) -> str:
        if self.right:
            return CORRECT
        if self.found.fault is not None:
            return f"{self.call.name}: {self.found.fault}"
        low = ", ".join(f"{key} {score:.2f}" for key, score in self.found.scores if score < THRESHOLD)
        return f"{self.call.name}: the arguments score {self.found.score:.2f}, less than {THRESHOLD} ({low})"


def score_session(trajectory: Trajectory) -> SessionScore:
    """Scores each Task of a Session; one that was not played to its end is left unscored."""
    session = score_each(trajectory, score_task)
    played = zip(trajectory.scenario.tasks, trajectory.tasks, session.tasks, strict=True)
    tasks = tuple(_explained(task.nodes, done.replies, score) for task, done, score in played)
    return replace(session, tasks=tasks)


def score_task(
    tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply], ending: str | None = None
) -> TaskScore:
    """Scores the replies to one Task; when they run out, the next reply counts as empty.

    `action_arguments_label` is None where the names were wrong. `ending` has a say in the reason alone.
    """
    played = play(nodes, replies, ending)
    pairs = _pair(tools, nodes, played) if played.closed else []
    steps = tuple(_judged(step, pairs) for step in played.steps)
    wrong = next((step for step in steps if step.verdict != CORRECT), None)
    score = TaskScore(
        label=CORRECT if wrong is None else ERROR,
        action_name_label=CORRECT if played.closed else ERROR,
        action_arguments_label=(CORRECT if wrong is None else ERROR) if played.closed else None,
        is_optimal=wrong is None and len(steps) == depth(nodes),
        requests=len(steps),
        steps_kept=len(nodes) if wrong is None else _progress(played),
        min_steps=depth(nodes),
        reason=None if wrong is None else f"step {wrong.step}: {wrong.reason}",
        steps=steps,
        evidence=_evidence(nodes, pairs),
    )
    return _explained(nodes, replies, score)


def _pair(tools: Sequence[Tool], nodes: Sequence[Node], played: Played) -> list[_Paired]:
    """Each judged call with the best node left, in the order of the calls."""
    parameters = {tool.name: as_sent(tool.parameters) for tool in tools}
    judged = [
        step for step in played.steps if step.action == "call" and all(nodes[k].is_call for k in step.nodes)
    ]
    left = [node for step in judged for node in step.nodes]
    pairs: list[_Paired] = []
    for step in judged:
        for position, call in enumerate(played.replies[step.step].calls):
            open_nodes = [node for node in left if nodes[node].name == call.name]
            found = [
                score_arguments(parameters.get(call.name), call.arguments, nodes[node].arguments)
                for node in open_nodes
            ]
            best = max(range(len(found)), key=lambda i: found[i].score)
            left.remove(open_nodes[best])
            pairs.append(_Paired(step.step, position, call, open_nodes[best], found[best]))
    return pairs


def _judged(step: StepScore, pairs: Sequence[_Paired]) -> StepScore:
    checks = tuple(pair.check for pair in pairs if pair.step == step.step)
    if not checks:
        return step
    wrong = [check for check in checks if check != CORRECT]
    if not wrong:
        return replace(step, checks=checks)
    return replace(step, checks=checks, verdict=ARGUMENT_ERROR, reason="; ".join(wrong))


def _progress(played: Played) -> int:
    counted = played.replies if played.closed else played.replies[:-1]
    return sum(len(reply.calls) or 1 for reply in counted)


def _explained(nodes: Sequence[Node], replies: Sequence[Reply], score: TaskScore) -> TaskScore:
    """The score with evidence where it has none: names were wrong, or the Task was not reached."""
    if score.evidence is not None:
        return score
    return replace(score, evidence=released_evidence.explain(nodes, replies, score))


def _evidence(nodes: Sequence[Node], pairs: Sequence[_Paired]) -> Evidence | None:
    wrong = next((pair for pair in pairs if not pair.right), None)
    if wrong is None:
        return None
    node = nodes[wrong.node]
    nearest = Nearest("call", wrong.node, node.name, node.arguments)
    return Evidence(wrong.step, RULE, wrong.check, nearest=nearest, call=wrong.position, tool=wrong.call.name)
