"""Figures over two properties of a Task at once: the cells of a heat map, the bars of a stack. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.labels import FIRST_TURN
from scenarios.types import Task
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import Outcome, rate_of_tasks
from scoring.types import CORRECT, SessionScore
from scoring.verdicts.error_classes import ErrorClass

BY_SUBTYPE = "accuracy_by_label_and_subtype"
ERRORS = "error_share_by_label"
SEPARATOR = " / "
"""Stands in a group between the label and the other property."""

NO_SUBTYPE = "No Subtype"
"""Stands for that of a later Task that the data gives none: `Subsequent Turn` is any later Task."""

DEFINITIONS: Definitions = {
    BY_SUBTYPE: Definition(
        "By task label and turn subtype",
        "rate",
        "Task accuracy by the annotated label and subtype at once, for those that occur together. The first "
        f"Task of a Session is {FIRST_TURN}, a later one without a subtype {NO_SUBTYPE}.",
        "paper 3.4 and 3.5; own definition",
    ),
    ERRORS: Definition(
        "Errors by task label and class",
        "rate",
        "Failed Tasks of a class, of the failed Tasks with this annotated label.",
        "as the errors by class; own definition",
        better=None,
    ),
}


def cell_figures(
    sessions: Sequence[SessionScore], classes: Sequence[Sequence[ErrorClass | None]]
) -> list[Figure]:
    """Both figures, with a group for each pair that occurs among scored and failed Tasks, in order of text.

    `classes` has the error class of each Task, by Session and Task; None for one that did not fail.
    """
    accuracy: dict[str, list[Outcome]] = {}
    failed: dict[str, list[tuple[str, str]]] = {}
    for session, own in zip(sessions, classes, strict=True):
        for position, (task, score, error) in enumerate(
            zip(session.scenario.tasks, session.tasks, own, strict=False)
        ):
            if score.label is not None:
                group = task.label + SEPARATOR + subtype_of(task, position)
                outcome = (session.scenario.id, score.label == CORRECT)
                accuracy.setdefault(group, []).append(outcome)
            if error is not None:
                failed.setdefault(task.label, []).append((session.scenario.id, error.name))
    return [
        *(rate_of_tasks(BY_SUBTYPE, group, accuracy[group]) for group in sorted(accuracy)),
        *(figure for label in sorted(failed) for figure in _shares(label, failed[label])),
    ]


def subtype_of(task: Task, position: int) -> str:
    """The turn's subtype as it is shown; `position` counts from 0."""
    return FIRST_TURN if position == 0 else task.subtype or NO_SUBTYPE


def _shares(label: str, failed: Sequence[tuple[str, str]]) -> list[Figure]:
    """The classes that occur, in order of text; `failed` has the Scenario and the class of each Task."""
    return [
        rate_of_tasks(ERRORS, label + SEPARATOR + name, [(of, found == name) for of, found in failed])
        for name in sorted({found for _, found in failed})
    ]
