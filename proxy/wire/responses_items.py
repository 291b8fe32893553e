"""The input items of a Responses request as chat messages. Raises ApiError alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.wire.errors import ApiError

Item = dict[str, Any]
Message = dict[str, Any]

_ROLES = ("user", "assistant", "system", "developer")
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def is_reference(item: object) -> bool:
    """Does an item only name another one? Its type may be left out."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type")
    return kind == "item_reference" or (
        kind is None and "role" not in item and isinstance(item.get("id"), str)
    )


def messages_of(
    items: Sequence[object], referred: Mapping[str, Item], where: str = "input"
) -> tuple[list[Message], list[str]]:
    """The messages, and what had to be left out (`input[2]: web_search_call`).

    `referred` has the items that others refer to, by id. Calls that stand together are one
    assistant message, with the text right before or after them. Reasoning stays out of it.
    """
    reading = _Reading()
    for place, item in enumerate(items):
        at = f"{where}[{place}]"
        if is_reference(item):
            assert isinstance(item, dict)
            item = _referred(item.get("id"), referred, at)
            if item is None:
                continue
        reading.add(item, at)
    return reading.messages, reading.dropped


def content_of(content: object, at: str) -> Any:
    """Content for chat: a text where it is one part of text, else a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _wrong(f"{at}.content must be a string or a list of parts")
    parts = [_part(part, f"{at}.content[{place}]") for place, part in enumerate(content)]
    if len(parts) == 1 and parts[0].get("type") == "text":
        return parts[0]["text"]
    return parts or ""


class _Reading:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.dropped: list[str] = []
        self._answer: Message | None = None
        """The assistant message that what follows may still belong to."""

    def add(self, item: object, at: str) -> None:
        if not isinstance(item, dict):
            raise _wrong(f"{at} must be an object")
        kind = item.get("type")
        if kind in _CALLS:
            self._call(item, at)
        elif kind in _OUTPUTS:
            self._end({"role": "tool", "tool_call_id": _call_id(item, at), "content": _output(item, at)})
        elif kind in (None, "message"):
            self._message(item, at)
        elif kind != "reasoning":
            self.dropped.append(f"{at}: {str(kind)[:40]}")

    def _message(self, item: Item, at: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise _wrong(f"{at}.role must be one of {', '.join(_ROLES)}")
        named = {"name": item["name"]} if isinstance(item.get("name"), str) else {}
        if role != "assistant":
            self._end({"role": role, "content": content_of(item.get("content"), at), **named})
            return
        said = {**_said(item.get("content"), at), **named}
        answer = self._answer
        if answer is not None and answer.get("tool_calls") and answer["content"] is None:
            answer.update(said)
        else:
            self._answer = {"role": "assistant", **said}
            self.messages.append(self._answer)

    def _call(self, item: Item, at: str) -> None:
        name = item.get("name")
        if not isinstance(name, str):
            raise _wrong(f"{at}.name must be a string")
        if item["type"] == "function_call":
            function = {"name": name, "arguments": _text(item.get("arguments"))}
            call = {"id": _call_id(item, at), "type": "function", "function": function}
        else:
            custom = {"name": name, "input": _text(item.get("input"))}
            call = {"id": _call_id(item, at), "type": "custom", "custom": custom}
        if self._answer is None:
            self._answer = {"role": "assistant", "content": None}
            self.messages.append(self._answer)
        self._answer.setdefault("tool_calls", []).append(call)

    def _end(self, message: Message) -> None:
        self._answer = None
        self.messages.append(message)


def _referred(item_id: object, referred: Mapping[str, Item], at: str) -> Item | None:
    """The item with this id; None for reasoning, which is left out of chat messages anyway."""
    if isinstance(item_id, str) and item_id in referred:
        return referred[item_id]
    if isinstance(item_id, str) and item_id.startswith("rs_"):
        return None
    shown = str(item_id)[:80]
    raise _wrong(f"{at}: item with id {shown!r} not found: send the item itself in place of the reference")


def _call_id(item: Item, at: str) -> str:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise _wrong(f"{at}.call_id must be a string that is not empty")
    return call_id


def _output(item: Item, at: str) -> Any:
    output = item.get("output")
    if isinstance(output, list):
        return content_of(output, at)
    return _text(output)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _said(content: object, at: str) -> Message:
    """What an assistant said: its texts as one, and its refusal."""
    if content is None or isinstance(content, str):
        return {"content": content or ""}
    if not isinstance(content, list):
        raise _wrong(f"{at}.content must be a string or a list of parts")
    texts, refusals = [], []
    for part in content:
        if isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, dict) and isinstance(part.get("refusal"), str):
            refusals.append(part["refusal"])
    said: Message = {"content": "".join(texts) if texts or not refusals else None}
    return {**said, "refusal": "".join(refusals)} if refusals else said


def _part(part: object, at: str) -> Message:
    if not isinstance(part, dict):
        raise _wrong(f"{at} must be an object")
    kind = part.get("type")
    if kind in _TEXTS:
        return {"type": "text", "text": _text(part.get("text"))}
    if kind == "input_image":
        image = {"url": part.get("image_url") or part.get("file_id")}
        if isinstance(part.get("detail"), str):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        known = ("file_id", "file_data", "filename")
        return {"type": "file", "file": {key: part[key] for key in known if part.get(key) is not None}}
    if kind == "refusal":
        return {"type": "text", "text": _text(part.get("refusal"))}
    # Of chat's own kinds (`input_audio`, `image_url`), or of none that is known: the provider will say.
    return dict(part)


def _wrong(text: str) -> ApiError:
    return ApiError(400, text, param="input")
