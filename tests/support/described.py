"""Holds what the control API answers, and what its events hold, to its description."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

from proxy.control_api import control_api


def described(method: str, path: str) -> dict[str, Any]:
    """The operation that a request is one of; `path` may have a query."""
    asked = urlsplit(path).path
    for template, operations in control_api()["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), asked):
            found: dict[str, Any] = operations[method.lower()]
            return found
    raise AssertionError(f"{method} {asked} is not described")


def check_answer(method: str, path: str, status: int, content_type: str, body: Any) -> None:
    """Raises for a status that is not described, and for a body that is not of its schema."""
    response = described(method, path)["responses"][str(status)]
    if "$ref" in response:
        response = control_api()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    validate(response["content"][content_type]["schema"], body)


def check_event(name: str, data: Any) -> None:
    events = control_api()["paths"]["/eval/events"]["get"]["responses"]["200"]["x-events"]
    validate(events[name], data)


def validate(schema: dict[str, Any], value: Any) -> None:
    """References are to the components of the whole description."""
    Draft202012Validator({**schema, "components": control_api()["components"]}).validate(value)
