"""Whatever agents ask and providers answer: an answer, a row in the log, and what follows is served."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import scenes
from support.anything import TEXTS, changed, json_values
from support.examples import LARGE, examples
from support.odd_provider import Given, OddProvider, odd_provider
from support.odd_requests import CHATS, ITEMS, bodies
from support.playing import Answer, Proxy, serving

from proxy.log.rows import FINISH_STATES
from proxy.settings import PlayConfig
from proxy.wire.chat import completion, stream_events
from proxy.wire.sse import SSEDecoder
from scenarios.types import ToolCall

MODES: dict[str, dict[str, Any]] = {
    "record": {},
    "gold": {"play": PlayConfig()},
    "live and relay": {"play": PlayConfig(history="live", tools="relay", on_mismatch="continue")},
    "append and released": {"play": PlayConfig(agent_tools="append", observations="released")},
    "responses behind": {"play": PlayConfig(history="live", tools="intercept"), "provider_api": "responses"},
}


@dataclass
class Bench:
    """A proxy in one of the modes, its provider, and names of Sessions that nobody has used."""

    proxy: Proxy
    provider: OddProvider
    playing: bool
    names: Iterator[str] = field(default_factory=lambda: (f"shop.e{n}" for n in itertools.count(1)))
    seen: int = -1

    async def ask(self, path: str, body: bytes) -> Answer | None:
        """None where the connection was cut, as it is where an answer cannot be whole."""
        try:
            return await self.proxy.send(
                "POST",
                path,
                data=body,
                headers={"Content-Type": "application/json"},
                # Recorded, a redirect is passed on: to follow it would be another request.
                allow_redirects=False,
            )
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
            return None

    async def works(self) -> None:
        """What comes next is served as if nothing had been."""
        self.provider.given = None
        answer = await self.proxy.chat(next(self.names), 1)
        assert answer.status == 200
        assert len(self.rows()) == 1

    def rows(self) -> list[dict[str, Any]]:
        """The agents' exchanges since the last time; each is over, and none has met a fault of the proxy."""
        found = self.proxy.rows(
            "SELECT arrival, status, finish_state, error_type, error FROM exchanges "
            "WHERE side = 'agent' AND arrival > ? ORDER BY arrival",
            self.seen,
        )
        self.seen = max([self.seen, *(row["arrival"] for row in found)])
        for row in found:
            assert row["finish_state"] in set(FINISH_STATES) - {"pending"}, row
            assert row["error_type"] != "proxy_fault", row
        return found


@pytest.fixture(params=MODES)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    options = MODES[request.param]
    playing = "play" in options
    files = (scenes.write(tmp_path, scenes.SHOP),) if playing else ()
    async with (
        odd_provider() as provider,
        serving(tmp_path, provider.url, environ=None, scenarios=files, **options) as proxy,
    ):
        yield Bench(proxy, provider, playing)


def check(answer: Answer | None, *, own: bool) -> None:
    """`own`: the answer is the proxy's, not one that it passes on."""
    if answer is None or not own:
        return
    assert answer.status in (200, 400, 404, 409, 413, 502), answer.raw
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        decoder = SSEDecoder()
        events = [*decoder.feed(answer.raw), *decoder.flush()]
        assert events
        for event in events:
            assert event.data == "[DONE]" or isinstance(json.loads(event.data), dict)
    elif answer.status == 200:
        assert answer.json["object"] in ("chat.completion", "response")
    else:
        assert answer.error["message"]


@dataclass(frozen=True)
class Asked:
    path: str
    body: bytes


REQUESTS = st.builds(Asked, st.just("/chat/completions"), bodies(CHATS)) | st.builds(
    Asked, st.just("/responses"), bodies(ITEMS)
)
SHARED = [HealthCheck.function_scoped_fixture, *LARGE]
"""All examples are of one proxy, on purpose: what one leaves behind must not harm the next."""


@settings(examples(10), suppress_health_check=SHARED)
@given(st.lists(REQUESTS, min_size=1, max_size=3))
async def test_whatever_an_agent_asks_it_gets_an_answer_and_a_row(bench: Bench, asked: list[Asked]) -> None:
    name = next(bench.names)
    bench.provider.given = None
    for one in asked:
        answer = await bench.ask(f"/s/{name}/v1{one.path}", one.body)
        check(answer, own=bench.playing)
        assert len(bench.rows()) == 1
    await bench.works()


ANSWERED = completion(
    id="c", created=1, model="m", content="3.", calls=[ToolCall("c1", "getPrice", '{"thing": "lamp"}')]
)
KEYS = st.sampled_from(
    [
        *("id", "choices", "index", "message", "delta", "role", "content", "tool_calls", "function", "name"),
        *("arguments", "finish_reason", "logprobs", "usage", "prompt_tokens", "error", "custom", "input"),
        *("function_call", "model"),
    ]
)
COMPLETIONS = changed(ANSWERED, json_values(KEYS), KEYS) | json_values(KEYS)
STREAM = [
    json.loads(it.removeprefix(b"data: ")) for it in stream_events(ANSWERED, True) if b"[DONE]" not in it
]
CHUNKS = changed(STREAM, json_values(KEYS), KEYS)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["Retry-After", "x-should-retry", "Set-Cookie", "Location", "x-request-id", "Content-Language"]
    ),
    st.sampled_from(["", "nan", "-1", "1e400", "Mon, 99 Foo 2020 00:00:00 GMT", "true", "http://x", "é"]),
    max_size=2,
)


def _stream_text(chunks: Any) -> bytes:
    values = chunks if isinstance(chunks, list) else [chunks]
    return b"".join(b"data: " + json.dumps(it).encode() + b"\n\n" for it in values) + b"data: [DONE]\n\n"


GIVEN = st.builds(
    Given,
    COMPLETIONS.map(lambda it: json.dumps(it).encode()) | CHUNKS.map(_stream_text) | st.binary(),
    st.sampled_from([200, 200, 200, 201, 302, 400, 404, 429, 503]),
    st.sampled_from(
        ["application/json", "text/event-stream", "text/html", "application/x-odd; charset=\xe9"]
    ),
    HEADERS,
)


@settings(examples(10), suppress_health_check=SHARED)
@given(GIVEN, st.booleans(), st.sampled_from(["/chat/completions", "/responses"]))
async def test_whatever_a_provider_answers_the_agent_gets_an_answer_and_there_is_a_row(
    bench: Bench, given: Given, stream: bool, path: str
) -> None:
    asked = {"model": "m", "stream": stream}
    words = "[[next-user-turn 1]]"
    asked |= {"input": words} if path == "/responses" else {"messages": [{"role": "user", "content": words}]}
    bench.provider.given = given
    answer = await bench.ask(f"/s/{next(bench.names)}/v1{path}", json.dumps(asked).encode())
    assert len(bench.rows()) == 1
    assert answer is None or answer.status in (200, given.status, 502)
    await bench.works()


PATHS = st.lists(
    st.sampled_from(
        [
            *(
                "/",
                "s",
                "v1",
                "chat",
                "completions",
                "responses",
                "models",
                "shop",
                "shop.e1",
                "shop.e0",
                "mcp",
            ),
            *("eval", "ui", "sessions", "%2e", "..", "%00", "%ff", "%2F", "%zz", "%C3%A9", "embeddings"),
            *("resp_1", "input_items", "?", "a=b"),
        ]
    ),
    max_size=8,
).map(lambda parts: "/" + "/".join(parts))


@settings(examples(15), suppress_health_check=SHARED)
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
    PATHS,
    st.dictionaries(
        st.sampled_from(
            ["Authorization", "x-eval-session", "api-key", "Content-Type", "Accept", "Origin", "Host"]
        ),
        st.sampled_from(
            ["", "Bearer", "Bearer sk-eval-shop", "Bearer sk-eval-", "shop", "shop.e1", "nobody", "é", "*/*"]
        ),
        max_size=3,
    ),
    TEXTS.map(lambda it: it.encode("utf-8", "surrogatepass")),
)
async def test_whatever_is_asked_for_there_is_an_answer(
    bench: Bench, method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    bench.provider.given = None
    answer = await bench.proxy.send(method, path, headers=headers, data=body)
    assert answer.status != 500, answer.raw
    if answer.status >= 400 and method != "HEAD" and "/mcp" not in path:
        assert answer.error["message"]
    bench.rows()
