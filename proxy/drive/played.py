"""What became of one Session of a drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from proxy.drive.plan import Planned
from proxy.drive.states import SessionState

FailureKind = Literal["agent", "timeout", "proxy"]
SessionEnd = Literal["over", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong in a Session; `turn` is None where it was not in a turn.

    `kind`: `agent` (it raised, or what it was given by the provider failed it), `timeout`
    (it took longer than the turn timeout), `proxy` (the control API failed). `follows`: only because
    of an earlier failure of the Session.
    """

    session: str
    turn: int | None
    kind: FailureKind
    reason: str
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Something that went wrong with an agent in a turn that it had answered all the same."""

    session: str
    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class Played:
    """A Session that was begun. `state` is the last one known; None if there was none.

    `end`: `over` (played to its end), `failed` (given up because the proxy failed),
    `cancelled` (the drive was stopped). `already`: it was over before the drive began.
    """

    planned: Planned
    session: str
    end: SessionEnd
    state: SessionState | None
    failures: tuple[Failure, ...]
    notes: tuple[Note, ...] = ()
    already: bool = False


class Playing:
    """A Session while it is played."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.name = f"{planned.scenario}.e{planned.epoch}"
        self.url = ""
        self.end: SessionEnd = "cancelled"
        self.state: SessionState | None = None
        self.failures: list[Failure] = []
        self.notes: list[Note] = []
        self.already = False

    def result(self) -> Played:
        failures, notes = tuple(self.failures), tuple(self.notes)
        return Played(self.planned, self.name, self.end, self.state, failures, notes, self.already)
