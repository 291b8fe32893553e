"""A Session as a value, and what a Step of it comes to. Pure; `proxy.play` moves it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from proxy.settings import PlayConfig
from scenarios.live import Progress
from scenarios.matcher import State
from scenarios.types import Scenario, ToolCall

Message = dict[str, Any]
End = Literal["closed", "stopped", "agent_stopped", "infrastructure", "not_reached"]
Outcome = Literal["served", "redundant", "unknown_tool", "invalid_arguments", "no_data"]

SESSION_OVER = "[session over]"
"""What every request gets after the last Task; the provider is not called."""

NO_TEXT = "[no text]"
"""What the agent gets where the LLM ends a turn with blanks alone, which agents take for no answer."""

TASK_OVER = "[task over]"
"""What the agent gets in place of a wrong Step, which ends the Task."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A user turn: its number (from 1), the Task it belongs to (0-based), its words."""

    number: int
    task: int
    kind: Literal["task", "reply"]
    words: str


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A turn that was begun, as the LLM saw it.

    `asked` is the agent's user message as it came, `said` the same with the user's `words` in it;
    `messages` is what followed: assistant messages and tool results, at the end the text that
    was given (`done`). `handed` are the ids of calls that the agent was given to carry out;
    the others it never saw.
    """

    number: int
    words: str
    asked: Message
    said: Message
    messages: tuple[Message, ...] = ()
    handed: frozenset[str] = frozenset()
    done: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """Where a Session stands.

    `ends` has an entry for each Task that is over, `names_right` says of each whether it was closed
    without a wrong Step. `record` has every turn that was begun, as the LLM saw it; those of
    the current Task begin with turn `task_from`. `begun` is the last turn in it. `done`
    are the nodes the matcher took Steps for, `served` those whose Observation was given: they can
    differ where names repeat. `state` is None once a Step was passed over that the released
    harness does not take; `progress` says, only with `continue`, where the Task stands. `reply` is
    the scripted reply to an accepted ask, until it is given. `failed` says that the provider
    failed after the last accepted Step. `aliases` are the ids by which the agent knows its calls,
    and those in the record.
    """

    name: str
    scenario: Scenario
    config: PlayConfig = field(default_factory=PlayConfig)
    turn: Turn | None = None
    begun: int = 0
    ends: tuple[End, ...] = ()
    names_right: tuple[bool, ...] = ()
    state: State | None = None
    progress: Progress | None = None
    record: tuple[PlayedTurn, ...] = ()
    task_from: int = 1
    done: frozenset[int] = frozenset()
    served: frozenset[int] = frozenset()
    steps: int = 0
    reply: str | None = None
    failed: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def task_is_open(self) -> bool:
        return self.turn is not None and self.turn.task == len(self.ends)

    @property
    def over(self) -> bool:
        return len(self.ends) == len(self.scenario.tasks)

    @property
    def thread(self) -> tuple[Message, ...]:
        """The current Task's conversation as the LLM sees it, from the user's first words on."""
        return _messages(turn for turn in self.record if turn.number >= self.task_from)

    @property
    def past(self) -> tuple[Message, ...]:
        """The conversation of the earlier Tasks, as it was."""
        return _messages(turn for turn in self.record if turn.number < self.task_from)


@dataclass(frozen=True, slots=True)
class Served:
    """A tool call and what it was told. `id` is the one in the record, `given` the agent's for it."""

    call: ToolCall
    id: str
    observation: str | None
    node: int | None
    outcome: Outcome = "served"
    given: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a Step came to.

    `action`: `observe` (its calls are answered: loop on with the provider, or hand them over),
    `ask` or `close` (the text goes to the agent), `stop` (the Task is over; the agent gets
    `TASK_OVER`). `nodes` are what the Step was taken for, `reason` says what is wrong with it, for
    the owner of the log: it names what the Reference allows.
    """

    action: Literal["observe", "ask", "close", "stop"]
    nodes: tuple[int, ...] = ()
    served: tuple[Served, ...] = ()
    reason: str | None = None


def _messages(turns: Iterable[PlayedTurn]) -> tuple[Message, ...]:
    return tuple(message for turn in turns for message in (turn.said, *turn.messages))


def shown(text: str | None) -> str:
    """A turn's last text as the agent gets it: never empty."""
    return text if text and text.strip() else NO_TEXT


def session_name(scenario_id: str, epoch: int) -> str:
    return f"{scenario_id}.e{epoch}"
