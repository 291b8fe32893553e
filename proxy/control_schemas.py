"""The control API's schemas: what is sent, what is answered, what its events hold. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from proxy.session import End
from proxy.tail.events import Event
from proxy.tally import WaitsFor

Json = dict[str, Any]

MAX_EPOCH = 999_999
MAX_WAIT_S = 50.0
"""The longest a request for a Session's state may wait for a turn to be answered."""

TEXT, FLAG = {"type": "string"}, {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}


def schemas() -> Json:
    epoch = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_EPOCH,
        "description": "Which play of the scenario.",
    }
    scenario = {**TEXT, "description": "A scenario's id.", "examples": ["home_6"]}
    again = {**FLAG, "description": "A session that was begun, and not ended by its agent, is begun anew."}
    return {
        "Error": object_of("An error.", error=_error()),
        "Run": object_of(
            "The run.",
            run={**TEXT, "description": "Its id."},
            config={"type": "object", "description": "How it is configured, as the log has it."},
            scenarios={"type": "array", "items": ref("Scenario")},
        ),
        "Scenario": object_of(
            "A scenario that can be played.",
            id=TEXT,
            hash={**TEXT, "description": "Of its content, SHA-256 in hex."},
            tasks={**COUNT, "description": "How many it has."},
        ),
        "Planned": open_object(scenario=scenario, epoch=epoch),
        "Wanted": open_object(("scenario",), scenario=scenario, epoch={**epoch, "default": 1}, again=again),
        "Opened": _opened(),
        "Turn": _turn(),
        "Task": object_of(
            "How a task stands.",
            task={"type": "integer", "minimum": 1, "description": "Its number."},
            end=or_null({"enum": list(get_args(End))}, "How it ended; null while it is not over."),
            names_right=or_null(
                FLAG, "Whether its calls had the right names, and with `continue` none was refused."
            ),
        ),
        "State": object_of("Where a session stands.", **_state_fields()),
        "StateOfProcess": object_of("Where a session stands.", **_state_fields(), process=_process()),
    }


def _error() -> Json:
    return object_of(
        None,
        message={**TEXT, "description": "One line: what is wrong, and how to mend it."},
        type={**TEXT, "description": "Its kind, as clients of OpenAI know them."},
        param=or_null(TEXT, "The field or parameter that is wrong."),
        code=or_null(TEXT, "For programs, where there is one."),
    )


def _opened() -> Json:
    return object_of(
        "A session that can be played.",
        session={**TEXT, "description": "Its name."},
        url={**TEXT, "description": "Path of the agent's base URL, for this attempt alone."},
        mcp_url=or_null(TEXT, "Path of its MCP server, if tools are offered so."),
        over={**FLAG, "description": "It has ended; nothing is left to play."},
        turn={**COUNT, "description": "The last turn that was opened; 0 before the first."},
        process=_process(),
    )


def _turn() -> Json:
    return object_of(
        "The turn, or that there is none any more.",
        turn=or_null(COUNT, "Its number, from 1; null when the session is over."),
        prompt=or_null(TEXT, "What to prompt the agent with: the placeholder of the user's words."),
        text=or_null(TEXT, "The user's words, for agents that shall see them themselves."),
        over=FLAG,
    )


def _process() -> Json:
    return {**TEXT, "description": "Tells one start of the proxy from the next."}


def _state_fields() -> Json:
    def turn(said: str) -> Json:
        return {**COUNT, "description": said}

    return {
        "session": {**TEXT, "description": "Its name."},
        "scenario": TEXT,
        "epoch": {"type": "integer", "minimum": 1},
        "turn": turn("The last turn that was opened; 0 before the first."),
        "over": FLAG,
        "asked": turn("The last turn that the agent asked for; 0 if none."),
        "answered": turn("The last turn whose answer reached the agent; 0 if none did."),
        "failed_turn": turn("The last turn that the provider failed; 0 if none."),
        "failed_status": turn("The HTTP status with which it did; 0 without one."),
        "refused_turn": turn("The last turn in which a request was not let in; 0 if none."),
        "tasks": {"type": "array", "items": ref("Task")},
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "provider_errors": {**COUNT, "description": "Requests that the provider failed for good."},
        "provider_retries": {**COUNT, "description": "Requests that were sent to it again."},
        "steps": {**COUNT, "description": "Those of the task that is open."},
        "waits_for": {"enum": list(get_args(WaitsFor)), "description": "Whose turn it is."},
        "waited": {"type": "number", "description": "For how many seconds."},
    }


def object_of(said: str | None, required: tuple[str, ...] | None = None, /, **properties: Any) -> Json:
    """An object of these keys alone; all of them are there unless some are said to be `required`."""
    must = list(properties) if required is None else list(required)
    schema: Json = {"type": "object"} if said is None else {"type": "object", "description": said}
    if must:
        schema["required"] = must
    return {**schema, "properties": properties, "additionalProperties": False}


def open_object(required: tuple[str, ...] | None = None, /, **properties: Any) -> Json:
    """What is sent may have further keys: they are ignored."""
    schema = object_of(None, required, **properties)
    return {key: value for key, value in schema.items() if key != "additionalProperties"}


def or_null(schema: Json, said: str) -> Json:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None], "description": said}
    return {**schema, "type": [schema["type"], "null"], "description": said}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


# Events

SIMPLE: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}


def event_schemas() -> Json:
    """By the name of its class, each event and what it is made of, but for what its owner alone may see."""
    found: Json = {}
    for event in get_args(Event):
        _describe(event, found)
    return found


def _describe(kind: type, found: Json) -> None:
    hints = get_type_hints(kind)
    told = [it.name for it in fields(kind) if not it.metadata.get("owner_only")]
    found[kind.__name__] = object_of(None, **{name: _schema_of(hints[name], found) for name in told})


def _schema_of(kind: Any, found: Json) -> Json:
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in found:
            _describe(kind, found)
        return ref(kind.__name__)
    if get_origin(kind) is dict:
        return {"type": "object"}
    choices = get_args(kind)
    return {"type": [SIMPLE[it] for it in choices] if choices else SIMPLE[kind]}
