"""What a comparison concludes, and how sure it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.compared import compared, runs, side

from scoring.compare.comparison import (
    MCNEMAR,
    TANGO,
    UNSEEN,
    Rate,
    Settings,
    compare,
)
from scoring.compare.pairs import Side
from scoring.compare.resampling import bootstrap
from scoring.compare.text import table
from scoring.metrics.statistics import detectable_difference, paired_difference, wilson


def test_single_sessions_are_compared_by_mcnemar_and_tango() -> None:
    a, b = runs(*["RR"] * 9, "RW", *["RW"] * 5), runs(*["RW"] * 9, "RR", *["RW"] * 5)
    level = compared(a, b).levels["session"]
    assert (level.n, level.lost, level.gained, level.test) == (15, 9, 1, MCNEMAR)
    assert level.p == 22 / 1024
    low, high = paired_difference(9, 1, 15)
    assert level.difference is not None
    assert (level.difference.value, level.difference.interval) == (-8 / 15, TANGO)
    assert (level.difference.low, level.difference.high) == pytest.approx((low, high))
    bounds = wilson(9, 15)
    assert bounds is not None
    assert level.a == Rate(9 / 15, 15, 9, *bounds)


def test_both_rates_of_single_sessions_have_counts_and_wilson_intervals() -> None:
    a, b = runs(*["RR"] * 12, *["RW"] * 3), runs(*["RR"] * 9, *["RW"] * 6)
    level, of_a, of_b = compared(a, b).levels["session"], wilson(12, 15), wilson(9, 15)
    assert of_a is not None
    assert of_b is not None
    assert (level.a, level.b) == (Rate(12 / 15, 15, 12, *of_a), Rate(9 / 15, 15, 9, *of_b))


def test_alpha_decides_the_interval_of_single_sessions_and_with_it_the_loss_not_ruled_out() -> None:
    a, b = runs(*["RR"] * 9, "RW", *["RW"] * 5), runs(*["RW"] * 9, "RR", *["RW"] * 5)
    for worse, (lost, gained) in (((a, b), (9, 1)), ((b, a), (1, 9))):
        found = compared(*worse, alpha=0.1).levels["session"].difference
        assert found is not None
        # z at 1 - 0.1 / 2.
        low, high = paired_difference(lost, gained, 15, 1.6448536)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-7)
        assert found.largest_loss == max(0.0, -found.low)


def test_what_is_detectable_among_single_sessions_follows_from_how_many_change() -> None:
    # 8 lost and 4 gained of 40: Connor's equation at discordance 0.3, z(0.975) and z(0.8).
    a, b = runs(*["R"] * 8, *["W"] * 4, *["R"] * 28), runs(*["W"] * 8, *["R"] * 4, *["R"] * 28)
    d = compared(a, b).levels["session"].detectable
    assert d is not None
    assert 40 * d**2 == pytest.approx((1.959964 * 0.3**0.5 + 0.841621 * (0.3 - d**2) ** 0.5) ** 2, rel=1e-5)


def test_what_is_detectable_among_tasks_follows_from_how_scenarios_differ() -> None:
    # Of 31 scenarios of two tasks 10 lose one, 5 gain one: mean -5 / 62 a task, or -10 / 62 a scenario.
    a = runs(*["RR"] * 10, *["RW"] * 5, *["RR"] * 16)
    b = runs(*["RW"] * 10, *["RR"] * 5, *["RR"] * 16)
    squares = 10 * (1 - 10 / 62) ** 2 + 5 * (1 + 10 / 62) ** 2 + 16 * (10 / 62) ** 2
    error = (31 / 30 * squares) ** 0.5 / 62
    # t(0.975) and t(0.8) with 30 degrees of freedom.
    expected = pytest.approx((2.042272 + 0.853767) * error, rel=1e-5)
    assert compared(a, b).levels["task"].detectable == expected
    # The same in two epochs each, which are no more scenarios.
    twice = [{name: epochs * 2 for name, epochs in side.items()} for side in (a, b)]
    assert compared(*twice).levels["task"].detectable == expected


def test_where_scenarios_do_not_differ_what_is_detectable_is_that_of_as_many_pairs_without_a_change() -> None:
    for changed in (runs(*["RR"] * 12), runs(*["RW"] * 12)):
        level = compared(runs(*["RR"] * 12), changed).levels["task"]
        assert level.detectable == detectable_difference(12, 0.0, 0.05)


def test_seed_and_number_of_resamples_are_those_that_were_asked_for() -> None:
    a, b = runs(*["RR"] * 6, "RW", "RW"), runs(*["RW"] * 6, "RR", "RW")
    totals = [(-1, 2)] * 6 + [(1, 2), (0, 2)]
    for seed, resamples in ((1, 20), (2, 20), (2, 50)):
        found = compared(a, b, seed=seed, resamples=resamples, alpha=0.2).levels["task"].difference
        assert found is not None
        assert (found.low, found.high) == bootstrap(totals, alpha=0.2, seed=seed, resamples=resamples)


Failing = tuple[float, float]
"""How likely infrastructure fails in an epoch before its first Task, and else before its second."""


def drawn(generator: np.random.Generator, rates: Sequence[float], epochs: int, failing: Failing) -> Side:
    """A Run of Scenarios with two Tasks, that are right at the rates and often right or wrong together."""
    shape = len(rates), epochs
    right = generator.random((*shape, 2)) < np.array(rates)[:, None, None]
    together = generator.random(shape) < 0.5
    right[..., 1] = np.where(together, right[..., 0], right[..., 1])
    first, second = (generator.random(shape) < it for it in failing)
    letters = np.where(right, "R", "W")
    letters[second, 1] = "-"
    letters[first] = "-"
    return side({f"s{n}": ["".join(tasks) for tasks in of_one] for n, of_one in enumerate(letters.tolist())})


@pytest.mark.parametrize(
    ("a", "b"),
    [((1, (0, 0)), (5, (0, 0))), ((10, (0, 0)), (1, (0, 0))), ((5, (0.7, 0.4)), (5, (0, 0.1)))],
)
def test_runs_that_do_not_differ_get_a_verdict_no_oftener_than_alpha_says(
    a: tuple[int, Failing], b: tuple[int, Failing]
) -> None:
    generator, comparisons, verdicts = np.random.default_rng(5), 200, Counter[str]()
    for _ in range(comparisons):
        one, other = (drawn(generator, [0.9, 0.95] * 10, epochs, failing) for epochs, failing in (a, b))
        it = compare(one, other, Settings(resamples=200))
        session = replace(it, settings=Settings(metric="session"))
        verdicts.update(task=it.verdict != "INCONCLUSIVE", session=session.verdict != "INCONCLUSIVE")
    # 5 % and two standard errors.
    assert max(verdicts.values()) <= comparisons * 0.08, verdicts


def test_three_sessions_that_all_flip_are_inconclusive() -> None:
    for metric in ("task", "session"):
        it = compared(runs(*["RR"] * 3), runs(*["WW"] * 3), metric=metric)
        assert (it.verdict, it.level.p, it.level.detectable) == ("INCONCLUSIVE", 0.25, None)
        assert "3 scenarios, and at least 6 must change" in table(it, "w", "1").replace("\n", " ")


@pytest.mark.parametrize("metric", ["task", "session"])
def test_six_sessions_that_all_flip_are_a_verdict(metric: str) -> None:
    good, bad = runs(*["RR"] * 6, *["WR"] * 4), runs(*["WW"] * 6, *["WR"] * 4)
    assert compared(good, bad, metric=metric).verdict == "worse"
    assert compared(bad, good, metric=metric).verdict == "better"
    assert compared(good, bad, metric=metric, alpha=0.03).verdict == "INCONCLUSIVE"
    # p is to be below alpha, not alpha itself.
    assert compared(good, bad, metric=metric, alpha=2 / 2**6).verdict == "INCONCLUSIVE"


def test_scenarios_that_all_lose_the_same_have_an_interval_for_what_so_few_do_not_show() -> None:
    # z^2 / (6 + z^2) = 39.0 % of scenarios may be otherwise: without a change, or with everything lost.
    it = compared(runs(*["RR"] * 6), runs(*["RW"] * 6))
    assert it.verdict == "worse"
    assert it.level.difference is not None
    found = it.level.difference
    assert (found.low, found.high) == pytest.approx((-0.5 - 0.3903 * 0.5, -0.5 * (1 - 0.3903)), abs=1e-4)
    assert found.largest_loss == -found.low
    gain = compared(runs(*["RW"] * 6), runs(*["RR"] * 6)).level.difference
    assert gain is not None
    assert (gain.low, gain.high) == pytest.approx((0.5 * (1 - 0.3903), 0.5 + 0.3903 * 0.5), abs=1e-4)
    assert gain.largest_loss == pytest.approx(0.3903 * 1.5 - 0.5, abs=1e-4)


@pytest.mark.parametrize("scenarios", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("worse", ["RW", "WW"])
def test_over_fewer_scenarios_than_a_verdict_takes_the_interval_holds_zero(
    scenarios: int, worse: str
) -> None:
    """Six are the least: of five, all the same way, p is 2 / 2^5."""
    for a, b in ((worse, "RR"), ("RR", worse)):
        found = compared(runs(*[a] * scenarios), runs(*[b] * scenarios)).level.difference
        assert found is not None
        assert found.interval == UNSEEN
        assert found.low <= 0 <= found.high
        assert found.low <= found.value <= found.high
        assert found.largest_loss == max(0.0, -found.low)


def test_a_single_scenario_says_no_more_than_what_it_does_not_show() -> None:
    # z^2 / (1 + z^2) = 79.3 %: in so large a share all may be lost, or gained.
    found = compared(runs("RW"), runs("RR")).level.difference
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.5 - 0.79346 * 1.5, 0.5 + 0.79346 * 0.5), abs=1e-4)


def test_a_verdict_needs_an_interval_without_zero_too() -> None:
    good, bad = runs(*["RR"] * 6), runs(*["WW"] * 6)
    for it, verdict in ((compared(good, bad), "worse"), (compared(bad, good), "better")):
        assert it.level.difference is not None
        assert it.verdict == verdict
        for low, high in ((-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)):
            wide = replace(it.level, difference=replace(it.level.difference, low=low, high=high))
            assert replace(it, levels={"task": wide}).verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("metric", ["task", "session"])
def test_the_same_outcomes_rule_out_only_as_small_a_loss_as_their_number_allows(metric: str) -> None:
    same = runs(*["RW"] * 4, *["RR"] * 6)
    it = compared(same, same, metric=metric, margin=0.25)
    assert (it.verdict, it.within_margin, it.level.p) == ("INCONCLUSIVE", False, 1.0)
    assert it.level.difference is not None
    # z^2 / (n + z^2) with ten scenarios.
    assert it.level.difference.largest_loss == pytest.approx(3.8415 / 13.8415, abs=1e-4)
    assert it.level.difference.interval == (UNSEEN if metric == "task" else TANGO)
    assert (it.level.difference.low, it.level.difference.high) == pytest.approx((-0.2775, 0.2775), abs=1e-4)
    assert compared(same, same, metric=metric, margin=0.3).within_margin
    assert not compared(same, same, metric=metric, margin=0.0).within_margin
    wider = compared(same, same, metric=metric, alpha=0.1).level.difference
    assert wider is not None
    # z at 1 - 0.1 / 2, squared.
    assert wider.largest_loss == pytest.approx(2.705543 / 12.705543, abs=1e-6)


def test_one_gain_among_few_does_not_rule_out_every_loss() -> None:
    # Resampling alone would never show a loss.
    it = compared(runs(*["RR"] * 9, "RW"), runs(*["RR"] * 10), margin=0.1)
    assert it.level.difference is not None
    assert it.level.difference.low == 0.0
    assert not it.within_margin


def test_the_rates_of_scenarios_that_agree_in_their_epochs_are_no_surer_than_their_number() -> None:
    # Twenty scenarios right in one of two epochs: as 10 of 20, with 19 degrees of freedom (2.09302).
    half = {f"s{number}": ["RR", "WW"] for number in range(20)}
    level = compared(half, half).levels["session"]
    bounds = wilson(10, 20, 2.09302)
    assert bounds is not None
    assert (level.a.low, level.a.high) == pytest.approx(bounds, abs=1e-5)
