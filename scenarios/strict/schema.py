"""What breaks a tool's schema, by the library `jsonschema`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import SchemaError, UndefinedTypeCheck, UnknownType, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from scenarios.strict.faults import Fault
from scenarios.strict.patterns import is_usable
from scenarios.strict.rules import Steps, fault
from scenarios.text import clip

_DRAFTS = {
    cls.ID_OF(cls.META_SCHEMA).rstrip("#"): cls
    for cls in (
        Draft3Validator,
        Draft4Validator,
        Draft6Validator,
        Draft7Validator,
        Draft201909Validator,
        Draft202012Validator,
    )
}

_REQUIRED = "missing, and the schema requires it"

_UNUSABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    SchemaError,
    TypeError,
    UndefinedTypeCheck,
    UnknownType,
    Unresolvable,
    ValueError,
    re.error,
)
"""What a schema that is none can raise."""


def validator_of(parameters: Any) -> Any:
    """A validator of `parameters`; None if they are no valid schema.

    Nothing is fetched: a schema that refers to another place is as good as none.
    """
    try:
        schema = standard(parameters)
        name = schema.get("$schema") if isinstance(schema, dict) else None
        cls = _DRAFTS.get(str(name).rstrip("#"), Draft202012Validator)
        cls.check_schema(schema)
        return cls(schema, registry=Registry())
    except _UNUSABLE:
        return None


def standard(schema: Any) -> Any:
    """The schema with what others add to JSON Schema in its own words: `float`, OpenAPI's `nullable`;
    without patterns that could take for ever.
    """
    if isinstance(schema, list):
        return [standard(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    nullable = schema.get("nullable") is True
    return {
        key: _member(key, it, nullable)
        for key, it in schema.items()
        if key != "pattern" or not isinstance(it, str) or is_usable(it)
    }


def _member(key: str, value: Any, nullable: bool) -> Any:
    if key == "enum" and isinstance(value, list):
        return value
    if key == "patternProperties" and isinstance(value, dict):
        return {pattern: standard(it) for pattern, it in value.items() if is_usable(pattern)}
    if key != "type" or not isinstance(value, str | list):
        return standard(value)
    names = ["number" if it == "float" else it for it in (value if isinstance(value, list) else [value])]
    if nullable and "null" not in names:
        return [*names, "null"]
    return names if isinstance(value, list) else names[0]


def schema_faults(validator: Any, actual: Any, expected: Any) -> list[Fault]:
    """What of `actual` breaks the schema in a way that `expected`, the Reference's own, does not."""
    if validator is None:
        return []
    try:
        broken = list(_broken(validator, actual))
        known = {identity for identity, _ in _broken(validator, expected)} if broken else set()
    except _UNUSABLE:
        return []
    return [found for identity, found in broken if identity not in known]


def _broken(validator: Any, value: Any) -> Iterator[tuple[tuple[Any, ...], Fault]]:
    """Every breach: what tells it from others, wherever in the value it is, and the fault."""
    for error in validator.iter_errors(value):
        steps: Steps = tuple(error.absolute_path)
        rule = tuple(error.absolute_schema_path)
        if error.validator == "required" and isinstance(error.validator_value, list):
            for key in error.validator_value:
                if key not in error.instance:
                    yield (*rule, key), fault("args.missing", (*steps, key), _REQUIRED)
        else:
            yield rule, fault("args.schema", steps, _reason(error), actual=error.instance)


def _reason(error: ValidationError) -> str:
    return f"means the same, but breaks the schema: {clip(error.message, 160)}"
