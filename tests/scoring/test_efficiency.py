"""Figures on Steps, tokens, seconds and money, from a log; every expectation is computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support import logs

from proxy.log.rows import Row
from proxy.log.writer import LogWriter
from scoring.logs.reader import open_log, read_trajectories
from scoring.logs.usage import read_usage
from scoring.metrics.efficiency import DEFINITIONS, efficiency_figures, price_notes
from scoring.metrics.figures import Figure
from scoring.metrics.prices import Price, Prices
from scoring.metrics.usage import ModelCall, StepUsage, Usage
from scoring.types import SessionScore, Trajectory
from scoring.verdicts.wildtoolbench import score_session

LAMP, CHAIR = ("findPrice", '{"thing": "lamp"}'), ("findPrice", '{"thing": "chair"}')
NOBODY = Usage(0, {}, {})


def node(name: str, arguments: dict[str, Any], position: int, *needs: int) -> dict[str, Any]:
    action = {"name": name, "arguments": arguments}
    return {"action": action, "observation": "ok", "dependency_list": list(needs), "idx": position}


def closing(position: int, *needs: int) -> dict[str, Any]:
    return node("prepare_to_answer", {"answer_type": "tool"}, position, *needs)


RECORD = {
    **logs.RECORD,
    "tasks": ["A lamp and a chair?", "Thanks!", "And a lamp?"],
    "answer_list": [
        [node("findPrice", {"thing": "lamp"}, 0), node("findPrice", {"thing": "chair"}, 1), closing(2, 0, 1)],
        [closing(0)],
        [node("findPrice", {"thing": "lamp"}, 0), closing(1, 0)],
    ],
}
"""Least numbers of Steps: 2, as the two calls can be made at once; 1; 2."""

PRICES = Prices("prices.json", "USD", {"m*": Price(1.0, 2.0), "small": Price(10.0, 20.0)})


@dataclass(frozen=True)
class Made:
    """A Step: its calls (none: a text), tokens, seconds and the time to its first chunk."""

    calls: tuple[tuple[str, str], ...]
    tokens: tuple[int | None, int | None] = (None, None)
    latency: float = 1.0
    first: float | None = None

    def rows(self, task: int, number: int, session: str, model: str | None) -> list[Row]:
        name = f"{session}.{task}.{number}"
        message = logs.call_message(*self.calls) if self.calls else logs.text_message("There you are.")
        given, made = self.tokens
        return [
            logs.start(name, session, side="provider", turn=task + 1, request_model=model, started_at=4.0),
            logs.finish(
                name,
                finished_at=4.0 + self.latency,
                time_to_first_chunk=self.first,
                input_tokens=given,
                output_tokens=made,
            ),
            logs.step(number, task, session, exchange_id=name, message=message),
        ]


def played(
    tasks: Sequence[tuple[str | None, float, Sequence[Made]]], session: str = "s1", model: str | None = "m-1"
) -> list[Row]:
    """Tasks as (ending, None for one that has none, seconds, Steps)."""
    found: list[Row] = []
    for task, (ending, seconds, steps) in enumerate(tasks):
        found.append(replace(logs.turn(task + 1, task, session), opened_at=3.0))
        found += [row for n, made in enumerate(steps) for row in made.rows(task, n, session, model)]
        if ending:
            found.append(replace(logs.end(task, ending, session), ended_at=3.0 + seconds))
    return found


SERIAL = [
    Made((LAMP,), (100, 10), 1.0, 0.1),
    Made((CHAIR,), (200, 20), 2.0, 0.3),
    Made((), (300, 30), 3.0, 0.2),
]
"""Correct, one Step more than needed: 660 tokens."""
THANKS = [Made((), (50, 50), 0.5)]
"""Correct: 100 tokens."""
WRONG = [Made((CHAIR,), (80, 20), 4.0)]
"""Wrong: 100 tokens. The released scorer minds arguments after the names: the Task ends with no reply."""
TASKS = [("closed", 10.0, SERIAL), ("closed", 1.0, THANKS), ("stopped", 4.0, WRONG)]


def beside(session: str = "s1") -> list[Row]:
    """A title of 40 + 5 tokens by another model, and a failure in the Task of the thanks."""
    title = logs.start("title", session, reason="it has no tools", request_model="small")
    failure = logs.start("failure", session, side="provider", turn=2, request_model="m-1", started_at=4.0)
    return [
        title,
        logs.finish("title", input_tokens=40, output_tokens=5),
        failure,
        logs.finish("failure", finish_state="provider_error", status=503),
    ]


Read = tuple[list[Trajectory], list[SessionScore], Usage]


def read(path: Path, *rows: Row) -> Read:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(), logs.scenario("shop_1", RECORD), *rows)
    log = open_log(path)
    trajectories, found = log.ask(lambda it: (read_trajectories(it, path, "r1"), read_usage(it, "r1")))
    return trajectories, [score_session(it) for it in trajectories], found


def told(figures: Sequence[Figure]) -> dict[str, tuple[float | None, int]]:
    return {figure.key: (figure.value, figure.n) for figure in figures}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-12)


def test_every_figure_of_a_log_is_what_it_is_by_hand(path: Path) -> None:
    found = read(path, logs.session(), *beside(), *played(TASKS))

    assert told(efficiency_figures(*found, PRICES)) == {
        "steps_per_task": (near(5 / 3), 3),
        "calls_per_task": (1.0, 3),
        "steps_over_optimal": (near(4 / 3), 2),
        "calls_over_reference": (1.0, 1),
        "tokens_input": (770.0, 6),
        "tokens_input[Steps]": (730.0, 5),
        "tokens_input[Side calls]": (40.0, 1),
        "tokens_input[Other calls]": (None, 0),
        "tokens_output": (135.0, 6),
        "tokens_output[Steps]": (130.0, 5),
        "tokens_output[Side calls]": (5.0, 1),
        "tokens_output[Other calls]": (None, 0),
        "tokens_per_task": (near((660 + 100 + 100) / 3), 3),
        "tokens_over_optimal": (near((660 + 100) / (660 * 2 / 3 + 100)), 2),
        "latency_per_step[mean]": (near(10.5 / 5), 5),
        "latency_per_step[p50]": (2.0, 5),
        "latency_per_step[p95]": (4.0, 5),
        "time_to_first_token[mean]": (near(0.2), 3),
        "time_to_first_token[p50]": (0.2, 3),
        "time_to_first_token[p95]": (0.3, 3),
        "task_seconds[mean]": (5.0, 3),
        "task_seconds[p50]": (4.0, 3),
        "task_seconds[p95]": (10.0, 3),
        "provider_retries": (1.0, 5),
        "provider_failures": (1.0, 6),
        "side_calls": (1.0, 1),
        # Per million: 1 for input and 2 for output of the Steps, 10 and 20 of the title.
        "cost_total": (near(1490e-6), 6),
        "cost_total[Steps]": (near(990e-6), 5),
        "cost_total[Side calls]": (near(500e-6), 1),
        "cost_total[Other calls]": (None, 0),
        "cost_per_task": (near(330e-6), 3),
        "cost_per_correct_task": (near(745e-6), 2),
        "cost_over_optimal": (near((720 + 150) / (720 * 2 / 3 + 150)), 2),
    }
    assert price_notes(found[2], PRICES) == ()


def test_every_figure_has_a_definition_and_every_definition_a_figure_in_its_order() -> None:
    figures = efficiency_figures([], [], NOBODY, None)
    names = list(dict.fromkeys(figure.name for figure in figures))
    assert names == list(DEFINITIONS)


@pytest.mark.parametrize("prices", [None, PRICES])
def test_of_nothing_there_is_nothing_to_tell(prices: Prices | None) -> None:
    assert {(it.value, it.n) for it in efficiency_figures([], [], NOBODY, prices)} == {(None, 0)}


def test_tokens_that_nobody_told_are_in_no_figure_and_are_not_nothing(path: Path) -> None:
    silent = [replace(made, tokens=(None, None)) for made in SERIAL]
    found = told(efficiency_figures(*read(path, logs.session(), *played([("closed", 1.0, silent)])), PRICES))

    unknown = {key: it for key, it in found.items() if key.startswith(("tokens", "cost"))}
    assert set(unknown.values()) == {(None, 0)}
    assert (found["steps_per_task"], found["steps_over_optimal"]) == ((3.0, 1), (1.5, 1))


def test_a_task_with_a_step_of_unknown_tokens_is_in_no_mean_and_leaves_no_cost_per_correct_task(
    path: Path,
) -> None:
    partly = [*SERIAL[:2], replace(SERIAL[2], tokens=(300, None))]
    tasks = [("closed", 1.0, partly), ("closed", 1.0, THANKS)]
    found = told(efficiency_figures(*read(path, logs.session(), *played(tasks)), PRICES))

    assert {key: found[key] for key in ("tokens_input", "tokens_output", "cost_total")} == {
        "tokens_input": (650.0, 4),
        "tokens_output": (80.0, 3),
        "cost_total": (near((120 + 240 + 150) / 1e6), 3),
    }
    assert (found["tokens_per_task"], found["tokens_over_optimal"]) == ((100.0, 1), (1.0, 1))
    assert found["cost_per_correct_task"] == (None, 0)


@pytest.mark.parametrize(("pattern", "missing"), [("m-1", "small"), ("small", "m-1"), ("x", "m-1, small")])
def test_a_model_without_a_price_leaves_no_cost_of_any_and_a_note_names_it(
    path: Path, pattern: str, missing: str
) -> None:
    _, _, seen = found = read(path, logs.session(), *beside(), *played(TASKS))
    table = Prices("prices.json", "USD", {pattern: Price(1.0, 2.0)})
    costs = [it for it in efficiency_figures(*found, table) if it.name.startswith("cost")]

    assert {(it.value, it.n) for it in costs} == {(None, 0)}
    assert price_notes(seen, table) == (f"No cost: prices.json has no price for {missing}.",)
    assert price_notes(seen, None) == ()


def test_calls_of_control_tools_and_failures_are_other_calls() -> None:
    calls = {
        "control_calls": (ModelCall("m", 10, 1),),
        "failed": (ModelCall("m", 5, 2), ModelCall("m", None, None)),
    }
    found = told(efficiency_figures([], [], Usage(1, {}, {}, **calls), PRICES))

    assert {key: it for key, it in found.items() if it[1]} == {
        "tokens_input": (15.0, 2),
        "tokens_input[Other calls]": (15.0, 2),
        "tokens_output": (3.0, 2),
        "tokens_output[Other calls]": (3.0, 2),
        "provider_failures": (2.0, 3),
        "side_calls": (0.0, 1),
        "cost_total": (near(21e-6), 2),
        "cost_total[Other calls]": (near(21e-6), 2),
    }


def test_a_call_whose_tokens_are_unknown_needs_no_price_and_a_call_may_name_no_model() -> None:
    calls = (
        ModelCall("free", None, None),
        ModelCall(None, 1, 1),
        *(ModelCall(f"m{n}", 1, 1) for n in range(6)),
    )
    asked = Usage(1, {}, {}, side_calls=calls)
    table = Prices("prices.json", "USD", {"x": Price(1.0, 1.0)})

    assert price_notes(asked, table) == (
        "No cost: prices.json has no price for (no name), m0, m1, m2, m3, 2 more.",
    )


def test_what_was_not_played_to_its_end_is_in_the_totals_and_in_no_mean_of_tasks(path: Path) -> None:
    tasks = [("closed", 1.0, THANKS[:0]), ("closed", 2.0, THANKS), ("infrastructure", 9.0, WRONG)]
    found = told(efficiency_figures(*read(path, logs.session(), *played(tasks)), PRICES))

    assert {key: found[key] for key in ("steps_per_task", "tokens_per_task", "task_seconds[mean]")} == {
        "steps_per_task": (1.0, 1),
        "tokens_per_task": (100.0, 1),
        "task_seconds[mean]": (2.0, 1),
    }
    assert (found["tokens_input"], found["cost_total"]) == ((130.0, 2), (near(270e-6), 2))
    assert found["cost_per_correct_task"] == (near(270e-6), 1)


def test_the_shortest_way_is_1_and_calls_at_once_are_one_step(path: Path) -> None:
    shortest = [Made((LAMP, CHAIR), (100, 20)), Made((), (200, 10))]
    single = [Made((LAMP,), (10, 1)), Made((), (20, 2))]
    tasks = [("closed", 1.0, shortest), ("closed", 1.0, THANKS), ("closed", 1.0, single)]
    found = told(efficiency_figures(*read(path, logs.session(), *played(tasks)), PRICES))

    over = {key: it for key, it in found.items() if "_over_" in key}
    assert over == {
        "steps_over_optimal": (1.0, 3),
        "calls_over_reference": (1.0, 2),
        "tokens_over_optimal": (1.0, 3),
        "cost_over_optimal": (near(1.0), 3),
    }
    assert found["calls_per_task"] == (1.0, 3)


def test_correct_is_what_the_scores_handed_in_say(path: Path) -> None:
    trajectories, sessions, seen = read(path, logs.session(), *played(TASKS))
    (session,) = sessions
    other = replace(session, tasks=tuple(replace(task, label="error") for task in session.tasks))
    found = told(efficiency_figures(trajectories, [other], seen, PRICES))

    assert {it for key, it in found.items() if "_over_" in key or "correct" in key} == {(None, 0)}


def test_the_last_attempt_is_told_and_sessions_are_found_whatever_their_order(path: Path) -> None:
    trajectories, sessions, seen = read(
        path,
        logs.session(),
        *beside(),
        *played(TASKS),
        logs.session("s2", attempt=2),
        *played([("closed", 1.0, SERIAL)], "s2"),
        logs.session("s3", epoch=2),
        *played([("stopped", 1.0, WRONG)], "s3"),
    )
    forth = efficiency_figures(trajectories, sessions, seen, PRICES)

    assert efficiency_figures(trajectories, sessions[::-1], seen, PRICES) == forth
    found = told(forth)
    assert (found["tokens_input"], found["side_calls"]) == ((680.0, 4), (0.0, 2))
    assert (found["steps_per_task"], found["steps_over_optimal"]) == ((2.0, 2), (1.5, 1))


def of_latencies(*seconds: float) -> dict[str, tuple[float | None, int]]:
    steps = tuple(StepUsage("m", 1, 1, it, None, 1) for it in seconds)
    return told(efficiency_figures([], [], Usage(1, {("s", 1, 0): steps}, {}), None))


def test_percentiles_are_by_nearest_rank() -> None:
    # Ranks are the number of values times the per cent, rounded up: of 20, the 10th and the 19th.
    twenty = of_latencies(*(float(n) for n in range(20, 0, -1)))
    assert (twenty["latency_per_step[p50]"], twenty["latency_per_step[p95]"]) == ((10.0, 20), (19.0, 20))
    two = of_latencies(7.0, 3.0)
    assert (two["latency_per_step[p50]"], two["latency_per_step[p95]"]) == ((3.0, 2), (7.0, 2))


def test_the_same_log_gives_the_same_figures(path: Path) -> None:
    found = read(path, logs.session(), *beside(), *played(TASKS))
    log = open_log(path)
    again = log.ask(lambda it: (read_trajectories(it, path, "r1"), read_usage(it, "r1")))
    figures = efficiency_figures(again[0], [score_session(it) for it in again[0]], again[1], PRICES)

    assert repr(figures) == repr(efficiency_figures(*found, PRICES))
    assert all((it.successes, it.low, it.high) == (None, None, None) for it in figures)
