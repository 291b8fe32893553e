from __future__ import annotations

import pytest

from proxy.wire.errors import INVALID_REQUEST, SERVER_ERROR, ApiError, error_body


def test_an_error_body_has_the_four_fields_that_clients_read():
    assert error_body("no such session", code="unknown_session", param="session") == {
        "error": {
            "message": "no such session",
            "type": INVALID_REQUEST,
            "param": "session",
            "code": "unknown_session",
        }
    }


def test_an_api_error_carries_status_headers_and_body():
    with pytest.raises(ApiError, match="busy") as caught:
        raise ApiError(503, "busy", SERVER_ERROR, headers={"x-should-retry": "false"})
    error = caught.value
    assert (error.status, error.headers) == (503, {"x-should-retry": "false"})
    assert error.body == {"error": {"message": "busy", "type": SERVER_ERROR, "param": None, "code": None}}
