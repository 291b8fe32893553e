from __future__ import annotations

from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.metrics.statistics import (
    Z95,
    detectable_difference,
    detectable_mean,
    least_changes,
    mcnemar,
    paired_difference,
    t_quantile,
    unseen_share,
    wilson,
)

proportions = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_it_gives_the_intervals_that_newcombe_published(
    successes: int, n: int, low: float, high: float
) -> None:
    # R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, Table I, method 3.
    interval = wilson(successes, n)
    assert interval is not None
    assert (round(interval[0], 4), round(interval[1], 4)) == (low, high)


def test_the_best_published_session_accuracy_is_uncertain_by_four_points_each_way() -> None:
    interval = wilson(37, 256)
    assert interval is not None
    assert [round(100 * bound, 1) for bound in interval] == [10.7, 19.3]


def test_no_data_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, -1), (1, 0)])
def test_counts_that_cannot_be_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{successes} of {n}"):
        wilson(successes, n)


@given(proportions)
def test_an_interval_lies_in_the_unit_interval_and_holds_the_proportion(counts: tuple[int, int]) -> None:
    successes, n = counts
    interval = wilson(successes, n)
    assert interval is not None
    low, high = interval
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high


@given(proportions)
def test_failures_have_the_mirrored_interval(counts: tuple[int, int]) -> None:
    successes, n = counts
    interval, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert interval is not None
    assert mirrored is not None
    assert interval == pytest.approx((1 - mirrored[1], 1 - mirrored[0]), abs=1e-12)


@given(proportions, st.integers(2, 10))
def test_more_data_of_the_same_rate_narrows_the_interval(counts: tuple[int, int], factor: int) -> None:
    successes, n = counts
    interval, narrower = wilson(successes, n), wilson(successes * factor, n * factor)
    assert interval is not None
    assert narrower is not None
    assert narrower[1] - narrower[0] < interval[1] - interval[0]


def test_the_bounds_are_the_proportions_that_the_data_lie_z_errors_away_from() -> None:
    # Wilson's definition: |p - bound| = z * sqrt(bound * (1 - bound) / n).
    z = 2.5
    interval = wilson(7, 40, z)
    assert interval is not None
    for bound in interval:
        assert abs(7 / 40 - bound) == pytest.approx(z * (bound * (1 - bound) / 40) ** 0.5)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        (0, 0, 1.0),
        (3, 0, 2 / 8),
        (0, 5, 2 / 32),
        (0, 6, 2 / 64),
        # 2 (C(10, 0) + C(10, 1)) / 2^10
        (1, 9, 22 / 1024),
        # 2 (1 + 12 + 66) / 2^12
        (10, 2, 158 / 4096),
        (5, 5, 1.0),
    ],
)
def test_mcnemar_is_twice_the_binomial_tail_of_the_rarer_change(lost: int, gained: int, p: float) -> None:
    assert mcnemar(lost, gained) == p


@pytest.mark.parametrize(("alpha", "least"), [(0.05, 6), (0.1, 5), (0.01, 8), (0.5, 3)])
def test_so_many_pairs_must_change_before_any_p_is_small(alpha: float, least: int) -> None:
    # 2 / 2^n < alpha
    assert least_changes(alpha) == least


@pytest.mark.parametrize(("probability", "degrees", "quantile"), [(0.975, 1, 12.706), (0.975, 10, 2.228)])
def test_quantiles_of_t_are_those_of_the_tables(probability: float, degrees: int, quantile: float) -> None:
    assert round(t_quantile(probability, degrees), 3) == quantile


def test_the_interval_of_a_paired_difference_is_the_published_one() -> None:
    # M. W. Fagerland, S. Lydersen, P. Laake, BMC Med. Res. Methodol. 13 (2013) 91: airway
    # hyper-responsiveness, 1 and 7 discordant of 21 pairs, Tango's interval.
    low, high = paired_difference(7, 1, 21)
    assert (round(low, 3), round(high, 3)) == (-0.517, -0.026)


@pytest.mark.parametrize("n", [1, 3, 256])
def test_pairs_without_a_change_bound_a_difference_as_no_success_bounds_a_rate(n: int) -> None:
    bound = Z95**2 / (n + Z95**2)
    assert paired_difference(0, 0, n) == pytest.approx((-bound, bound))
    assert unseen_share(n) == pytest.approx(bound)
    assert wilson(0, n) == pytest.approx((0.0, bound))


@pytest.mark.parametrize(("gained", "n", "z"), [(2, 4, 1.0), (2, 5, 1.0), (1, 2, Z95), (6, 10, Z95)])
def test_where_nothing_is_lost_the_bounds_of_a_difference_have_a_closed_form(
    gained: int, n: int, z: float
) -> None:
    """The rate of losses is 0 or what makes the difference: n delta - gained is z^2 times -1 - delta, or as
    in Wilson's interval."""
    bounds = wilson(gained, n, z)
    assert bounds is not None
    expected = ((gained - z * z) / (n + z * z), bounds[1])
    assert paired_difference(0, gained, n, z) == pytest.approx(expected)


changes = st.integers(1, 400).flatmap(
    lambda n: st.integers(0, n).flatmap(
        lambda lost: st.tuples(st.just(lost), st.integers(0, n - lost), st.just(n))
    )
)


@settings(max_examples=40)
@given(changes)
def test_a_paired_difference_lies_in_its_interval_which_mirrors_when_the_sides_swap(
    counts: tuple[int, int, int],
) -> None:
    lost, gained, n = counts
    low, high = paired_difference(lost, gained, n)
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    assert low < high
    swapped_low, swapped_high = paired_difference(gained, lost, n)
    assert (low, high) == pytest.approx((-swapped_high, -swapped_low), abs=1e-9)


@settings(max_examples=40)
@given(changes)
def test_the_interval_leaves_out_zero_where_the_uncorrected_test_rejects(
    counts: tuple[int, int, int],
) -> None:
    lost, gained, n = counts
    statistic = (gained - lost) / max(1, lost + gained) ** 0.5
    if abs(abs(statistic) - Z95) > 1e-6:
        low, high = paired_difference(lost, gained, n)
        assert (low > 0 or high < 0) == (abs(statistic) > Z95)


def power_of_mcnemar(n: int, discordance: float, difference: float) -> float:
    """Of the uncorrected test at 5 %: over all numbers of discordant pairs, and of gains among them."""
    gain = (discordance + difference) / (2 * discordance)
    found = 0.0
    for m in range(1, n + 1):
        some = comb(n, m) * discordance**m * (1 - discordance) ** (n - m)
        found += some * sum(
            comb(m, k) * gain**k * (1 - gain) ** (m - k)
            for k in range(m + 1)
            if abs(2 * k - m) / m**0.5 > Z95
        )
    return found


@pytest.mark.parametrize(("n", "discordance"), [(150, 0.2), (150, 0.4), (250, 0.3)])
def test_a_detectable_difference_is_detected_in_four_of_five_cases(n: int, discordance: float) -> None:
    difference = detectable_difference(n, discordance, 0.05)
    assert difference is not None
    assert power_of_mcnemar(n, discordance, difference) == pytest.approx(0.8, abs=0.03)
    # Connor's equation for n, with the quantiles at 97.5 % and 80 %.
    rooted = Z95 * discordance**0.5 + 0.8416212 * (discordance - difference**2) ** 0.5
    assert (rooted / difference) ** 2 == pytest.approx(n, rel=1e-6)


def test_with_few_changes_so_far_a_detectable_difference_is_one_in_which_all_change_the_same_way() -> None:
    for n in (6, 100):
        difference = detectable_difference(n, 0.0, 0.05)
        assert difference is not None
        # Six changes of one kind are the fewest with an exact p below 5 %.
        missed = sum(comb(n, k) * difference**k * (1 - difference) ** (n - k) for k in range(6))
        assert 1 - missed == pytest.approx(0.8)


def test_no_difference_is_detectable_with_fewer_pairs_than_must_change() -> None:
    assert [detectable_difference(n, 1.0, 0.05) is None for n in (1, 3, 5, 12)] == [True, True, True, False]
    assert [detectable_mean(n, 0.05, 0.05) is None for n in (1, 3, 5, 12)] == [True, True, True, False]


def test_a_detectable_mean_is_that_many_standard_errors() -> None:
    # Tables of t with 30 degrees of freedom: 2.0423 at 97.5 %, 0.8538 at 80 %.
    assert detectable_mean(31, 0.02, 0.05) == pytest.approx((2.0423 + 0.8538) * 0.02, abs=1e-5)
    assert detectable_mean(31, 0.5, 0.05) is None
    # As few as can be: 5 degrees of freedom.
    assert detectable_mean(6, 0.05, 0.05) == pytest.approx((2.570582 + 0.919544) * 0.05, abs=1e-6)
