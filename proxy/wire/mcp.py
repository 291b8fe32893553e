"""The Model Context Protocol for a server that only has tools: JSON-RPC messages in, answers out.

All revisions up to 2026-07-28. The older ones begin with `initialize`; the newest has no
handshake, asks `server/discover` and names its revision in every message. Nothing is kept
between messages, and what a client may leave out is not insisted on.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that `initialize` can agree on, the newest first."""
STATELESS_VERSION = "2026-07-28"
"""The revision without a handshake: its results have fields of their own."""
VERSIONS = (STATELESS_VERSION, *HANDSHAKE_VERSIONS)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SERVER = {"name": "tools", "version": "1"}
"""Says nothing of a test: a client may show it to the LLM."""
_CAPABILITIES: dict[str, Any] = {"tools": {}}
_EMPTY_LISTS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Asked for by some clients although no capability of ours says that we have any."""
_CACHEABLE = frozenset({"tools/list", "server/discover", *_EMPTY_LISTS})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""No line ends of JSON or of event streams, but some clients cut their lines there."""


class RpcError(Exception):
    """An answer that is an error. `id` is the message's, None while it has none that can be used."""

    def __init__(self, code: int, message: str, *, id: str | int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id
        self.data = data


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A message that wants an answer. `stateless`: it is of the revision without a handshake."""

    id: str | int
    method: str
    params: dict[str, Any]
    stateless: bool


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What `tools/call` asks for."""

    name: str
    arguments: dict[str, Any]


# Reading


def read_body(raw: bytes) -> tuple[list[Any], bool]:
    """The messages of a request's body, and whether they came as a batch. Raises RpcError."""
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise RpcError(PARSE_ERROR, f"the body is not JSON: {exc}") from None
    if value == []:
        raise RpcError(INVALID_REQUEST, "the batch is empty")
    return (value, True) if isinstance(value, list) else ([value], False)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def read_message(message: object, version: str | None = None) -> RpcRequest | None:
    """A request; None for a notification or a response, which get no answer. Raises RpcError.

    `version` is the revision that the HTTP header names, for messages that do not name one.
    """
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a message must be a JSON object")
    id = message.get("id")
    id = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=id)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method = message.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", id=id)
    if "id" not in message:
        return None
    if id is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
    params = {} if message.get("params") is None else message["params"]
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", id=id)
    named = _named_version(params) or version
    if named not in (None, *VERSIONS) and method != "initialize":
        data = {"supported": list(VERSIONS), "requested": named}
        raise RpcError(UNSUPPORTED_VERSION, f"unsupported protocol version: {named}", id=id, data=data)
    return RpcRequest(id, method, params, named == STATELESS_VERSION and method != "initialize")


def _named_version(params: Mapping[str, Any]) -> str | None:
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


# Answering


def answer(request: RpcRequest, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any] | ToolCall:
    """The whole answer, or the call that must be made first. Raises RpcError.

    `tools` are in the shape of chat completions.
    """
    if request.method == "tools/call":
        return _tool_call(request)
    return success(request, _result(request, tools))


def _tool_call(request: RpcRequest) -> ToolCall:
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "name must be a string", id=request.id)
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments must be an object", id=request.id)
    return ToolCall(name, arguments or {})


def _result(request: RpcRequest, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    method = request.method
    if method == "initialize":
        asked = request.params.get("protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
        return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}
    if method == "server/discover":
        about = {"supportedVersions": list(VERSIONS), "capabilities": _CAPABILITIES}
        return {**about, "_meta": {_SERVER_KEY: _SERVER}}
    if method == "tools/list":
        return {"tools": [listed_tool(tool) for tool in tools]}
    if method in _EMPTY_LISTS:
        return {_EMPTY_LISTS[method]: []}
    if method in ("ping", "logging/setLevel"):
        return {}
    raise RpcError(METHOD_NOT_FOUND, f"no such method: {method}", id=request.id)


def listed_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of a chat completion request as `tools/list` gives it: always with an object schema."""
    function = tool.get("function")
    function = function if isinstance(function, dict) else {}
    listed = {key: function[key] for key in ("name", "description") if isinstance(function.get(key), str)}
    parameters = function.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    return {**listed, "inputSchema": {"properties": {}, **parameters, "type": "object"}}


def tool_result(text: str, is_error: bool) -> dict[str, Any]:
    """What `tools/call` gives back; with `is_error` the LLM is told that the tool failed."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def success(request: RpcRequest, result: dict[str, Any]) -> dict[str, Any]:
    if request.stateless or request.method == "server/discover":
        result = {**result, "resultType": "complete"}
        if request.method in _CACHEABLE:
            result |= {"ttlMs": 0, "cacheScope": "private"}
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def failure(error: RpcError) -> dict[str, Any]:
    body = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": error.id, "error": body}


def http_status(code: int, *, stateless: bool) -> int:
    """The HTTP status of an error: clients of older revisions read only errors that come with 200."""
    if code in (PARSE_ERROR, INVALID_REQUEST, UNSUPPORTED_VERSION):
        return 400
    return {METHOD_NOT_FOUND: 404, INVALID_PARAMS: 400}.get(code, 200) if stateless else 200


def dump(value: object) -> bytes:
    """JSON in UTF-8 on one line. A lone surrogate, on which clients' parsers fail, becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _LONE_SURROGATE.sub("\ufffd", text).translate(_LINE_ENDS).encode()


def event(value: object) -> bytes:
    """One message of an event stream."""
    return b"event: message\ndata: " + dump(value) + b"\n\n"


# Headers


def wants_stream(accept: str) -> bool:
    """Does a client take an event stream and nothing else? Then it gets one, else JSON."""
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
    return "text/event-stream" in kinds and not kinds & {"application/json", "application/*", "*/*"}


def is_loopback(origin: str) -> bool:
    """Is a page with this Origin of this machine? Others reach us through a browser by DNS rebinding."""
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
