"""The page on the control API, from the OpenAPI document that a proxy serves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from proxy.control_api import ABOUT, TOKEN, control_api

Json = Mapping[str, Any]

INTRODUCTION = (
    "The same as an OpenAPI 3.1 document is [openapi.json](openapi.json), and every proxy that plays "
    "scenarios serves it at `/eval/openapi.json`, without a token. Names in **bold** are there in every "
    "answer, or must be sent."
)


def openapi_json() -> str:
    return json.dumps(control_api(), indent=2, ensure_ascii=False) + "\n"


def control_api_page(notice: str) -> str:
    """The page; `notice` says that it is generated."""
    lines = [
        "# The control API",
        "",
        notice,
        "",
        ABOUT,
        "",
        INTRODUCTION,
        "",
        f"**Authorization: Bearer**: {TOKEN}",
    ]
    for path, item in control_api()["paths"].items():
        for method in ("get", "post"):
            if method in item:
                lines += ["", *_operation(method.upper(), path, item[method])]
    lines += ["", "## What is sent and answered"]
    for name, schema in control_api()["components"]["schemas"].items():
        lines += ["", f"### {name}", "", *_fields(schema)]
    return "\n".join(lines) + "\n"


def _operation(method: str, path: str, operation: Json) -> Iterator[str]:
    yield from (f"## {method} {path}", "", operation["summary"])
    for it in operation.get("parameters", []):
        yield from ("", f"- `?{it['name']}=`: {it['description']}")
    if "requestBody" in operation:
        yield from ("", f"Sent: {_kind(_schema(operation['requestBody']))}")
    yield from ("", "| status | answer |", "|---|---|")
    for status, answer in operation["responses"].items():
        yield f"| {status} | {_answer(answer)} |"
    for name, event in operation["responses"].get("200", {}).get("x-events", {}).items():
        yield from ("", f"- `{name}`: {_kind(event)}")


def _answer(answer: Json) -> str:
    if "$ref" in answer:
        said = control_api()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
        return f"{said['description']} {_kind(_schema(said))}"
    return "server-sent events" if "x-events" in answer else _kind(_schema(answer))


def _schema(holder: Json) -> Json:
    schema: Json = next(iter(holder["content"].values()))["schema"]
    return schema


def _fields(schema: Json) -> Iterator[str]:
    if "description" in schema:
        yield from (schema["description"], "")
    yield from ("| field | is | holds |", "|---|---|---|")
    for name, value in schema["properties"].items():
        shown = f"**{name}**" if name in schema.get("required", []) else name
        yield f"| {shown} | {_kind(value)} | {value.get('description', '')} |"


def _kind(schema: Json) -> str:
    """A schema in a few words; what has a name is a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join("null" if it is None else f"`{it}`" for it in schema["enum"])
    if "properties" in schema:
        return "{" + ", ".join(f"`{name}`: {_kind(it)}" for name, it in schema["properties"].items()) + "}"
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    kind = " or ".join(types)
    return f"{kind} of {_kind(schema['items'])}" if "items" in schema else kind
