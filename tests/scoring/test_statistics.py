from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.statistics import wilson

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
