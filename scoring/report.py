"""A scored Run: what each scorer says of its Sessions, and the figures over them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scenarios.types import Task
from scoring.metrics import accuracy
from scoring.metrics.calls import call_figures
from scoring.metrics.cells import cell_figures
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.efficiency import efficiency_figures, price_notes
from scoring.metrics.figures import Figure
from scoring.metrics.null_agents import NullAgent, null_agents
from scoring.metrics.passes import pass_figures
from scoring.metrics.prices import Prices
from scoring.metrics.progress import progress_figures
from scoring.metrics.transitions import transition_figures
from scoring.metrics.usage import Usage
from scoring.metrics.writes import WriteFinding, write_figures, write_findings
from scoring.modes import Modes, modes_of
from scoring.types import CORRECT, Finding, SessionScore, TaskScore, Trajectory
from scoring.verdicts import released_evidence
from scoring.verdicts.error_classes import ErrorClass, classify, error_figures
from scoring.verdicts.live import LiveFigures, as_figures, live_figures, with_verdicts
from scoring.verdicts.scorers import Scorer
from scoring.verdicts.wildtoolbench import NAME as RELEASED


@dataclass(frozen=True, slots=True)
class Scored:
    """What one scorer says of a Run.

    `classes` has the error class of each Task, by Session and Task as in `sessions`; None for a
    Task that is correct or was not scored. `live` is None for a Run whose figures are of the same
    kind as published ones.
    """

    scorer: Scorer
    sessions: tuple[SessionScore, ...]
    classes: tuple[tuple[ErrorClass | None, ...], ...]
    figures: tuple[Figure, ...]
    live: LiveFigures | None = None

    @property
    def scored_tasks(self) -> int:
        left_out = accuracy.unscored(self.sessions)
        return left_out.all_tasks - left_out.tasks


@dataclass(frozen=True, slots=True)
class RunReport:
    """One Run of one log, scored. `log` is the file's name without its folder.

    `scored` has an entry for each scorer; the first is the one that gates. `figures` are those
    in which no verdict but that of the first scorer has a say. `findings` say what the agent lost
    or changed of its history, each once; `writes` what it wrote that it should not have. `notes`
    are lines on what the figures lack; `judged_by` says by which scenarios, if not by those in the log;
    `currency` is that of the prices.
    """

    log: str
    run: str
    model: str | None
    config: Mapping[str, Any]
    trajectories: tuple[Trajectory, ...]
    scored: tuple[Scored, ...]
    figures: tuple[Figure, ...] = ()
    null_agents: tuple[NullAgent, ...] = ()
    findings: tuple[Finding, ...] = ()
    writes: tuple[WriteFinding, ...] = ()
    notes: tuple[str, ...] = ()
    judged_by: str | None = None
    currency: str | None = None

    @property
    def modes(self) -> Modes:
        return modes_of(self.config)

    @property
    def sessions(self) -> tuple[SessionScore, ...]:
        """The Sessions as the first scorer has them."""
        return self.scored[0].sessions

    @property
    def unscored_sessions(self) -> frozenset[tuple[str, int]]:
        """Name and epoch of each Session that figures over Sessions leave out."""
        return frozenset((it.session, it.epoch) for it in self.sessions if not accuracy.is_whole(it))

    @property
    def scored_tasks(self) -> int:
        return max(scored.scored_tasks for scored in self.scored)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One Task of a Run as every scorer has it; `position` counts from 0."""

    session: SessionScore
    position: int
    task: Task
    scores: Mapping[str, TaskScore]
    classes: Mapping[str, ErrorClass | None]

    @property
    def disagrees(self) -> bool:
        """Do two scorers have different verdicts on it?"""
        return len({score.label for score in self.scores.values()}) > 1


def score_run(
    trajectories: Iterable[Trajectory],
    scorers: Sequence[Scorer],
    *,
    log: str,
    run: str,
    model: str | None,
    config: Mapping[str, Any],
    usage: Usage,
    prices: Prices | None = None,
    findings: Iterable[Finding] = (),
    judged_by: str | None = None,
) -> RunReport:
    """Scores every Session, in the order given, by every scorer.

    `findings` are left out of a Run whose LLM did not get the agent's own messages.
    """
    played, modes = tuple(trajectories), modes_of(config)
    found = tuple(findings) if modes.echoes_agent else ()

    def behaviour(sessions: Sequence[SessionScore]) -> list[Figure]:
        return [*call_figures(played, sessions), *efficiency_figures(played, sessions, usage, prices)]

    scored = tuple(_scored(scorer, played, modes, found, behaviour) for scorer in scorers)
    sessions, writes = scored[0].sessions, write_findings(played)
    own = (it for it in behaviour(sessions) if not DEFINITIONS[it.name].by_verdict)
    scenarios = {trajectory.scenario.hash: trajectory.scenario for trajectory in played}
    return RunReport(
        log,
        run,
        model,
        config,
        played,
        scored,
        (*write_figures(played, sessions, writes), *own),
        null_agents(scenarios.values(), scorers),
        found,
        writes,
        (*price_notes(usage, prices), *(it.note for it in scorers if it.note)),
        judged_by,
        prices.currency if prices else None,
    )


def task_rows(report: RunReport) -> Iterator[TaskRow]:
    """Every Task of the Run, in order."""
    for index, session in enumerate(report.sessions):
        for position, task in enumerate(session.scenario.tasks):
            yield TaskRow(
                session,
                position,
                task,
                {it.scorer.name: it.sessions[index].tasks[position] for it in report.scored},
                {it.scorer.name: it.classes[index][position] for it in report.scored},
            )


def _scored(
    scorer: Scorer,
    trajectories: Sequence[Trajectory],
    modes: Modes,
    findings: tuple[Finding, ...],
    behaviour: Callable[[Sequence[SessionScore]], list[Figure]],
) -> Scored:
    sessions = tuple(judged(scorer, trajectory, modes) for trajectory in trajectories)
    classes = tuple(
        tuple(
            classify(trajectory.scenario.tools, task, played, score)
            for task, played, score in zip(
                trajectory.scenario.tasks, trajectory.tasks, session.tasks, strict=True
            )
        )
        for trajectory, session in zip(trajectories, sessions, strict=True)
    )
    live = None
    if modes.why_not_comparable is not None:
        live = live_figures(sessions, findings if modes.echoes_agent else None)
    failed = [
        (session.scenario.id, found)
        for session, own in zip(sessions, classes, strict=True)
        for found in own
        if found is not None
    ]
    released = scorer.rule == "released"
    figures = [
        *(it for it in accuracy.core_figures(sessions) if released or it.name != "progress_released"),
        *([] if released else progress_figures(sessions)),
        *transition_figures(sessions),
        *pass_figures(sessions),
        *error_figures(failed),
        *cell_figures(sessions, classes),
        *(it for it in behaviour(sessions) if DEFINITIONS[it.name].by_verdict),
        *([] if live is None else as_figures(live)),
    ]
    return Scored(scorer, sessions, classes, tuple(figures), live)


def explained(scorer: Scorer, trajectory: Trajectory) -> SessionScore:
    """What the scorer says of a Session, with evidence: the released one keeps none of its own."""
    score = scorer.score(trajectory)
    if scorer.name != RELEASED:
        return score
    return replace(score, tasks=tuple(_explained(trajectory, score)))


def judged(scorer: Scorer, trajectory: Trajectory, modes: Modes) -> SessionScore:
    """As `explained`, with a verdict beside each label where Sessions were not played as published."""
    score = explained(scorer, trajectory)
    if modes.why_not_comparable is None:
        return score
    return with_verdicts(trajectory, score, goes_on=modes.goes_on, rule=scorer.rule)


def _explained(trajectory: Trajectory, session: SessionScore) -> Iterator[TaskScore]:
    scenario = trajectory.scenario
    for task, played, score in zip(scenario.tasks, trajectory.tasks, session.tasks, strict=True):
        if score.label in (None, CORRECT):
            yield score
        else:
            evidence = released_evidence.explain(task.nodes, played.replies, score)
            yield replace(score, evidence=evidence)
