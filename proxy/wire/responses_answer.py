"""A chat completion as a Response, with every field that clients are known to need. Never raises."""

from __future__ import annotations

import json
from typing import Any

from proxy.wire.chat import read_message
from proxy.wire.responses import Body, call_id, item_id
from scenarios.replies import join_text, read_call

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why an answer is not whole, by chat's `finish_reason`."""
_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "temperature": None,
    "tool_choice": "auto",
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Fields of the request that stand in its Response, with what they are if nothing was asked."""


def to_response(completion: Body, asked: Body) -> Body:
    """The Response to the request `asked`. The completion has the Response's id.

    Its calls must have ids, as `responses.with_call_ids` gives them: they are the `call_id` of
    their items.
    """
    choice = _choice(completion)
    reason = _REASONS.get(str(choice.get("finish_reason")))
    created, model, tier = (completion.get(key) for key in ("created", "model", "service_tier"))
    created = created if isinstance(created, int | float) and not isinstance(created, bool) else 0
    tools = asked.get("tools")
    echoed = {key: default if asked.get(key) is None else asked[key] for key, default in _ECHOED.items()}
    return {
        "id": completion["id"],
        "object": "response",
        "created_at": created,
        "completed_at": None if reason else created,
        "status": "incomplete" if reason else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model if isinstance(model, str) else "",
        "output": output_items(completion),
        "reasoning": {"effort": None, "summary": None, **_object(asked.get("reasoning"))},
        "service_tier": tier if isinstance(tier, str) else None,
        "text": {"format": {"type": "text"}, **_object(asked.get("text"))},
        "tools": tools if isinstance(tools, list) else [],
        "usage": _usage(completion.get("usage")),
        **echoed,
    }


def output_items(completion: Body) -> list[Body]:
    """The answer's items: reasoning, text or refusal, calls; each with an id that tells whose it is."""
    message = read_message(completion) or {}
    response_id = completion["id"]
    found = [
        *_reasoning(message),
        *_said(message),
        *(_call(entry, response_id, place) for place, entry in enumerate(_entries(message))),
    ]
    kinds = {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
    reason = _REASONS.get(str(_choice(completion).get("finish_reason")))
    status = {"status": "incomplete" if reason else "completed"}
    return [
        {"id": item_id(response_id, kinds[item["type"]], place), **item, **status}
        for place, item in enumerate(found)
    ]


def _choice(completion: Body) -> Body:
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _object(first)


def _object(value: object) -> Body:
    return {key: it for key, it in value.items() if it is not None} if isinstance(value, dict) else {}


def _reasoning(message: Body) -> list[Body]:
    for field in ("reasoning_content", "reasoning"):
        text = message.get(field)
        if isinstance(text, str) and text:
            return [{"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}]
    return []


def _said(message: Body) -> list[Body]:
    content = message.get("content")
    text = join_text(content) if isinstance(content, list) else content
    refusal = message.get("refusal")
    parts: list[Body] = []
    if isinstance(text, str) and text:
        parts.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    if isinstance(refusal, str) and refusal:
        parts.append({"type": "refusal", "refusal": refusal})
    if not (parts or _entries(message)):
        # Many clients cannot do with an answer that has no item at all.
        parts = [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]
    return [{"type": "message", "role": "assistant", "content": parts}] if parts else []


def _entries(message: Body) -> list[Any]:
    entries = message.get("tool_calls")
    return entries if isinstance(entries, list) else []


def _call(entry: object, response_id: str, place: int) -> Body:
    call = read_call(entry)
    named = {"call_id": call.id or call_id(response_id, place), "name": call.name}
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    is_custom = isinstance(entry, dict) and "custom" in entry and "function" not in entry
    if is_custom:
        return {"type": "custom_tool_call", **named, "input": arguments}
    return {"type": "function_call", **named, "arguments": arguments}


def _usage(usage: object) -> Body | None:
    if not isinstance(usage, dict):
        return None
    given = _count(usage, "prompt_tokens", "input_tokens")
    made = _count(usage, "completion_tokens", "output_tokens")
    prompt = _object(usage.get("prompt_tokens_details"))
    output = _object(usage.get("completion_tokens_details"))
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": _count(prompt, "cached_tokens"),
            "cache_write_tokens": _count(prompt, "cache_write_tokens"),
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": _count(output, "reasoning_tokens")},
        "total_tokens": given + made,
    }


def _count(values: Body, *names: str) -> int:
    for name in names:
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return 0
