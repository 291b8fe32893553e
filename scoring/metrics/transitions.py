"""Task accuracy by how often the kind of request has changed so far in the Session. Pure.

The paper (4.4) plots accuracy over "instruction transitions" and does not say exactly what it counts,
so there are two figures: one over the four kinds of the text, and one over the two halves that the sizes
of the plotted groups point to. The released code has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scoring.metrics.accuracy import MULTI
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import Outcome, rate_of_tasks
from scoring.types import CORRECT, SessionScore

BY_KIND, BY_HALF = "accuracy_by_kind_changes", "accuracy_by_half_changes"

GROUPS = 4
"""A Session of the benchmark has four Tasks, so at most three changes; longer ones add groups."""

_POSITION = (
    "Position is confounded with it: every first Task is in group 0 and the highest group holds late "
    "Tasks alone, so a fall from group to group may be one from position to position."
)

DEFINITIONS: Definitions = {
    BY_KIND: Definition(
        title="Accuracy by changes of kind",
        unit="rate",
        text="Correct Tasks over scored Tasks, by how often the kind of Task (single, multi, clarify, chat; "
        f"all multi-tool labels are one) has changed up to and including this Task. {_POSITION}",
        source="arXiv 2604.06185, 4.4: change of the kind of task between two consecutive tasks",
    ),
    BY_HALF: Definition(
        title="Accuracy by changes between tool and text",
        unit="rate",
        text="Correct Tasks over scored Tasks, by how often the Session has changed between Tasks that begin "
        "with a call (single, multi) and Tasks that begin with text (clarify, chat), up to and including "
        f"this Task. {_POSITION}",
        source="arXiv 2604.06185, the figure of 4.4: its groups of 480, 352, 160 and 32 Tasks are those of "
        "two halves of the four kinds; which halves is not said there",
    ),
}


def transition_figures(sessions: Sequence[SessionScore]) -> list[Figure]:
    """Both figures, each with the groups "0" to "3", and more if a Session is longer.

    A Task that was not scored is in no group, but what kind it was counts for those after it.
    """
    return [
        figure
        for name, sort in ((BY_KIND, kind), (BY_HALF, half))
        for figure in _by_changes(name, sort, sessions)
    ]


def kind(label: str) -> str:
    """Which of the four kinds a label is of; one that the benchmark does not have is its own kind."""
    return MULTI if MULTI in label else label


def half(label: str) -> str:
    """`text` where the first Step should be text, else `tool`."""
    return "text" if label in ("Clarify", "Chat") else "tool"


def changes(labels: Sequence[str], sort: Callable[[str], str]) -> list[int]:
    """For each Task, how many of the steps from Task to Task up to it were changes of `sort`."""
    found: list[int] = []
    for place, label in enumerate(labels):
        changed = place > 0 and sort(label) != sort(labels[place - 1])
        found.append((found[-1] if found else 0) + changed)
    return found


def _by_changes(name: str, sort: Callable[[str], str], sessions: Sequence[SessionScore]) -> list[Figure]:
    outcomes: list[list[Outcome]] = [[] for _ in range(GROUPS)]
    for session in sessions:
        so_far = changes([task.label for task in session.scenario.tasks], sort)
        for group, score in zip(so_far, session.tasks, strict=False):
            if score.label is None:
                continue
            outcomes.extend([] for _ in range(len(outcomes), group + 1))
            outcomes[group].append((session.scenario.id, score.label == CORRECT))
    return [rate_of_tasks(name, str(group), own) for group, own in enumerate(outcomes)]
