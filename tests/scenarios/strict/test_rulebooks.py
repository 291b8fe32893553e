"""The rules of a Scenario's tools, made once and never mixed up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support import scenes

from scenarios.strict.rulebooks import is_right, rulebook_of
from scenarios.types import Node, ToolCall, ToolNotes

SHOP = scenes.scenario(scenes.SHOP)
LAMP = Node("getPrice", {"thing": "lamp"}, "3")


def call(name: str, arguments: str = '{"thing": "lamp"}') -> ToolCall:
    return ToolCall(None, name, arguments)


def test_a_call_is_right_by_its_name_and_by_what_its_arguments_mean() -> None:
    assert is_right(SHOP, call("getPrice", '{ "thing": "Lamp" }'), LAMP)
    assert not is_right(SHOP, call("getPrice", '{"thing": "chair"}'), LAMP)
    assert not is_right(SHOP, call("countStock"), LAMP)
    assert not is_right(SHOP, call("teleport"), Node("teleport", {"thing": "lamp"}, "gone"))


def test_the_rules_are_made_once_for_all_tasks_of_a_scenario() -> None:
    assert rulebook_of(replace(SHOP, tasks=SHOP.tasks[:1])) is rulebook_of(SHOP)


def test_other_tools_or_other_notes_have_rules_of_their_own() -> None:
    def takes_nothing(**changes: Any) -> bool:
        return is_right(replace(SHOP, **changes), call("getPrice", "{}"), LAMP)

    first, *others = SHOP.tools
    optional = (replace(first, parameters={**first.parameters, "required": []}), *others)
    noted = {"getPrice": ToolNotes(defaults={"thing": "lamp"})}
    assert not takes_nothing(tools=SHOP.tools, notes=noted)
    assert takes_nothing(tools=optional, notes=noted)
    assert not takes_nothing(tools=optional, notes={})
