"""The Responses API in front of chat completions: its ids, and what a later request refers to.

Inside the proxy everything is a chat request and a chat completion. `responses_request`
makes the one of what an agent sends, `responses_answer` and `responses_stream` render the
other; `responses_ask` and `responses_read` are for providers that speak the Responses API.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from proxy.wire.chat import dump_json, read_message

Body = dict[str, Any]
Message = dict[str, Any]

RESPONSES_PATH = "/responses"

_RESPONSE_ID = re.compile(r"resp_[0-9a-f]{40}")
_ITEM_ID = re.compile(r"[a-z]{2,4}_(?P<response>[0-9a-f]{40})(?P<place>[0-9a-f]{4})")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that an agent was given, and what it was asked with.

    `asked` is the request without its input; `messages` is that as chat messages, the
    `instructions` first, if there were any; `completion` is the answer as a chat completion
    with the response's id. `session_id` is the Session attempt it belongs to.
    """

    id: str
    asked: Body
    messages: tuple[Message, ...]
    completion: Body
    session_id: str | None = None

    @property
    def input(self) -> tuple[Message, ...]:
        """The conversation that was sent: all but the instructions."""
        return self.messages[1:] if has_instructions(self.asked) else self.messages

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What a request with this `previous_response_id` goes on from."""
        answer = read_message(self.completion)
        return self.input if answer is None else (*self.input, answer)


def has_instructions(asked: Body) -> bool:
    """Does a Responses request begin with a system message of its own?"""
    return bool(asked.get("instructions"))


def is_own_id(response_id: object) -> bool:
    """Could this be a response id that the proxy issued?"""
    return isinstance(response_id, str) and _RESPONSE_ID.fullmatch(response_id) is not None


def own_id(scope: str, completion: Body) -> str:
    """The response id under which a completion is given: the same each time it is given again.

    `scope` (a Session's turn, say) keeps completions apart that a provider gave the same id.
    """
    known = completion.get("id")
    if is_own_id(known):
        return str(known)
    return "resp_" + hashlib.sha256(scope.encode() + b"\0" + dump_json(completion)).hexdigest()[:40]


def item_id(response_id: str, kind: str, place: int) -> str:
    """The id of an output item, `kind` being its prefix: it tells whose item it is."""
    stem = response_id.removeprefix("resp_")
    return f"{kind}_{stem}{place:04x}"


def response_of_item(item: object) -> str | None:
    """The id of the response that an item belongs to; None if it is none of ours."""
    match = _ITEM_ID.fullmatch(item) if isinstance(item, str) else None
    return f"resp_{match['response']}" if match else None


def with_call_ids(completion: Body, response_id: str) -> Body:
    """The completion under `response_id`, its calls all in `tool_calls` and with ids.

    The item and the chat message of a call must name it alike, for its result to be known.
    """
    completion = {**completion, "id": response_id}
    message = read_message(completion)
    if message is None:
        return completion
    entries = message.get("tool_calls")
    legacy = message.get("function_call")
    if not (isinstance(entries, list) and entries):
        entries = [{"type": "function", "function": legacy}] if isinstance(legacy, dict) and legacy else []
    named = [_with_id(entry, response_id, place) for place, entry in enumerate(entries)]
    message = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    if named:
        message["tool_calls"] = named
    first, *others = completion["choices"]
    return {**completion, "choices": [{**first, "message": message}, *others]}


def _with_id(entry: object, response_id: str, place: int) -> Body:
    call = entry if isinstance(entry, dict) else {"type": "function", "function": {"name": ""}}
    known = call.get("id")
    return call if isinstance(known, str) and known else {**call, "id": call_id(response_id, place)}


def call_id(response_id: str, place: int) -> str:
    """An id for a call that came without one; some clients take no longer ones."""
    return f"call_{response_id.removeprefix('resp_')[:28]}{place:04x}"
