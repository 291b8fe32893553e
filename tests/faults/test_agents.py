"""Agents that ask too much, too slowly or nonsense: they are told, and the others are served."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import commands, scenes
from support.playing import Body, prompt, rows, serving, soon, until
from support.wires import FULL, MODES, Front, Mode, fronted, saying, traced
from yarl import URL

from proxy.limits import MB, Limits
from proxy.settings import PlayConfig

ROOM = 128 * MB if FULL else 1 * MB
"""The most that a request may have."""
BOMB = 10 * 1024 * MB if FULL else 64 * MB
IDLE = 2500 if FULL else 300
"""Connections that ask nothing."""


class Raw:
    """A connection of an agent that writes bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The status, headers and body of the next answer."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            body = await self.reader.readuntil(b"\r\n0\r\n\r\n")
        return int(lines[0].split()[1]), headers, body

    async def closed(self) -> bytes:
        """What still comes, until the proxy closes the connection."""
        return await soon(self.reader.read())


@asynccontextmanager
async def raw(front: Front) -> AsyncIterator[Raw]:
    url = URL(front.proxy.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()


def head(front: Front, *more: str, version: str = "1.1", method: str = "POST") -> bytes:
    lines = [
        f"{method} {front.path} HTTP/{version}",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def asked(turn: int = 1, **fields: Any) -> bytes:
    return json.dumps(prompt(turn, **fields)).encode()


async def check_refused(
    front: Front, answer: tuple[int, dict[str, str], bytes], status: int, code: str
) -> None:
    """The answer has OpenAI's shape, the log has a row of it, and the next request is served."""
    error = json.loads(answer[2])["error"]
    assert (answer[0], error["code"]) == (status, code)
    assert set(error) == {"message", "type", "param", "code"} and "\n" not in error["message"]
    [row] = await front.proxy.finished(1)
    assert (row["finish_state"], row["error_type"], row["status"]) == ("proxy_error", code, status)
    assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
async def test_a_body_that_is_said_to_be_too_large_is_not_read(mode: Mode, tmp_path: Path) -> None:
    limits = Limits(request=ROOM)
    async with (
        saying() as wire,
        fronted(mode, tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        await agent.send(head(front, f"Content-Length: {ROOM + 1}"))
        await check_refused(front, await agent.answer(), 413, "request_too_large")


@pytest.mark.parametrize("mode", MODES)
async def test_a_body_that_grows_too_large_is_refused_before_it_takes_room(
    mode: Mode, tmp_path: Path
) -> None:
    limits = Limits(request=ROOM)
    async with (
        saying() as wire,
        fronted(mode, tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        await agent.send(head(front, "Transfer-Encoding: chunked"))
        with traced() as peak:
            for _ in range(ROOM // 65536 + 2):
                await agent.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            answer = await agent.answer()
        assert peak() < 4 * ROOM + 8 * MB
        await check_refused(front, answer, 413, "request_too_large")


@pytest.mark.parametrize("mode", MODES)
async def test_a_compressed_bomb_is_refused_before_it_takes_room(mode: Mode, tmp_path: Path) -> None:
    packer, zeros = zlib.compressobj(wbits=31), b"\0" * MB
    bomb = b"".join(packer.compress(zeros) for _ in range(BOMB // MB)) + packer.flush()
    limits = Limits(request=ROOM)
    async with (
        saying() as wire,
        fronted(mode, tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        answer = None
        with traced() as peak, suppress(ConnectionError):
            # It is not read any further, so whoever still sends is cut off and may miss the answer.
            await agent.send(head(front, "Content-Encoding: gzip", f"Content-Length: {len(bomb)}") + bomb)
            answer = await agent.answer()
        # Some times the limit, whatever the size of the bomb.
        assert peak() < 6 * ROOM + 16 * MB < BOMB
        if answer is None:
            assert len(bomb) > MB
            assert [row["status"] for row in await front.proxy.finished(1)] == [413]
            assert (await front.ask()).text == "Hi."
        else:
            await check_refused(front, answer, 413, "request_too_large")


@pytest.mark.parametrize("mode", MODES)
async def test_a_body_that_comes_too_slowly_is_given_up_and_others_are_served(
    mode: Mode, tmp_path: Path
) -> None:
    limits = Limits(body_s=0.5)
    async with (
        saying() as wire,
        fronted(mode, tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        await agent.send(head(front, "Content-Length: 1000") + b"{")
        assert (await front.ask()).text == "Hi."
        status, _, body = await agent.answer()
        assert (status, json.loads(body)["error"]["code"]) == (408, "request_timeout")
        states = {row["status"] for row in await front.proxy.finished(2)}
        assert states == {200, 408}


@pytest.mark.parametrize(
    "begun", [b"", b"POST /v1/chat/comp", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "]
)
async def test_a_head_that_comes_too_slowly_is_given_up_and_others_are_served(
    begun: bytes, tmp_path: Path
) -> None:
    limits = Limits(head_s=0.5)
    async with (
        saying() as wire,
        fronted("record", tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        await agent.send(begun)
        assert (await front.ask()).text == "Hi."
        assert await agent.closed() == b""


async def test_the_next_head_on_a_connection_has_its_time_and_idling_is_free(tmp_path: Path) -> None:
    limits = Limits(head_s=0.5)
    async with (
        saying() as wire,
        fronted("record", tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
        raw(front) as other,
    ):
        request = head(front, f"Content-Length: {len(asked())}") + asked()
        for _ in range(2):
            await agent.send(request)
            assert (await agent.answer())[0] == 200
            # Its time is over for whoever has asked nothing: not for who waits between two requests.
            await other.closed()
        await agent.send(request[:20])
        assert await agent.closed() == b""


async def test_very_many_idle_connections_are_in_nobodys_way(tmp_path: Path) -> None:
    async with saying() as wire, fronted("play", tmp_path, wire.url) as front:
        url = URL(front.proxy.url)
        idle = [await asyncio.open_connection(url.host, url.port) for _ in range(IDLE)]
        try:
            assert (await front.ask()).text == "Hi."
            assert not any(reader.at_eof() for reader, _ in idle)
        finally:
            for _, writer in idle:
                writer.close()


async def test_beyond_the_limit_the_connection_that_was_idle_for_longest_is_closed(tmp_path: Path) -> None:
    limits = Limits(connections=5)
    async with saying() as wire, fronted("play", tmp_path, wire.url, limits=limits) as front:
        url = URL(front.proxy.url)
        idle = [await asyncio.open_connection(url.host, url.port) for _ in range(20)]
        try:
            assert (await front.ask()).text == "Hi."
            closed = [reader for reader, _ in idle[:15]]
            await asyncio.gather(*(soon(reader.read()) for reader in closed))
            assert not any(reader.at_eof() for reader, _ in idle[17:])
        finally:
            for _, writer in idle:
                writer.close()


async def test_the_limit_of_connections_holds_for_those_that_come_at_once(tmp_path: Path) -> None:
    limits = Limits(connections=5)
    async with saying() as wire, fronted("play", tmp_path, wire.url, limits=limits) as front:
        url = URL(front.proxy.url)
        idle = await asyncio.gather(*(asyncio.open_connection(url.host, url.port) for _ in range(100)))
        try:
            await until(lambda: sum(not reader.at_eof() for reader, _ in idle) <= 5)
            assert (await front.ask()).text == "Hi."
        finally:
            for _, writer in idle:
                writer.close()


@pytest.mark.parametrize("mode", MODES)
async def test_requests_sent_at_once_on_one_connection_are_answered_in_order(
    mode: Mode, tmp_path: Path
) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front, raw(front) as agent:
        bodies = [asked(turn) for turn in (1, 2, 3)]
        await agent.send(b"".join(head(front, f"Content-Length: {len(body)}") + body for body in bodies))
        assert [(await agent.answer())[0] for _ in bodies] == [200, 200, 200]
        assert [row["status"] for row in await front.proxy.finished(3)] == [200, 200, 200]
        assert wire.served == 3


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_that_leaves_while_it_uploads_costs_nothing(mode: Mode, tmp_path: Path) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        async with raw(front) as agent:
            await agent.send(head(front, "Content-Length: 100000") + b"{" * 5000)
        assert (await front.ask()).text == "Hi."
        assert wire.served == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_body_in_pieces_and_an_older_version_of_http_are_served(mode: Mode, tmp_path: Path) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        async with raw(front) as agent:
            await agent.send(head(front, "Transfer-Encoding: chunked"))
            for byte in asked():
                await agent.send(b"1\r\n" + bytes([byte]) + b"\r\n")
            await agent.send(b"0\r\n\r\n")
            assert (await agent.answer())[0] == 200
        async with raw(front) as agent:
            await agent.send(head(front, f"Content-Length: {len(asked(2))}", version="1.0") + asked(2))
            assert (await agent.closed()).startswith(b"HTTP/1.0 200")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Many: 1\r\n" * 5000 + b"\r\n",
        b"G\xc3T / HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_a_bad_request_and_the_connection_is_closed(
    sent: bytes, tmp_path: Path
) -> None:
    limits = Limits(head_s=5.0)
    async with (
        saying() as wire,
        fronted("record", tmp_path, wire.url, limits=limits) as front,
        raw(front) as agent,
    ):
        await agent.send(sent)
        answer = await agent.closed()
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
        assert (await front.ask()).text == "Hi."
        assert wire.served == 1


DEEP = 100_000


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "body", [b"{", b"", b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"\xff"]
)
async def test_a_body_that_is_no_json_is_passed_on_or_refused(
    mode: Mode, body: bytes, tmp_path: Path
) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        told = await front.ask(body=body)
        if mode == "record":
            assert told.text == "Hi."
        else:
            assert (told.status, wire.served) == (400, 0)
            assert told.error["message"].startswith("the body is not JSON")
        [row] = await front.proxy.finished(1)
        assert row["status"] == told.status
        assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [100, 300, 480, 700, 900, 960])
async def test_deep_values_are_passed_on_or_refused_and_no_fault(
    mode: Mode, depth: int, tmp_path: Path
) -> None:
    deep = "[" * depth + "]" * depth
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        part = f'{{"type": "text", "text": "[[next-user-turn 1]]", "x": {deep}}}'
        messages = f'[{{"role": "user", "content": [{part}]}}]'
        told = await front.ask(body=f'{{"model": "m", "messages": {messages}, "y": {deep}}}'.encode())
        assert told.status in ((200,) if mode == "record" else (200, 400))
        await front.proxy.finished(1)
        assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
async def test_ten_thousand_tools_are_passed_on(mode: Mode, tmp_path: Path) -> None:
    tools = [scenes.tool(f"tool{number}", thing="string") for number in range(10_000)]
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        assert (await front.ask(tools=tools)).text == "Hi."
        assert [row["status"] for row in await front.proxy.finished(1)] == [200]


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: Body = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief.", "name": "s"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hello."}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL], "function_call": None, "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "user", "content": "[[next-user-turn 1]]"},
    ],
    "tools": [scenes.tool("f", a="string")],
    "functions": [{"name": "g", "parameters": {}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "stream": False,
    "stream_options": {"include_usage": True},
    "n": 1,
    "temperature": 0.5,
    "stop": ["x"],
    "metadata": {"a": "b"},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
    "parallel_tool_calls": True,
}
RESPONSE: Body = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc1"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"role": "user", "content": "[[next-user-turn 1]]"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
    "reasoning": {"effort": "low"},
    "stream": False,
    "store": True,
    "previous_response_id": None,
    "metadata": {"a": "b"},
    "include": ["x"],
}
RPC: Body = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "getPrice", "arguments": {"thing": "lamp"}, "_meta": {"progressToken": 1}},
}
FORMATS: dict[str, tuple[str, Body]] = {
    "chat": ("v1/chat/completions", CHAT),
    "responses": ("v1/responses", RESPONSE),
    "mcp": ("mcp", RPC),
}
VALUES: tuple[Any, ...] = (None, "", "x", 0, -1, 1e400, True, [], [None], {}, {"x": None}, [[]])


def replaced(body: Any, value: Any) -> Iterator[Any]:
    """The body once for each value in it, that with another one in its place."""
    items: Any = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, inner in items:
        for other in (value, *replaced(inner, value)):
            if isinstance(body, dict):
                yield {**body, key: other}
            else:
                yield [*body[:key], other, *body[key + 1 :]]


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("value", VALUES if FULL else VALUES[:3] + VALUES[3::3], ids=repr)
async def test_any_value_in_place_of_any_other_is_served_or_refused(
    wire_format: str, value: Any, tmp_path: Path
) -> None:
    path, body = FORMATS[wire_format]
    files = (scenes.write(tmp_path, scenes.chat("chat", 3)),)
    play = PlayConfig(tools="mcp", agent_tools="keep") if wire_format == "mcp" else PlayConfig()
    asked = [json.dumps(it).encode() for it in replaced(body, value)] + [json.dumps(body).encode()]
    async with (
        saying() as wire,
        serving(tmp_path, wire.url, environ={}, scenarios=files, play=play) as proxy,
    ):
        for number, sent in enumerate(asked, 1):
            answer = await proxy.send("POST", f"/s/chat.e{number}/{path}", data=sent)
            assert answer.status < 500, (sent, answer.raw)
            if answer.status >= 400 and wire_format != "mcp":
                assert answer.error["message"], sent
        assert answer.status == 200
        await until(lambda: not any(it["finish_state"] == "pending" for it in proxy.exchanges()))
        if wire_format != "mcp":
            assert (await proxy.chat("chat", 1)).text == "Hi."


async def test_an_agent_that_leaves_a_response_it_asks_for_again_is_no_fault_of_the_proxy(
    tmp_path: Path,
) -> None:
    file, log = scenes.write(tmp_path, scenes.chat("chat", 1)), tmp_path / "log.db"
    serve = ("serve", "--scenarios", file, "--provider", "sim:oracle", "--log", log, "--port", 0)
    async with commands.process(*serve) as process, aiohttp.ClientSession() as http:
        asked = {"model": "m", "input": "[[next-user-turn 1]]"}
        async with http.post(f"{process.url}/s/chat/v1/responses", json=asked) as response:
            path = f"/s/chat/v1/responses/{(await response.json())['id']}"
        url = URL(process.url)
        for delay in range(40):
            _, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            await asyncio.sleep(delay / 10_000)
            writer.transport.abort()
        async with http.get(process.url + path) as response:
            assert response.status == 200
        assert await process.stop() == 0
        assert process.errors is not None
        assert b"fault of the proxy" not in await process.errors
    assert rows(log, "SELECT * FROM exchanges WHERE finish_state = 'pending'") == []
