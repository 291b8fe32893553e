"""The MCP endpoint over real HTTP: the official client, and whatever else may come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning

from proxy.mcp import Told, refused, serve_mcp
from proxy.wire.errors import ApiError

MAX_BODY = 100_000
SCHEMA = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}
FUNCTIONS = [
    {"name": "price", "description": "What a thing costs.", "parameters": SCHEMA},
    {"name": "now"},
]


@dataclass
class Shop:
    """Answers with the name and the arguments; what `meets` says must be under way at once."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    meets: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(1))

    def listed(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": function} for function in FUNCTIONS]

    async def call(self, name: str, arguments: dict[str, Any]) -> Told:
        self.calls.append((name, arguments))
        await self.meets.wait()
        if name == "closed":
            raise ApiError(409, "the shop is closed")
        if name not in ("price", "now"):
            return Told(f"no tool is called {name}", is_error=True)
        return Told(json.dumps([name, arguments], ensure_ascii=False))


@dataclass
class Endpoint:
    shop: Shop
    http: aiohttp.ClientSession
    port: int = 0
    runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/s/shop.e1/mcp"

    async def start(self) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/s/{session}/mcp", self._serve)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        assert self.runner is not None
        await self.runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["session"] != "shop.e1":
            return refused(ApiError(404, "no such session"))
        return await serve_mcp(request, self.shop)

    async def post(self, body: Any, **headers: str) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send("POST", raw, headers)

    async def send(self, method: str, raw: bytes | None, headers: dict[str, str]) -> Answer:
        async with self.http.request(method, self.url, data=raw, headers=headers) as response:
            return Answer(response.status, dict(response.headers), await response.read())


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.raw)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with aiohttp.ClientSession() as http:
        endpoint = Endpoint(Shop(), http)
        await endpoint.start()
        yield endpoint
        await endpoint.stop()


def message(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def text_of(result: Any) -> str:
    (block,) = result.content
    return block.text


REVISIONS = pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
"""With a handshake; finding out that none is needed; without asking."""


@REVISIONS
async def test_the_official_client_agrees_on_a_revision_and_sees_the_tools(
    endpoint: Endpoint, mode: str, version: str
) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        assert client.protocol_version == version
        tools = (await client.list_tools()).tools
    assert [(tool.name, tool.description, tool.input_schema) for tool in tools] == [
        ("price", "What a thing costs.", SCHEMA),
        ("now", None, {"type": "object", "properties": {}}),
    ]


@REVISIONS
async def test_the_official_client_calls_tools(endpoint: Endpoint, mode: str, version: str) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        given = await client.call_tool("price", {"thing": "crème\u2028brûlée 😀"})
        assert (text_of(given), given.is_error) == ('["price", {"thing": "crème\u2028brûlée 😀"}]', False)
        given = await client.call_tool("now")
        assert (text_of(given), given.is_error) == ('["now", {}]', False)
    assert endpoint.shop.calls == [("price", {"thing": "crème\u2028brûlée 😀"}), ("now", {})]


@REVISIONS
async def test_a_failed_call_is_told_to_the_llm_and_ends_nothing(
    endpoint: Endpoint, mode: str, version: str
) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        given = await client.call_tool("weather", {})
        assert (text_of(given), given.is_error) == ("no tool is called weather", True)
        assert (await client.call_tool("now")).is_error is False


@REVISIONS
async def test_an_error_of_the_proxy_is_one_of_the_protocol(
    endpoint: Endpoint, mode: str, version: str
) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        with pytest.raises(MCPError, match="the shop is closed") as caught:
            await client.call_tool("closed", {})
        assert caught.value.code == -32603
        assert (await client.call_tool("now")).is_error is False


@REVISIONS
async def test_what_is_not_here_is_an_empty_list(endpoint: Endpoint, mode: str, version: str) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("any")
        assert caught.value.code == -32601


async def test_the_official_clients_ping_and_log_level_are_answered(endpoint: Endpoint) -> None:
    async with Client(endpoint.url, mode="legacy") as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.send_ping()
        with pytest.warns(MCPDeprecationWarning):
            await client.set_logging_level("debug")


@REVISIONS
async def test_calls_of_one_client_run_at_once(endpoint: Endpoint, mode: str, version: str) -> None:
    endpoint.shop.meets = asyncio.Barrier(8)
    async with Client(endpoint.url, mode=mode) as client:
        given = await asyncio.gather(*(client.call_tool("price", {"thing": str(n)}) for n in range(8)))
    assert [json.loads(text_of(one)) for one in given] == [["price", {"thing": str(n)}] for n in range(8)]


@REVISIONS
async def test_clients_may_come_again_and_share_the_endpoint(
    endpoint: Endpoint, mode: str, version: str
) -> None:
    async with Client(endpoint.url, mode=mode) as first:
        async with Client(endpoint.url, mode=mode) as second:
            assert (await second.call_tool("now")).is_error is False
        assert (await first.call_tool("now")).is_error is False
    async with Client(endpoint.url, mode=mode) as third:
        assert (await third.call_tool("now")).is_error is False


@REVISIONS
async def test_a_client_outlives_a_restart_of_the_server(endpoint: Endpoint, mode: str, version: str) -> None:
    async with Client(endpoint.url, mode=mode) as client:
        assert (await client.call_tool("now")).is_error is False
        await endpoint.stop()
        await endpoint.start()
        assert (await client.call_tool("now")).is_error is False


@REVISIONS
async def test_the_official_client_shows_why_a_request_was_refused(
    endpoint: Endpoint, mode: str, version: str
) -> None:
    with pytest.raises(BaseException) as caught:
        async with Client(endpoint.url.replace("shop.e1", "unknown"), mode=mode) as client:
            await client.list_tools()
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, MCPError)
    assert error.message == "no such session"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_each_older_revision_is_spoken_from_hello_to_goodbye(endpoint: Endpoint, version: str) -> None:
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    hello = await endpoint.post(message("initialize", about))
    assert (hello.status, hello.json["result"]["protocolVersion"]) == (200, version)
    assert "Mcp-Session-Id" not in hello.headers
    headers = {"MCP-Protocol-Version": version, "Mcp-Session-Id": "of another server"}
    ready = await endpoint.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
    assert (ready.status, ready.raw) == (202, b"")
    listed = await endpoint.post(message("tools/list", id="a"), **headers)
    assert [tool["name"] for tool in listed.json["result"]["tools"]] == ["price", "now"]
    called = await endpoint.post(message("tools/call", {"name": "now", "arguments": {}}), **headers)
    assert called.json == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": '["now", {}]'}], "isError": False},
    }


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(endpoint: Endpoint, method: str) -> None:
    answer = await endpoint.send(method, None, {"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["Allow"], answer.raw) == (405, "POST", b"")


async def test_a_batch_gets_the_answers_of_its_requests_in_order(endpoint: Endpoint) -> None:
    batch = [
        message("ping", id=1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message("tools/call", {"name": "now"}, id="b"),
        message("no/such", id=3),
        5,
    ]
    answer = await endpoint.post(batch)
    assert answer.status == 200
    found = [(one["id"], one.get("error", {}).get("code")) for one in answer.json]
    assert found == [(1, None), ("b", None), (3, -32601), (None, -32600)]


async def test_a_batch_that_wants_no_answer_gets_none(endpoint: Endpoint) -> None:
    answer = await endpoint.post(
        [{"jsonrpc": "2.0", "method": "a"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]
    )
    assert (answer.status, answer.raw) == (202, b"")


async def test_a_client_that_takes_only_a_stream_gets_one(endpoint: Endpoint) -> None:
    answer = await endpoint.post([message("ping", id=1), message("ping", id=2)], Accept="text/event-stream")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    events = [event for event in answer.raw.decode().split("\n\n") if event]
    assert [event.split("\n")[0] for event in events] == ["event: message"] * 2
    data = [json.loads(event.split("\n")[1].removeprefix("data: ")) for event in events]
    assert data == [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}]


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"[" * 50_000, -32700, None),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', -32700, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
        (b'{"jsonrpc": "2.0", "id": 4}', -32600, 4),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    ],
)
async def test_what_cannot_be_read_is_refused_with_400(
    endpoint: Endpoint, body: bytes, code: int, id: Any
) -> None:
    answer = await endpoint.post(body)
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (400, code, id)


async def test_errors_of_older_revisions_come_with_200_and_of_the_newest_with_their_own(
    endpoint: Endpoint,
) -> None:
    old, new = {"MCP-Protocol-Version": "2025-11-25"}, {"MCP-Protocol-Version": "2026-07-28"}
    found = []
    for headers in ({}, old, new):
        for asked in (message("no/such"), message("tools/call", {"name": 5})):
            answer = await endpoint.post(asked, **headers)
            found.append((answer.status, answer.json["error"]["code"]))
    assert found == [(200, -32601), (200, -32602), (200, -32601), (200, -32602), (404, -32601), (400, -32602)]
    assert endpoint.shop.calls == []


async def test_an_unknown_revision_is_refused_with_those_that_are_known(endpoint: Endpoint) -> None:
    answer = await endpoint.post(message("tools/list"), **{"MCP-Protocol-Version": "2031-01-01"})
    assert answer.status == 400
    assert answer.json["error"]["code"] == -32022
    assert answer.json["error"]["data"]["supported"][0] == "2026-07-28"


@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
async def test_pages_of_other_hosts_are_kept_out(endpoint: Endpoint, method: str, origin: str) -> None:
    raw = json.dumps(message("tools/call", {"name": "now"})).encode()
    answer = await endpoint.send(method, raw, {"Origin": origin})
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (403, -32600, None)
    assert endpoint.shop.calls == []


async def test_pages_of_this_machine_are_let_in(endpoint: Endpoint) -> None:
    answer = await endpoint.post(message("ping"), Origin="http://localhost:6274")
    assert (answer.status, answer.json["result"]) == (200, {})


async def test_a_body_that_is_too_large_is_refused(endpoint: Endpoint) -> None:
    answer = await endpoint.post(b" " * (MAX_BODY + 1))
    assert (answer.status, answer.json["error"]["message"]) == (413, "the body is too large")


async def test_a_body_that_cannot_be_unpacked_is_refused(endpoint: Endpoint) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(
        b"POST /s/shop.e1/mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n"
    )
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"plain")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"] == {"code": -32600, "message": "the body cannot be read"}
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_leaves_in_the_middle_of_its_body_does_no_harm(endpoint: Endpoint) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(b'POST /s/shop.e1/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"jsonrpc"')
    writer.close()
    await writer.wait_closed()
    assert (await endpoint.post(message("ping"))).status == 200


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/initialized", "?"]
)
params = st.fixed_dictionaries(
    {},
    optional={
        "name": values,
        "arguments": values,
        "_meta": values,
        "protocolVersion": values,
        "cursor": values,
    },
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={"id": values, "method": methods | values, "params": params | values, "result": values},
)
bodies = (values | messages | st.lists(messages | values, max_size=4)).map(
    lambda value: json.dumps(value).encode()
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=bodies | st.binary(),
    accept=st.sampled_from(["*/*", "application/json", "text/event-stream"]),
    version=st.sampled_from(["", "2025-06-18", "2026-07-28", "x"]),
)
async def test_whatever_is_sent_is_answered_in_json_rpc(
    endpoint: Endpoint, body: bytes, accept: str, version: str
) -> None:
    headers = {"Accept": accept} | ({"MCP-Protocol-Version": version} if version else {})
    answer = await endpoint.post(body, **headers)
    assert answer.status in (200, 202, 400, 404)
    if answer.status == 202:
        assert answer.raw == b""
    elif answer.headers["Content-Type"] == "text/event-stream":
        assert answer.raw.startswith(b"event: message\ndata: {")
    else:
        whole = answer.json
        for one in whole if isinstance(whole, list) else [whole]:
            assert one["jsonrpc"] == "2.0"
            assert ("result" in one) != ("error" in one)
            assert set(one) <= {"jsonrpc", "id", "result", "error"}
