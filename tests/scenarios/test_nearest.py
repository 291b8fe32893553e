"""The name that was meant."""

from __future__ import annotations

import pytest

from scenarios.nearest import aside, did_you_mean, nearest

NAMES = ("serve", "drive", "score", "scenarios", "log")


@pytest.mark.parametrize(
    "name, found",
    [
        ("drvie", ["drive"]),
        ("SERVE", ["serve"]),
        ("scen", ["scenarios", "score"]),
        ("xyz", []),
        ("", []),
        ("serve", ["serve"]),
    ],
)
def test_the_nearest_name_is_found_whatever_the_case(name: str, found: list[str]) -> None:
    assert nearest(name, NAMES) == found


def test_names_that_are_as_near_are_all_told_and_those_that_hold_the_word() -> None:
    assert nearest("shop", ("shop_10", "shop_2", "my_shop_and_more")) == [
        "shop_2",
        "shop_10",
        "my_shop_and_more",
    ]
    assert nearest("shop", ("shop_1", "shop_2", "shop_3"), most=2) == ["shop_1", "shop_2"]


def test_what_was_meant_is_said_or_nothing() -> None:
    assert did_you_mean("shop", ("shop_1", "shop_2")) == "did you mean 'shop_1' or 'shop_2'?"
    assert aside("drvie", NAMES) == " (did you mean 'drive'?)"
    assert (did_you_mean("xyz", NAMES), aside("xyz", NAMES), nearest("x", ())) == ("", "", [])
