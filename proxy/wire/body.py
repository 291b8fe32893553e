"""The body of a request, which must be a JSON object."""

from __future__ import annotations

import json
from typing import Any

from proxy.wire.errors import ApiError


def read_object(raw: bytes) -> dict[str, Any]:
    """Raises ApiError for anything else. Parsed by `json`, which keeps big integers whole."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ApiError(400, f"the body is not JSON: {exc}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object")
    return body
