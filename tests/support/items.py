"""Requests of the Responses API in parts, and what they come to as chat."""

from __future__ import annotations

from typing import Any

from proxy.wire.responses import StoredResponse, with_call_ids
from proxy.wire.responses_request import to_chat

RESPONSE = "resp_" + "ab" * 20


def asked(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **fields}


def messages(*items: Any, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_chat(asked(*items, **fields), {}).body["messages"]
    return found


def fields(**given: Any) -> dict[str, Any]:
    body = dict(to_chat({"input": "Hi", **given}, {}).body)
    assert body.pop("messages") == [{"role": "user", "content": "Hi"}]
    return body


def called(call_id: str, name: str = "find", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def told(call_id: str, output: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def chat_call(call_id: str, name: str = "find", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def stored(
    *before: dict[str, Any], answer: dict[str, Any], response_id: str = RESPONSE, **asked: Any
) -> dict[str, StoredResponse]:
    completion = {"choices": [{"index": 0, "message": {"role": "assistant", **answer}}]}
    return {
        response_id: StoredResponse(response_id, asked, tuple(before), with_call_ids(completion, response_id))
    }


USER = {"role": "user", "content": "Hi"}
