"""Figures from counts, each compared whole."""

from __future__ import annotations

from scoring.metrics.clustered import clustered
from scoring.metrics.figures import Figure
from scoring.metrics.rates import mean, rate_of_sessions, rate_of_tasks, share, total
from scoring.metrics.statistics import wilson

FOUR = [("a", True), ("b", False), ("c", True), ("d", True)]


def test_a_share_has_no_interval_and_of_nothing_no_value() -> None:
    assert share("x", "g", 3, 4) == Figure("x", "g", 0.75, 4, 3)
    assert share("x", None, 0, 0) == Figure("x", None, None, 0, 0)


def test_tasks_of_one_scenario_are_a_cluster_in_whatever_order_they_come() -> None:
    of = clustered([(2, 3), (0, 2)])
    drawn = [("a", True), ("b", False), ("a", True), ("b", False), ("a", False)]
    assert rate_of_tasks("x", "g", drawn) == Figure("x", "g", 2 / 5, 5, 2, of.low, of.high)
    assert of.low is not None
    assert rate_of_tasks("x", None, []) == Figure("x", None, None, 0, 0)


def test_sessions_are_draws_of_their_own_while_no_scenario_was_played_twice() -> None:
    bounds = wilson(3, 4)
    assert bounds is not None
    assert rate_of_sessions("x", "g", iter(FOUR)) == Figure("x", "g", 3 / 4, 4, 3, *bounds)
    assert rate_of_sessions("x", None, []) == Figure("x", None, None, 0, 0)
    again = [*FOUR, ("a", False)]
    assert rate_of_sessions("x", "g", again) == rate_of_tasks("x", "g", again)


def test_a_total_and_a_mean_over_nothing_have_no_value() -> None:
    assert total("x", 6, 4) == Figure("x", None, 6.0, 4)
    assert mean("x", 6, 4) == Figure("x", None, 1.5, 4)
    assert [of("x", 0, 0) for of in (total, mean)] == [Figure("x", None, None, 0)] * 2
