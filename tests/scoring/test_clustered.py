from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.metrics.clustered import Clustered, clustered
from scoring.metrics.statistics import wilson

UNEVEN = [(4, 4), (0, 4), (3, 4), (1, 2), (0, 3), (4, 4), (2, 4)]

clusters = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=30
)


def sandwich(pairs: list[tuple[int, int]]) -> float:
    """The cluster-robust variance of an intercept, draw by draw: (X'X)^-1 (sum u u') (X'X)^-1 G / (G - 1)."""
    draws = [(group, 1.0 if k < right else 0.0) for group, (right, n) in enumerate(pairs) for k in range(n)]
    outcomes = np.array([outcome for _, outcome in draws])
    member = np.array([[float(group == g) for g in range(len(pairs))] for group, _ in draws])
    design = np.ones((len(draws), 1))
    bread = np.linalg.inv(design.T @ design)
    scores = member.T @ (design * (outcomes - outcomes.mean())[:, None])
    groups = len(pairs)
    return float((bread @ (scores.T @ scores) @ bread)[0, 0]) * groups / (groups - 1)


@settings(max_examples=40, deadline=None)
@given(clusters)
def test_the_standard_error_is_that_of_the_sandwich_formula(pairs: list[tuple[int, int]]) -> None:
    assert clustered(pairs).se == pytest.approx(sandwich(pairs) ** 0.5, abs=1e-12)


def test_the_standard_error_is_what_resampled_clusters_vary_by() -> None:
    pairs = UNEVEN * 20
    generator = np.random.default_rng(7)
    rows = np.array(pairs, dtype=float)[generator.integers(0, len(pairs), size=(4000, len(pairs)))].sum(
        axis=1
    )
    assert clustered(pairs).se == pytest.approx((rows[:, 0] / rows[:, 1]).std(), rel=0.05)


def test_whole_clusters_alike_are_worth_one_draw_each() -> None:
    # Every draw of a cluster says the same: four are worth one, but for the factor G / (G - 1).
    it = clustered([(4, 4), (0, 4)] * 50)
    assert it.design_effect == pytest.approx(4 * 100 / 99)
    assert (it.value, it.n, it.successes, it.clusters) == (0.5, 400, 200, 100)
    narrow = wilson(200, 400)
    assert it.low is not None and it.high is not None and narrow is not None
    # Half as many standard errors fit in.
    assert (it.high - it.low) / (narrow[1] - narrow[0]) == pytest.approx(2, rel=0.03)


def test_equal_clusters_are_not_worth_more_than_their_draws() -> None:
    it = clustered([(2, 4)] * 100)
    assert (it.se, it.design_effect) == (0.0, 1.0)
    # 99 degrees of freedom: the t quantile is 1.984.
    assert (it.low, it.high) == pytest.approx(wilson(200, 400, 1.98422), abs=1e-6)


@pytest.mark.parametrize("right", [0, 4])
def test_where_all_draws_agree_each_cluster_counts_as_one_draw(right: int) -> None:
    it = clustered([(right, 4)] * 11)
    # 10 degrees of freedom: 2.22814.
    assert (it.low, it.high) == pytest.approx(wilson(11 * right // 4, 11, 2.22814), abs=1e-5)
    assert (it.se, it.design_effect) == (0.0, 4.0)


def test_a_finer_unit_makes_no_more_draws() -> None:
    # 2 of 4 draws in each of 9 clusters, counted in sixths: 8 degrees of freedom, 2.30600.
    it = clustered([(12, 24)] * 9, draws=36)
    assert (it.low, it.high) == pytest.approx(wilson(18, 36, 2.306004), abs=1e-6)
    assert (it.n, it.successes, it.design_effect) == (216, 108, 1.0)


@settings(max_examples=40, deadline=None)
@given(clusters, st.integers(2, 50))
def test_counts_in_a_finer_unit_have_the_same_interval(pairs: list[tuple[int, int]], unit: int) -> None:
    plain, finer = (
        clustered(pairs),
        clustered([(right * unit, n * unit) for right, n in pairs], draws=sum(n for _, n in pairs)),
    )
    for name in ("value", "se", "low", "high", "clusters", "design_effect"):
        assert getattr(finer, name) == pytest.approx(getattr(plain, name)), name


@pytest.mark.parametrize("draws", [1, 5])
def test_draws_that_cannot_be_are_refused(draws: int) -> None:
    with pytest.raises(ValueError, match=f"2 clusters cannot have {draws} draws, counted as 4"):
        clustered([(1, 2), (0, 2)], draws)


def test_one_success_rules_out_no_rate_that_none_does_not_rule_out() -> None:
    none, one = clustered([(0, 4)] * 100), clustered([(1, 4)] + [(0, 4)] * 99)
    all_but_one = clustered([(3, 4)] + [(4, 4)] * 99)
    assert none.high is not None and one.low is not None
    # t^2 / (100 + t^2) with 99 degrees of freedom: 3.79 %.
    assert none.high == pytest.approx(1.98422**2 / (100 + 1.98422**2), abs=1e-6)
    assert one.high == pytest.approx(none.high)
    assert (all_but_one.low, all_but_one.high) == pytest.approx((1 - none.high, 1 - one.low))


@settings(max_examples=40, deadline=None)
@given(clusters)
def test_no_interval_rules_out_what_the_extremes_do_not(pairs: list[tuple[int, int]]) -> None:
    it = clustered(pairs)
    none, every = clustered([(0, n) for _, n in pairs]), clustered([(n, n) for _, n in pairs])
    assert it.low is not None and it.high is not None and none.high is not None and every.low is not None
    assert it.high >= none.high - 1e-12
    assert it.low <= every.low + 1e-12


def test_one_cluster_has_no_interval_and_none_has_no_rate() -> None:
    assert clustered([(3, 4)]) == Clustered(0.75, 4, 3, None, None, None, 1, None)
    assert clustered([]) == Clustered(None, 0, 0, None, None, None, 0, None)
    assert clustered([(0, 0), (3, 4)]) == clustered([(3, 4)])


@pytest.mark.parametrize("pair", [(-1, 3), (4, 3)])
def test_counts_that_cannot_be_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"{pair[0]} of {pair[1]}"):
        clustered([(1, 2), pair])


@settings(max_examples=40, deadline=None)
@given(clusters)
def test_an_interval_lies_in_the_unit_interval_and_holds_the_rate(pairs: list[tuple[int, int]]) -> None:
    it = clustered(pairs)
    assert it.value is not None and it.low is not None and it.high is not None
    assert 0 <= it.low <= it.value <= it.high <= 1
    assert it.low < it.high


def test_intervals_hold_the_true_rate_where_draws_of_a_cluster_are_alike() -> None:
    # 40 clusters of 4 with an intra-class correlation of 0.5: beta(p s, (1 - p) s), s = 1 / 0.5 - 1.
    generator, truth, rounds = np.random.default_rng(3), 0.3, 400
    held = naive = 0
    for _ in range(rounds):
        rates = generator.beta(truth, 1 - truth, 40)
        pairs = [(int(right), 4) for right in generator.binomial(4, rates)]
        it, independent = clustered(pairs), wilson(sum(right for right, _ in pairs), 160)
        assert it.low is not None and it.high is not None and independent is not None
        held += it.low <= truth <= it.high
        naive += independent[0] <= truth <= independent[1]
    assert held / rounds > 0.92
    assert naive / rounds < 0.88
