"""The released argument checker: is a predicted call's argument text right?

Gives, message for message, what WildToolBench's `wtb/checker_utils.py` says, its
quirks included. A check has two stages: the arguments against the tool's schema,
then the arguments against the reference. The first fault found is the verdict.

It differs from the released checker in three ways, none of which makes right of wrong:

- where that raises and scoring ends, the verdict is a message starting with `CRASH`;
- several missing or extra keys are listed in alphabetical order (there: in the order
  of a set of strings, which changes from run to run);
- ROUGE-L is computed here, exactly as the package `rouge` 1.0.1 does (see `scenarios.similarity.rouge_l`).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from scenarios.similarity import rouge_l, segment

CORRECT = "correct"
INVALID_JSON = "error: args invalid json format"
CRASH = "error_crash"
"""Prefix of the verdict where the released checker raises: `error_crash: REASON`."""

MAX_NESTING = 900
"""Deepest argument text that is read, in levels of `[` and `{`.

The released checker raises RecursionError a little above 900 levels; just where
depends on its Python. A limit of our own does not depend on who calls us.
"""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (float,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}

# What reading a malformed schema in the released checker's way can raise.
_UNUSABLE = (TypeError, AttributeError, LookupError, RecursionError)

_HAN = re.compile("[\u4e00-\u9fa5]")
_JSON_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)

_Node = tuple[Any, ...]


class _Verdict(Exception):
    """A verdict other than correct; its text is the message."""


class _Mismatch(_Verdict):
    """The arguments are wrong."""


class _Crash(_Verdict):
    """The released checker raises here."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{CRASH}: {reason}")


def check_arguments(parameters: Any, predicted: object, reference: object) -> str:
    """Judge the argument text of one call.

    `parameters` is the tool's `function.parameters` as it was sent to the LLM (with
    `number` for `float`), `predicted` the argument text of the call, and `reference`
    the arguments of the Reference as plain JSON values.

    Returns `correct` or the released checker's message. Never raises for JSON values,
    however odd: where the released checker does, the message starts with `CRASH`.
    """
    try:
        schema = _root_schema(parameters)
        arguments = _parse(predicted)
        _walk(_schema_step, ("", arguments, schema))
        _walk(_match_step, ("", arguments, reference, schema["properties"]))
    except json.JSONDecodeError:
        return INVALID_JSON
    except _Verdict as verdict:
        return str(verdict)
    return CORRECT


def _walk(step: Callable[..., Iterator[_Node]], root: _Node) -> None:
    """Visit a tree depth first. `step(*node)` yields children, or raises the verdict.

    Children are asked for one by one, so that faults come up in the order in which a
    recursive walk would meet them; the depth of the values is not that of our stack.
    """
    open_nodes = [step(*root)]
    while open_nodes:
        child = next(open_nodes[-1], None)
        if child is None:
            open_nodes.pop()
        else:
            open_nodes.append(step(*child))


def _under(path: str, key: Any) -> Any:
    # Not a clean join on purpose: below a key "" the released paths start anew.
    return f"{path}.{key}" if path else key


# --- Reading -----------------------------------------------------------------


def _root_schema(parameters: Any) -> dict[str, Any]:
    """Only these two keywords of a tool's own schema count at its top level."""
    try:
        required = list(set(parameters.get("required", [])))
        properties = dict(parameters.get("properties", {}).items())
    except _UNUSABLE as error:
        raise _Crash(f"the parameters of the tool are unusable ({error})") from None
    return {"type": "object", "required": required, "properties": properties}


def _parse(text: object) -> Any:
    if not isinstance(text, str):
        raise _Crash(f"the arguments are not a string but {type(text).__name__}")
    if _nesting_exceeds(MAX_NESTING, text):
        raise _Crash(f"the arguments are nested more than {MAX_NESTING} levels deep")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        # ValueError: Python refuses integers of more than 4300 digits.
        raise _Crash(f"the arguments cannot be read ({error})") from None


def _nesting_exceeds(limit: int, text: str) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for token in _JSON_STRING_OR_BRACKET.finditer(text):
        mark = token.group()
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if depth > limit:
            return True
    return False


# --- Against the schema ------------------------------------------------------


def _schema_step(path: str, value: Any, schema: Any) -> Iterator[_Node]:
    try:
        if "anyOf" in schema:
            _check_branches(path, value, schema["anyOf"])
            return
        _check_value(path, value, schema)
        if isinstance(value, dict):
            yield from _members(path, value, schema)
        elif isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield f"{path}[{index}]", item, schema["items"]
    except _UNUSABLE as error:
        raise _Crash(f"the schema{_at(path)} is unusable ({error})") from None


def _check_branches(path: str, value: Any, branches: Any) -> None:
    """Any branch will do; when none does, the first one's fault is the verdict."""
    faults = []
    for branch in branches:
        try:
            _walk(_schema_step, (path, value, branch))
        except _Mismatch as fault:
            faults.append(fault)
        else:
            return
    raise faults[0]


def _check_value(path: str, value: Any, schema: Any) -> None:
    # No `type` means string; an unknown one means anything.
    types = _TYPES.get(schema["type"], ()) if "type" in schema else (str,)
    if types and not isinstance(value, types):
        raise _schema_fault(path, "{nested}args type inconsistent")
    if "enum" in schema and value not in schema["enum"]:
        raise _schema_fault(path, "{nested}args value not in enum")


def _members(path: str, value: dict[str, Any], schema: Any) -> Iterator[_Node]:
    properties = schema.get("properties", {})
    if set(schema.get("required", [])) - value.keys():
        raise _schema_fault(path, "required {nested}args missing")
    for key, member in value.items():
        if key in properties:
            yield _under(path, key), member, properties[key]
        elif schema.get("additionalProperties") is not True:
            raise _schema_fault(path, "{nested}args not defined")


def _schema_fault(path: str, text: str) -> _Mismatch:
    return _Mismatch("error_schema: " + text.format(nested="nested " if path else ""))


# --- Against the reference ---------------------------------------------------


def _match_step(path: str, predicted: Any, reference: Any, schema: Any) -> Iterator[_Node]:
    if type(predicted) is not type(reference):
        raise _match_fault(path, "value type inconsistent")
    try:
        if isinstance(reference, dict):
            yield from _pairs_by_key(path, predicted, reference, schema)
        elif isinstance(reference, list):
            yield from _pairs_by_position(path, predicted, reference, schema)
        elif isinstance(reference, str):
            _match_text(path, predicted, reference)
        elif predicted != reference:
            raise _match_fault(path, "value mismatch")
    except AttributeError as error:
        # A schema that is no object, or a free-form member named like a keyword.
        raise _Mismatch(f"error: comparison failed - {error}") from None


def _pairs_by_key(path: str, predicted: Any, reference: Any, schema: Any) -> Iterator[_Node]:
    missing = sorted(reference.keys() - predicted.keys())
    extra = sorted(predicted.keys() - reference.keys())
    if missing or extra:
        named = (("missing", missing), ("extra", extra))
        detail = ", ".join(f"{name}: {keys}" for name, keys in named if keys)
        raise _match_fault(path, "args keys mismatch", f" ({detail})")
    properties = schema.get("properties", schema) if isinstance(schema, dict) else {}
    for key, value in reference.items():
        yield _under(path, key), predicted[key], value, properties.get(key, {})


def _pairs_by_position(path: str, predicted: Any, reference: Any, schema: Any) -> Iterator[_Node]:
    if len(predicted) != len(reference):
        raise _match_fault(path, "array length mismatch")
    items = schema.get("items", {})
    for index, (mine, theirs) in enumerate(zip(predicted, reference, strict=True)):
        yield f"{path}[{index}]", mine, theirs, items


def _match_text(path: str, predicted: str, reference: str) -> None:
    if _fold(predicted) == _fold(reference):
        return
    if len(reference) < 10:
        ratio = difflib.SequenceMatcher(None, predicted, reference).ratio()
        if ratio < 0.8:
            raise _match_fault(path, "string similarity too low", f" (edit score: {ratio:.2f})")
    if _HAN.search(reference) or _HAN.search(predicted):
        predicted, reference = segment(predicted), segment(reference)
    score = rouge_l(predicted, reference)
    if score is None:
        raise _match_fault(path, "rouge calculation failed")
    if score < 0.7:
        raise _match_fault(path, "string similarity too low", f" (rouge score: {score:.2f})")


def _fold(text: str) -> str:
    return "".join(text.split()).lower()


def _at(path: str) -> str:
    return f" at '{path}'" if path else ""


def _match_fault(path: str, text: str, detail: str = "") -> _Mismatch:
    return _Mismatch(f"error_match: {text}{_at(path)}{detail}")
