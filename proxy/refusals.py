"""What a wrong call is told where it does not end the Task: what a real API would say. Pure.

Nothing of the Reference is in it: an agent learns what its tools' descriptions say, no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from scenarios.assign import parse_arguments
from scenarios.history import as_sent
from scenarios.strict.schema import standard
from scenarios.text import clip
from scenarios.types import Tool, ToolCall

NO_DATA = "no data found for these arguments"
_LONGEST = 300
"""Characters of an error: a validator quotes the value, which may be long."""

Refusal = Literal["unknown_tool", "invalid_arguments", "no_data"]


def refusal(tools: Sequence[Tool], call: ToolCall) -> tuple[Refusal, str]:
    """Why a call has no Observation, and the text of the answer, a JSON object with `error` in it."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return "unknown_tool", _error("unknown_tool", f"there is no tool called {call.name!r}")
    arguments = parse_arguments(call.arguments)
    if not isinstance(arguments, dict):
        return "invalid_arguments", _error("invalid_arguments", "the arguments are not a JSON object")
    if fault := _fault(json.dumps(as_sent(tool.parameters)), arguments):
        return "invalid_arguments", _error("invalid_arguments", fault)
    return "no_data", _error("not_found", NO_DATA)


def _fault(schema: str, arguments: dict[str, Any]) -> str | None:
    """What a schema (JSON) has against the arguments; a schema that is none has nothing against any."""
    try:
        validator = _validator(schema)
        error = validator and best_match(validator.iter_errors(arguments))
    except (Unresolvable, re.error, RecursionError):
        return None
    if not error:
        return None
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{where.lstrip('.')}: {error.message}" if where else error.message


@lru_cache(maxsize=512)
def _validator(schema: str) -> Draft202012Validator | None:
    """Without formats, and with an empty registry: a reference to an address is not followed."""
    value = standard(json.loads(schema))
    try:
        Draft202012Validator.check_schema(value)
    except (SchemaError, re.error, RecursionError):
        return None
    return Draft202012Validator(value, registry=Registry()) if isinstance(value, dict) else None


def _error(kind: str, text: str) -> str:
    return json.dumps({"error": {"type": kind, "message": clip(text, _LONGEST)}}, ensure_ascii=False)
