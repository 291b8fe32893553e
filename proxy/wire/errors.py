"""Errors in the shape OpenAI clients read: `{"error": {message, type, param, code}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INVALID_REQUEST = "invalid_request_error"
"""The request cannot be served as it is (400, 404, 405, 413)."""
AUTHENTICATION = "authentication_error"
"""A token is missing or wrong (401, 403)."""
PROVIDER_ERROR = "provider_error"
"""The provider failed or cannot be reached (502, 504)."""
SERVER_ERROR = "server_error"
"""The fault is ours (500, 503)."""
PROXY_FAULT = "proxy_fault"
"""The code of errors that are nobody else's fault."""


def error_body(
    message: str, type: str = INVALID_REQUEST, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """The JSON body of an error answer; clients show `message` and little else."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


class ApiError(Exception):
    """An answer to the agent that is an error; the server turns it into a response.

    `status` is the HTTP status, `headers` go out with it.
    """

    def __init__(
        self,
        status: int,
        message: str,
        type: str = INVALID_REQUEST,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        return error_body(self.message, self.type, self.code, self.param)
