"""`export --format openai`: the conversations as they were played."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
from support import logs
from support.exporting import (
    DATE,
    Play,
    read_lines,
    run_export,
    scored,
)

from proxy.drive.client import ControlClient
from proxy.server import running
from proxy.settings import Settings
from scoring.transcript import UNANSWERED


async def test_a_chat_is_the_conversation_as_it_was_played(tmp_path: Path) -> None:
    """An agent with a system prompt and a template, over real HTTP."""
    path = tmp_path / "log.db"
    file = tmp_path / "shop.jsonl"
    file.write_text(json.dumps(logs.RECORD) + "\n", encoding="utf-8")
    async with (
        running(Settings(log=path, provider="sim:oracle", scenarios=(file,))) as proxy,
        aiohttp.ClientSession() as client,
    ):
        for turn in (1, 2):
            messages = [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": f"User says: [[next-user-turn {turn}]]"},
            ]
            url = f"{proxy.base_url}/s/shop_1/v1/chat/completions"
            async with client.post(url, json={"model": "m", "messages": messages}) as answer:
                assert answer.status == 200, await answer.text()
        async with ControlClient(proxy.base_url, proxy.token) as control:
            assert await control.open_turn("shop_1.e1") is None
    (chat,) = [json.loads(line) for line in run_export(path, "--format", "openai").stdout.splitlines()]
    assert list(chat) == ["session", "scenario", "epoch", "run", "model", "tools", "messages"]
    assert [chat[key] for key in ("session", "scenario", "epoch", "model")] == ["shop_1.e1", "shop_1", 1, "m"]
    assert chat["tools"] == logs.RECORD["tools"]
    system, *rest = chat["messages"]
    assert system == {"role": "system", "content": f"Be kind.\n\n{DATE}"}
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant"] * 2
    assert [rest[i]["content"] for i in (0, 2, 3, 4, 7)] == [
        "User says: What is a lamp?",
        '{"price": 3}',
        "It is 3.",
        "User says: And a chair?",
        "It is 3.",
    ]
    for called, told in ((rest[1], rest[2]), (rest[5], rest[6])):
        assert called["tool_calls"][0]["id"] == told["tool_call_id"]
    assert rest[5]["tool_calls"][0]["function"] == {"name": "findPrice", "arguments": '{"thing": "chair"}'}


async def test_every_chat_is_one_that_chat_formats_accept(play: Play) -> None:
    log = await play("sim:noisy:0.4:3", epochs=2)
    target = log.parent / "chats.jsonl"
    assert run_export(log, "--format", "openai", "-o", target).exit_code == 0
    chats = read_lines(target)
    sessions = scored(log) + scored(log, epoch=2)
    assert sorted(chat["session"] for chat in chats) == sorted(it.session for it in sessions)
    for chat in chats:
        owed: list[str] = []
        for message in chat["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == owed.pop(0)
                assert isinstance(message["content"], str)
                continue
            assert not owed
            calls = message.get("tool_calls", [])
            assert calls or isinstance(message["content"], str)
            assert all(isinstance(call["function"]["arguments"], str) for call in calls)
            owed = [call["id"] for call in calls]
        assert not owed


def test_a_call_that_was_told_nothing_says_so(log: Callable[..., Path]) -> None:
    path = log([[logs.call_message(("noSuchTool", None))], []])
    chat = json.loads(run_export(path, "--format", "openai").stdout)
    assert chat["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": "noSuchTool", "arguments": "null"}}
            ],
        },
        {"role": "tool", "content": UNANSWERED, "tool_call_id": "call_0"},
    ]
