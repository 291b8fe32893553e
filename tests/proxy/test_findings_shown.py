"""What a live run finds, from the agent's messages to what `score` and `tail` print of its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.commands import run
from support.playing import Body, Proxy, playing

from proxy.settings import PlayConfig

LIVE = PlayConfig(tools="relay", history="live", on_mismatch="continue")
LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
NOT_THERE = "what the user said is not in the request"


async def turn(proxy: Proxy, number: int, remembered: list[Body]) -> list[Body]:
    """A turn of an agent that begins it with these messages; gives what it then has."""
    messages = [*remembered, {"role": "user", "content": f"[[next-user-turn {number}]]"}]
    while True:
        asked = {"model": "m", "messages": messages, "tools": []}
        answer = await proxy.send("POST", "/s/shop/v1/chat/completions", json=asked)
        assert answer.status == 200, answer.raw
        messages.append(answer.json["choices"][0]["message"])
        calls = messages[-1].get("tool_calls") or ()
        messages += [{"role": "tool", "tool_call_id": it["id"], "content": "?"} for it in calls]
        if not calls:
            return messages


def shown(log: Path, *kinds: str) -> list[tuple[str, str, str]]:
    """(place, kind, text) of the lines of `tail --wide` of these kinds."""
    result = run("tail", log, "--session", "shop.e1", "--wide")
    assert result.exit_code == 0, result.output
    lines = [line.split(None, 8) for line in result.stdout.splitlines()]
    return [(it[2], it[3], it[8]) for it in lines if it[3] in kinds]


async def test_what_an_agent_that_prunes_its_history_lost_is_told_once(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR])
    provider.reply(calls=[STOCK])
    provider.reply("7, and 12.")
    async with playing(tmp_path, provider.url, play=LIVE) as proxy:
        messages = await turn(proxy, 1, [])
        # Of the first turn it keeps the answer alone, through three requests.
        messages = await turn(proxy, 2, messages[-1:])
        assert len(provider.requests) == 5

        entries = json.loads(run("score", proxy.log, "--format", "json").stdout)["findings"]
        text = run("score", proxy.log).stdout
        told = shown(proxy.log, "finding")
    lost_calls = "1 of 1 calls are not in the request: getPrice"
    assert entries == [
        {"session": "shop.e1", "turn": 1, "what": "lost_turn", "detail": NOT_THERE},
        {"session": "shop.e1", "turn": 1, "what": "lost_calls", "detail": lost_calls},
    ]
    _, _, section = text.partition("Findings (the agent's own history)")
    assert [line.split() for line in section.splitlines()[:4]] == [
        ["count", "sessions"],
        ["Lost", "calls", "1", "1"],
        ["Lost", "turn", "1", "1"],
        [],
    ]
    assert told == [
        ("2.2", "finding", f"turn 1: lost_turn: {NOT_THERE}"),
        ("2.2", "finding", f"turn 1: lost_calls: {lost_calls}"),
    ]


async def test_wrong_calls_are_told_from_those_that_were_served(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[("fly", {"to": "moon"})])
    provider.reply(calls=[LAMP])
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=LIVE) as proxy:
        await turn(proxy, 1, [])
        refused = proxy.rows("SELECT observation FROM tool_calls WHERE name = 'fly'")[0]["observation"]
        told = [line[1:] for line in shown(proxy.log, "call", "told", "error")]
    assert told == [
        ("call", 'fly {"to": "moon"}'),
        ("error", f"(unknown_tool) {refused}"),
        ("call", 'getPrice {"thing": "lamp"}'),
        ("told", '{"price": 3, "unit": "€"}'),
        ("call", 'getPrice {"thing": "lamp"}'),
        ("told", '(redundant) {"price": 3, "unit": "€"}'),
    ]
