"""What the Steps of a Run took: tokens, seconds, tries; and the calls of the LLM beside them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

TaskKey = tuple[str, int, int]
"""(scenario id, epoch, Task), the Task from 0."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of an LLM: the model that was asked for, and tokens as the provider counted them.

    What nobody told is None, never 0. Cached and reasoning tokens are part of the two counts.
    """

    model: str | None
    input_tokens: int | None
    output_tokens: int | None

    @property
    def tokens(self) -> int | None:
        """Input and output together; None unless both are known."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class StepUsage(ModelCall):
    """The call that a Step came of, and how long that took.

    `latency` is in seconds, from when the request was sent to the end of the answer; tries before it
    are not in it. `time_to_first_chunk` is in seconds to the first event of a stream, None without a
    stream. `tries` counts the provider exchanges that it took, failed ones included: 1 or more.
    """

    latency: float | None
    time_to_first_chunk: float | None
    tries: int


@dataclass(frozen=True, slots=True)
class Usage:
    """The attempts of a Run that count. `sessions` is how many there are.

    `steps` has the Tasks with at least one Step, one entry for each reply; `seconds` how long a Task
    was open, from its first turn to its end; a Task that did not end is not in it.
    `side_calls` are beside the conversation; of `control_calls` came calls of the agent's control tools
    alone, which are no Steps; of `failed` came neither, as the provider failed or the agent had gone.
    """

    sessions: int
    steps: Mapping[TaskKey, tuple[StepUsage, ...]]
    seconds: Mapping[TaskKey, float]
    side_calls: tuple[ModelCall, ...] = ()
    control_calls: tuple[ModelCall, ...] = ()
    failed: tuple[ModelCall, ...] = ()

    def all_steps(self) -> Iterator[StepUsage]:
        for steps in self.steps.values():
            yield from steps

    def all_calls(self) -> Iterator[ModelCall]:
        """Every call of an LLM, the Steps' first."""
        yield from self.all_steps()
        yield from (*self.side_calls, *self.control_calls, *self.failed)
