"""Figures over Task verdicts.

The released metric file (`calc_accuracy` of the released harness) has six sections
with a row per group. Its figures are reproduced here, and each is told once more
as a `Figure` with its counts and interval.

What is left out: a Task that was not scored (`label` None, or never reached by its
Session) is in no figure and is counted by `unscored`; a Session is in the session
accuracy only if every Task of its Scenario was scored. The released harness knows
neither case: one failed session ends its scoring. Repeats of a Scenario (epochs)
count as Sessions of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scenarios.types import Task
from scoring.metrics.clustered import clustered
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.statistics import wilson
from scoring.types import CORRECT, SessionScore, TaskScore

Counts = dict[str, dict[str, tuple[int, int]]]
"""section -> row -> (successes, n), rows in the order of the released file."""

Figures = dict[str, dict[str, dict[str, float | int | None]]]
"""section -> row -> name of the figure -> value, as the released file has it."""

PARALLEL, SEQUENTIAL, MIXED = "Parallel Multi-Tool", "Sequential Multi-Tool", "Mixed Multi-Tool"
MULTI = "Multi-Tool"
ROWS: Mapping[str, tuple[str, ...]] = {
    "total_info": ("task", "session"),
    "task_type_info": ("Single-Tool", MULTI, PARALLEL, SEQUENTIAL, MIXED, "Clarify", "Chat"),
    "layer_info": ("0", "1", "2", "3"),
    "turn_subtype_info": (
        "First Turn",
        "Subsequent Turn",
        "Coreferential Reference",
        "Partial Information",
        "Long-Range Dependency",
    ),
    "optimal_info": ("Total", PARALLEL, MIXED),
    "progress_info": ("Total", SEQUENTIAL, MIXED),
}
"""The sections and rows that the released file always has, in its order."""

NOT_REACHED = "not reached"


SECTIONS: Mapping[str, str] = {
    "total_info": "",
    "task_type_info": "accuracy_by_label",
    "layer_info": "accuracy_by_position",
    "turn_subtype_info": "accuracy_by_subtype",
    "optimal_info": "optimal_path_rate",
    "progress_info": "progress_released",
}
"""The figure that a section of the released file is told as; those of the first have names of their own."""

TOTALS = {"session": "session_accuracy", "task": "task_accuracy"}

DEFINITIONS: Definitions = {
    "session_accuracy": Definition(
        "Session accuracy",
        "rate",
        "Sessions with all their Tasks correct, of the Sessions of which every Task was scored.",
        "paper 4.1; released calc_accuracy",
    ),
    "task_accuracy": Definition(
        "Task accuracy",
        "rate",
        "Correct Tasks, of the Tasks that were scored.",
        "paper 4.1; released calc_accuracy",
    ),
    "accuracy_by_label": Definition(
        "By task label",
        "rate",
        "Task accuracy by the annotated label; Multi-Tool sums the three labels that contain it.",
        "paper 3.5; released calc_accuracy, task_type_info",
    ),
    "accuracy_by_position": Definition(
        "By position",
        "rate",
        "Task accuracy by the Task's position in its Session, 1 the first.",
        "released calc_accuracy, layer_info",
    ),
    "accuracy_by_subtype": Definition(
        "By turn subtype",
        "rate",
        "Task accuracy by the annotated subtype of the turn. Subsequent Turn is every Task but the first.",
        "paper 3.4; released calc_accuracy, turn_subtype_info",
    ),
    "optimal_path_rate": Definition(
        "Optimal path rate",
        "rate",
        "Correct Tasks that took the least possible number of Steps, of ALL Tasks labelled Parallel or "
        "Mixed, failed ones included. It is 0 for an agent that never calls in parallel.",
        "released calc_accuracy, optimal_info",
    ),
    "progress_released": Definition(
        "Progress rate, as released",
        "ratio",
        "Over Sequential and Mixed Tasks: the Steps in the released log (the failing one too, a batch as "
        "one) over the nodes of the Reference. A perfect run can stay below 100 %, a failure at the first "
        "Step counts. Without an interval: the Steps of one Task are not draws of their own.",
        "released calc_accuracy, progress_info",
    ),
    "unscored_tasks": Definition(
        "Tasks not scored",
        "count",
        "Tasks that are in no rate, for a reason that is not the agent's: the provider failed, or they were "
        "not played. n counts all Tasks.",
        "own definition",
        "lower",
    ),
}


@dataclass(frozen=True, slots=True)
class Unscored:
    """What the figures leave out: Tasks, the Sessions they are in, and why.

    `all_tasks` and `all_sessions` count scored and unscored together. `reasons` has
    the Tasks per reason, the most frequent first, equal ones by text.
    """

    tasks: int
    all_tasks: int
    sessions: int
    all_sessions: int
    reasons: tuple[tuple[str, int], ...]


def count(sessions: Sequence[SessionScore]) -> Counts:
    """Every (successes, n) that the figures are made of.

    - total: Tasks; Sessions with all Tasks correct.
    - task_type: by annotated label; `Multi-Tool` sums every label that contains it.
    - layer: by position in the Session, "0" the first; later positions extend the rows.
    - turn_subtype: `First Turn` is position 0, `Subsequent Turn` all others, then by
      the annotated subtype (a later Task without one is in `Subsequent Turn` only).
    - optimal: over ALL Tasks labelled Parallel or Mixed, failed ones included; a
      success is a correct Task in the least number of steps.
    - progress: over Tasks labelled Sequential or Mixed; the step records left after
      argument checking, over the nodes of the Reference. The step that failed counts,
      and a batch is one step of several nodes, so a perfect run can be below 1.

    Labels and subtypes that the released data does not have extend their section. A
    label that is literally `Multi-Tool` counts once (the released code, where none
    occurs, would count it twice).
    """
    tally = _Tally()
    for session in sessions:
        if is_whole(session):
            tally.add("total_info", "session", session.correct)
        for position, (task, score) in enumerate(zip(session.scenario.tasks, session.tasks, strict=False)):
            if score.label is not None:
                _count_task(tally, position, task, score)
    return tally.counts()


def released_metrics(sessions: Sequence[SessionScore], *, empty: float | None = None) -> Figures:
    """The released metric file, its `model_name` apart: same keys, same figures.

    `empty` stands where n is 0. The released file says 0.0 there, which reads like a
    result; the default is None.
    """
    return figures(count(sessions), empty=empty)


def figures(counts: Counts, *, empty: float | None = None) -> Figures:
    """`counts` under the names that the released metric file uses."""
    return {
        section: {
            row: _figure(section, successes, n, successes / n if n else empty)
            for row, (successes, n) in rows.items()
        }
        for section, rows in counts.items()
    }


def core_figures(sessions: Sequence[SessionScore]) -> list[Figure]:
    """The same rates as Figures, in the order of the released file.

    The Tasks of one Scenario, in all its epochs, are one cluster. A Session is a draw of its own
    as long as no Scenario was played twice.
    """
    groups: dict[str, list[SessionScore]] = {}
    for session in sessions:
        groups.setdefault(session.scenario.id, []).append(session)
    counts = count(sessions)
    parts = [count(group) for group in groups.values()]
    repeated = any(len(group) > 1 for group in groups.values())
    left_out = unscored(sessions)
    return [
        *(
            _core_figure(section, row, totals, [part[section].get(row, (0, 0)) for part in parts], repeated)
            for section in SECTIONS
            for row, totals in counts[section].items()
        ),
        Figure("unscored_tasks", None, left_out.tasks if left_out.all_tasks else None, left_out.all_tasks),
    ]


def unscored(sessions: Sequence[SessionScore]) -> Unscored:
    """What `count` leaves out of these Sessions."""
    reasons = Counter(reason for session in sessions for reason in _missing(session))
    return Unscored(
        tasks=reasons.total(),
        all_tasks=sum(len(session.scenario.tasks) for session in sessions),
        sessions=sum(not is_whole(session) for session in sessions),
        all_sessions=len(sessions),
        reasons=tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )


def is_whole(session: SessionScore) -> bool:
    """Whether every Task of the Session's Scenario was scored."""
    return session.scored and len(session.tasks) >= len(session.scenario.tasks)


class _Tally:
    """Counts in the making: section -> row -> [successes, n]."""

    def __init__(self) -> None:
        self._sections = {section: {row: [0, 0] for row in rows} for section, rows in ROWS.items()}

    def add(self, section: str, row: str, successes: int, n: int = 1) -> None:
        cell = self._sections[section].setdefault(row, [0, 0])
        cell[0] += successes
        cell[1] += n

    def counts(self) -> Counts:
        layers = self._sections["layer_info"]
        self._sections["layer_info"] = {row: layers[row] for row in sorted(layers, key=int)}
        return {
            section: {row: (successes, n) for row, (successes, n) in rows.items()}
            for section, rows in self._sections.items()
        }


def _count_task(tally: _Tally, position: int, task: Task, score: TaskScore) -> None:
    correct = score.label == CORRECT
    tally.add("total_info", "task", correct)
    for row in _type_rows(task.label):
        tally.add("task_type_info", row, correct)
    tally.add("layer_info", str(position), correct)
    for row in _subtype_rows(position, task.subtype):
        tally.add("turn_subtype_info", row, correct)
    if task.label in (PARALLEL, MIXED):
        for row in ("Total", task.label):
            tally.add("optimal_info", row, score.is_optimal)
    if task.label in (SEQUENTIAL, MIXED):
        for row in ("Total", task.label):
            tally.add("progress_info", row, score.steps_kept, len(task.nodes))


def _type_rows(label: str) -> tuple[str, ...]:
    return (MULTI, label) if MULTI in label and label != MULTI else (label,)


def _subtype_rows(position: int, subtype: str | None) -> tuple[str, ...]:
    if position == 0:
        return ("First Turn",)
    return ("Subsequent Turn",) if subtype is None else ("Subsequent Turn", subtype)


def _missing(session: SessionScore) -> Iterator[str]:
    for score in session.tasks:
        if score.label is None:
            yield score.reason or "no reason recorded"
    for _ in session.scenario.tasks[len(session.tasks) :]:
        yield NOT_REACHED


def _figure(section: str, successes: int, n: int, rate: float | None) -> dict[str, float | int | None]:
    if section == "progress_info":
        return {"rate": rate, "complete_step": successes, "total_step": n}
    return {"accuracy": rate, "correct_count": successes, "total_count": n}


def _core_figure(
    section: str, row: str, totals: tuple[int, int], parts: Sequence[tuple[int, int]], repeated: bool
) -> Figure:
    successes, n = totals
    if section == "total_info":
        name, group = TOTALS[row], None
    else:
        name, group = SECTIONS[section], str(int(row) + 1) if section == "layer_info" else row
    value = successes / n if n else None
    if section == "progress_info":
        return Figure(name, group, value, n, successes)
    bounds = wilson(successes, n)
    if name != "session_accuracy" or repeated:
        spread = clustered([part for part in parts if part[1]])
        bounds = None if spread.low is None or spread.high is None else (spread.low, spread.high)
    low, high = bounds or (None, None)
    return Figure(name, group, value, n, successes, low, high)
