"""What is wrong with a scenario file: one error per place, worded for the person who mends it."""

from __future__ import annotations

import json
from typing import Any

from scenarios.text import visible

Json = dict[str, Any]


class ScenarioError(Exception):
    """Something in a scenario file that cannot be played.

    `path` is the file as the user named it ("" for a record that came from no file), `line`
    its line (0 when the file as a whole is meant), `field` a path like
    `answer_list[2][0].dependency_list[1]` ("" when the whole line is meant). As text it is one line,
    whatever the file says.
    """

    def __init__(self, path: str, line: int, field: str, reason: str) -> None:
        self.path = path
        self.line = line
        self.field = field
        self.reason = reason
        where = f"{path}:{line}" if path and line else path
        super().__init__(visible(": ".join(part for part in (where, field, reason) if part)))


class Problems:
    """The problems of one record so far, as (field, reason)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def add(self, field: str, reason: str) -> None:
        self.found.append((field, reason))

    def text(self, value: Any, field: str, *, empty: bool = False) -> str:
        """`value`, if it is text; else "" and a problem."""
        if not isinstance(value, str):
            self.add(field, f"must be text, not {kind_of(value)}")
        elif not value.strip() and not empty:
            self.add(field, "must not be empty")
        return value if isinstance(value, str) else ""

    def items(self, value: Any, field: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self.add(field, f"must be a list, not {kind_of(value)}")
        return []

    def object(self, value: Any, field: str) -> Json | None:
        if isinstance(value, dict):
            return value
        self.add(field, f"must be an object, not {kind_of(value)}")
        return None


def kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def short(value: Any) -> str:
    dumped = json.dumps(value, ensure_ascii=False)
    return dumped if len(dumped) <= 60 else dumped[:57] + '..."'
