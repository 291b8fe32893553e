"""Which requests of a Session are its conversation, and which are calls on the side. Pure.

Agents do more than talk to the user: titles, routers, guardrails, summaries, sub-agents.
The conversation is known by its system texts and by whether it offers tools.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

NO_TURN = "no [[next-user-turn]] in it, and not the conversation's system prompt and tools"
OTHER_SYSTEM = "another system prompt than the conversation's"
WITHOUT_TOOLS = "without tools, which the conversation has"
WITH_TOOLS = "with tools, which the conversation has not"


@dataclass(frozen=True, slots=True)
class Thread:
    """What tells a conversation: a hash of its leading system texts, and if it has tools."""

    system: str
    tools: bool


def thread_of(body: Body) -> Thread:
    texts = []
    for message in body["messages"]:
        if not isinstance(message, dict) or message.get("role") not in ("system", "developer"):
            break
        texts.append(message.get("content"))
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
    return Thread(digest, bool(body.get("tools") or body.get("functions")))


def side_reason(
    main: Thread | None, thread: Thread, *, prompted: bool, numbered: bool, begun: bool
) -> str | None:
    """Why a request is a side call; None if it belongs to the conversation.

    `main` is the conversation so far (None before its first request), `prompted` says that
    the request carries the sentinel, `numbered` that it says for which turn, `begun` that the
    conversation has already asked for that turn. A conversation whose system prompt changes
    from turn to turn (a clock in it, say) is known by being the first to ask for a turn; one
    without tools, only if the turn has a number: else it could be a title for the last one.
    """
    if thread == main:
        return None
    if not prompted:
        return NO_TURN
    if main is None:
        return None
    if thread.tools != main.tools:
        return WITH_TOOLS if thread.tools else WITHOUT_TOOLS
    return OTHER_SYSTEM if begun or not (numbered or thread.tools) else None
