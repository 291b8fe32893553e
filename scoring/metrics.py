"""Figures over Task verdicts.

The released metric file (`calc_accuracy` of the released harness) has six sections
with a row per group. Its figures are reproduced here, and each accuracy is given
once more as an `Estimate` with n and an interval.

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
from scoring.statistics import wilson
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate: `successes` of `n`, with the bounds of its 95 % Wilson interval.

    `value`, `low` and `high` are fractions, None where n is 0. The progress rate has
    no interval: the steps of one Task are not draws of their own.
    """

    value: float | None
    n: int
    successes: int
    low: float | None
    high: float | None


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


def estimates(counts: Counts) -> dict[str, dict[str, Estimate]]:
    """An Estimate for every row of `counts`."""
    return {
        section: {
            row: estimate(successes, n, interval=section != "progress_info")
            for row, (successes, n) in rows.items()
        }
        for section, rows in counts.items()
    }


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


def estimate(successes: int, n: int, *, interval: bool = True) -> Estimate:
    """The rate, with its interval if that is wanted."""
    bounds = wilson(successes, n) if interval else None
    low, high = bounds if bounds else (None, None)
    return Estimate(successes / n if n else None, n, successes, low, high)
