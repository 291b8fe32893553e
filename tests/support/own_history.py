"""A record of three turns, what an agent says of it, and what becomes of that."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from proxy.live_history import PlayedTurn, Sent, live_messages

Message = dict[str, Any]

SYSTEM = {"role": "system", "content": "You are asked with [[next-user-turn 1]] and the like."}
QUESTIONS = ("What does a lamp cost?", "And two of them?", "Thanks. Is it sunny?")
ANSWERS = ("A lamp costs 5.", "Two cost\n10.", "It's sunny — \U0001f31e.")


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def says(content: Any, **keys: Any) -> Message:
    return {"role": "assistant", "content": content, **keys}


def entry(call_id: str, name: str = "price", arguments: str = '{"item": "lamp"}') -> Message:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, "id": call_id}


def calling(*calls: Message, **keys: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **keys}


def told(call_id: str, content: Any) -> Message:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def step(*ids: str, name: str = "price") -> tuple[Message, ...]:
    """A Step of the record: its calls, then what each was told, `<id>: 5`."""
    return (calling(*(entry(it, name) for it in ids)), *(told(it, f"{it}: 5") for it in ids))


def turn(
    number: int,
    *messages: Message,
    handed: Sequence[str] = (),
    done: bool = True,
    template: str = "[[next-user-turn {}]]",
) -> PlayedTurn:
    """A turn of the record; if `done`, its answer is at the end of its messages."""
    words = QUESTIONS[number - 1]
    asked = template.format(number)
    said = asked.replace(f"[[next-user-turn {number}]]", words).replace("[[next-user-turn]]", words)
    if "[[" not in asked and words not in asked:
        said = words
    answer = (says(ANSWERS[number - 1]),) if done else ()
    return PlayedTurn(number, words, user(asked), user(said), (*messages, *answer), frozenset(handed), done)


def now(number: int, *messages: Message, **keys: Any) -> PlayedTurn:
    return turn(number, *messages, done=False, **keys)


def spoken(number: int) -> Message:
    return user(QUESTIONS[number - 1])


def prompt(number: int) -> Message:
    return user(f"[[next-user-turn {number}]]")


def answer(number: int) -> Message:
    return says(ANSWERS[number - 1])


def sent(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> Sent:
    kept = copy.deepcopy(own)
    result = live_messages(own, turns, aliases)
    assert own == kept
    return result


def messages(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> list[Message]:
    return list(sent(own, *turns, **aliases).messages)


def found(own: Sequence[Any], *turns: PlayedTurn, **aliases: str) -> list[tuple[int, str]]:
    return [(it.turn, it.what) for it in sent(own, *turns, **aliases).findings]


def is_acceptable(messages: Sequence[Message]) -> bool:
    """Every call has one result, before anything else comes, and every result a call.

    Only the assistant calls, and ids are texts.
    """
    due: list[str] = []
    for message in messages:
        if message.get("role") != "assistant" and not {"tool_calls", "function_call"}.isdisjoint(message):
            return False
        if message.get("role") == "tool":
            if message["tool_call_id"] not in due:
                return False
            due.remove(message["tool_call_id"])
            continue
        if due:
            return False
        if message.get("role") == "assistant":
            due = [call["id"] for call in message.get("tool_calls", ())]
            if not all(isinstance(it, str) and it for it in due):
                return False
            if len(set(due)) < len(due) or message.get("tool_calls", [0]) == []:
                return False
    return not due
