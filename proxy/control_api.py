"""The control API, described: an OpenAPI 3.1 document of every route of `control`. Pure.

Every object of an answer is described whole: a key that is not here fails the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import get_args

from proxy.control_schemas import (
    COUNT,
    FLAG,
    MAX_WAIT_S,
    TEXT,
    Json,
    event_schemas,
    object_of,
    open_object,
    or_null,
    ref,
    schemas,
)
from proxy.tail.events import Event, event_name

ABOUT = (
    "What a driver of agents asks the proxy: what can be played, to open sessions and user turns, and where "
    "they stand. `wildproxy drive` uses it, and so can any other program. Errors have the shape of OpenAI's. "
    "Nothing here gives away what the right answer is."
)
TOKEN = (
    "The token of the proxy: the environment variable EVAL_TOKEN when it is started, or the one that it "
    "makes up and prints on its terminal."
)
ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", "The request cannot be understood; `param` names the field or parameter."),
    401: ("NoToken", "The token is missing or wrong."),
    403: ("ForeignPage", "A page of another site asked."),
    404: ("NotFound", "There is no such scenario or session."),
    421: ("ForeignHost", "The proxy was asked by a name that is not of this machine."),
    503: ("LogFailed", "The log cannot be written: nothing is done that could not be recorded."),
}
"""What each status means and how its description is called."""
EXAMPLE = "home_6.e1"


@cache
def control_api() -> Json:
    """The whole document. Not to be changed by anybody."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wildtoolbench-proxy: control API",
            "version": "1",
            "summary": "Opens sessions and user turns, and says where they stand.",
            "description": ABOUT,
        },
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": TOKEN}},
            "parameters": {"session": _session_parameter()},
            "responses": {name: _answer(said, ref("Error")) for name, said in ERRORS.values()},
            "schemas": {**schemas(), **event_schemas()},
        },
    }


# Routes


def _paths() -> Json:
    session = {"parameters": [{"$ref": "#/components/parameters/session"}]}
    return {
        "/eval/openapi.json": {"get": {**_own_description(), "security": []}},
        "/eval/run": {
            "get": _operation("run", "What can be played, and how it is configured.", ref("Run")),
        },
        "/eval/plan": {
            "post": _operation(
                "plan",
                "Writes down what is going to be played, so that a part cannot pass for the whole.",
                object_of("How many sessions were written down.", planned=COUNT),
                (400, 404),
                body=open_object(sessions={"type": "array", "items": ref("Planned")}),
            ),
        },
        "/eval/sessions": {"post": _create(), "get": _playing()},
        "/eval/events": {"get": _events()},
        "/eval/sessions/{session}": {**session, "get": _state()},
        "/eval/sessions/{session}/turns": {**session, "post": _open_turn()},
    }


def _own_description() -> Json:
    said = "This description. It needs no token, and is the same for every proxy of a version."
    return _operation("openapi", said, {"type": "object"}, without=(401, 503))


def _create() -> Json:
    operation = _operation(
        "create",
        "Opens a session, or finds it if it is open already.",
        ref("Opened"),
        (400, 404),
        status=201,
        body=ref("Wanted"),
    )
    name = {"session": "$response.body#/session"}
    operation["responses"]["201"]["links"] = {
        "state": {"operationId": "state", "parameters": name},
        "turn": {"operationId": "open_turn", "parameters": name},
    }
    return operation


def _playing() -> Json:
    sessions = {"type": "array", "items": ref("State")}
    return _operation(
        "sessions",
        "Where the sessions stand that are being played: begun, and not over.",
        object_of(None, sessions=sessions),
    )


def _events() -> Json:
    said = (
        "What happens in the run, from its beginning on, as server-sent events, until the listener leaves. "
        "The name of an event is one of `x-events`; its data is a JSON object of the schema named there."
    )
    operation = _operation("events", said, {}, (404,))
    operation["parameters"] = [
        {"name": "session", "in": "query", "description": "Of this session alone.", "schema": TEXT}
    ]
    operation["responses"]["200"] = {
        "description": "The events.",
        "content": {"text/event-stream": {"schema": TEXT}},
        "x-events": {event_name(it): ref(it.__name__) for it in get_args(Event)},
    }
    return operation


def _state() -> Json:
    operation = _operation("state", "Where a session stands.", ref("StateOfProcess"), (400, 404))
    operation["parameters"] = [
        {
            "name": "answered",
            "in": "query",
            "description": "A turn: the answer comes when that has been answered, failed or refused, "
            "or after `wait` seconds.",
            "schema": {**COUNT, "maximum": 999_999_999},
        },
        {
            "name": "wait",
            "in": "query",
            "description": f"Seconds, with `answered`; no more than {MAX_WAIT_S:.0f} are waited for.",
            "schema": {"type": "number", "minimum": 0, "maximum": 999_999_999, "default": 0},
        },
    ]
    return operation


def _open_turn() -> Json:
    body = open_object(
        (),
        after=or_null(COUNT, "The turn before. If the one behind it is open already, that one is given."),
        wait={
            **FLAG,
            "description": "The agent is thought to have its answer: "
            "a turn that is still played is not given up.",
        },
    )
    return _operation(
        "open_turn",
        "Opens the session's next user turn.",
        ref("Turn"),
        (400, 404),
        body=body,
        needs_body=False,
    )


def _operation(
    name: str,
    said: str,
    schema: Json,
    errors: tuple[int, ...] = (),
    *,
    status: int = 200,
    body: Json | None = None,
    needs_body: bool = True,
    without: tuple[int, ...] = (),
) -> Json:
    """`errors` come beside those that every route can have, but for those that it is `without`."""
    failing = sorted({*errors, 401, 403, 421, 503} - set(without))
    responses = {
        str(status): _answer(schema.get("description", "The answer."), schema),
        **{str(it): {"$ref": f"#/components/responses/{ERRORS[it][0]}"} for it in failing},
    }
    request = {} if body is None else {"requestBody": {"required": needs_body, **_content(body)}}
    return {"operationId": name, "summary": said, **request, "responses": responses}


def _session_parameter() -> Json:
    said = "The session's name: the scenario's id, `.e` and the epoch."
    schema = {**TEXT, "minLength": 1}
    return {
        "name": "session",
        "in": "path",
        "required": True,
        "description": said,
        "schema": schema,
        "example": EXAMPLE,
    }


def _answer(said: str, schema: Json) -> Json:
    return {"description": said, **_content(schema)}


def _content(schema: Json) -> Json:
    return {"content": {"application/json": {"schema": schema}}}
