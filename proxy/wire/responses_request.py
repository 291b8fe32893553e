"""What an agent asks over the Responses API, as a chat completion request. Raises ApiError alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.wire.body import read_object
from proxy.wire.errors import ApiError
from proxy.wire.responses import StoredResponse, response_of_item
from proxy.wire.responses_answer import output_items
from proxy.wire.responses_fields import chat_fields
from proxy.wire.responses_items import Item, content_of, is_reference, messages_of

Body = dict[str, Any]
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat completion request, and what of the Responses request could not go into it."""

    body: Body
    dropped: tuple[str, ...] = ()


def parse_request(raw: bytes) -> Body:
    """A Responses request that can be played at all."""
    body = read_object(raw)
    if body.get("background"):
        raise ApiError(
            400,
            "background responses are not played: leave background out and read the answer or its stream",
            param="background",
            code="background_not_played",
        )
    if body.get("conversation") is not None:
        raise ApiError(
            400,
            "conversations are not kept here: leave conversation out and send previous_response_id, "
            "or the whole history as input",
            param="conversation",
            code="conversation_not_played",
        )
    return body


def references(asked: Body) -> set[str]:
    """The ids of the responses that a request refers to, as `previous_response_id` or by an item."""
    items = asked.get("input")
    named = [item.get("id") for item in (items if isinstance(items, list) else ()) if is_reference(item)]
    found = {response_of_item(item_id) for item_id in named}
    previous = asked.get("previous_response_id")
    if isinstance(previous, str):
        found.add(previous)
    return {it for it in found if it is not None}


def to_chat(asked: Body, stored: Mapping[str, StoredResponse]) -> ChatRequest:
    """The chat request; `stored` has the responses that `references` names, as far as they are known.

    The `instructions` come first, as a system message; then the previous response's conversation
    (without its own instructions), then the input.
    """
    before = _previous(asked.get("previous_response_id"), stored)
    referred = {item["id"]: item for it in stored.values() for item in output_items(it.completion)}
    leading = _leading(asked.get("instructions"), referred)
    given = asked.get("input")
    new: list[Message]
    dropped: list[str]
    if isinstance(given, str):
        new, dropped = [{"role": "user", "content": given}], []
    elif isinstance(given, list) or given is None:
        new, dropped = messages_of(given or (), referred)
    else:
        raise ApiError(400, "input must be a string or a list of items", param="input")
    if not (new or before):
        raise ApiError(400, "input must be a string or a list of items that is not empty", param="input")
    fields, unsendable = chat_fields(asked)
    messages = [*leading, *before, *_not_repeated(new, before)]
    return ChatRequest({**fields, "messages": messages}, (*dropped, *unsendable))


def _previous(response_id: object, stored: Mapping[str, StoredResponse]) -> Sequence[Message]:
    if response_id is None:
        return ()
    if not isinstance(response_id, str) or response_id not in stored:
        raise ApiError(
            400,
            f"Previous response with id {str(response_id)[:80]!r} not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return stored[response_id].conversation


def _leading(instructions: object, referred: Mapping[str, Item]) -> list[Message]:
    """`instructions` as one system message, whatever form they have."""
    if not instructions:
        return []
    if isinstance(instructions, str):
        return [{"role": "system", "content": instructions}]
    if not isinstance(instructions, list):
        raise ApiError(400, "instructions must be a string", param="instructions")
    messages, _ = messages_of(instructions, referred, "instructions")
    parts: list[Any] = []
    for message in messages:
        content = content_of(message.get("content"), "instructions")
        parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [{"role": "system", "content": parts}]


def _not_repeated(new: Sequence[Message], before: Sequence[Message]) -> list[Message]:
    """The new messages, without those that some clients send once more beside the results of calls.

    The conversation waits for results then, and what it already has since the user spoke (the
    user's words, texts beside calls, earlier results) tells nothing new.
    """
    results = [place for place, message in enumerate(new) if message["role"] == "tool"]
    if not results or not before or not before[-1].get("tool_calls"):
        return list(new)
    open_turn = _open_turn(before)
    answered = {it.get("tool_call_id") for it in open_turn if it.get("role") == "tool"}
    said = [(it.get("role"), it.get("content")) for it in open_turn]
    again = [
        message["tool_call_id"] in answered
        if message["role"] == "tool"
        else not message.get("tool_calls") and (message["role"], message.get("content")) in said
        for message in new[: results[-1]]
    ]
    kept = [message for message, is_old in zip(new, again, strict=False) if not is_old]
    return [*kept, *new[results[-1] :]]


def _open_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What was said since the last closing text."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "assistant" and not messages[place].get("tool_calls"):
            return messages[place + 1 :]
    return messages
