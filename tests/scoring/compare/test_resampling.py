"""The permutation test and the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.compare.resampling import CELLS, bootstrap, sign_flip
from scoring.metrics.statistics import mcnemar

differences = st.lists(st.integers(-5, 5), max_size=9)


@settings(max_examples=40, deadline=None)
@given(differences)
def test_the_permutation_test_counts_every_choice_of_signs(found: list[int]) -> None:
    signed = [sum(map(int.__mul__, signs, found)) for signs in product((1, -1), repeat=len(found))]
    reached = sum(abs(it) >= abs(sum(found)) for it in signed)
    assert sign_flip(found) == reached / 2 ** len(found)


@pytest.mark.parametrize(("lost", "gained"), [(0, 6), (1, 9), (10, 2), (40, 30)])
def test_equal_differences_make_the_permutation_test_mcnemars(lost: int, gained: int) -> None:
    assert sign_flip([-1] * lost + [1] * gained + [0] * 5) == pytest.approx(mcnemar(lost, gained))


def test_differences_too_large_to_count_to_the_unit_have_a_p_just_above_the_exact_one() -> None:
    found = [int(it) for it in np.random.default_rng(1).integers(-(10**9), 2 * 10**9, size=14)]
    assert sum(map(abs, found)) > CELLS
    sums = np.abs(np.array(list(product((1, -1), repeat=14))) @ np.array(found))
    exact = float((sums >= abs(sum(found))).mean())
    assert exact <= sign_flip(found) <= exact + 0.001


def test_sums_that_tie_still_tie_where_they_are_rounded() -> None:
    found = [2, -1, 4, -9, 2, 7, 5, 4]
    large = [it * 1_000_003 for it in found]
    assert sum(map(abs, large)) > CELLS
    assert sign_flip(large) == sign_flip(found) == 0.375


def test_where_sizes_are_rounded_the_p_is_not_below_the_exact_one() -> None:
    # However the signs fall, the sum is at least as far from 0 as the one found.
    assert sign_flip([10**9] + [-1] * 20) == 1.0
    # Nine of one size, all alike: two of 2^9. A ninth of the cells is 116508.44.
    assert sign_flip([10**9] * 9) == 2 / 2**9


def test_the_bootstrap_depends_on_the_seed_alone() -> None:
    clusters = [(it, 4) for it in (3, -1, 0, 2, 1, 0, -2, 4)]
    first = bootstrap(clusters, alpha=0.05, seed=1, resamples=100)
    assert first == bootstrap(clusters, alpha=0.05, seed=1, resamples=100)
    assert first != bootstrap(clusters, alpha=0.05, seed=2, resamples=100)


def between(ascending: Sequence[Fraction], place: Fraction) -> float:
    """Linear between the values beside a place, which counts from 0."""
    low = ascending[int(place)]
    high = ascending[min(int(place) + 1, len(ascending) - 1)]
    return float(low + (place % 1) * (high - low))


@pytest.mark.parametrize("unit", [1, 10**17 + 3, 10**19 + 3])
@pytest.mark.parametrize("resamples", [1, 3, 41, 42])
def test_the_bootstrap_rests_on_whole_numbers_alone_so_that_no_version_changes_it(
    unit: int, resamples: int
) -> None:
    clusters = [(it * unit, 3 * size * unit) for it, size in ((3, 1), (-1, 2), (0, 1), (2, 4), (1, 1))]
    raw = np.random.PCG64(7)
    found = []
    for _ in range(resamples):
        drawn = [clusters[(int(raw.random_raw()) >> 32) * 5 >> 32] for _ in range(5)]
        found.append(Fraction(sum(it for it, _ in drawn), sum(of for _, of in drawn)))
    found.sort()
    bounds = tuple(between(found, Fraction(share, 10) * (resamples - 1)) for share in (1, 9))
    told = bootstrap(clusters, alpha=0.2, seed=7, resamples=resamples)
    assert told == pytest.approx(bounds, rel=1e-12)
    # The 5th and the 37th of 41 values lie between no others: to the last digit.
    assert resamples != 41 or told == bounds


def test_the_bootstrap_of_more_draws_than_are_held_at_once_is_that_of_all() -> None:
    clusters = [(it % 7 - 3, 2) for it in range(3000)]
    assert 400 * len(clusters) > 1 << 20
    drawn = (np.random.PCG64(7).random_raw(400 * 3000) >> np.uint64(32)) * np.uint64(3000) >> np.uint64(32)
    means = (drawn.astype(int) % 7 - 3).reshape(400, 3000).sum(axis=1) / 6000
    expected = tuple(np.quantile(means, (0.05, 0.95)))
    assert bootstrap(clusters, alpha=0.1, seed=7, resamples=400) == pytest.approx(expected, rel=1e-12)


def test_the_bootstrap_resamples_whole_clusters() -> None:
    # The mean of 200 clusters of two draws of +-1 that agree: sd 1 / sqrt(200), not 1 / sqrt(400).
    low, high = bootstrap([(2, 2), (-2, 2)] * 100, alpha=0.05, seed=0)
    assert high - low == pytest.approx(2 * 1.96 / 200**0.5, rel=0.05)
