"""Which requests of a Session are its conversation, and which are calls on the side. Pure.

Agents do more than talk to the user: titles, routers, guardrails, summaries, sub-agents.
The conversation is known by its system texts and by whether it offers tools.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Body = dict[str, Any]

NO_TURN = "no [[next-user-turn]] in it, and not the conversation's system prompt and tools"
OTHER_SYSTEM = "another system prompt than the conversation's"
WITHOUT_TOOLS = "without tools, which the conversation has"
WITH_TOOLS = "with tools, which the conversation has not"


@dataclass(frozen=True, slots=True)
class Thread:
    """What tells a conversation: a hash of its leading system texts, and if it has tools.

    `results` says that the request has tool results in it, which tells nothing by itself.
    """

    system: str
    tools: bool
    results: bool = field(default=False, compare=False)


def thread_of(body: Body) -> Thread:
    texts = []
    for message in body["messages"]:
        if not isinstance(message, dict) or message.get("role") not in ("system", "developer"):
            break
        texts.append(message.get("content"))
    digest = (_known_digest if all(isinstance(text, str) for text in texts) else _digest)(*texts)
    results = any(_is_result(message) for message in body["messages"])
    return Thread(digest, bool(body.get("tools") or body.get("functions")), results)


def _digest(*texts: Any) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


_known_digest = lru_cache(maxsize=64)(_digest)
"""An agent sends its system prompt with every request."""


def _is_result(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return message.get("role") in ("tool", "function") or message.get("type") == "function_call_output"


def followed(main: Thread | None, thread: Thread) -> Thread:
    """The conversation after one more request of it: a last call without tools changes nothing."""
    return main if main is not None and _is_last_call(main, thread) else thread


def _is_last_call(main: Thread, thread: Thread) -> bool:
    """An agent at its limit of rounds asks once more without tools, for a text at last."""
    return thread.system == main.system and main.tools and not thread.tools and thread.results


def side_reason(
    main: Thread | None,
    thread: Thread,
    *,
    prompted: bool,
    numbered: bool,
    begun: bool,
    answers: bool = False,
    may_be_last: bool = True,
) -> str | None:
    """Why a request is a side call; None if it belongs to the conversation.

    `main` is the conversation so far (None before its first request), `prompted` says that
    the request carries the sentinel, `numbered` that it says for which turn, `begun` that the
    conversation has already asked for that turn. A conversation whose system prompt changes
    from turn to turn (a clock in it, say) is known by being the first to ask for a turn; one
    without tools, only if the turn has a number: else it could be a title for the last one.
    `answers` says that it brings the results of calls that the agent was given to carry out, and with
    them goes on whatever its system prompt: after a handoff, or with a clock in it. An agent
    at its limit asks a last time without tools, which `may_be_last` says can be now. An agent that
    carries out calls has results in every later summary: it can be only while calls are out, with theirs.
    """
    if thread == main or answers:
        return None
    if may_be_last and main is not None and _is_last_call(main, thread):
        return None
    if not prompted:
        return NO_TURN
    if main is None:
        return None
    if thread.tools != main.tools:
        return WITH_TOOLS if thread.tools else WITHOUT_TOOLS
    return OTHER_SYSTEM if begun or not (numbered or thread.tools) else None


class Known:
    """What a Session's conversation is known by so far; `numbered`: its prompts have numbers.

    `begun` is the last turn that it was let in for, which may not have been begun yet.
    """

    def __init__(self) -> None:
        self.main: Thread | None = None
        self.numbered = False
        self.begun = 0

    def accept(self, thread: Thread, turn: int, *, numbered: bool, side: bool) -> None:
        """A request was let in, of the conversation or (`side`) beside it."""
        self.numbered = self.numbered or numbered
        if not side:
            self.main = followed(self.main, thread)
            self.begun = max(self.begun, turn)

    def seemed_to_have_no_tools(self, thread: Thread) -> bool:
        """Was what is taken for the conversation without tools, which `thread` shows that it has?"""
        return self.main is not None and not self.main.tools and thread.tools

    def lacks_its_tools(self, thread: Thread) -> bool:
        """Is a request without the tools that the conversation has?"""
        return self.main is not None and self.main.tools and not thread.tools

    def as_json(self, thread: Thread) -> Body:
        """For the log; `thread` is of the request, should it be the first."""
        known = self.main or thread
        return {"system": known.system, "tools": known.tools, "numbered": self.numbered}

    def restore(self, stored: Body) -> None:
        if stored:
            self.main = Thread(stored["system"], stored["tools"])
            self.numbered = stored["numbered"]
