"""Task accuracy by the number of changes of kind so far, in both definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.types import LABELS, Scenario, Task
from scoring.metrics.figures import Figure
from scoring.metrics.transitions import BY_HALF, BY_KIND, DEFINITIONS, transition_figures
from scoring.types import SessionScore, TaskScore

FOUR = ("Single-Tool", "Parallel Multi-Tool", "Clarify", "Chat")
"""One label of each kind."""


def session_of(labels: Sequence[str], verdicts: Sequence[str | None]) -> SessionScore:
    tasks = tuple(Task("hello", label, None, ()) for label in labels)
    scores = tuple(TaskScore(verdict, verdict, verdict, False, 1, 1, 1) for verdict in verdicts)
    return SessionScore("s", 1, Scenario("s", "2024-01-01", (), tasks, "hash", {}), scores)


def correct(labels: Sequence[str]) -> SessionScore:
    return session_of(labels, ["correct"] * len(labels))


def sizes(sessions: Sequence[SessionScore], name: str) -> dict[str | None, int]:
    return {it.group: it.n for it in transition_figures(sessions) if it.name == name}


def test_all_sequences_of_four_kinds_have_groups_of_340_324_252_and_108_tasks() -> None:
    """By hand: four kinds change with 3/4 at each of 3 places, so of 256 Sessions the Tasks at a place with k
    changes before are 256 * C(place, k) * (3/4)^k * (1/4)^(place - k): 256+64+16+4, 192+96+36, 144+108, 108.
    """
    everything = [correct(labels) for labels in product(FOUR, repeat=4)]
    assert sizes(everything, BY_KIND) == {"0": 340, "1": 324, "2": 252, "3": 108}


def test_all_sequences_of_two_halves_have_the_published_groups_of_480_352_160_and_32_tasks() -> None:
    everything = [correct(labels) for labels in product(FOUR, repeat=4)]
    assert sizes(everything, BY_HALF) == {"0": 480, "1": 352, "2": 160, "3": 32}


def test_each_group_tells_how_many_of_its_tasks_are_correct() -> None:
    """Kinds: single, single, multi, chat, so the Tasks are in groups 0, 0, 1, 2; halves: 0, 0, 0, 1."""
    session = session_of(
        ["Single-Tool", "Single-Tool", "Mixed Multi-Tool", "Chat"], ["correct", "error", "correct", "error"]
    )
    figures = transition_figures([session])
    assert [(it.key, it.value, it.successes, it.n) for it in figures] == [
        ("accuracy_by_kind_changes[0]", 0.5, 1, 2),
        ("accuracy_by_kind_changes[1]", 1.0, 1, 1),
        ("accuracy_by_kind_changes[2]", 0.0, 0, 1),
        ("accuracy_by_kind_changes[3]", None, 0, 0),
        ("accuracy_by_half_changes[0]", 2 / 3, 2, 3),
        ("accuracy_by_half_changes[1]", 0.0, 0, 1),
        ("accuracy_by_half_changes[2]", None, 0, 0),
        ("accuracy_by_half_changes[3]", None, 0, 0),
    ]


def test_a_group_has_an_interval_over_scenarios_and_an_empty_one_has_nothing() -> None:
    """Two scenarios, one right and one wrong twice over, are worth one draw: Wilson at 1/2 with t(1) = 12.706
    is 1/2 +- t / (2 sqrt(1 + t^2)) = 1/2 +- 0.4985.
    """
    one, other = session_of(["Chat", "Chat"], ["correct"] * 2), session_of(["Chat", "Chat"], ["error"] * 2)
    other = replace(other, scenario=replace(other.scenario, id="other"))
    first, *_, last = transition_figures([one, other])
    assert (first.low, first.high) == (pytest.approx(0.0015, abs=1e-4), pytest.approx(0.9985, abs=1e-4))
    alone, *_ = transition_figures([one])
    assert (alone.value, alone.low, alone.high) == (1.0, None, None)
    assert last == Figure(BY_HALF, "3", None, 0, 0, None, None)


@pytest.mark.parametrize("label", [it for it in LABELS if "Multi-Tool" in it] + ["Multi-Tool"])
def test_all_multi_tool_labels_are_one_kind(label: str) -> None:
    session = correct(["Sequential Multi-Tool", label])
    assert sizes([session], BY_KIND) == {"0": 2, "1": 0, "2": 0, "3": 0}


def test_clarify_and_chat_are_two_kinds_of_one_half() -> None:
    session = correct(["Clarify", "Chat", "Single-Tool"])
    assert sizes([session], BY_KIND) == {"0": 1, "1": 1, "2": 1, "3": 0}
    assert sizes([session], BY_HALF) == {"0": 2, "1": 1, "2": 0, "3": 0}


def test_a_change_back_is_a_change() -> None:
    session = correct(["Chat", "Single-Tool", "Chat", "Single-Tool"])
    assert sizes([session], BY_HALF) == {"0": 1, "1": 1, "2": 1, "3": 1}


def test_a_task_that_was_not_scored_is_left_out_but_is_still_a_place_in_the_sequence() -> None:
    """The unscored chat in between makes two changes of what would be none."""
    session = session_of(["Single-Tool", "Chat", "Single-Tool"], ["correct", None, "correct"])
    assert sizes([session], BY_KIND) == {"0": 1, "1": 0, "2": 1, "3": 0}


def test_tasks_that_were_never_reached_are_in_no_group() -> None:
    session = session_of(["Single-Tool", "Chat"], ["correct"])
    assert sizes([session], BY_KIND) == {"0": 1, "1": 0, "2": 0, "3": 0}


def test_a_longer_session_has_more_groups_in_the_order_of_numbers() -> None:
    session = correct(["Chat", "Single-Tool"] * 6)
    assert list(sizes([session], BY_KIND)) == [str(group) for group in range(12)]


def test_both_definitions_warn_that_position_is_confounded() -> None:
    assert list(DEFINITIONS) == [BY_KIND, BY_HALF]
    assert all("Position is confounded" in it.text and "first Task" in it.text for it in DEFINITIONS.values())


TASKS = st.tuples(st.sampled_from(LABELS), st.sampled_from(["correct", "error", None]))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(TASKS, max_size=6), max_size=3))
def test_every_scored_task_is_in_one_group_of_each_figure_and_changes_of_half_are_the_fewer(
    drawn: list[list[tuple[str, str | None]]],
) -> None:
    sessions = [session_of([label for label, _ in it], [verdict for _, verdict in it]) for it in drawn]
    scored = [verdict for it in drawn for _, verdict in it if verdict is not None]
    figures = transition_figures(sessions)
    weighted = {}
    for name in (BY_KIND, BY_HALF):
        own = [it for it in figures if it.name == name]
        assert sum(it.n for it in own) == len(scored)
        assert sum(it.successes or 0 for it in own) == scored.count("correct")
        weighted[name] = sum(int(it.group or 0) * it.n for it in own)
    assert weighted[BY_HALF] <= weighted[BY_KIND]
