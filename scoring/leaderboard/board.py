"""The published figures, and whether a Run may stand beside them.

`leaderboard.json` holds rates as they were published, in per cent. Each is an integer over a
known denominator, so that the counts can be told from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import sqrt
from typing import Any

from scenarios.text import clip, visible
from scoring.metrics.accuracy import MIXED, MULTI, PARALLEL, SEQUENTIAL, is_whole
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.statistics import wilson
from scoring.modes import GOLD, INTERCEPT, modes_of
from scoring.types import SessionScore

DATA = "leaderboard.json"
SCENARIOS = 256
SCENARIO_IDS = tuple(f"wild_tool_bench_{number}" for number in range(SCENARIOS))
BUILTIN = "builtin"
PUBLISHED = "published"
"""The scorer that reconstructs the rules that the published figures were made with."""

NAME_LENGTH = 40
ALL = "all"
KINDS = {"single": "Single-Tool", "multi": MULTI, "clarify": "Clarify", "chat": "Chat"}
SHAPES = {"parallel": PARALLEL, "sequential": SEQUENTIAL, "mixed": MIXED}

_SOURCE = "arXiv 2604.06185v1, "

DEFINITIONS: Definitions = {
    "published_session_accuracy": Definition(
        "Published session accuracy",
        "rate",
        "Sessions of which all four tasks are correct, over the 256 sessions.",
        f"{_SOURCE}table 6",
    ),
    "published_task_accuracy": Definition(
        "Published task accuracy",
        "rate",
        "Correct tasks over all 1024, over the tasks of a kind, or over those of a position in the session.",
        f"{_SOURCE}tables 6 and 7",
    ),
    "published_progress_rate": Definition(
        "Published accomplish progress rate",
        "rate",
        "Nodes of the reference that were done, over those of the sequential and mixed tasks. The released "
        "code does not give these figures.",
        f"{_SOURCE}table 7",
    ),
    "published_optimal_path_rate": Definition(
        "Published optimal path rate",
        "rate",
        "Correct tasks in the fewest steps, over all parallel and mixed tasks.",
        f"{_SOURCE}table 7",
    ),
    "published_error_share": Definition(
        "Published error share",
        "rate",
        "Tasks that failed in one way, over all that failed.",
        f"{_SOURCE}tables 4 and 8",
        better=None,
    ),
}


@dataclass(frozen=True, slots=True)
class Published:
    """What was published of one model. `category`: `proprietary`, `open` or `specialised`.

    `session` and `task` are None where they were not published. `others` are all further figures: task
    accuracy by kind and position ("1" the first), progress and optimal path rates, error shares; the last
    are missing where it is not known how many Tasks failed.
    """

    model: str
    category: str
    session: Figure | None
    task: Figure | None
    others: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What somebody else measured; `session` and `task` are fractions. `note` may be None.

    `released_scorer`: was it scored by the code that was released, as it is?
    """

    who: str
    model: str
    stack: str
    released_scorer: bool
    session: float
    task: float
    note: str | None


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """What does not fit together in the published figures."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`source` says by key where the figures come from; `models` stand in the order of the source."""

    source: Mapping[str, str]
    models: tuple[Published, ...]
    reproductions: tuple[Reproduction, ...]
    inconsistencies: tuple[Inconsistency, ...]


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A Run's row: its name and its accuracies under the published rules."""

    name: str
    session: Figure
    task: Figure


def load() -> Leaderboard:
    """The packaged figures."""
    data = json.loads(files("scoring.leaderboard").joinpath(DATA).read_text(encoding="utf-8"))
    return parse(data)


def parse(data: Mapping[str, Any]) -> Leaderboard:
    """Reads the JSON document. Raises ValueError for a rate that is no integer over its denominator."""
    over = data["denominators"]
    return Leaderboard(
        data["source"],
        tuple(_published(row, over) for row in data["models"]),
        tuple(
            Reproduction(**row | {"session": row["session"] / 100, "task": row["task"] / 100})
            for row in data["reproductions"]
        ),
        tuple(Inconsistency(**row) for row in data["inconsistencies"]),
    )


def run_figures(name: str, figures: Iterable[Figure]) -> RunFigures:
    """The Run's row, from its figures under the published rules. Raises LookupError where one is missing."""
    known = {figure.key: figure for figure in figures if figure.n and figure.successes is not None}
    missing = [key for key in ("session_accuracy", "task_accuracy") if key not in known]
    if missing:
        raise LookupError(f"the run has no {' and no '.join(missing)}")
    return RunFigures(name, known["session_accuracy"], known["task_accuracy"])


def difference(successes: int, n: int, other_successes: int, other_n: int) -> tuple[float, float]:
    """The 95 % interval of the difference of two proportions of independent samples, without continuity
    correction.

    Source: method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890. Returns (low, high) of
    first minus second. Raises ValueError where either has no data.
    """
    one, other = wilson(successes, n), wilson(other_successes, other_n)
    if one is None or other is None:
        raise ValueError("no data: there is no difference to be told")
    p, q = successes / n, other_successes / other_n
    low = p - q - sqrt((p - one[0]) ** 2 + (other[1] - q) ** 2)
    high = p - q + sqrt((one[1] - p) ** 2 + (q - other[0]) ** 2)
    return low, high


def differs(figure: Figure, other: Figure) -> bool:
    """Is the difference of two rates significant at 5 %? Both must have counts."""
    low, high = difference(figure.successes or 0, figure.n, other.successes or 0, other.n)
    return low > 0 or high < 0


def unmet(
    config: Mapping[str, Any], scorer_names: Collection[str], sessions: Sequence[SessionScore]
) -> tuple[str, ...]:
    """Every condition that a Run fails of those under which published figures may stand beside it."""
    return (*_unmet_in_play(config), *_unmet_in_sessions(sessions), *_unmet_in_scorers(scorer_names))


def why_not(
    config: Mapping[str, Any], scorer_names: Collection[str], sessions: Sequence[SessionScore]
) -> str | None:
    """Why published figures may not stand beside a Run: the first condition that it fails, then the
    others; None if they may."""
    reasons = unmet(config, scorer_names, sessions)
    if not reasons:
        return None
    also = f" (also: {'; '.join(reasons[1:])})" if reasons[1:] else ""
    return f"published figures cannot stand beside this run: {reasons[0]}{also}"


def _unmet_in_play(config: Mapping[str, Any]) -> Iterator[str]:
    modes = modes_of(config)
    if modes.history != GOLD:
        yield f"its history is {_shown(modes.history)}, not gold"
    if modes.goes_on:
        yield "a wrong step does not end its task"
    if modes.tools != INTERCEPT:
        yield f"its tools are in mode {_shown(modes.tools)}, not {INTERCEPT}"
    if config.get("agent_tools") == "keep":
        yield "its model was not given the scenarios' tools (--agent-tools keep)"
    agent = config.get("agent")
    if agent is None:
        yield "its agent is not known to be the builtin one"
    elif str(agent).strip() != BUILTIN:
        yield f"its agent is {_shown(str(agent))}, not the builtin one"
    if (language := config.get("language") or "en") != "en":
        yield f"its language is {_shown(str(language))}, not en"


def _unmet_in_sessions(sessions: Sequence[SessionScore]) -> Iterator[str]:
    played = Counter(session.scenario.id for session in sessions)
    missing = [wanted for wanted in SCENARIO_IDS if wanted not in played]
    foreign = sorted(played.keys() - set(SCENARIO_IDS))
    if missing:
        yield (
            f"{len(missing)} of the {SCENARIOS} scenarios {SCENARIO_IDS[0]} to {SCENARIO_IDS[-1]} "
            f"were not played (the first is {missing[0]})"
        )
    if foreign:
        yield f"{len(foreign)} of its scenarios are not the benchmark's (the first is {_shown(foreign[0])})"
    if not missing and len({played[wanted] for wanted in SCENARIO_IDS}) > 1:
        yield "its scenarios were not all played equally often"
    if unscored := sum(not is_whole(session) for session in sessions):
        yield f"{unscored} of its {len(sessions)} sessions have tasks that were not scored"


def _unmet_in_scorers(names: Collection[str]) -> Iterator[str]:
    if PUBLISHED not in names:
        yield f"it was not scored by the scorer {PUBLISHED} (--scorer {PUBLISHED})"


def _shown(text: str) -> str:
    return clip(visible(text), NAME_LENGTH)


def _published(row: Mapping[str, Any], over: Mapping[str, Any]) -> Published:
    session = _maybe("published_session_accuracy", row["session"], over["session"])
    task = _maybe("published_task_accuracy", row["task"], over["task"])
    return Published(row["model"], row["category"], session, task, tuple(_others(row, over, task)))


def _others(row: Mapping[str, Any], over: Mapping[str, Any], task: Figure | None) -> Iterator[Figure]:
    accuracy = "published_task_accuracy"
    for kind, value in row["kinds"].items():
        yield _rate(accuracy, KINDS[kind], value, over["kinds"][kind])
    for place, value in enumerate(row["positions"]):
        yield _rate(accuracy, str(place + 1), value, over["positions"][place])
    for key, value in row["orchestration"].items():
        rate, _, shape = key.rpartition("_")
        if key in ("ap", "op"):
            rate, shape = key, ALL
        name = {"": accuracy, "ap": "published_progress_rate", "op": "published_optimal_path_rate"}[rate]
        yield _rate(name, SHAPES.get(shape, shape), value, over["orchestration"][key], bounds=rate != "ap")
    if task is not None and task.successes is not None:
        for name, value in row["errors"].items():
            yield _rate("published_error_share", name, value, task.n - task.successes)


def _maybe(name: str, percent: float | None, n: int) -> Figure | None:
    return None if percent is None else _rate(name, None, percent, n)


ROUNDING = 0.0051
"""Percentage points: two decimals are half of 0.01 away from the truth at most, and one published
value (Qwen3-0.6B, optimal path rate of parallel tasks) is rounded the wrong way by a hair."""


def _rate(name: str, group: str | None, percent: float, n: int, *, bounds: bool = True) -> Figure:
    """A published rate, with the count that it was made from. The progress rate has no interval: the
    steps of one Task are not draws of their own."""
    successes = round(percent * n / 100)
    if abs(100 * successes / n - percent) > ROUNDING:
        raise ValueError(f"{name}: {percent} % is no integer of {n}")
    low, high = (wilson(successes, n) if bounds else None) or (None, None)
    return Figure(name, group, successes / n, n, successes, low, high)
