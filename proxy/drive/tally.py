"""How far a drive is, in figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proxy.drive.states import SessionState


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a drive is. Tasks `ended` and `names_right` are as the proxy sees them while
    it plays: by tool names alone. Only `score` judges arguments. `sessions_right` are those that are
    over and in which all names were right. Where a wrong step does not end its Task (`goes_on`),
    `names_right` are those that were done without one.

    Sessions that were over before the drive began are counted as `already`, and nowhere else.
    `provider_errors` are turns that the provider failed, `retries` requests that it was sent again.
    """

    sessions: int
    tasks: int
    already: int = 0
    done: int = 0
    ended: int = 0
    names_right: int = 0
    sessions_right: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: int = 0
    provider_errors: int = 0
    retries: int = 0
    goes_on: bool = False


def tally(total: Tally, states: dict[str, SessionState]) -> Tally:
    """`total` with what the Sessions' last states add up to."""
    tasks = [task for state in states.values() for task in state.tasks]
    return replace(
        total,
        ended=sum(task.end is not None for task in tasks),
        names_right=sum(task.names_right is True for task in tasks),
        sessions_right=sum(is_right(state) for state in states.values()),
        input_tokens=sum(state.input_tokens for state in states.values()),
        output_tokens=sum(state.output_tokens for state in states.values()),
        provider_errors=sum(state.provider_errors for state in states.values()),
        retries=sum(state.provider_retries for state in states.values()),
    )


def is_right(state: SessionState) -> bool:
    """Is it over, with the names of every Task right?"""
    return bool(state.tasks) and all(task.names_right is True for task in state.tasks)


def time_left(now: Tally, elapsed: float) -> float | None:
    """Seconds until all Tasks are played at the pace so far; None before the first."""
    return elapsed * (now.tasks - now.ended) / now.ended if now.ended else None
