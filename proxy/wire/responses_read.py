"""What a provider answers over the Responses API, as a chat completion. Never raises."""

from __future__ import annotations

from typing import Any

from proxy.wire.responses import Body
from proxy.wire.responses_ask import REASONING_ITEMS

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_ENDS = ("response.completed", "response.incomplete")


class ResponsesReader:
    """Turns each JSON value of an answer into what a chat provider would have sent in its place.

    A whole Response becomes a whole completion. Of the events, those in between become empty
    chunks and the last one a chunk with the whole message: only then is it known to be whole.
    `done` says that it has come. `legacy`: the request had its tools as `functions`, and its
    answer speaks that older dialect too. `background`: a response that is still being made is one.
    """

    def __init__(self, *, legacy: bool = False, background: bool = False) -> None:
        self.done = False
        self._background = background
        self._legacy = legacy
        self._items: dict[int, Body] = {}

    def body(self, value: Any) -> Any:
        """A JSON body; what is no Response comes back as it is."""
        if not isinstance(value, dict) or value.get("error") or not _is_response(value):
            return value
        status = value.get("status")
        if status in (None, "completed", "incomplete"):
            return self._completion(value)
        if self._background and status in ("queued", "in_progress"):
            return value
        return {"error": {"message": f"the response has the status {status!r}"}}

    def chunk(self, event: Any) -> Any:
        """An event's data; what is no event of a Response comes back as it is."""
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            return event
        kind, response = event["type"], event.get("response")
        response = response if isinstance(response, dict) else {}
        if kind == "error":
            return event if event.get("error") else {"error": {**event, "type": event.get("code") or kind}}
        if kind in ("response.failed", "response.cancelled"):
            return {"error": response.get("error") or {"message": f"the provider ended with {kind}"}}
        if kind in _ENDS:
            self.done = True
            if not response.get("output"):
                # Some servers leave out of the last event what they have sent before.
                response = {**response, "output": [self._items[at] for at in sorted(self._items)]}
            return _as_chunk(self._completion({"status": kind.removeprefix("response."), **response}))
        item, index = event.get("item"), event.get("output_index")
        if kind == "response.output_item.done" and isinstance(item, dict):
            self._items[index if isinstance(index, int) else len(self._items)] = item
        return {}

    def _completion(self, response: Body) -> Body:
        completion = _completion(response)
        return _legacy(completion) if self._legacy else completion


def _is_response(value: Body) -> bool:
    return value.get("object") == "response" or isinstance(value.get("output"), list)


def _as_chunk(completion: Body) -> Body:
    [choice] = completion["choices"]
    message = dict(choice["message"])
    if "tool_calls" in message:
        message["tool_calls"] = [{**call, "index": at} for at, call in enumerate(message["tool_calls"])]
    return {**completion, "choices": [{**choice, "message": message}]}


def _completion(response: Body) -> Body:
    output = response.get("output")
    items = [item for item in (output if isinstance(output, list) else ()) if isinstance(item, dict)]
    message = _message(items)
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if response.get("status") == "incomplete":
        finish = _REASONS.get(str(reason), "length")
    else:
        finish = "tool_calls" if message.get("tool_calls") else "stop"
    created = response.get("created_at")
    completion: Body = {
        "id": response.get("id") or "",
        "object": "chat.completion",
        "created": _seconds(created),
        "model": response.get("model") or "",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if isinstance(response.get("service_tier"), str):
        completion["service_tier"] = response["service_tier"]
    if isinstance(response.get("usage"), dict):
        completion["usage"] = _usage(response["usage"])
    return completion


def _seconds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return 0
    return int(value)


def _message(items: list[Body]) -> Body:
    texts, refusals, thoughts = [], [], []
    calls: list[Body] = []
    kept: list[Body] = []
    for item in items:
        kind = item.get("type")
        if kind == "message":
            texts += _texts(item.get("content"), "text")
            refusals += _texts(item.get("content"), "refusal")
        elif kind in ("function_call", "custom_tool_call"):
            calls.append(_call(item))
        elif kind == "reasoning":
            thoughts += _texts(item.get("summary"), "text") or _texts(item.get("content"), "text")
            # Nothing is stored with the provider: only what has its content in it can be sent back.
            if item.get("encrypted_content") or item.get("content"):
                kept.append(item)
    message: Body = {"role": "assistant", "content": "".join(texts) if texts else None}
    if refusals:
        message["refusal"] = "".join(refusals)
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    if kept:
        message[REASONING_ITEMS] = kept
    return message


def _texts(parts: object, field: str) -> list[str]:
    if isinstance(parts, str):
        return [parts] if field == "text" else []
    found = [part.get(field) for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str)]


def _call(item: Body) -> Body:
    """A call as it came, broken ones too: they are judged, not mended."""
    call_id, name = item.get("call_id"), item.get("name")
    if item["type"] == "custom_tool_call":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": item.get("input")}}
    function = {"name": name, "arguments": item.get("arguments")}
    return {"id": call_id, "type": "function", "function": function}


def _usage(usage: Body) -> Body:
    given, made = usage.get("input_tokens"), usage.get("output_tokens")
    counted: Body = {"prompt_tokens": given, "completion_tokens": made}
    total = usage.get("total_tokens")
    if total is None and isinstance(given, int) and isinstance(made, int):
        total = given + made
    for name, details in (
        ("prompt_tokens_details", usage.get("input_tokens_details")),
        ("completion_tokens_details", usage.get("output_tokens_details")),
    ):
        if isinstance(details, dict):
            counted[name] = details
    return {**counted, "total_tokens": total}


def _legacy(completion: Body) -> Body:
    """The completion in the older dialect of `functions`, which has one call per message."""
    [choice] = completion["choices"]
    message = dict(choice["message"])
    calls = message.pop("tool_calls", None)
    if not calls or "function" not in calls[0]:
        return completion
    message["function_call"] = calls[0]["function"]
    return {**completion, "choices": [{**choice, "message": message, "finish_reason": "function_call"}]}
