"""Figures over repeats of a Scenario: how reliably it is passed. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import comb, lcm

from scoring.metrics.accuracy import is_whole
from scoring.metrics.clustered import Clustered, clustered
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.types import CORRECT, SessionScore

_PASS_HAT = "tau-bench, arXiv 2406.12045, section 4: pass^k"
_PASS_AT = "M. Chen et al., arXiv 2107.03374, section 2.1: pass@k"
_UNSCORED = (
    "Epochs that were not scored are no failures: they are left out, and so is what has none that was. "
    "k goes up to the least number of scored epochs."
)

DEFINITIONS: Definitions = {
    "pass_hat_k": Definition(
        "Pass^k, sessions",
        "rate",
        "The probability that a scenario is passed in all of k epochs, all its tasks right: the mean over "
        f"scenarios of C(c, k) / C(n, k) for c of n epochs passed. {_UNSCORED}",
        _PASS_HAT,
    ),
    "pass_at_k": Definition(
        "Pass@k, sessions",
        "rate",
        "The probability that a scenario is passed in at least one of k epochs, all its tasks right: the "
        f"mean over scenarios of 1 - C(n - c, k) / C(n, k) for c of n epochs passed. {_UNSCORED}",
        _PASS_AT,
    ),
    "task_pass_hat_k": Definition(
        "Pass^k, tasks",
        "rate",
        "The probability that a task is right in all of k epochs: the mean over tasks of C(c, k) / C(n, k) "
        f"for c of n epochs right. {_UNSCORED}",
        _PASS_HAT,
    ),
    "task_pass_at_k": Definition(
        "Pass@k, tasks",
        "rate",
        "The probability that a task is right in at least one of k epochs: the mean over tasks of "
        f"1 - C(n - c, k) / C(n, k) for c of n epochs right. {_UNSCORED}",
        _PASS_AT,
    ),
    "flip_rate": Definition(
        "Flip rate",
        "rate",
        "Tasks that were right in one epoch and wrong in another, of those with two or more scored epochs: "
        "what changes without any change. It grows with the number of epochs.",
        "wildproxy; after the reruns in tau-bench issue 57 and tau2-bench issue 540",
        "lower",
    ),
}

Counts = Mapping[object, Sequence[tuple[int, int]]]
"""Scenario -> (epochs passed, epochs scored) of the Session, or of each of its Tasks."""

Share = Callable[[int, int, int], int]
"""Of all ways to draw k of n epochs of which c are right, how many count: (c, n, k)."""


def pass_figures(sessions: Sequence[SessionScore]) -> list[Figure]:
    """pass^k and pass@k for Sessions and for Tasks, in groups "1" to "k"; the flip rate.

    k = 1 is always there, without a value where nothing was scored. Intervals are over scenarios,
    as `mean_rate` has them: how another choice of scenarios would change the figure.
    """
    of_sessions, of_tasks = session_counts(sessions), task_counts(sessions)
    return [
        *_pass_k("pass_hat_k", of_sessions, _all_right),
        *_pass_k("pass_at_k", of_sessions, _any_right),
        *_pass_k("task_pass_hat_k", of_tasks, _all_right),
        *_pass_k("task_pass_at_k", of_tasks, _any_right),
        flip_rate(sessions),
    ]


def flip_rate(sessions: Sequence[SessionScore]) -> Figure:
    """Of the Tasks with two or more scored epochs, those with both outcomes."""
    repeated = [[(right, n) for right, n in counts if n > 1] for counts in task_counts(sessions).values()]
    it = clustered([(sum(0 < right < n for right, n in counts), len(counts)) for counts in repeated])
    return Figure("flip_rate", None, it.value, it.n, it.successes, it.low, it.high)


def session_counts(sessions: Sequence[SessionScore]) -> Counts:
    """Per Scenario, of how many wholly scored epochs how many are correct."""
    found: dict[object, list[bool]] = defaultdict(list)
    for session in filter(is_whole, sessions):
        found[session.scenario.id, session.scenario.hash].append(session.correct)
    return {key: [(sum(epochs), len(epochs))] for key, epochs in found.items()}


def task_counts(sessions: Sequence[SessionScore]) -> Counts:
    """Per Scenario, and for each of its Tasks that was ever scored, of how many epochs how many are right."""
    found: dict[object, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for session in sessions:
        for position, task in enumerate(session.tasks):
            if task.label is not None:
                key = session.scenario.id, session.scenario.hash
                found[key][position].append(task.label == CORRECT)
    return {
        key: [(sum(epochs), len(epochs)) for _, epochs in sorted(tasks.items())]
        for key, tasks in found.items()
    }


def mean_rate(counts: Counts) -> Clustered:
    """The mean over all (part, whole) of part / whole, clustered by Scenario.

    Brought to one denominator, the mean of fractions is a rate of whole numbers. Its interval takes
    each Session or Task for one draw at most, however many epochs it has: epochs make the fraction of
    a scenario more certain, but scenarios that agree by chance are no proof that others would. With
    many epochs of scenarios that are alike it is wider than need be.
    """
    whole = lcm(*(n for units in counts.values() for _, n in units))
    return clustered(
        [(sum(part * (whole // n) for part, n in units), whole * len(units)) for units in counts.values()],
        draws=sum(map(len, counts.values())),
    )


def _pass_k(name: str, counts: Counts, share: Share) -> Iterator[Figure]:
    units = [unit for of_scenario in counts.values() for unit in of_scenario]
    for k in range(1, min((n for _, n in units), default=1) + 1):
        it = mean_rate(
            {
                key: [(share(right, n, k), comb(n, k)) for right, n in of_scenario]
                for key, of_scenario in counts.items()
            }
        )
        yield Figure(name, str(k), it.value, len(units), None, it.low, it.high)


def _all_right(right: int, n: int, k: int) -> int:
    return comb(right, k)


def _any_right(right: int, n: int, k: int) -> int:
    return comb(n, k) - comb(n - right, k)
