"""Which Sessions are played, in which order, with which key."""

from __future__ import annotations

import pytest

from proxy.drive.agent import api_keys
from proxy.drive.plan import PlanError, Planned, plan
from proxy.drive.states import ScenarioInfo

SCENARIOS = [
    ScenarioInfo("ledger_1", "h1", 4),
    ScenarioInfo("travel_1", "h2", 2),
    ScenarioInfo("ledger_2", "h3", 3),
]


def test_without_options_every_scenario_is_played_once_in_file_order() -> None:
    assert plan(SCENARIOS) == (
        Planned("ledger_1", 1, 4),
        Planned("travel_1", 1, 2),
        Planned("ledger_2", 1, 3),
    )


def test_only_chooses_by_id_and_keeps_file_order_whatever_is_repeated() -> None:
    chosen = plan(SCENARIOS, only=["ledger_2", "ledger_1", "ledger_2"])
    assert [item.scenario for item in chosen] == ["ledger_1", "ledger_2"]


def test_limit_counts_scenarios_that_were_chosen() -> None:
    chosen = plan(SCENARIOS, only=["travel_1", "ledger_2"], limit=1)
    assert [item.scenario for item in chosen] == ["travel_1"]


def test_every_scenario_has_its_first_epoch_before_any_has_its_second() -> None:
    chosen = plan(SCENARIOS, limit=2, epochs=2)
    assert [(item.scenario, item.epoch) for item in chosen] == [
        ("ledger_1", 1),
        ("travel_1", 1),
        ("ledger_1", 2),
        ("travel_1", 2),
    ]


def test_unknown_ids_are_named_with_what_is_near_in_one_line() -> None:
    with pytest.raises(PlanError, match="no scenario") as caught:
        plan(SCENARIOS, only=["legder_1", "LEDGER", "nothing\x1b", "travel_1"])
    message = str(caught.value)
    assert message == (
        "no scenario 'legder_1': did you mean 'ledger_1' or 'ledger_2'?; "
        "no scenario 'LEDGER': did you mean 'ledger_1' or 'ledger_2'?; "
        "no scenario 'nothing\\x1b' among the 3 loaded: `scenarios list` prints their ids"
    )


@pytest.mark.parametrize("numbers", [{"limit": 0}, {"epochs": 0}])
def test_a_number_below_one_is_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(PlanError, match="1 or more"):
        plan(SCENARIOS, **numbers)


def test_the_key_is_that_of_the_environment_where_there_is_one() -> None:
    assert api_keys({"MY_KEY": "sk-real\n"}, "MY_KEY")("a.e1") == "sk-real"


@pytest.mark.parametrize("variable", [None, "MY_KEY", "EMPTY"])
def test_without_a_key_the_placeholder_names_the_session(variable: str | None) -> None:
    assert api_keys({"EMPTY": " "}, variable)("a.e1") == "sk-eval-a.e1"
