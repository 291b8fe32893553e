"""The MCP endpoint: agents that get their tools over MCP get a Session's tools here.

Streamable HTTP without state: every POST stands for itself, so clients may reconnect, share
a connection or send several at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from proxy.wire import mcp
from proxy.wire.errors import ApiError
from proxy.wire.mcp import RpcError, RpcRequest, ToolCall

VERSION_HEADER = "MCP-Protocol-Version"


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool answers. `is_error`: the LLM is told that the call failed."""

    text: str
    is_error: bool = False


class Tools(Protocol):
    """The tools of one Session, and who answers for them."""

    def listed(self) -> list[dict[str, Any]]:
        """In the shape of chat completions: {"type": "function", "function": {name, ...}}."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Told:
        """Answers one call; several may run at once, and one whose client leaves is cancelled.

        `name` may be of no listed tool: that is for the LLM to hear, as an error that is
        told, because a protocol error ends the run in many frameworks. ApiError becomes one.
        """


async def serve_mcp(request: web.Request, tools: Tools) -> web.Response:
    """Answers any request to the endpoint. What goes wrong is told in JSON-RPC's shape."""
    try:
        _check_origin(request)
        if request.method != "POST":
            # No stream of our own and no session to end. Without a body: some clients would
            # read one as the beginning of the stream that they asked for.
            return web.Response(status=405, headers={"Allow": "POST"})
        messages, batch = mcp.read_body(await request.read())
    except ApiError as exc:
        return refused(exc)
    except web.HTTPRequestEntityTooLarge as exc:
        return refused(ApiError(exc.status, "the body is too large"))
    except web.RequestPayloadError:
        return refused(ApiError(400, "the body cannot be read"))
    except RpcError as exc:
        return _json(mcp.failure(exc), mcp.http_status(exc.code, stateless=False))
    version = request.headers.get(VERSION_HEADER)
    given = [await _answer(message, version, tools) for message in messages]
    answers = [answer for answer in given if answer is not None]
    if not answers:
        return web.Response(status=202)
    status = 200 if batch else answers[0][1]
    bodies = [body for body, _ in answers]
    if status == 200 and mcp.wants_stream(",".join(request.headers.getall("Accept", []))):
        return _stream(bodies)
    return _json(bodies if batch else bodies[0], status)


def refused(error: ApiError) -> web.Response:
    """An error that keeps a whole request from being served, with its own HTTP status."""
    code = mcp.INTERNAL_ERROR if error.status >= 500 else mcp.INVALID_REQUEST
    return _json(mcp.failure(RpcError(code, error.message)), error.status, error.headers)


def _check_origin(request: web.Request) -> None:
    for origin in request.headers.getall("Origin", []):
        if not mcp.is_loopback(origin):
            raise ApiError(403, "pages of other hosts may not use this endpoint", code="foreign_origin")


async def _answer(message: Any, version: str | None, tools: Tools) -> tuple[dict[str, Any], int] | None:
    """The answer and its HTTP status, or None where none is due."""
    stateless = version == mcp.STATELESS_VERSION
    try:
        request = mcp.read_message(message, version)
        if request is None:
            return None
        stateless = request.stateless
        return await _perform(request, tools), 200
    except RpcError as exc:
        return mcp.failure(exc), mcp.http_status(exc.code, stateless=stateless)


async def _perform(request: RpcRequest, tools: Tools) -> dict[str, Any]:
    try:
        answer = mcp.answer(request, tools.listed() if request.method == "tools/list" else ())
        if not isinstance(answer, ToolCall):
            return answer
        told = await tools.call(answer.name, answer.arguments)
    except ApiError as exc:
        raise RpcError(mcp.INTERNAL_ERROR, exc.message, id=request.id) from exc
    return mcp.success(request, mcp.tool_result(told.text, told.is_error))


def _json(body: Any, status: int, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=mcp.dump(body), status=status, content_type="application/json", headers=headers)


def _stream(bodies: list[dict[str, Any]]) -> web.Response:
    return web.Response(
        body=b"".join(map(mcp.event, bodies)),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache"},
    )
