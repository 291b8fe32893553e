"""The JSON Schema of a scenario file: what `record` and `annotations` ask for, as far as it can be said.

It cannot say what holds between places: that a called tool exists, that a position is that of a node,
that there is one answer for each task. The loader has the last word.
"""

from __future__ import annotations

from typing import Any

from scenarios.labels import CHINESE_LABELS, CHINESE_SUBTYPES, FIRST_TURN, MULTI
from scenarios.problems import Json
from scenarios.types import ASK, CLOSE, LABELS, PSEUDO_ACTIONS, SUBTYPES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def record_schema() -> Json:
    """The schema of a record, and of a list of records, with a description for each key."""
    return {
        "$schema": DIALECT,
        "title": "Scenario file",
        "description": "One session, or a list of sessions. A JSONL file has one session on each line.",
        "if": {"type": "array"},
        "then": {"items": {"$ref": "#/$defs/record"}, "minItems": 1},
        "else": {"$ref": "#/$defs/record"},
        "$defs": {
            "record": _record(),
            "tool": _tool(),
            "reference": _reference(),
            "node": _node(),
            "notes": _notes(),
            "text": {"type": "string", "pattern": r"\S"},
        },
    }


def _record() -> Json:
    columns = _columns()
    names = _names()
    properties = {
        "id": {
            "type": "string",
            "pattern": r"^(?!\.{1,2}$)[A-Za-z0-9._~-]+$",
            "description": "The name of the session: letters, digits and . _ ~ -. No two sessions share one. "
            "End it in _ and a number if results are to be exported for the released evaluation code.",
        },
        **columns,
        **names,
        "annotations": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/notes"},
            "description": "What is to be known of the tools beyond their schemas, by name of the tool. "
            "For scores alone, never sent to the LLM; one for both languages.",
        },
        **{f"english_{key}": _twin(value, key) for key, value in {**columns, **names}.items()},
        "english_annotations": False,
    }
    either = [{"anyOf": [{"required": [key]}, {"required": [f"english_{key}"]}]} for key in columns]
    return {
        "type": "object",
        "description": "One session: a conversation in several tasks, with its mock tools.",
        "required": ["id"],
        "allOf": either,
        "properties": properties,
    }


def _twin(schema: Json, key: str) -> Json:
    return {**schema, "description": f"The same as `{key}`, in English, where that is in Chinese."}


def _columns() -> Json:
    return {
        "env_info": {
            **_text(
                "The date of the session: `2025-05-09 17:30:00 Friday`. Sent to the LLM as Current Date."
            ),
        },
        "tools": {
            "type": "array",
            "items": {"$ref": "#/$defs/tool"},
            "description": "What the LLM is offered, in the form of the OpenAI API.",
        },
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/text"},
            "description": "The first words of the user in each task.",
        },
        "answer_list": {
            "type": "array",
            "items": {"$ref": "#/$defs/reference"},
            "description": "For each task its Reference: a list of nodes.",
        },
    }


def _names() -> Json:
    labels = [*LABELS, MULTI, *CHINESE_LABELS, None]
    subtypes = [*SUBTYPES, *CHINESE_SUBTYPES, "", None]
    return {
        "task_types": {
            "type": ["array", "null"],
            "items": {"enum": labels},
            "description": "The label of each task. Left out, it follows from the Reference.",
        },
        "turn_subtypes": {
            "type": ["array", "null"],
            "prefixItems": [{"enum": [*subtypes, FIRST_TURN]}],
            "items": {"enum": subtypes},
            "description": "For each task after the first how it hangs on what was said before. "
            "May be left out.",
        },
    }


def _tool() -> Json:
    function = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {
                **_text("What calls name it by. 1 to 64 letters, digits, _ and -, or providers refuse it."),
                "not": {"enum": sorted(PSEUDO_ACTIONS)},
            },
            "description": {"type": ["string", "null"], "description": "What it does, for the LLM."},
            "parameters": {
                "type": ["object", "null"],
                "description": "JSON Schema of the arguments; its type `float` is sent as `number`.",
            },
        },
    }
    return {
        "type": "object",
        "description": "A mock tool, in the form of the OpenAI API.",
        "required": ["function"],
        "properties": {
            "type": {"description": "`function`."},
            "function": {**function, "description": "Its name, description and parameters."},
        },
    }


def _reference() -> Json:
    closes = {"properties": {"action": {"properties": {"name": {"const": CLOSE}}, "required": ["name"]}}}
    return {
        "type": "array",
        "description": f"The nodes of one task. One of them is the close, {CLOSE}.",
        "items": {"$ref": "#/$defs/node"},
        "contains": {"type": "object", "required": ["action"], **closes},
    }


def _node() -> Json:
    action = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": _text(f"A tool, or `{ASK}` or `{CLOSE}`, which are done in plain text."),
            "arguments": {"type": "object", "description": "The arguments of the call."},
        },
    }
    return {
        "type": "object",
        "description": "A step of a Reference: a call, a question, or the close.",
        "required": ["action", "observation", "dependency_list"],
        "properties": {
            "action": {**action, "description": "What is done: `name` and `arguments`."},
            "observation": {
                "description": "What the call is answered, any JSON value; of an ask the question, "
                "of the close the final text."
            },
            "dependency_list": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "The nodes that come first, by position from 0.",
            },
            "user_input": {"description": "Only of an ask, and needed there: the user's reply."},
            "alternatives": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Only of a call: other arguments that are as right, for the scorer `strict`.",
            },
        },
        "allOf": [_where(sorted(PSEUDO_ACTIONS), _of_text()), _where([ASK], _of_ask())],
    }


def _where(names: list[str], then: Json) -> Json:
    """What holds of the nodes whose action has one of some names."""
    action = {"type": "object", "required": ["name"], "properties": {"name": {"enum": names}}}
    return {"if": {"required": ["action"], "properties": {"action": action}}, "then": then}


def _of_text() -> Json:
    return {"properties": {"observation": {"$ref": "#/$defs/text"}, "alternatives": False}}


def _of_ask() -> Json:
    return {"required": ["user_input"], "properties": {"user_input": {"$ref": "#/$defs/text"}}}


def _notes() -> Json:
    paths = {"type": "array", "items": {"$ref": "#/$defs/text"}}
    return {
        "type": "object",
        "description": "What is to be known of one tool.",
        "additionalProperties": False,
        "properties": {
            "side_effects": {"type": "boolean", "description": "Whether a call changes something."},
            "undoes": {
                **paths,
                "description": "The tools whose calls a call of this one takes back.",
            },
            "free_text": {**paths, "description": "Paths of text that may be worded differently."},
            "unordered": {**paths, "description": "Paths of arrays whose order does not matter."},
            "defaults": {
                "type": "object",
                "description": "For paths of optional parameters the value that leaving them out means.",
            },
        },
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "pattern": r"\S", "description": description}
