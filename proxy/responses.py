"""The Responses API of a proxy that plays: requests become chat requests, what was given can be had again."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from proxy.dialects import ResponsesDialect
from proxy.journal import Journal
from proxy.log.errors import LogError
from proxy.log.responses import read_response
from proxy.outcomes import Outcome
from proxy.provider import Provider
from proxy.respond import Connection, failure_response
from proxy.wire.chat import dump_json
from proxy.wire.errors import ApiError
from proxy.wire.responses import RESPONSES_PATH, StoredResponse, is_own_id
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_ask import input_items
from proxy.wire.responses_request import parse_request, references, to_chat
from proxy.wire.responses_stream import response_events

Body = dict[str, Any]

KEPT = 500
"""Responses at hand without reading the log: an agent seldom refers to any but its last."""
_STORED = re.compile(rf"{RESPONSES_PATH}/(?P<id>[^/]+)(?P<items>/input_items)?")


class StoredResponses:
    """The responses that agents were given: the latest at hand, all the others in the log."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._kept: OrderedDict[str, StoredResponse] = OrderedDict()
        self._deleted: set[str] = set()

    def keep(self, stored: StoredResponse) -> None:
        self._kept[stored.id] = stored
        self._kept.move_to_end(stored.id)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def delete(self, response_id: str) -> None:
        """It cannot be referred to any more. The log keeps it: it is what happened."""
        self._deleted.add(response_id)

    async def find(self, response_id: str) -> StoredResponse | None:
        """None if the proxy never gave it. Raises LogError."""
        if response_id in self._deleted or not is_own_id(response_id):
            return None
        if response_id not in self._kept:
            found = await asyncio.to_thread(read_response, self._log, response_id)
            if found is None:
                return None
            self.keep(found)
        return self._kept[response_id]

    async def resolve(self, response_ids: Iterable[str]) -> dict[str, StoredResponse]:
        """Those that are known, by id."""
        found = [await self.find(it) for it in response_ids]
        return {it.id: it for it in found if it is not None}


@dataclass(frozen=True, slots=True)
class Translated:
    """A Responses request: `chat` is what is played, `logged` what the log has of it.

    `changes` names what could not be translated, `session_id` the Session attempt of a response
    that it refers to.
    """

    chat: Body
    logged: Body
    dialect: ResponsesDialect
    changes: tuple[str, ...] = ()
    session_id: str | None = None


class ResponsesApi:
    """What agents ask over the Responses API."""

    def __init__(self, provider: Provider, journal: Journal, log: Path) -> None:
        self._provider = provider
        self._journal = journal
        self._stored = StoredResponses(log)

    async def translated(self, raw: bytes) -> Translated:
        """A request as a chat request. Raises ApiError for one that cannot be, and LogError."""
        asked = parse_request(raw)
        stored = await self._stored.resolve(references(asked))
        chat = to_chat(asked, stored)
        rest = {key: value for key, value in asked.items() if key != "input"}
        messages = chat.body["messages"]
        previous = stored.get(str(asked.get("previous_response_id")))
        known = [it.session_id for it in (previous, *stored.values()) if it is not None and it.session_id]
        return Translated(
            chat=chat.body,
            logged={**rest, "messages": messages},
            dialect=ResponsesDialect(rest, messages, self._stored.keep),
            changes=chat.dropped,
            session_id=known[0] if known else None,
        )

    def is_stored(self, method: str, path: str) -> bool:
        """Is this a request about a response that was given before?"""
        match = _STORED.fullmatch(path)
        return bool(match) and (method == "GET" or (method == "DELETE" and not (match and match["items"])))

    async def stored(self, request: web.Request, path: str) -> bytes:
        """The JSON (or the stream) of a response that was given before, or of its input.

        Raises ApiError for one that is not known, and LogError.
        """
        match = _STORED.fullmatch(path)
        assert match is not None
        found = await self._stored.find(match["id"])
        if found is None:
            shown = match["id"][:80]
            raise ApiError(404, f"Response with id {shown!r} not found.", code="response_not_found")
        if request.method == "DELETE":
            self._stored.delete(found.id)
            return dump_json({"id": found.id, "object": "response", "deleted": True})
        if match["items"]:
            return dump_json(_listed(found, request.query.get("order")))
        response = to_response(found.completion, found.asked)
        if wants_stream(request):
            return b"".join(response_events(response))
        return dump_json(response)

    async def aside(
        self,
        connection: Connection,
        request: web.Request,
        body: Body,
        asked: Translated,
        *,
        exchange_id: str,
        session_id: str,
        key: str | None,
    ) -> web.StreamResponse:
        """Answers a call on the side with what the provider says to `body`, its chat request."""
        try:
            asking = self._provider.complete(
                body, key=key, headers=dict(request.headers), query=request.rel_url.raw_query_string
            )
            answer = await connection.wait(asyncio.ensure_future(asking))
            if answer.response is not None:
                outcome = Outcome(answer.response)
                answer = replace(answer, response=asked.dialect.given(outcome, exchange_id, exchange_id))
            await self._journal.log.commit(self._journal.answered(exchange_id, answer))
            if answer.response is None:
                failure = failure_response(answer, answer.error or answer.finish_state, again=True)
                return connection.fail(failure)
            asked.dialect.released(answer.response, session_id)
            response = await connection.write(asked.dialect.rendered(answer.response))
            self._journal.delivered(exchange_id)
            return response
        except LogError:
            if connection.begun is None:
                raise
            self._journal.log.put(self._journal.unrecorded(exchange_id))
            return connection.fail(web.Response(status=503))


def wants_stream(request: web.Request) -> bool:
    return request.query.get("stream", "").lower() == "true"


def _listed(stored: StoredResponse, order: str | None) -> Body:
    """A response's input as a list of items; the latest first, as the API has it by default."""
    data = input_items(stored.input, stored.id)
    if order != "asc":
        data.reverse()
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": False}
