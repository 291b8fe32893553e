"""What a scorer reads and what it says. All plain values, no storage, no IO."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scenarios.strict.faults import Fault
from scenarios.types import Reply, Scenario

CORRECT = "correct"
ERROR = "error"

AFTER_ERRORS = "correct_after_errors"
WRONG = "wrong"
NOT_REACHED = "not_reached"
"""How a Task ended that the Session did not come to any more, and the verdict on it."""

VERDICTS = (CORRECT, AFTER_ERRORS, WRONG, NOT_REACHED)
"""What a Task comes to where a mistake does not end it, or its history is live."""

AGENT_STOPPED = "agent_stopped"
"""How a Task ended that the agent left."""

STOPPED = "stopped"
"""How a Task ended with a Step that was not answered: a wrong one, or the last of too many."""


@dataclass(frozen=True, slots=True)
class TaskTrajectory:
    """The replies of one Task, in order.

    `ending` is how the Task ended, as the log has it: `agent_stopped` tells replies that
    ran out because the agent left from a last reply that was wrong; `not_reached`, that a Task
    before this one ended the Session. None if it is not known.
    `finished` is False when the Task was not played to its end for a reason that
    is not the agent's (`unfinished_reason`): such a Task is not scored.
    """

    replies: tuple[Reply, ...]
    ending: str | None = None
    finished: bool = True
    unfinished_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One Session: a Scenario and what happened in each of its Tasks."""

    session: str
    epoch: int
    scenario: Scenario
    tasks: tuple[TaskTrajectory, ...]


@dataclass(frozen=True, slots=True)
class StepScore:
    """One judged Step.

    `verdict`: `correct`, `name_error` or `argument_error`.
    `action`: what the reply did: `call`, `ask`, `close`, `text` where none was due, `none` where it
    was empty, or where there was no reply any more.
    `nodes`: positions in the Reference that it was matched to, in annotation order.
    `checks`: for each judged call, in the order of pairing, `correct` or the reason.
    """

    step: int
    action: str
    verdict: str
    nodes: tuple[int, ...] = ()
    reason: str | None = None
    checks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """What a Task cost that went on after wrong Steps.

    `redundant` calls were told again what the agent knew already, `unmatched` ones got nothing that
    the Reference has. `steps` counts all replies, to the one that closed the Task.
    """

    redundant: int
    unmatched: int
    steps: int


@dataclass(frozen=True, slots=True)
class Nearest:
    """The allowed alternative that is nearest to what was done.

    `action` is `call`, `ask` or `close`; `node` the position in the Reference; `name` and `arguments`
    are the call's (None for a text).
    """

    action: str
    node: int
    name: str | None = None
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a Task is wrong: the first Step that diverged, and from what.

    `step` counts from 0; it is the number of replies where there was none any more. `rule` is a
    stable id: that of the first of `faults` where the arguments are wrong, else one of the Step.
    `allowed` are batches of names that would have been right. `call` is the position of the wrong
    call in its reply and `tool` its name, None where no call is to blame. `message` is one line.
    """

    step: int
    rule: str
    message: str
    allowed: tuple[tuple[str, ...], ...] = ()
    nearest: Nearest | None = None
    call: int | None = None
    tool: str | None = None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskScore:
    """The verdict on one Task, with its evidence.

    `label` is None when the Task was not scored; `reason` then says why.
    `requests` is how many replies the released harness would have asked for;
    `steps_kept` how many of its step records survive argument checking, which
    is what its progress rate counts (facts: section 5, rows 19 and 20).
    `verdict` is one of `VERDICTS`: None where the Task was not scored, and in Runs with gold
    history in which a wrong Step ends its Task, where the label says it all. `live` is None
    where a wrong Step ends its Task.
    """

    label: str | None
    action_name_label: str | None
    action_arguments_label: str | None
    is_optimal: bool
    requests: int
    steps_kept: int
    min_steps: int
    reason: str | None = None
    steps: tuple[StepScore, ...] = field(default=())
    verdict: str | None = None
    live: LiveCounts | None = None
    evidence: Evidence | None = None
    matched: int | None = None


@dataclass(frozen=True, slots=True)
class SessionScore:
    """The Task verdicts of one Session, in Task order."""

    session: str
    epoch: int
    scenario: Scenario
    tasks: tuple[TaskScore, ...]

    @property
    def scored(self) -> bool:
        return bool(self.tasks) and all(task.label is not None for task in self.tasks)

    @property
    def correct(self) -> bool:
        return self.scored and all(task.label == CORRECT for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Finding:
    """What an agent lost or changed of a turn in a conversation that it was given.

    `session` is the name, `what` a kind such as `lost_calls`, `detail` one line.
    """

    session: str
    turn: int
    what: str
    detail: str


JSON = dict[str, Any]
