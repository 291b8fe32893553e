"""MCP's messages, without HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.mcp import (
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS_VERSION,
    UNSUPPORTED_VERSION,
    RpcError,
    RpcRequest,
    ToolCall,
    answer,
    dump,
    event,
    failure,
    http_status,
    is_loopback,
    listed_tool,
    read_body,
    read_message,
    tool_result,
    wants_stream,
)

PRICE = {
    "type": "function",
    "function": {
        "name": "price",
        "description": "What a thing costs.",
        "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]},
    },
}


def request(method: str, params: dict[str, Any] | None = None, *, stateless: bool = False) -> RpcRequest:
    return RpcRequest(7, method, params or {}, stateless)


def result(method: str, params: dict[str, Any] | None = None, *, stateless: bool = False) -> dict[str, Any]:
    given = answer(request(method, params, stateless=stateless), [PRICE])
    assert isinstance(given, dict)
    assert given.keys() == {"jsonrpc", "id", "result"}
    assert (given["jsonrpc"], given["id"]) == ("2.0", 7)
    return given["result"]


def refusal(message: object, version: str | None = None) -> tuple[int, str | int | None]:
    with pytest.raises(RpcError) as caught:
        read_message(message, version)
    return caught.value.code, caught.value.id


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_known_revision_is_agreed_on(version: str) -> None:
    assert result("initialize", {"protocolVersion": version})["protocolVersion"] == version


@pytest.mark.parametrize("asked", ["1999-01-01", "2026-07-28", "", None, 5, ["2025-06-18"]])
def test_to_any_other_the_newest_that_has_a_handshake_is_offered(asked: Any) -> None:
    assert result("initialize", {"protocolVersion": asked})["protocolVersion"] == "2025-11-25"


def test_only_tools_are_said_to_be_here() -> None:
    assert result("initialize")["capabilities"] == {"tools": {}}
    assert result("server/discover")["capabilities"] == {"tools": {}}


def test_discovery_names_every_revision_and_has_the_fields_of_the_newest() -> None:
    found = result("server/discover")
    assert found == result("server/discover", stateless=True)
    assert found["supportedVersions"] == [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ]
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")


def test_tools_are_listed_with_their_schemas() -> None:
    listed = {
        "name": "price",
        "description": "What a thing costs.",
        "inputSchema": PRICE["function"]["parameters"],
    }
    assert result("tools/list") == {"tools": [listed]}
    assert result("tools/list", stateless=True) == {
        "tools": [listed],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }


@pytest.mark.parametrize(
    "parameters", [None, {}, {"type": "dict"}, {"type": None}, "none", {"type": ["object"]}]
)
def test_a_tool_without_an_object_schema_gets_one(parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "now", "parameters": parameters}}
    assert listed_tool(tool) == {"name": "now", "inputSchema": {"type": "object", "properties": {}}}
    assert listed_tool({"type": "function", "function": {"name": "now"}}) == listed_tool(tool)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
def test_lists_of_what_we_do_not_have_are_empty(method: str, key: str) -> None:
    assert result(method) == {key: []}
    assert result(method, stateless=True) == {
        key: [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }


@pytest.mark.parametrize("method", ["ping", "logging/setLevel"])
def test_what_needs_no_answer_gets_an_empty_one(method: str) -> None:
    assert result(method) == {}
    assert result(method, stateless=True) == {"resultType": "complete"}


@pytest.mark.parametrize("method", ["", "tools", "tools/call ", "completion/complete", "prompts/get", "Ping"])
def test_other_methods_are_not_known(method: str) -> None:
    with pytest.raises(RpcError) as caught:
        answer(request(method), [])
    assert (caught.value.code, caught.value.id) == (METHOD_NOT_FOUND, 7)


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
def test_a_call_may_leave_its_arguments_out(arguments: dict[str, Any]) -> None:
    assert answer(request("tools/call", {"name": "now", **arguments}), []) == ToolCall("now", {})


@pytest.mark.parametrize(
    "params",
    [{}, {"name": None}, {"name": 5}, {"name": "a", "arguments": []}, {"name": "a", "arguments": "{}"}],
)
def test_a_call_needs_a_name_and_an_object(params: dict[str, Any]) -> None:
    with pytest.raises(RpcError) as caught:
        answer(request("tools/call", params), [])
    assert (caught.value.code, caught.value.id) == (INVALID_PARAMS, 7)


def test_a_tools_failure_is_a_result_that_says_so() -> None:
    assert tool_result("no data", True) == {"content": [{"type": "text", "text": "no data"}], "isError": True}
    assert tool_result("", False) == {"content": [{"type": "text", "text": ""}], "isError": False}


def test_the_body_is_one_message_or_a_batch() -> None:
    assert read_body(b'{"a": 1}') == ([{"a": 1}], False)
    assert read_body(b'[{"a": 1}, 2]') == ([{"a": 1}, 2], True)
    assert read_body(b"null") == ([None], False)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe\xff", b"NaN", b'{"id": Infinity}', b"[" * 200_000, b"9" * 5_000, b"{} {}"]
)
def test_what_is_not_json_is_a_parse_error(raw: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        read_body(raw)
    assert (caught.value.code, caught.value.id) == (PARSE_ERROR, None)


def test_an_empty_batch_is_no_request() -> None:
    with pytest.raises(RpcError) as caught:
        read_body(b"[]")
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("message", "id"),
    [
        (None, None),
        ([], None),
        ("ping", None),
        ({}, None),
        ({"jsonrpc": "2.0"}, None),
        ({"jsonrpc": "2.0", "id": 1}, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": None}, 1),
        ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, "a"),
        ({"id": 3, "method": "ping"}, 3),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None),
    ],
)
def test_a_message_that_is_no_request_is_refused_under_its_id(message: object, id: str | int | None) -> None:
    assert refusal(message) == (INVALID_REQUEST, id)


def test_params_are_an_object_or_nothing() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert refusal({**message, "params": []}) == (INVALID_PARAMS, 1)
    assert (
        read_message(message) == read_message({**message, "params": None}) == RpcRequest(1, "ping", {}, False)
    )


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "anything", "params": 5},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
    ],
)
def test_notifications_and_responses_get_no_answer(message: dict[str, Any]) -> None:
    assert read_message(message) is None


def test_a_message_of_the_stateless_revision_says_so_itself_or_in_its_header() -> None:
    plain = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    named = {**plain, "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS_VERSION}}}
    found = [
        read_message(message, version)
        for message, version in [
            (plain, None),
            (plain, "2025-06-18"),
            (plain, STATELESS_VERSION),
            (named, None),
            (named, STATELESS_VERSION),
        ]
    ]
    assert [one.stateless for one in found if one] == [False, False, True, True, True]


@pytest.mark.parametrize("meta", [None, 5, [], {}, {"io.modelcontextprotocol/protocolVersion": 5}])
def test_other_things_under_meta_mean_nothing(meta: Any) -> None:
    params = {"_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params}
    assert read_message(message) == RpcRequest(1, "ping", params, False)


def test_an_unknown_revision_is_refused_with_those_that_are_known() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with pytest.raises(RpcError) as caught:
        read_message(message, "2031-01-01")
    error = failure(caught.value)["error"]
    assert error["code"] == UNSUPPORTED_VERSION
    assert error["data"] == {
        "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "requested": "2031-01-01",
    }


def test_what_negotiates_the_revision_is_not_held_to_one() -> None:
    found = read_message({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, "2031-01-01")
    assert found == RpcRequest(1, "initialize", {}, False)
    found = read_message({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, STATELESS_VERSION)
    assert found == RpcRequest(1, "initialize", {}, False)


def test_errors_have_the_http_status_of_their_revision() -> None:
    codes = (PARSE_ERROR, INVALID_REQUEST, UNSUPPORTED_VERSION, METHOD_NOT_FOUND, INVALID_PARAMS, -32603)
    assert [http_status(code, stateless=False) for code in codes] == [400, 400, 400, 200, 200, 200]
    assert [http_status(code, stateless=True) for code in codes] == [400, 400, 400, 404, 400, 200]


def test_no_line_end_and_no_lone_surrogate_gets_onto_the_wire() -> None:
    text = "a\nb\r\u2028\u2029\x85\x1cé\ud800😀"
    raw = dump({"text": text})
    assert len(raw.decode().splitlines()) == 1
    assert json.loads(raw) == {"text": text.replace("\ud800", "\ufffd")}
    assert event({"text": text}) == b"event: message\ndata: " + raw + b"\n\n"


@pytest.mark.parametrize(
    ("accept", "stream"),
    [
        ("", False),
        ("*/*", False),
        ("application/json, text/event-stream", False),
        ("text/event-stream, application/json;q=0.5", False),
        ("application/json", False),
        ("text/html", False),
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("text/event-stream, text/html", True),
    ],
)
def test_only_who_takes_nothing_else_gets_a_stream(accept: str, stream: bool) -> None:
    assert wants_stream(accept) is stream


@pytest.mark.parametrize(
    ("origin", "ours"),
    [
        ("http://localhost:3000", True),
        ("http://127.0.0.1", True),
        ("https://127.8.9.1:99", True),
        ("http://[::1]:8787", True),
        ("http://LOCALHOST", True),
        ("http://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://localhost@evil.example", False),
        ("http://192.168.1.1", False),
        ("http://[::1", False),
        ("null", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_pages_of_this_machine_are_told_from_others(origin: str, ours: bool) -> None:
    assert is_loopback(origin) is ours


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    values
    | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": values, "method": values, "params": values})
)
def test_any_value_is_answered_or_refused(message: Any) -> None:
    try:
        found = read_message(message)
        given = answer(found, [PRICE]) if found else None
    except RpcError as exc:
        given = failure(exc)
    if isinstance(given, dict):
        assert json.loads(dump(given))["jsonrpc"] == "2.0"


@given(st.text())
def test_any_origin_and_any_accept_header_can_be_read(text: str) -> None:
    assert isinstance(is_loopback(text), bool)
    assert isinstance(wants_stream(text), bool)
