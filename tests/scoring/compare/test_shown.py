"""A comparison as it is told: table, Markdown, document."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compared import compared, runs, side

from scenarios.text import visible, width
from scoring.compare.comparison import (
    Rate,
    Settings,
    compare,
)
from scoring.compare.document import document
from scoring.compare.markdown import escaped, markdown
from scoring.compare.pairs import Outcome
from scoring.compare.text import COLUMNS, table
from scoring.output.json_text import json_bytes


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


@pytest.mark.parametrize("metric", ["task", "session"])
def test_a_loss_that_the_verdict_rules_out_is_not_told_as_one_that_is_not(metric: str) -> None:
    good, bad = runs(*["RR"] * 6), runs(*["RW"] * 6)
    better, worse = compared(bad, good, metric=metric), compared(good, bad, metric=metric)
    for write in (table, markdown):
        assert "Largest loss" not in write(better, "w", "1")
        assert "Largest loss that is not ruled out" in write(worse, "w", "1")
    assert document(better, "w", "1")["levels"]["task"]["difference"]["largest_loss"] > 0


def test_a_loss_beyond_the_interval_says_what_it_counts() -> None:
    # Nothing was lost in ten scenarios, and z^2 / (10 + z^2) = 27.8 % of them may be otherwise.
    text = table(compared(runs(*["RR"] * 9, "RW"), runs(*["RR"] * 10)), "w", "1")
    loss = 100 * (0.277535 * 1.05 - 0.05)
    assert f"not ruled out: {loss:.1f} points, counting what 10 scenarios need not show." in text


@pytest.mark.parametrize("columns", [50, 80])
def test_all_but_the_rates_is_as_narrow_as_the_terminal(columns: int) -> None:
    long = "word " * 30
    a, b = runs(*["RR"] * 8), runs(*["WR"] * 8)
    it = compare(side(a, model=long), side(b, model=long * 2, reason=long), Settings())
    lines = table(it, "w", "1", columns).splitlines()
    rates = next(n for n, line in enumerate(lines) if line.split()[:2] == ["A", "%"])
    assert max(map(width, lines[:rates] + lines[rates + 3 :])) <= columns


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
