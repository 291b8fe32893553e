"""What of two runs is set beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.compared import compared, runs, side

from scoring.compare.comparison import (
    BOOTSTRAP,
    SIGN_FLIP,
    Settings,
    compare,
)
from scoring.compare.pairs import LeftOut, Side
from scoring.compare.text import table


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
