from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.metrics.clustered import clustered
from scoring.metrics.figures import Figure
from scoring.metrics.passes import DEFINITIONS, pass_figures
from scoring.metrics.statistics import t_quantile, wilson_of_rate
from scoring.types import SessionScore, TaskScore

TASK = Task("hello", "Chat", None, (Node(CLOSE, {}, "bye"),))
LABELS = {"R": "correct", "W": "error", "-": None}


def played(scenario: str, *epochs: str) -> list[SessionScore]:
    """A Session for each epoch; a letter for each Task: right, wrong, `-` not scored."""
    return [
        SessionScore(
            f"{scenario}.e{epoch}",
            epoch,
            Scenario(scenario, "2024-01-01", (), (TASK,) * len(tasks), "hash", {}),
            tuple(TaskScore(LABELS[it], LABELS[it], LABELS[it], False, 1, 1, 1) for it in tasks),
        )
        for epoch, tasks in enumerate(epochs, start=1)
    ]


def values(sessions: Sequence[SessionScore]) -> dict[str, float | None]:
    return {figure.key: figure.value for figure in pass_figures(sessions)}


def test_pass_hat_k_and_pass_at_k_are_means_over_scenarios() -> None:
    sessions = [*played("a", "RR", "RR", "RR", "RR"), *played("b", "RR", "RW", "WR", "RR")]
    # b passes 2 of 4: C(2,2)/C(4,2) = 1/6, C(2,3) = 0; its tasks pass 3 of 4: 3/6, 1/4, 0.
    assert values(sessions) == pytest.approx(
        {
            "pass_hat_k[1]": (1 + 1 / 2) / 2,
            "pass_hat_k[2]": (1 + 1 / 6) / 2,
            "pass_hat_k[3]": 1 / 2,
            "pass_hat_k[4]": 1 / 2,
            "pass_at_k[1]": (1 + 1 / 2) / 2,
            "pass_at_k[2]": (1 + 5 / 6) / 2,
            "pass_at_k[3]": 1.0,
            "pass_at_k[4]": 1.0,
            "task_pass_hat_k[1]": (1 + 1 + 3 / 4 + 3 / 4) / 4,
            "task_pass_hat_k[2]": (1 + 1 + 1 / 2 + 1 / 2) / 4,
            "task_pass_hat_k[3]": (1 + 1 + 1 / 4 + 1 / 4) / 4,
            "task_pass_hat_k[4]": 1 / 2,
            "task_pass_at_k[1]": (1 + 1 + 3 / 4 + 3 / 4) / 4,
            "task_pass_at_k[2]": 1.0,
            "task_pass_at_k[3]": 1.0,
            "task_pass_at_k[4]": 1.0,
            "flip_rate": 2 / 4,
        }
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_pass_hat_k_is_the_share_of_ways_to_draw_k_epochs_that_all_pass(epochs: list[bool]) -> None:
    found = values(played("a", *("R" if right else "W" for right in epochs)))
    for k in range(1, len(epochs) + 1):
        drawn = list(combinations(epochs, k))
        assert len(drawn) == comb(len(epochs), k)
        assert found[f"pass_hat_k[{k}]"] == pytest.approx(sum(map(all, drawn)) / len(drawn))
        assert found[f"pass_at_k[{k}]"] == pytest.approx(sum(map(any, drawn)) / len(drawn))


def test_epochs_that_were_not_scored_are_no_failures_and_limit_k() -> None:
    sessions = [
        *played("a", "RR", "RR", "R-"),
        *played("b", "RR", "WW", "RR"),
        *played("c", "--", "--", "--"),
    ]
    found = values(sessions)
    assert [key for key in found if key.startswith("pass_hat_k")] == ["pass_hat_k[1]", "pass_hat_k[2]"]
    assert found["pass_hat_k[1]"] == pytest.approx((1 + 2 / 3) / 2)
    # The second task of a was scored twice, all others that were scored at all three times.
    assert [key for key in found if key.startswith("task_pass_hat_k")] == [
        "task_pass_hat_k[1]",
        "task_pass_hat_k[2]",
    ]
    assert found["task_pass_hat_k[2]"] == pytest.approx((1 + 1 + 1 / 3 + 1 / 3) / 4)


def test_one_epoch_has_k_of_one_and_no_flip_rate() -> None:
    sessions = [*played("a", "RR"), *played("b", "RW"), *played("c", "WW")]
    assert values(sessions) == pytest.approx(
        {
            "pass_hat_k[1]": 1 / 3,
            "pass_at_k[1]": 1 / 3,
            "task_pass_hat_k[1]": 1 / 2,
            "task_pass_at_k[1]": 1 / 2,
            "flip_rate": None,
        }
    )


def test_nothing_scored_has_no_value() -> None:
    names = ("pass_hat_k", "pass_at_k", "task_pass_hat_k", "task_pass_at_k")
    nothing = [*(Figure(name, "1", None, 0) for name in names), Figure("flip_rate", None, None, 0, 0)]
    assert pass_figures([]) == nothing
    assert pass_figures(played("a", "--")) == nothing


def test_intervals_are_over_scenarios_whatever_the_number_of_epochs() -> None:
    sessions = [it for n in range(10) for it in played(f"s{n}", *(["RR", "RR"] if n % 2 else ["WW", "WW"]))]
    [first, *_] = pass_figures(sessions)
    whole = clustered([(n % 2 * 2, 2) for n in range(10)])
    assert first == Figure("pass_hat_k", "1", 0.5, 10, None, whole.low, whole.high)


@pytest.mark.parametrize(("scenarios", "right", "epochs", "k"), [(20, 1, 2, 1), (6, 9, 10, 5)])
def test_scenarios_that_agree_are_no_surer_than_their_number(
    scenarios: int, right: int, epochs: int, k: int
) -> None:
    of_one = ["R"] * right + ["W"] * (epochs - right)
    figures = pass_figures([it for n in range(scenarios) for it in played(f"s{n}", *of_one)])
    # Both are 1/2: C(9, 5) / C(10, 5), and one of two.
    for name in ("pass_hat_k", "task_pass_hat_k"):
        [found] = [it for it in figures if it.key == f"{name}[{k}]"]
        bounds = wilson_of_rate(0.5, scenarios, t_quantile(0.975, scenarios - 1))
        assert found.value == 0.5
        assert found.n == scenarios
        assert (found.low, found.high) == pytest.approx(bounds)


def test_scenarios_that_differ_have_the_interval_of_their_spread() -> None:
    sessions = [
        it for n in range(10) for it in played(f"s{n}", *(["RRRR", "WWWW"] if n < 5 else ["RRRR"] * 2))
    ]
    [first] = [it for it in pass_figures(sessions) if it.key == "task_pass_hat_k[1]"]
    spread = clustered([(4, 8)] * 5 + [(8, 8)] * 5, draws=40)
    assert spread.se == pytest.approx((10 / 9 * 10 * 0.25**2) ** 0.5 / 10)
    assert (first.value, first.n, first.low, first.high) == (0.75, 40, spread.low, spread.high)


def test_the_flip_rate_is_over_tasks_with_two_scored_epochs() -> None:
    sessions = [*played("a", "RW", "WW"), *played("b", "R-", "RW", "--"), *played("c", "R")]
    it = pass_figures(sessions)[-1]
    assert (it.key, it.value, it.successes, it.n) == ("flip_rate", pytest.approx(1 / 3), 1, 3)


def test_the_flip_rate_has_the_interval_of_its_scenarios() -> None:
    # One of two tasks, none of one, both of two.
    sessions = [*played("a", "RW", "WW"), *played("b", "R", "R"), *played("c", "RW", "WR")]
    of = clustered([(1, 2), (0, 1), (2, 2)])
    assert of.low is not None
    assert pass_figures(sessions)[-1] == Figure("flip_rate", None, 3 / 5, 5, 3, of.low, of.high)


def test_every_figure_is_defined() -> None:
    assert {it.name for it in pass_figures(played("a", "RR", "RW"))} == set(DEFINITIONS)
