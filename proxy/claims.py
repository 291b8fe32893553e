"""What a request is in its Session: the conversation's, for which turn, or a call on the side. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy import sentinel
from proxy.sentinel import Found, Message
from proxy.threads import Thread, side_reason, thread_of
from proxy.wire.errors import ApiError

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a Session is when a request comes.

    `turn` is the last turn opened, `begun` the last one the conversation asked for;
    `delivered` says that turn's answer was written out. `main` is the conversation so far,
    `numbered` that its prompts have numbers, `hands_over` that tool calls go to the agent.
    """

    name: str
    turn: int
    begun: int
    over: bool
    delivered: bool
    main: Thread | None
    numbered: bool
    hands_over: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A request for turn `turn`, or a side call for the reason `side`.

    `message` is the agent's user message that the turn's words go into; `whole` says that it
    has neither sentinel nor these words and is replaced altogether. `thread` and `numbered` are
    what the Session's conversation is known by once the request is let in.
    """

    turn: int
    thread: Thread
    numbered: bool
    message: Message | None = None
    whole: bool = False
    side: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """An agent's request for a turn: its exchange, what it claims, its body.

    `query` is what stood behind its path, for the provider; `key` is the provider's. `sha256` is of the
    bytes that came: a request that is sent again has the same.
    """

    exchange_id: str
    claim: Claim
    body: Body
    headers: Mapping[str, str]
    key: str | None
    query: str = ""
    sha256: str = ""


def claim_of(
    at: Position, body: Body, found: Found | None, *, answers: bool = False, results: bool = False
) -> Claim:
    """What a request is. Raises ApiError for a turn that cannot be.

    `found` is where it has its turn's sentinel, or words. `results`: it brings those of calls that
    the agent was given to carry out; `answers`: it goes on with them whatever its prompt.
    """
    thread = thread_of(body)
    numbered = found is not None and found.turn is not None
    turn = at.turn if answers else _turn(at, found)
    side = side_reason(
        at.main,
        thread,
        prompted=found is not None,
        numbered=numbered,
        begun=at.begun >= turn,
        answers=answers,
        may_be_last=not at.hands_over or (results and not at.delivered),
    )
    message = found.message if found else sentinel.last_user_message(body["messages"])
    if side is None and message is None and at.begun < turn:
        side = "no user message in it"
    return Claim(turn, thread, numbered, message, whole=found is None, side=side)


def spoken(
    body: Body, turn: int, words: Mapping[int, str], asked: Mapping[int, Message], main: Thread | None
) -> Found | None:
    """The turn whose words stand in a request without a sentinel: a driver may have told them to the agent.

    `turn` is the last turn opened, `words` has those of all turns; `asked` is the agent's user
    message of each turn that was begun. Words of an earlier turn are part of what an agent
    remembers, unless it sends the very message of that turn again.
    """
    messages = body["messages"]
    for number in sorted(words, reverse=True):
        # What the user will say next no agent can know: it only happens to say the same.
        found = sentinel.find_words(messages, words[number], number) if number <= turn else None
        if found is None:
            continue
        again = number in asked and asked[number].get("content") == found.message.get("content")
        if number == turn or number not in asked or again:
            return found
        if number == 1 and len(asked) == 1 and main is not None and not main.tools and thread_of(body).tools:
            # What asked for the first turn so far was only a call on the side.
            return found
    return None


def begins_anew(main: Thread | None, thread: Thread) -> bool:
    """Could a request be the first one of another conversation with the same agent?

    A title or summary after the end is none: without tools where the conversation had them,
    or another system prompt where it had none.
    """
    if main is None or thread == main:
        return True
    return thread.tools and main.tools


def _turn(at: Position, found: Found | None) -> int:
    """Which turn a request is about: its number binds."""
    if found is None and at.numbered:
        return max(at.turn, 1)
    if found is None or found.turn is None:
        # A prompt without a number means the next turn, once the last was delivered.
        return at.turn + 1 if at.turn == 0 or at.delivered else at.turn
    if found.turn < 1 or (found.turn > at.turn + 1 and not at.over):
        raise ApiError(
            400,
            f"turn {found.turn} has not been opened: session {at.name} is at turn {at.turn}; "
            f"prompt the agent with {sentinel.prompt(at.turn + 1)}",
            code="turn_not_open",
        )
    return found.turn
