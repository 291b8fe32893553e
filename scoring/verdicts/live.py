"""Verdicts on Sessions that do not end at a mistake, and the figures over them. Pure.

With live history and with `--on-mismatch continue` a Task can be brought to its end after errors,
which the released scorer cannot say: it judges no further than the first wrong Step. Here the
Session is gone through once more, as it was played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scenarios.live import LiveStep, Progress, Rule, begin_task, take
from scoring.metrics.accuracy import is_whole
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import rate_of_sessions, rate_of_tasks
from scoring.types import (
    AFTER_ERRORS,
    CORRECT,
    NOT_REACHED,
    STOPPED,
    VERDICTS,
    WRONG,
    Finding,
    LiveCounts,
    SessionScore,
    TaskScore,
    TaskTrajectory,
    Trajectory,
)

COMPLETED = frozenset({CORRECT, AFTER_ERRORS})

DEFINITIONS: Definitions = {
    "verdict_share": Definition(
        "Tasks by verdict",
        "rate",
        "Where a wrong Step does not end its Task, or its history is live: Tasks by verdict, of those that "
        "were scored. `correct`: every call right, in time and made once. `correct_after_errors`: all the "
        "same brought to its end. `not_reached`: an earlier Task ended the Session.",
        "own definition; WildToolBench ends a Task at its first wrong Step",
        None,
    ),
    "completed_sessions": Definition(
        "Sessions completed",
        "rate",
        "Sessions of which every Task is correct or correct after errors, of those that were scored whole.",
        "own definition",
    ),
    "live_redundant_calls": Definition(
        "Calls answered again",
        "count",
        "Calls that were told again what the agent knew already, in all Tasks with a verdict.",
        "own definition",
        "lower",
    ),
    "live_unmatched_calls": Definition(
        "Calls that matched nothing",
        "count",
        "Calls for which the Reference has no answer: refused, or told that there is no data.",
        "own definition",
        "lower",
    ),
    "live_steps_over_optimal": Definition(
        "Steps in completed tasks, over the optimal number",
        "ratio",
        "Steps taken in the completed Tasks, over the least number in which they can be done.",
        "own definition",
        "lower",
    ),
}


@dataclass(frozen=True, slots=True)
class Calls:
    """What was called for nothing, and the Steps taken.

    `redundant` and `unmatched` calls are of all Tasks with a verdict, `sessions` how many
    Sessions these are in. `steps` and `least` (the optimal number) are of the Tasks that were
    completed alone: the others have no number of Steps that they should have taken.
    """

    redundant: int
    unmatched: int
    sessions: int
    steps: int
    least: int


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """Tasks per verdict, of all that have one; Sessions of which every Task was completed.

    A Task is completed if it is correct, or correct after errors. `calls` is None where a
    wrong Step ended its Task; `findings` where the LLM did not get the agent's own messages.
    """

    verdicts: Mapping[str, Figure]
    completed_sessions: Figure
    calls: Calls | None
    findings: tuple[Finding, ...] | None = None


@dataclass(frozen=True, slots=True)
class FindingCount:
    """How many findings of a kind there are, and in how many Sessions."""

    what: str
    count: int
    sessions: int


def with_verdicts(
    trajectory: Trajectory, score: SessionScore, *, goes_on: bool, rule: Rule = "released"
) -> SessionScore:
    """The scores of a Session with the `verdict` of each Task that was scored.

    `goes_on` says that a wrong Step did not end its Task: the scores then have `live`, too. `rule` is
    the one by which the scorer compares arguments.
    """
    walked: Sequence[_Walked | None] = [None] * len(score.tasks)
    if goes_on:
        walked = list(_walk(trajectory, rule))
    tasks = tuple(
        _judged(task, played, walk)
        for task, played, walk in zip(score.tasks, trajectory.tasks, walked, strict=True)
    )
    return replace(score, tasks=tasks)


def live_figures(
    sessions: Sequence[SessionScore], findings: tuple[Finding, ...] | None = None
) -> LiveFigures:
    """The figures over Sessions that have verdicts; `findings` as they are."""
    verdicts = [
        (session.scenario.id, task.verdict)
        for session in sessions
        for task in session.tasks
        if task.verdict is not None
    ]
    completed = [
        (session.scenario.id, all(task.verdict in COMPLETED for task in session.tasks))
        for session in sessions
        if is_whole(session)
    ]
    return LiveFigures(
        {
            name: rate_of_tasks("verdict_share", name, [(of, verdict == name) for of, verdict in verdicts])
            for name in VERDICTS
        },
        rate_of_sessions("completed_sessions", None, completed),
        _calls(sessions),
        findings,
    )


def as_figures(live: LiveFigures) -> list[Figure]:
    """The same as Figures; those on calls only where a wrong Step did not end its Task."""
    figures = [*live.verdicts.values(), live.completed_sessions]
    if live.calls is None:
        return figures
    calls = live.calls
    ratio = calls.steps / calls.least if calls.least else None
    return [
        *figures,
        Figure("live_redundant_calls", None, calls.redundant, calls.sessions),
        Figure("live_unmatched_calls", None, calls.unmatched, calls.sessions),
        Figure("live_steps_over_optimal", None, ratio, calls.least),
    ]


def count_findings(findings: Sequence[Finding]) -> list[FindingCount]:
    """Per kind, the most frequent first, then in alphabetical order."""
    counts = [
        FindingCount(what, len(sessions), len(set(sessions)))
        for what in sorted({it.what for it in findings})
        for sessions in [[it.session for it in findings if it.what == what]]
    ]
    return sorted(counts, key=lambda it: -it.count)


@dataclass(frozen=True, slots=True)
class _Walked:
    """A Task as it was played: its counts, whether it was closed with nothing left to do, and whether
    no reply was empty and all calls came after those that they wait for.
    """

    counts: LiveCounts
    completed: bool
    in_order: bool = True

    @property
    def faultless(self) -> bool:
        """Completed by calls that were each right, in time and not made twice, however they were grouped."""
        return self.completed and self.in_order and not (self.counts.redundant or self.counts.unmatched)


def _walk(trajectory: Trajectory, rule: Rule) -> Iterator[_Walked]:
    scenario = trajectory.scenario
    before: Progress | None = None
    for task, played in zip(scenario.tasks, trajectory.tasks, strict=True):
        begun = begin_task(scenario.tools, task.nodes, before, notes=scenario.notes, rule=rule)
        walked, before = _walk_task(begun, played)
        yield walked


def _walk_task(progress: Progress, played: TaskTrajectory) -> tuple[_Walked, Progress]:
    redundant = unmatched = 0
    in_order = True
    for number, reply in enumerate(played.replies, start=1):
        if played.ending == STOPPED and number == len(played.replies):
            break  # the Step that used up the Task's steps, or was empty: its calls were told nothing
        step = take(progress, reply)
        redundant += sum(answer.redundant for answer in step.answers)
        unmatched += sum(answer.text is None for answer in step.answers)
        in_order = in_order and step.kind != "nothing" and _in_time(progress, step)
        if step.kind == "close":
            counts = LiveCounts(redundant, unmatched, number)
            return _Walked(counts, progress.complete, in_order), step.progress
        progress = step.progress
    return _Walked(LiveCounts(redundant, unmatched, len(played.replies)), completed=False), progress


def _in_time(progress: Progress, step: LiveStep) -> bool:
    """Did every call come after those that it waits for?"""
    waited = (set(progress.nodes[node].dependencies) for node in step.nodes)
    return step.kind != "calls" or all(needed <= progress.done for needed in waited)


def _judged(task: TaskScore, played: TaskTrajectory, walked: _Walked | None) -> TaskScore:
    if task.label is None:
        return task
    if played.ending == NOT_REACHED:
        verdict = NOT_REACHED
    elif task.label == CORRECT or (walked and walked.faultless):
        # The released scorer pairs calls of one name by position, and minds how they are grouped.
        verdict = CORRECT
    else:
        verdict = AFTER_ERRORS if walked and walked.completed else WRONG
    return replace(task, verdict=verdict, live=walked.counts if walked else None)


def _calls(sessions: Sequence[SessionScore]) -> Calls | None:
    counted = [[task for task in session.tasks if task.live is not None] for session in sessions]
    tasks = [(task, task.live) for session in counted for task in session if task.live is not None]
    if not tasks:
        return None
    completed = [(task, counts) for task, counts in tasks if task.verdict in COMPLETED]
    return Calls(
        redundant=sum(counts.redundant for _, counts in tasks),
        unmatched=sum(counts.unmatched for _, counts in tasks),
        sessions=sum(map(bool, counted)),
        steps=sum(counts.steps for _, counts in completed),
        least=sum(task.min_steps for task, _ in completed),
    )
