"""How far Tasks were brought: the nodes of the Reference that were done. Pure.

The released progress rate (`scoring.metrics.accuracy`) counts step records over nodes, so that a
perfect run can be below 1 and a step that failed counts. Here both sides are nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from scoring.metrics.accuracy import ROWS
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import share
from scoring.types import SessionScore

PROGRESS = "progress_nodes"

GROUPS = ROWS["progress_info"]
"""The rows of the released progress rate: both labels together, then each."""

TOTAL = GROUPS[0]

DEFINITIONS: Definitions = {
    PROGRESS: Definition(
        title="Progress, in nodes",
        unit="rate",
        text="Nodes of the Reference that a Task did before its first wrong Step, with the right calls of "
        "that Step, over all its nodes (calls, questions and the closing text), in Tasks labelled Sequential "
        "or Mixed; a correct Task has all. "
        "Without interval, as the nodes of one Task are not draws of their own.",
        source="arXiv 2604.06185: accomplish progress rate, the proportion of successful nodes; the "
        "released code counts steps instead",
    ),
}


def progress_figures(sessions: Sequence[SessionScore]) -> list[Figure]:
    """The figure for each of `GROUPS`; a Task not scored, or whose score has no `matched`, is left out."""
    counts = {group: [0, 0] for group in GROUPS}
    for session in sessions:
        for task, score in zip(session.scenario.tasks, session.tasks, strict=False):
            if task.label not in GROUPS[1:] or score.label is None or score.matched is None:
                continue
            for group in (TOTAL, task.label):
                counts[group][0] += score.matched
                counts[group][1] += len(task.nodes)
    return [share(PROGRESS, group, *count) for group, count in counts.items()]
