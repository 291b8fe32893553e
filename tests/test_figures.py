"""Every figure that a command prints is defined, and everything that is defined is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import printed_in

from scoring.compare import definitions as compare_definitions
from scoring.leaderboard import board as leaderboard
from scoring.metrics.definitions import DEFINITIONS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
PRICES = {"currency": "EUR", "models": {"*": {"input": 1, "output": 2}}}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of two epochs: one with gold history, one with live, a few Tasks wrong in each."""
    folder = tmp_path_factory.mktemp("figures")
    (folder / "prices.json").write_text(json.dumps(PRICES), encoding="utf-8")
    play = ["drive", "--agent", "builtin", "--scenarios", "bundled", "--limit", 6, "--epochs", 2]
    for name in ("gold", "live"):
        log = folder / f"{name}.db"
        printed_in(folder, *play, "--provider", "sim:noisy:0.3", "--history", name, "--log", log)
    return {name: folder / f"{name}.db" for name in ("gold", "live")}


@pytest.fixture(scope="module")
def documents(logs: dict[str, Path]) -> list[dict[str, Any]]:
    prices = logs["gold"].with_name("prices.json")
    return [
        json.loads(printed_in(ROOT, "score", log, "--format", "json", "--prices", prices))
        for log in logs.values()
    ]


def names_in(document: dict[str, Any]) -> set[str]:
    keys = [*document["figures"], *(key for it in document["scorers"].values() for key in it["figures"])]
    null = (figure for agent in document["null_agents"] for it in agent["figures"] for figure in it.values())
    return {key.partition("[")[0] for key in keys} | {it["name"] for it in null if isinstance(it, dict)}


def test_score_makes_just_the_figures_that_are_defined(documents: list[dict[str, Any]]) -> None:
    assert set().union(*map(names_in, documents)) == set(DEFINITIONS)


def test_a_table_has_no_row_of_figures_that_the_page_does_not_explain(logs: dict[str, Path]) -> None:
    titles = {it.title for it in DEFINITIONS.values()}
    for log in logs.values():
        _, behaviour = printed_in(ROOT, "score", log, "-v").split("\nBehaviour\n")
        rows = re.findall(r"^  (.+?)(?:, [\w ]+)?  +\S.*n = \d+$", behaviour.partition("\n\n")[0], re.M)
        assert len(rows) > 15
        assert set(rows) <= titles


def test_compare_makes_just_the_figures_that_are_defined(logs: dict[str, Path]) -> None:
    document = json.loads(printed_in(ROOT, "compare", logs["gold"], logs["gold"], "--format", "json"))
    found = {"noise_floor"} if document["noise_floor"]["a"] else set()
    for level in document["levels"].values():
        found |= {key for key, value in level.items() if isinstance(value, float | int)}
        found |= {"difference"} | {key for key in level["difference"] if key == "largest_loss"}
    about_pairs = {"n", "scenarios"}
    assert found - about_pairs == set(compare_definitions.DEFINITIONS)


def test_the_page_has_a_row_for_each_definition() -> None:
    for definitions in (DEFINITIONS, compare_definitions.DEFINITIONS, leaderboard.DEFINITIONS):
        for name, it in definitions.items():
            rows = [line for line in PAGE.splitlines() if f"| `{name}` |" in line]
            assert len(rows) == 1, name
            assert it.title in rows[0] and it.source.split("|")[0] in rows[0]
