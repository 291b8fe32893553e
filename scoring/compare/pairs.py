"""Two Runs side by side: the same Scenarios, and what became of each Task on either side. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scoring.metrics.accuracy import is_whole
from scoring.modes import Modes, modes_of
from scoring.types import CORRECT, SessionScore


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
    """The same Task on either side, or the same Session where `task` is None; `task` counts from 1."""

    scenario: str
    task: int | None
    a: Outcome
    b: Outcome

    @property
    def change(self) -> int:
        """Above 0 where B was right more often than A, below 0 where less often."""
        return self.b.right * self.a.scored - self.a.right * self.b.scored


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What could not be paired: not scored in A, in B, in one or both."""

    a: int
    b: int
    either: int


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

    A Task is paired if both sides scored it in at least one epoch, a Session if both sides scored
    it whole; scenarios in which nothing is paired have no pairs.
    """
    in_a, in_b = _by_scenario(a), _by_scenario(b)
    common = [key for key in in_a if key in in_b]
    known = {scenario_id for scenario_id, _ in common}
    ids_a, ids_b = _ids(in_a), _ids(in_b)
    both = [(key[0], in_a[key], in_b[key]) for key in common]
    tasks = [list(_task_pairs(*sides)) for sides in both]
    sessions = [Pair(scenario, None, _session(ours), _session(theirs)) for scenario, ours, theirs in both]
    return Paired(
        tasks=tuple(tuple(filter(_scored, pairs)) for pairs in tasks),
        sessions=tuple(filter(_scored, sessions)),
        tasks_left_out=_left_out(it for pairs in tasks for it in pairs),
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


def _task_pairs(scenario: str, a: Sequence[SessionScore], b: Sequence[SessionScore]) -> Iterator[Pair]:
    for position in range(len(a[0].scenario.tasks)):
        yield Pair(scenario, position + 1, _task(a, position), _task(b, position))


def _task(sessions: Sequence[SessionScore], position: int) -> Outcome:
    scores = [session.tasks[position] for session in sessions if position < len(session.tasks)]
    scored = [score for score in scores if score.label is not None]
    reasons = [score.reason for score in scored if score.label != CORRECT]
    return Outcome(len(scored) - len(reasons), len(scored), reasons[0] if reasons else None)


def _session(sessions: Sequence[SessionScore]) -> Outcome:
    whole = [session for session in sessions if is_whole(session)]
    reasons = [
        f"task {position}: {score.reason or '-'}"
        for session in whole
        for position, score in enumerate(session.tasks, start=1)
        if score.label != CORRECT
    ]
    return Outcome(sum(it.correct for it in whole), len(whole), reasons[0] if reasons else None)


def _scored(it: Pair) -> bool:
    return it.a.scored > 0 and it.b.scored > 0


def _left_out(pairs: Iterable[Pair]) -> LeftOut:
    missing = [(it.a.scored == 0, it.b.scored == 0) for it in pairs]
    return LeftOut(sum(a for a, _ in missing), sum(b for _, b in missing), sum(a or b for a, b in missing))
