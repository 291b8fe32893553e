"""What a Task and a Session came to, in short, and who judges them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from proxy.tail.events import Place


@dataclass(frozen=True, slots=True)
class PlayedTask:
    """The assistant messages of a Task, one for each Step, and how it ended; None if it has not."""

    messages: tuple[Any, ...]
    ending: str | None


class Opinion(Protocol):
    """A verdict on a Task. `right` is None where the Task is not scored.

    `after_errors`: it was brought to its end after a wrong Step. `released` is what the benchmark's
    released rules say. `why` says in a line why the Task is wrong or not scored, and `step` where it
    went wrong (from 1).
    """

    @property
    def right(self) -> bool | None: ...
    @property
    def after_errors(self) -> bool: ...
    @property
    def released(self) -> bool | None: ...
    @property
    def why(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...


Judge = Callable[[Mapping[str, Any], Mapping[str, Any], Sequence[PlayedTask]], Sequence[Opinion]]
"""(Scenario's record, Run's configuration, the Session's Tasks) -> an opinion on each Task. Given by the
composition root, because the proxy knows nothing of scoring. Raises ScenarioError for a broken record."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent: tokens as providers told them, and seconds from the first words to the end."""

    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A Task that is over. `steps` were taken; `optimal` is the least number that would do, if that is known.

    `verdict`: `right`, `wrong`, `unscored`; None where nobody judges. `released` is the verdict of the
    benchmark's released rules where it is another one.
    """

    place: Place
    at: float
    ending: str
    label: str
    steps: int
    optimal: int | None
    spent: Spent | None
    verdict: str | None = None
    after_errors: bool = False
    released: str | None = None
    why: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A Session that is over: the verdict on each Task (as in `TaskSummary`), and what it took.

    `after_errors` are the numbers of the Tasks (from 0) that came right only after a wrong Step.
    """

    place: Place
    at: float
    tasks: tuple[str | None, ...]
    spent: Spent
    after_errors: tuple[int, ...] = ()

    @property
    def right(self) -> int:
        """How many Tasks came right without a wrong Step."""
        return self.tasks.count("right") - len(self.after_errors)

    @property
    def verdict(self) -> str | None:
        """Right with every Task; unscored if one Task is."""
        if None in self.tasks:
            return None
        if "unscored" in self.tasks:
            return "unscored"
        return "wrong" if "wrong" in self.tasks else "right"


def verdict_of(opinion: Opinion) -> str:
    return _word(opinion.right)


def released_of(opinion: Opinion) -> str | None:
    """The released rules' verdict, if it is another one."""
    return None if opinion.released == opinion.right else _word(opinion.released)


def _word(right: bool | None) -> str:
    return "unscored" if right is None else "right" if right else "wrong"
