"""Two Runs side by side: the same Scenarios, and what became of each Task on either side. Pure.

Both sides of a pair have as many epochs. The mean of ten outcomes less a single one is skewed: if A
is nearly always right, most differences are just above 0 and a few far below, so that their signs
are no fair coins and a test that flips them finds differences where there are none.

What is set side by side here may be flipped. Of a Scenario, the first m epochs of either Run are
taken, in order of their numbers and without those that were not scored, where m is how many the Run
with fewer has. They are matched one to one, and of each match only the Tasks count that both epochs
scored. If the Runs are equal, that is if they draw the outcomes of an epoch (of all its Tasks at
once, however these hang together) from the same distribution and independently, then swapping A and
B changes nothing in the distribution of what was taken: the difference of a Scenario has either sign
with the same probability, whatever its size and that of the others. It does not matter

- that infrastructure fails, in one Run more than in the other: as long as that has nothing to do
  with what the outcomes would have been, each match can be swapped by itself;
- that epochs go unscored because of how they went: as long as that happens in both Runs alike, the
  epochs of a Scenario can be swapped all at once. This is why the first epochs are taken, and not
  those of which the most was scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scoring.metrics.accuracy import is_whole
from scoring.modes import Modes, modes_of
from scoring.types import CORRECT, SessionScore, TaskScore


@dataclass(frozen=True, slots=True)
class Side:
    """One scored Run. `log` is the file's name without its folder."""

    log: str
    run: str
    model: str | None
    config: Mapping[str, Any]
    sessions: tuple[SessionScore, ...]

    @property
    def modes(self) -> Modes:
        return modes_of(self.config)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of `scored` epochs, `right` were; `reason` is that of the first which was not."""

    right: int
    scored: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The same Task on either side, or the same Session where `task` is None; `task` counts from 1.

    As many epochs are scored in `a` as in `b`.
    """

    scenario: str
    task: int | None
    a: Outcome
    b: Outcome

    @property
    def change(self) -> int:
        """Above 0 where B was right more often than A, below 0 where less often."""
        return self.b.right - self.a.right


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What could not be paired: not scored in the epochs taken of A, in those of B, in one or both.

    `epochs_a` and `epochs_b` are the scored epochs of what is paired that are left out, so that both
    sides have as many.
    """

    a: int
    b: int
    either: int
    epochs_a: int = 0
    epochs_b: int = 0


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs by Scenario, in A's order. `changed` have the same id and another content."""

    tasks: tuple[tuple[Pair, ...], ...]
    sessions: tuple[Pair, ...]
    tasks_left_out: LeftOut
    sessions_left_out: LeftOut
    scenarios: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[str, ...]


def pair(a: Sequence[SessionScore], b: Sequence[SessionScore]) -> Paired:
    """Pairs what both Runs have of the same Scenario: the same id and the same hash.

    A Task is paired if both sides scored it in epochs that are matched (see above), a Session if both
    sides scored it whole; scenarios in which nothing is paired have no pairs.
    """
    in_a, in_b = _by_scenario(a), _by_scenario(b)
    common = [key for key in in_a if key in in_b]
    known = {scenario_id for scenario_id, _ in common}
    ids_a, ids_b = _ids(in_a), _ids(in_b)
    both = [(key[0], in_a[key], in_b[key]) for key in common]
    tasks = [list(_tasks(*sides)) for sides in both]
    sessions = [_session(*sides) for sides in both]
    return Paired(
        tasks=tuple(tuple(it.pair for it in found if it.pair) for found in tasks),
        sessions=tuple(it.pair for it in sessions if it.pair),
        tasks_left_out=_left_out([it for found in tasks for it in found]),
        sessions_left_out=_left_out(sessions),
        scenarios=len(common),
        only_a=tuple(it for it in ids_a if it not in ids_b),
        only_b=tuple(it for it in ids_b if it not in ids_a),
        changed=tuple(it for it in ids_a if it in ids_b and it not in known),
    )


_Key = tuple[str, str]


def _by_scenario(sessions: Iterable[SessionScore]) -> dict[_Key, list[SessionScore]]:
    found: dict[_Key, list[SessionScore]] = {}
    for session in sessions:
        found.setdefault((session.scenario.id, session.scenario.hash), []).append(session)
    return found


def _ids(keys: Iterable[_Key]) -> dict[str, None]:
    """The ids, each once, in order."""
    return dict.fromkeys(scenario_id for scenario_id, _ in keys)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A Task or a Session: its pair, if there is one; in how many epochs either side scored it.

    `taken_a` and `taken_b` are how many of these are among the epochs that were taken.
    """

    pair: Pair | None
    scored_a: int
    scored_b: int
    taken_a: int
    taken_b: int


def _tasks(scenario: str, a: Sequence[SessionScore], b: Sequence[SessionScore]) -> Iterator[_Unit]:
    ours, theirs = _taken(a, b, lambda session: _tasks_scored(session) > 0)
    matches = list(zip(ours, theirs, strict=False))
    for position in range(len(a[0].scenario.tasks)):
        matched = [(_score(x, position), _score(y, position)) for x, y in matches]
        scored = [(x, y) for x, y in matched if x is not None and y is not None]
        outcomes = _of_task([x for x, _ in scored]), _of_task([y for _, y in scored])
        yield _Unit(
            Pair(scenario, position + 1, *outcomes) if scored else None,
            *(sum(_score(it, position) is not None for it in of) for of in (a, b, ours, theirs)),
        )


def _session(scenario: str, a: Sequence[SessionScore], b: Sequence[SessionScore]) -> _Unit:
    ours, theirs = _taken(a, b, is_whole)
    found = Pair(scenario, None, _of_session(ours), _of_session(theirs)) if ours and theirs else None
    whole_a, whole_b = (sum(map(is_whole, side)) for side in (a, b))
    return _Unit(found, whole_a, whole_b, len(ours), len(theirs))


def _taken(
    a: Sequence[SessionScore], b: Sequence[SessionScore], counts: Callable[[SessionScore], bool]
) -> tuple[list[SessionScore], list[SessionScore]]:
    """The first epochs that count, as many of either side; all of a side if the other has none.

    Those of which more was scored come first, so that they are matched with their like.
    """
    first, second = (sorted(filter(counts, side), key=lambda it: it.epoch) for side in (a, b))
    fewer = min(len(first), len(second)) or None
    ours, theirs = (sorted(side[:fewer], key=_tasks_scored, reverse=True) for side in (first, second))
    return ours, theirs


def _tasks_scored(session: SessionScore) -> int:
    return sum(score.label is not None for score in session.tasks)


def _score(session: SessionScore, position: int) -> TaskScore | None:
    """The verdict on a Task, None if it was not scored."""
    score = session.tasks[position] if position < len(session.tasks) else None
    return None if score is None or score.label is None else score


def _of_task(scored: Sequence[TaskScore]) -> Outcome:
    reasons = [score.reason for score in scored if score.label != CORRECT]
    return Outcome(len(scored) - len(reasons), len(scored), reasons[0] if reasons else None)


def _of_session(whole: Sequence[SessionScore]) -> Outcome:
    reasons = [
        f"task {position}: {score.reason or '-'}"
        for session in whole
        for position, score in enumerate(session.tasks, start=1)
        if score.label != CORRECT
    ]
    return Outcome(sum(it.correct for it in whole), len(whole), reasons[0] if reasons else None)


def _left_out(units: Sequence[_Unit]) -> LeftOut:
    missing = [(it.taken_a == 0, it.taken_b == 0) for it in units if it.pair is None]
    spare = [(it.scored_a - it.pair.a.scored, it.scored_b - it.pair.b.scored) for it in units if it.pair]
    return LeftOut(
        a=sum(a for a, _ in missing),
        b=sum(b for _, b in missing),
        either=len(missing),
        epochs_a=sum(a for a, _ in spare),
        epochs_b=sum(b for _, b in spare),
    )
