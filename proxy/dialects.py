"""How an agent speaks: in what form it gets what a turn came to. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from proxy.outcomes import Outcome, as_final_answer
from proxy.wire.chat import dump_json, read_message, stream_events
from proxy.wire.responses import StoredResponse, own_id, with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_ask import REASONING_ITEMS
from proxy.wire.responses_stream import response_events

Body = dict[str, Any]


class Dialect(Protocol):
    """One request's form of answer."""

    def given(self, outcome: Outcome, exchange_id: str, scope: str) -> Body:
        """The chat completion that the agent is given, as the log has it.

        `scope` keeps completions apart that a provider gave the same id.
        """

    def released(self, completion: Body, session_id: str) -> None:
        """It is in the log, and about to be written out."""

    def rendered(self, completion: Body) -> bytes:
        """The bytes that the agent gets: JSON, or a whole stream."""


class ChatDialect:
    """Chat completions; `asked` is the request."""

    def __init__(self, asked: Body) -> None:
        self._asked = asked

    def given(self, outcome: Outcome, exchange_id: str, scope: str) -> Body:
        response = _whole(outcome.response, f"chatcmpl-{exchange_id}", self._asked.get("model"))
        return as_final_answer(response, self._asked, f"call_{exchange_id}") if outcome.final else response

    def released(self, completion: Body, session_id: str) -> None:
        """Chat completions are not asked for again."""

    def rendered(self, completion: Body) -> bytes:
        completion = _without_items(completion)
        if not self._asked.get("stream"):
            return dump_json(completion)
        options = self._asked.get("stream_options")
        usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return b"".join(stream_events(completion, usage))


class ResponsesDialect:
    """The Responses API; `asked` is the request without its input, `messages` that as chat messages.

    `keep` is told each response that is given, as later requests may refer to it.
    """

    def __init__(self, asked: Body, messages: list[Any], keep: Callable[[StoredResponse], None]) -> None:
        self._asked = asked
        self._messages = tuple(messages)
        self._keep = keep

    def given(self, outcome: Outcome, exchange_id: str, scope: str) -> Body:
        own = own_id(scope, outcome.response)
        return with_call_ids(_whole(outcome.response, own, self._asked.get("model")), own)

    def released(self, completion: Body, session_id: str) -> None:
        self._keep(
            StoredResponse(completion["id"], self._asked, self._messages, completion, session_id),
        )

    def rendered(self, completion: Body) -> bytes:
        response = to_response(completion, self._asked)
        return b"".join(response_events(response)) if self._asked.get("stream") else dump_json(response)


def _whole(completion: Body, own: str, asked: Any) -> Body:
    """With all that clients check of a completion, whatever the provider has left out.

    `own` is its id, and `asked` its model, where it has none.
    """
    response_id, model, created = (completion.get(key) for key in ("id", "model", "created"))
    return {
        **completion,
        "id": response_id if isinstance(response_id, str) and response_id else own,
        "object": "chat.completion",
        "created": created if isinstance(created, int) else 0,
        "model": next((it for it in (model, asked) if isinstance(it, str) and it), ""),
    }


def _without_items(completion: Body) -> Body:
    """Without what only a provider of the Responses API has a use for: some clients echo all they get."""
    message = read_message(completion)
    if message is None or REASONING_ITEMS not in message:
        return completion
    plain = {key: value for key, value in message.items() if key != REASONING_ITEMS}
    first, *others = completion["choices"]
    return {**completion, "choices": [{**first, "message": plain}, *others]}
