from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.text import visible, width
from scenarios.types import CLOSE, Node, Scenario, Task
from scoring.compare.comparison import (
    BOOTSTRAP,
    MCNEMAR,
    SIGN_FLIP,
    TANGO,
    UNSEEN,
    Comparison,
    Rate,
    Settings,
    compare,
)
from scoring.compare.document import document
from scoring.compare.markdown import escaped, markdown
from scoring.compare.pairs import LeftOut, Outcome, Side
from scoring.compare.resampling import CELLS, bootstrap, sign_flip
from scoring.compare.text import COLUMNS, table
from scoring.metrics.statistics import detectable_difference, mcnemar, paired_difference, wilson
from scoring.output.json_text import json_bytes
from scoring.types import SessionScore, TaskScore

TASK = Task("hello", "Chat", None, (Node(CLOSE, {}, "bye"),))
LABELS = {"R": "correct", "W": "error", "-": None}


def side(
    outcomes: dict[str, list[str]],
    *,
    reason: str = "no call",
    digest: str = "hash",
    model: str = "m-1",
    **config: Any,
) -> Side:
    """A Run: scenario -> a word for each epoch, a letter for each Task: right, wrong, `-` not scored."""
    scores = {
        letter: TaskScore(label, label, label, False, 1, 1, 1, None if letter == "R" else reason)
        for letter, label in LABELS.items()
    }
    sessions: list[SessionScore] = []
    for name, epochs in outcomes.items():
        for epoch, tasks in enumerate(epochs, start=1):
            scenario = Scenario(name, "2024-01-01", (), (TASK,) * len(tasks), digest, {})
            verdicts = tuple(scores[it] for it in tasks)
            sessions.append(SessionScore(f"{name}.e{epoch}", epoch, scenario, verdicts))
    return Side("run.db", "r1", model, config, tuple(sessions))


def runs(*outcomes: str) -> dict[str, list[str]]:
    """One epoch of s0, s1, ..."""
    return {f"s{number}": [tasks] for number, tasks in enumerate(outcomes)}


def compared(a: dict[str, list[str]], b: dict[str, list[str]], **asked: Any) -> Comparison:
    return compare(side(a), side(b), Settings(**asked))


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


def test_epochs_of_which_more_was_scored_are_matched_first() -> None:
    it = compared({"s0": ["RR", "-W", "W-"]}, {"s0": ["RR", "RR", "-R"]})
    # RR with RR, -W with RR; W- with -R leaves nothing.
    assert [[(of.a.scored, of.a.right) for of in pairs] for pairs in it.paired.tasks] == [[(1, 1), (2, 1)]]


def test_tasks_are_flipped_and_resampled_by_scenario() -> None:
    # Ten scenarios in which B loses all four tasks, and two in which it gains two.
    a, b = runs(*["RRRR"] * 10, *["WWRR"] * 2), runs(*["WWWW"] * 10, *["RRRR"] * 2)
    level = compared(a, b).levels["task"]
    assert (level.n, level.scenarios, level.lost, level.gained, level.test) == (48, 12, 40, 4, SIGN_FLIP)
    assert level.difference is not None
    assert (level.difference.value, level.difference.interval) == (-36 / 48, BOOTSTRAP)
    # |sum| >= 36 of ten fours and two twos: 40 +- 4 and 40 - 0 (4 ways), 32 + 4 (10 ways); both signs.
    assert level.p == pytest.approx(2 * (4 + 10) / 2**12)


def test_several_epochs_count_as_their_mean_and_are_not_pairs_of_their_own() -> None:
    a = {f"s{number}": ["RR", "RR", "RR", "RR"] for number in range(4)}
    b = {f"s{number}": ["WW", "WW"] for number in range(4)}
    session = compared(a, b).levels["session"]
    assert (session.n, session.test, session.p) == (4, SIGN_FLIP, 2 / 2**4)
    assert (session.a.value, session.a.successes, session.b.value) == (1.0, None, 0.0)
    a |= {"s0": ["RW", "RR", "RW"]}
    task = compared(a, b).levels["task"]
    assert task.difference is not None
    # B has two epochs, so two of A count.
    assert task.difference.value == -(7 + 1 / 2) / 8
    assert task.a.value == (7 + 1 / 2) / 8


def test_of_a_scenario_only_as_many_epochs_count_as_both_sides_have_scored() -> None:
    a = {"s0": ["W", "R", "R", "R"], "s1": ["-", "W", "R", "W"], "s2": ["R", "W"]}
    it = compared(a, {"s0": ["R"], "s1": ["R", "-", "W"], "s2": ["R", "R"]})
    counts = [((of.a.right, of.a.scored), (of.b.right, of.b.scored)) for [of] in it.paired.tasks]
    # The first that were scored: one of s0; of s1 the second and third of A; both of s2.
    assert counts == [((0, 1), (1, 1)), ((1, 2), (1, 2)), ((1, 2), (2, 2))]
    assert [(of.a.right, of.b.right) for of in it.paired.sessions] == [(0, 1), (1, 1), (1, 2)]
    for level in it.levels.values():
        assert level.left_out == LeftOut(a=0, b=0, either=0, epochs_a=4, epochs_b=0)
    # An epoch of which nothing was scored is none of the first.
    [[found]] = compared({"s0": ["-", "W"]}, {"s0": ["R"]}).paired.tasks
    assert (found.a.right, found.b.right) == (0, 1)


def test_a_scenario_of_which_one_side_scored_nothing_is_left_out() -> None:
    for a, b, left in (("--", "RR", LeftOut(2, 0, 2)), ("RR", "--", LeftOut(0, 2, 2))):
        level = compared(runs(a), runs(b)).levels["task"]
        assert (level.n, level.left_out) == (0, left)


def test_epochs_count_by_their_numbers_not_in_the_order_of_the_log() -> None:
    a = side({"s0": ["R", "W", "W"]})
    backwards = replace(a, sessions=a.sessions[::-1])
    [[found]] = compare(backwards, side({"s0": ["W"]}), Settings()).paired.tasks
    assert (found.a.right, found.a.scored) == (1, 1)


def test_of_two_epochs_that_are_matched_only_the_tasks_count_that_both_scored() -> None:
    it = compared({"s0": ["R-", "RW", "RR"]}, {"s0": ["WR", "W-"]})
    # RW with WR, and R- with W-: the third epoch of A is one too many.
    [[first, second]] = it.paired.tasks
    assert ((first.a.right, first.a.scored), (first.b.right, first.b.scored)) == ((2, 2), (0, 2))
    assert ((second.a.right, second.a.scored), (second.b.right, second.b.scored)) == ((0, 1), (1, 1))
    assert it.levels["task"].left_out == LeftOut(a=0, b=0, either=0, epochs_a=2, epochs_b=0)
    assert it.levels["session"].left_out == LeftOut(a=0, b=0, either=0, epochs_a=1, epochs_b=0)


def test_a_task_that_is_scored_in_none_of_the_epochs_that_count_is_left_out() -> None:
    level = compared({"s0": ["R-", "RR"]}, {"s0": ["RR"]}).levels["task"]
    assert (level.n, level.left_out) == (1, LeftOut(a=1, b=0, either=1, epochs_a=1, epochs_b=0))


def test_epochs_that_are_left_out_are_counted_in_every_format() -> None:
    it = compared({"s0": ["RR"] * 3, "s1": ["RR"] * 2}, {"s0": ["RR"], "s1": ["RR"] * 4})
    for metric, told in (("task", "4 in A, 4 in B"), ("session", "2 in A, 2 in B")):
        said = f"{metric.capitalize()} epochs left out so that both sides have as many: {told}."
        assert said in table(it, "w", "1").splitlines()
        assert f"- {said}" in markdown(it, "w", "1").splitlines()
    assert document(it, "w", "1")["levels"]["task"]["left_out"] == {
        "a": 0,
        "b": 0,
        "either": 0,
        "epochs_a": 4,
        "epochs_b": 4,
    }
    assert "epochs left out" not in table(compared(runs("RR"), runs("RR")), "w", "1")


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


def test_only_what_both_scored_is_paired_and_the_rest_is_counted() -> None:
    a = runs("RR", "R-", "RW") | {"only-a": ["R"]}
    b = runs("R-", "R-", "RR") | {"only-b": ["R"]}
    it = compared(a, b)
    task, session = it.levels["task"], it.levels["session"]
    assert (task.n, task.left_out) == (4, LeftOut(a=1, b=2, either=2))
    assert (session.n, session.left_out) == (1, LeftOut(a=1, b=2, either=2))
    assert (it.paired.only_a, it.paired.only_b, it.paired.scenarios) == (("only-a",), ("only-b",), 3)
    assert [(flip.scenario, flip.task) for flip in it.flips] == [("s2", 2)]


def test_a_task_that_a_session_has_no_verdict_on_is_left_out() -> None:
    whole = side({"s0": ["RR"]})
    [session] = whole.sessions
    cut = replace(whole, sessions=(replace(session, tasks=session.tasks[:1]),))
    level = compare(cut, whole, Settings()).levels["task"]
    assert (level.n, level.left_out) == (1, LeftOut(a=1, b=0, either=1))


def test_a_scenario_with_other_content_is_left_out_by_name() -> None:
    a, changed = side(runs("RR", "RR")), side({"s0": ["WW"]}, digest="other")
    b = Side("b.db", "r2", None, {}, (*changed.sessions, *side({"s1": ["RR"]}).sessions))
    it = compare(a, b, Settings())
    assert (it.paired.changed, it.paired.only_a, it.paired.only_b) == (("s0",), (), ())
    assert (it.levels["task"].n, it.flips) == (2, [])
    assert "the content under this id differs: 1 scenario (s0)." in table(it, "w", "1")


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


def test_the_noise_floor_is_told_where_there_are_epochs() -> None:
    a, b = side({"s0": ["RR", "RW"], "s1": ["RR", "RR"]}), side({"s0": ["RR"], "s1": ["RR"]})
    it = compare(a, b, Settings())
    assert it.noise_a is not None
    assert (it.noise_a.value, it.noise_a.n, it.noise_b) == (0.25, 4, None)
    assert "Noise floor, the tasks that flip between epochs of one run: A 25.0 % (1/4)." in table(
        it, "w", "1"
    )


def test_runs_of_different_modes_are_compared_under_a_banner() -> None:
    it = compare(side(runs("RR"), history="gold"), side(runs("RW"), history="live"), Settings())
    assert it.why_not_comparable == (
        "A has gold history and stops at a wrong step, B has live history and goes on after a wrong step"
    )
    first, *_ = table(it, "w", "1").splitlines()
    assert first.startswith("Not comparable: A has gold history")
    assert "> **Not comparable: A has gold history" in markdown(it, "w", "1")
    assert document(it, "w", "1")["comparable"] is False
    stops = side(runs("RW"), history="live", on_mismatch="stop")
    assert compare(side(runs("RR"), history="live"), stops, Settings()).why_not_comparable is not None
    tools = side(runs("RW"), tools="relay"), side(runs("RW"), tools="mcp")
    assert compare(*tools, Settings()).why_not_comparable is None


def test_configurations_are_told_where_they_differ() -> None:
    a = side(runs("RR"), history="gold", temperature=0, only=None)
    b = side(runs("RR"), history="gold", temperature=1, seed=[3])
    assert compare(a, b, Settings()).differing == (("seed", None, [3]), ("temperature", 0, 1))


def test_the_document_tells_everything_and_is_the_same_every_time() -> None:
    a, b = runs(*["RR"] * 6, "RW", "R-"), runs(*["RW"] * 6, "RR", "RR")
    first, second = (document(compared(a, b, seed=3), "w", "1") for _ in range(2))
    assert json_bytes(first) == json_bytes(second)
    assert first["verdict"] == "INCONCLUSIVE"
    assert first["levels"]["task"]["difference"]["value"] == -5 / 15
    assert first["levels"]["session"]["p"] == 2 * 8 / 2**7
    assert [(it["scenario"], it["task"], it["change"]) for it in first["flips"]] == [
        *((f"s{number}", 2, "lost") for number in range(6)),
        ("s6", 2, "gained"),
    ]
    assert first["flips"][0]["a"] == {"right": 1, "scored": 1, "reason": None}
    assert first["flips"][0]["b"] == {"right": 0, "scored": 1, "reason": "no call"}
    assert first["session_flips"][0]["b"]["reason"] == "task 2: no call"


def test_every_member_of_the_document() -> None:
    a = side({"s0": ["RR", "RW"], "s1": ["RW"], "mine": ["R"]}, model="m-1", seed=1)
    b = replace(side({"s0": ["WR"], "s1": ["RR"], "yours": ["R"]}, seed=2), log="b.db", run="r2", model=None)
    changed = side({"s2": ["R"]}, digest="one").sessions, side({"s2": ["R"]}, digest="other").sessions
    a, b = (replace(it, sessions=it.sessions + more) for it, more in zip((a, b), changed, strict=True))
    it = compare(a, b, Settings(margin=0.1, seed=4))
    lost, gained = (
        {
            "scenario": "s0",
            "change": "lost",
            "a": asdict(Outcome(1, 1)),
            "b": asdict(Outcome(0, 1, "no call")),
        },
        {
            "scenario": "s1",
            "change": "gained",
            "a": asdict(Outcome(0, 1, "no call")),
            "b": asdict(Outcome(1, 1)),
        },
    )
    task_of = {"lost": "task 1: no call", "gained": "task 2: no call"}
    session_flips = [
        lost | {"b": asdict(Outcome(0, 1, task_of["lost"]))},
        gained | {"a": asdict(Outcome(0, 1, task_of["gained"]))},
    ]
    assert it.noise_a is not None
    assert document(it, "w", "1") == {
        "metric": "task",
        "alpha": 0.05,
        "margin": 0.1,
        "seed": 4,
        "resamples": 10_000,
        "scorer": {"name": "w", "version": "1"},
        "a": {"log": "run.db", "run": "r1", "model": "m-1", "config": {"seed": 1}},
        "b": {"log": "b.db", "run": "r2", "model": None, "config": {"seed": 2}},
        "comparable": True,
        "why_not_comparable": None,
        "config_differences": [{"key": "seed", "a": 1, "b": 2}],
        "verdict": "INCONCLUSIVE",
        "not_worse_by_more_than_the_margin": False,
        "scenarios": {"paired": 2, "only_in_a": ["mine"], "only_in_b": ["yours"], "changed": ["s2"]},
        "levels": {metric: asdict(level) for metric, level in it.levels.items()},
        "noise_floor": {"a": asdict(it.noise_a), "b": None},
        "flips": [lost | {"task": 1}, gained | {"task": 2}],
        "session_flips": session_flips,
    }
    backwards = document(compare(b, a, Settings()), "w", "1")
    assert backwards["noise_floor"] == {"a": None, "b": asdict(it.noise_a)}


def test_nothing_in_common_has_no_figures() -> None:
    it = compared(runs("RR"), {"other": ["RR"]})
    assert (it.verdict, it.within_margin, it.level.difference, it.level.p) == (
        "INCONCLUSIVE",
        False,
        None,
        None,
    )
    assert it.level.a == Rate(None, 0, 0, None, None)
    assert "INCONCLUSIVE on task accuracy: nothing is paired." in table(it, "w", "1")


def test_the_verdict_says_what_it_rests_on() -> None:
    text = " ".join(table(compared(runs(*["RR"] * 8), runs(*["WR"] * 8)), "w", "1").split())
    assert "B is worse on task accuracy: -50.0 points." in text
    assert "It rests on p = 0.0078 (exact sign-flip permutation test over 8 scenarios, alpha 0.05)" in text
    assert "whether the intervals of the two rates overlap says nothing." in text
    assert "Detectable with 80 % power:" in text


def test_wide_characters_take_two_columns_of_the_table() -> None:
    long = "長い名前" * 30
    a, b = side({long: ["RR"]}, model=long, key=long), side({long: ["WR"]}, reason=long)
    lines = table(compare(a, b, Settings()), "w", "1").splitlines()
    assert max(map(width, lines)) <= COLUMNS
    assert sum("長い" in line for line in lines) >= 3


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("step 0: text where a call was due", "step 1: text where a call was due"),
        ("step 9: no reply, see step 9: x", "step 10: no reply, see step 9: x"),
        ("after step 0: x", "after step 0: x"),
    ],
)
def test_steps_count_from_one_in_the_reason_that_is_shown(reason: str, told: str) -> None:
    it = compare(side(runs("RR")), side(runs("WR"), reason=reason), Settings())
    assert table(it, "w", "1").splitlines()[-1] == f"  s0/1          right  wrong  {told}"
    assert f"| {escaped(told)} |" in markdown(it, "w", "1")
    assert document(it, "w", "1")["flips"][0]["b"]["reason"] == reason


def test_the_rates_of_scenarios_that_agree_in_their_epochs_are_no_surer_than_their_number() -> None:
    # Twenty scenarios right in one of two epochs: as 10 of 20, with 19 degrees of freedom (2.09302).
    half = {f"s{number}": ["RR", "WW"] for number in range(20)}
    level = compared(half, half).levels["session"]
    bounds = wilson(10, 20, 2.09302)
    assert bounds is not None
    assert (level.a.low, level.a.high) == pytest.approx(bounds, abs=1e-5)


def test_a_lost_task_is_told_with_the_reason_of_b() -> None:
    it = compare(side(runs("RR", "WR"), reason="of a"), side(runs("WR", "RR"), reason="of b"), Settings())
    rows = [line.split(maxsplit=3) for line in table(it, "w", "1").splitlines() if line.startswith("  s")]
    assert rows == [["s0/1", "right", "wrong", "of b"], ["s1/1", "wrong", "right", "of a"]]


foreign = st.text(min_size=1, max_size=120)


@settings(max_examples=12, deadline=None)
@given(name=foreign, reason=foreign, model=foreign, value=foreign)
def test_no_text_of_others_breaks_the_table(name: str, reason: str, model: str, value: str) -> None:
    a = side({name: ["RR"], name + "2": ["R"]}, model=model, key=value)
    it = compare(a, side({name: ["WR"]}, reason=reason), Settings())
    text = table(it, "w", "1")
    assert max(map(width, text.splitlines())) <= COLUMNS
    assert visible(text, keep="\n") == text
    rows = [line for line in markdown(it, "w", "1").split("\n") if line.startswith("|")]
    assert {line.count("|") for line in rows} == {4, 5, 11}


def test_texts_of_others_are_no_markup_in_a_pull_request() -> None:
    reason = "a|b `c` <script>x</script> @team #1 **x** [y](http://z)"
    written = markdown(compare(side(runs("RR")), side(runs("WR"), reason=reason), Settings()), "w", "1")
    assert not set("`@[]") & set(written)
    assert "<script>" not in written
    assert "http://" not in written
    assert escaped("a|b <c> d`e") == "a&#124;b &#60;c&#62; d&#96;e"


def test_only_the_first_flips_are_shown_and_the_others_counted() -> None:
    it = compared(runs(*["RR"] * 15), runs(*["WW"] * 15))
    assert "  and 10 others: --format json has them all" in table(it, "w", "1").splitlines()
    assert "and 10 others" in markdown(it, "w", "1").splitlines()
    assert len(document(it, "w", "1")["flips"]) == 30
