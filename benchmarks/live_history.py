"""How long it takes to lay out an agent's own messages (`--history live`) for one more Step.

Prints CPU milliseconds a Step, by how many Steps there were before: those of one user turn, or
spread over four; sent back by the agent (`relay`), or hidden from it (`intercept`).
Needs nothing but the project: `python benchmarks/live_history.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any

from proxy.live_history import live_messages
from proxy.session import PlayedTurn

Message = dict[str, Any]

STEPS = (20, 80, 400)
TURNS = (1, 4)
ROUNDS = 25


def session(
    steps: int, turns: int, *, handed: bool
) -> tuple[list[Message], list[PlayedTurn], dict[str, str]]:
    """The agent's messages, the record, and the agent's ids for the record's."""
    own: list[Message] = [{"role": "system", "content": "You are a helpful assistant."}]
    record: list[PlayedTurn] = []
    for number in range(1, turns + 1):
        asked = {"role": "user", "content": f"[[next-user-turn {number}]]"}
        words = f"What do the lamps of part {number} cost, and are they there?"
        ids = [f"t{number}.{at}" for at in range(steps // turns)]
        heard = [message for at, it in enumerate(ids) for message in step(it, at)]
        done = number < turns
        if done:
            heard.append({"role": "assistant", "content": f"They are there, and cost {number}5 in all."})
        known = frozenset(ids) if handed else frozenset()
        said = {"role": "user", "content": words}
        record.append(PlayedTurn(number, words, asked, said, tuple(heard), known, done))
        seen = heard if handed else heard[len(ids) * 2 :]
        own += [asked, *(as_agent(message) for message in seen)]
    calls = [call for turn in record for message in turn.messages for call in message.get("tool_calls", ())]
    return own, record, {f"call_{call['id']}": call["id"] for call in calls if handed}


def step(call_id: str, at: int) -> tuple[Message, Message]:
    function = {"name": "getPrice", "arguments": json.dumps({"thing": f"lamp {at}", "day": "Monday"})}
    entry = {"id": call_id, "type": "function", "function": function}
    told = json.dumps({"price": at, "stock": [{"shop": f"shop {n}", "count": n} for n in range(8)]})
    return (
        {"role": "assistant", "content": None, "tool_calls": [entry]},
        {"role": "tool", "content": told, "tool_call_id": call_id},
    )


def as_agent(message: Message) -> Message:
    """The message under the agent's ids, with a result of its own."""
    if "tool_calls" in message:
        return {**message, "tool_calls": [{**it, "id": f"call_{it['id']}"} for it in message["tool_calls"]]}
    if "tool_call_id" in message:
        return {**message, "tool_call_id": f"call_{message['tool_call_id']}", "content": "mine"}
    return message


def milliseconds(
    own: Sequence[Message], turns: Sequence[PlayedTurn], aliases: Mapping[str, str], *, findings: bool
) -> float:
    """The best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = process_time()
        live_messages(own, turns, aliases, findings=findings)
        best = min(best, process_time() - start)
    return best * 1000


def main() -> None:
    print(f"{'mode':<10} {'turns':>5} {'steps':>5} {'ms a step':>10} {'with findings':>14}")
    for handed in (True, False):
        for turns in TURNS:
            for steps in STEPS:
                played = session(steps, turns, handed=handed)
                plain, full = (milliseconds(*played, findings=it) for it in (False, True))
                mode = "relay" if handed else "intercept"
                print(f"{mode:<10} {turns:>5} {steps:>5} {plain:>10.2f} {full:>14.2f}")


if __name__ == "__main__":
    main()
