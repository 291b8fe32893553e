"""Sessions that are over are in the log, and do not stay in the proxy's memory for ever."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import scenes
from support.playing import Proxy, playing

from proxy.players import KEPT
from proxy.sessions import Player

MANY = 2 * KEPT + 50
CHAT = scenes.chat("chat", 1)


async def play(proxy: Proxy, sessions: Sequence[str]) -> None:
    """All of them, twenty at a time; each is over with its first answer."""
    for at in range(0, len(sessions), 20):
        for answer in await asyncio.gather(*(proxy.chat(name, 1) for name in sessions[at : at + 20])):
            assert answer.text == "chat is told"


def in_memory() -> list[Player]:
    gc.collect()
    return [it for it in gc.get_objects() if isinstance(it, Player)]


async def test_sessions_that_are_long_over_leave_memory_and_are_answered_from_the_log(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "chat is told"))
    before = len(in_memory())
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await proxy.control("POST", "/sessions", json={"scenario": "chat", "epoch": 999})
        await proxy.control("POST", "/sessions/chat.e999/turns")
        await play(proxy, [f"chat.e{epoch}" for epoch in range(1, MANY + 1)])
        assert KEPT < len(in_memory()) - before <= 2 * KEPT + 1
        # One that is still open stays, however old it is.
        [still_open] = (await proxy.control("GET", "/sessions")).json["sessions"]
        assert still_open["session"] == "chat.e999"
        asked = len(provider.requests)
        again = await proxy.chat("chat.e1", 1)
        assert (again.text, (await proxy.chat("chat.e1", 2)).text) == ("chat is told", "[session over]")
        assert (await proxy.chat("chat.e2", None)).text == "[session over]"
        state = (await proxy.control("GET", "/sessions/chat.e3")).json
        assert (state["over"], state["answered"], state["tasks"][0]["end"]) == (True, 1, "closed")
        opened = await proxy.control("POST", "/sessions", json={"scenario": "chat", "epoch": 4})
        assert (opened.json["over"], opened.json["turn"]) == (True, 1)
        assert len(provider.requests) == asked
        assert len(proxy.rows("SELECT * FROM sessions WHERE scenario_id = 'chat'")) == MANY + 1


async def test_a_proxy_that_is_started_anew_reads_only_the_sessions_that_can_go_on(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(lambda request: provider.message(request, "chat is told"))
    async with playing(tmp_path, provider.url, CHAT) as proxy:
        await play(proxy, ["chat.e1", "chat.e2"])
        await proxy.control("POST", "/sessions", json={"scenario": "chat", "epoch": 3})
        await proxy.control("POST", "/sessions/chat.e3/turns")
    earlier = in_memory()
    async with playing(tmp_path, provider.url, CHAT, runs="continue") as again:
        assert again.run_id == proxy.run_id
        known = {id(player) for player in earlier}
        assert [it.row.name for it in in_memory() if id(it) not in known] == ["chat.e3"]
        assert (await again.chat("chat.e1", 1)).text == "chat is told"
        assert (await again.chat("chat.e2", 2)).text == "[session over]"
        assert len(provider.requests) == 2
        assert (await again.chat("chat.e3", 1)).text == "chat is told"
        # The next epoch is the one after all that are there.
        assert (await again.chat("chat", 1)).text == "chat is told"
        assert [it["name"] for it in again.rows("SELECT name FROM sessions ORDER BY seq")][-1] == "chat.e4"
