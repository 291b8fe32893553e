"""The page on the keys of a scenario file, from the JSON Schema that `scenarios schema` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.record_schema import record_schema
from scenarios.types import LABELS, SUBTYPES

Schema = Mapping[str, Any]

TITLES = {
    "record": "A session",
    "tool": "A tool",
    "reference": "A Reference",
    "node": "A node",
    "notes": "The annotations of a tool",
}
"""What is called how in the schema, and here."""

TWINS = "english_"

INTRODUCTION = (
    "Every key that is read. How they belong together, with examples, is told in "
    "[Scenario files](scenarios.md). Where a session is in two languages, its English words stand under the "
    "same keys with `english_` before them. `wildproxy scenarios schema` prints the same as JSON Schema, by "
    "which an editor completes and checks a file while it is written. What a schema cannot say, such as that "
    "a call names a tool of the session, `wildproxy scenarios validate` does."
)

NAMES = {"string": "text", "array": "list", "boolean": "true or false", "integer": "whole number"}


def scenario_schema_page(notice: str) -> str:
    """The page; `notice` says that it is generated."""
    definitions = record_schema()["$defs"]
    lines = ["# Keys of a scenario file", "", notice, "", INTRODUCTION]
    for name, title in TITLES.items():
        schema = definitions[name]
        lines += ["", f"## {title}", "", schema["description"]]
        if "properties" in schema:
            lines += ["", *_table(schema)]
    lines += ["", "## Labels and subtypes", "", *_listed("A label", LABELS), *_listed("A subtype", SUBTYPES)]
    return "\n".join(lines).rstrip() + "\n"


def _table(schema: Schema) -> Iterator[str]:
    yield from ("| key | is | holds |", "|---|---|---|")
    yield from _rows(schema, "")


def _rows(schema: Schema, above: str) -> Iterator[str]:
    required = schema.get("required", [])
    for key, value in schema["properties"].items():
        if value is False or key.startswith(TWINS):
            continue
        must = key in required or (
            not above and f"{TWINS}{key}" in schema["properties"] and _is_column(schema, key)
        )
        kind = _kind(value)
        said = f"{kind}, required" if must and kind else kind or ("required" if must else "")
        yield f"| `{above}{key}` | {said} | {value.get('description', '')} |"
        if value.get("properties"):
            yield from _rows(value, f"{above}{key}.")


def _is_column(schema: Schema, key: str) -> bool:
    """Whether the record must have the key, or else its English twin."""
    return {"required": [key]} in [
        choice for either in schema.get("allOf", []) for choice in either.get("anyOf", [])
    ]


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        return _linked(schema["$ref"].rpartition("/")[2])
    types = schema.get("type", [])
    names = [
        NAMES.get(name, name) for name in ([types] if isinstance(types, str) else types) if name != "null"
    ]
    kind = " or ".join(names)
    items = _kind(schema["items"]) if "items" in schema else ""
    return f"{kind} of: {items}" if items else kind


def _linked(name: str) -> str:
    if name not in TITLES:
        return "text"
    title = TITLES[name]
    return f"[{title[0].lower()}{title[1:]}](#{title.lower().replace(' ', '-')})"


def _listed(what: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"{what} is one of {', '.join(f'`{name}`' for name in names)}, or its Chinese name, or null."
    yield ""
