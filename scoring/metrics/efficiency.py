"""What a Run took: Steps, calls, tokens, seconds and money; and how far from the shortest way. Pure.

A Task is here one that was played to its end and has at least one Step, and it is correct if the
scores handed in label it so. `n` counts what is known, so that it tells how much a figure covers: what
a provider did not tell is in no figure, and is never taken as 0. Percentiles are by nearest rank: the
least value that is not below so many per cent of them. None of these figures has an interval: Tasks
of one Session share a prompt that grows, so that they are no draws of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from scenarios.text import clip, visible
from scenarios.types import Reply
from scoring.metrics.efficiency_texts import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.metrics.prices import PER, Prices
from scoring.metrics.usage import ModelCall, StepUsage, Usage
from scoring.types import CORRECT, SessionScore, TaskScore, Trajectory

__all__ = ["DEFINITIONS", "efficiency_figures", "price_notes"]

STEPS, SIDE_CALLS, OTHER_CALLS = "Steps", "Side calls", "Other calls"
"""Groups of what calls of an LLM took; the figure without a group has them all."""

_Amount = Callable[[ModelCall], float | None]
"""What is counted of a call; None where it is not known."""

_NAMES_SHOWN = 5
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class _Task:
    """A Task that was played to its end, with a Step for each of its replies.

    `reference_calls` is how many calls its Reference has. `score` is None where it was not scored.
    """

    replies: tuple[Reply, ...]
    steps: tuple[StepUsage, ...]
    seconds: float | None
    reference_calls: int
    score: TaskScore | None

    @property
    def correct(self) -> bool:
        return self.score is not None and self.score.label == CORRECT

    @property
    def calls(self) -> int:
        return sum(len(reply.calls) for reply in self.replies)

    @property
    def least(self) -> int:
        return self.score.min_steps if self.score is not None else 0

    def amount(self, amount: _Amount) -> float | None:
        """What all Steps took; None unless it is known of every one."""
        found = [amount(step) for step in self.steps]
        known = [it for it in found if it is not None]
        return fsum(known) if found and len(known) == len(found) else None


def efficiency_figures(
    trajectories: Sequence[Trajectory],
    sessions: Sequence[SessionScore],
    usage: Usage,
    prices: Prices | None,
) -> list[Figure]:
    """The figures of `DEFINITIONS`, all of them, in that order.

    `sessions` are the scores of the same Sessions. Without prices, or where a model has none, there is
    no figure on money (see `price_notes`).
    """
    tasks = list(_tasks(trajectories, sessions, usage))
    correct = [task for task in tasks if task.correct]
    cost = _cost(usage, prices)
    return [
        _mean("steps_per_task", (len(task.replies) for task in tasks)),
        _mean("calls_per_task", (task.calls for task in tasks)),
        _over_optimal("steps_over_optimal", correct, lambda step: 1),
        _calls_over_reference(correct),
        *_totals("tokens_input", usage, lambda call: call.input_tokens),
        *_totals("tokens_output", usage, lambda call: call.output_tokens),
        _mean("tokens_per_task", (task.amount(_tokens) for task in tasks)),
        _over_optimal("tokens_over_optimal", correct, _tokens),
        *_spread("latency_per_step", (step.latency for step in usage.all_steps())),
        *_spread("time_to_first_token", (step.time_to_first_chunk for step in usage.all_steps())),
        *_spread("task_seconds", (task.seconds for task in tasks)),
        *_counts(usage),
        *_totals("cost_total", usage, cost),
        _mean("cost_per_task", (task.amount(cost) for task in tasks)),
        _cost_per_correct_task(usage, cost, _count_correct(sessions)),
        _over_optimal("cost_over_optimal", correct, cost),
    ]


def price_notes(usage: Usage, prices: Prices | None) -> tuple[str, ...]:
    """Why there is no figure on money although there are prices: the models that have none."""
    if prices is None or not (missing := _unpriced(usage, prices)):
        return ()
    names = [clip(visible(name), _NAME_LENGTH) or "(no name)" for name in missing[:_NAMES_SHOWN]]
    if more := len(missing) - len(names):
        names.append(f"{more} more")
    return (f"No cost: {visible(prices.source)} has no price for {', '.join(names)}.",)


def _tasks(
    trajectories: Sequence[Trajectory], sessions: Sequence[SessionScore], usage: Usage
) -> Iterator[_Task]:
    scores = {(it.scenario.id, it.epoch): it.tasks for it in sessions}
    for trajectory in trajectories:
        scored = scores.get((trajectory.scenario.id, trajectory.epoch), ())
        for number, (task, played) in enumerate(
            zip(trajectory.scenario.tasks, trajectory.tasks, strict=True)
        ):
            if played.finished and played.replies:
                key = (trajectory.scenario.id, trajectory.epoch, number)
                yield _Task(
                    played.replies,
                    usage.steps.get(key, ()),
                    usage.seconds.get(key),
                    sum(node.is_call for node in task.nodes),
                    scored[number] if number < len(scored) else None,
                )


def _count_correct(sessions: Iterable[SessionScore]) -> int:
    return sum(task.label == CORRECT for session in sessions for task in session.tasks)


def _tokens(call: ModelCall) -> int | None:
    return call.tokens


def _unpriced(usage: Usage, prices: Prices) -> list[str]:
    """The models of calls with tokens that have no price, in alphabetical order."""
    asked = {call.model or "" for call in usage.all_calls() if call.tokens is not None}
    return sorted(name for name in asked if prices.price(name) is None)


def _cost(usage: Usage, prices: Prices | None) -> _Amount:
    """What a call costs. Nothing is told of any if one of them has no price."""
    table = None if prices is None or _unpriced(usage, prices) else prices

    def cost(call: ModelCall) -> float | None:
        price = None if table is None else table.price(call.model)
        if price is None or call.input_tokens is None or call.output_tokens is None:
            return None
        return (call.input_tokens * price.input + call.output_tokens * price.output) / PER

    return cost


def _mean(name: str, values: Iterable[float | None], group: str | None = None) -> Figure:
    known = [value for value in values if value is not None]
    return Figure(name, group, fsum(known) / len(known) if known else None, len(known))


def _total(name: str, group: str | None, values: Iterable[float | None]) -> Figure:
    known = [value for value in values if value is not None]
    return Figure(name, group, fsum(known) if known else None, len(known))


def _ratio(name: str, above: float, below: float, n: int) -> Figure:
    return Figure(name, None, above / below, n) if n and below else Figure(name, None, None, 0)


def _spread(name: str, values: Iterable[float | None]) -> Iterator[Figure]:
    known = sorted(value for value in values if value is not None)
    yield _mean(name, known, "mean")
    for per_cent in (50, 95):
        rank = -(-per_cent * len(known) // 100)
        yield Figure(name, f"p{per_cent}", known[rank - 1] if known else None, len(known))


def _totals(name: str, usage: Usage, amount: _Amount) -> Iterator[Figure]:
    groups = {
        None: usage.all_calls(),
        STEPS: usage.all_steps(),
        SIDE_CALLS: usage.side_calls,
        OTHER_CALLS: (*usage.control_calls, *usage.failed),
    }
    for group, calls in groups.items():
        yield _total(name, group, map(amount, calls))


def _counts(usage: Usage) -> Iterator[Figure]:
    steps = list(usage.all_steps())
    yield _total("provider_retries", None, (step.tries - 1 for step in steps))
    asked = len(steps) + len(usage.control_calls) + len(usage.failed)
    yield Figure("provider_failures", None, float(len(usage.failed)) if asked else None, asked)
    side_calls = float(len(usage.side_calls)) if usage.sessions else None
    yield Figure("side_calls", None, side_calls, usage.sessions)


def _over_optimal(name: str, correct: Iterable[_Task], amount: _Amount) -> Figure:
    """What all Steps took, over as many as the least number at the mean of their own Task."""
    found = [(task, spent) for task in correct if (spent := task.amount(amount)) is not None]
    least = fsum(spent * task.least / len(task.steps) for task, spent in found)
    return _ratio(name, fsum(spent for _, spent in found), least, len(found))


def _calls_over_reference(correct: Iterable[_Task]) -> Figure:
    found = [task for task in correct if task.reference_calls]
    made, needed = sum(task.calls for task in found), sum(task.reference_calls for task in found)
    return _ratio("calls_over_reference", made, needed, len(found))


def _cost_per_correct_task(usage: Usage, cost: _Amount, correct: int) -> Figure:
    """None where a Step's cost is not known: the figure would be too low, and `n` would not tell."""
    name = "cost_per_correct_task"
    if any(cost(step) is None for step in usage.all_steps()):
        return Figure(name, None, None, 0)
    spent = [it for it in map(cost, usage.all_calls()) if it is not None]
    return _ratio(name, fsum(spent), correct, correct if spent else 0)
