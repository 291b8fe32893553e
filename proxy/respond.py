"""Answers of our own, and breaking one off."""

from __future__ import annotations

from aiohttp import web

from proxy.wire.errors import ApiError


def error_response(error: ApiError) -> web.Response:
    headers = {**error.headers, "x-should-retry": "false"}
    return web.json_response(error.body, status=error.status, headers=headers)


def break_off(request: web.Request) -> None:
    """Cuts the connection, so that what was sent cannot be taken for a whole answer."""
    if request.transport is not None:
        request.transport.abort()
