"""A response that an agent was given, read from the log by its id."""

from __future__ import annotations

import json
import os

from proxy.log.database import reading
from proxy.log.restore import read_history
from proxy.wire.responses import StoredResponse


def read_response(path: str | os.PathLike[str], response_id: str) -> StoredResponse | None:
    """The last response that was given under this id; None if there is none. Raises LogError."""
    with reading(path) as connection:
        row = connection.execute(_RESPONSE, (response_id,)).fetchone()
        if row is None:
            return None
        asked = json.loads(row["body"]) if row["body"] else {}
        if row["tools"]:
            asked["tools"] = json.loads(row["tools"])
        message = json.loads(row["answer"])
        reasons = json.loads(row["finish_reasons"] or "[]")
        completion = {
            "id": response_id,
            "object": "chat.completion",
            "created": int(row["finished_at"]),
            "model": row["response_model"] or "",
            "choices": [{"index": 0, "message": message, "finish_reason": reasons[0] if reasons else None}],
        }
        if row["input_tokens"] is not None:
            made = row["output_tokens"] or 0
            completion["usage"] = {"prompt_tokens": row["input_tokens"], "completion_tokens": made}
        return StoredResponse(
            id=response_id,
            asked=asked if isinstance(asked, dict) else {},
            messages=tuple(it for it in read_history(connection, row["tip"]) if isinstance(it, dict)),
            completion=completion,
            session_id=row["session_id"],
        )


_RESPONSE = """SELECT session_id, tip, exchanges.body AS body, tool_lists.body AS tools,
    messages.body AS answer, response_model, finish_reasons, input_tokens, output_tokens, finished_at
    FROM exchanges JOIN messages ON messages.hash = output_message
    LEFT JOIN tool_lists ON tool_lists.hash = exchanges.tools
    WHERE response_id = ? AND substr(response_id, 1, 5) = 'resp_' AND side = 'agent'
    ORDER BY arrival DESC LIMIT 1"""
