"""The scripted provider as an HTTP server."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.simulate.place import Index, build_index
from proxy.simulate.policies import Answer, NoPlace, Policy, respond
from proxy.simulate.reply import digest
from proxy.wire.chat import completion, dump_json, stream_events
from proxy.wire.endpoint import SESSION_HEADER
from proxy.wire.errors import ApiError, error_body
from proxy.wire.responses import RESPONSES_PATH, own_id, with_call_ids
from proxy.wire.responses_answer import to_response
from proxy.wire.responses_request import parse_request, to_chat
from proxy.wire.responses_stream import response_events
from scenarios.types import Scenario

MISTAKE_HEADER = "x-simulate-mistake"
"""In an answer of `noisy`: the way in which it is deliberately wrong."""
OWNER = "wildtoolbench-proxy"

_MAX_BODY = 1 << 30
_CREATED = 1_700_000_000


def _fixed_time() -> int:
    return _CREATED


@dataclass(frozen=True, slots=True)
class Provider:
    """What every request is answered from; nothing in it changes.

    `latency` is waited before each answer, in seconds; `clock` gives `created` in Unix
    seconds, by default always the same, so that the same request gets the same bytes.
    """

    policy: Policy
    index: Index
    latency: float = 0.0
    clock: Callable[[], int] = _fixed_time


_PROVIDER: web.AppKey[Provider] = web.AppKey("provider", Provider)


def build_app(provider: Provider) -> web.Application:
    """`/v1/chat/completions`, `/v1/responses`, `/v1/models` (also without `/v1`) and `/healthz`."""
    app = web.Application(client_max_size=_MAX_BODY, middlewares=[_openai_errors])
    app[_PROVIDER] = provider
    for prefix in ("/v1", ""):
        app.router.add_post(f"{prefix}/chat/completions", _chat)
        app.router.add_post(f"{prefix}{RESPONSES_PATH}", _responses)
        app.router.add_get(f"{prefix}/models", _models)
    app.router.add_get("/healthz", _health)
    return app


@asynccontextmanager
async def running(
    scenarios: Sequence[Scenario],
    policy: Policy,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    latency: float = 0.0,
    clock: Callable[[], int] = _fixed_time,
) -> AsyncIterator[str]:
    """Serves while the context is open; gives the base URL, `/v1` included.

    Port 0 takes a free one. Raises OSError when the address cannot be had.
    """
    provider = Provider(policy, build_index(scenarios), latency, clock)
    runner = web.AppRunner(build_app(provider), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield base_url(host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def base_url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/v1"


async def serve_until_stopped(
    scenarios: Sequence[Scenario],
    policy: Policy,
    *,
    host: str,
    port: int,
    latency: float,
    announce: Callable[[str], None],
) -> None:
    """Serves until SIGINT or SIGTERM; `announce` gets the base URL once it answers."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stopped.set)
        except NotImplementedError:
            break  # Windows: Ctrl-C raises KeyboardInterrupt, which the command catches.
    async with running(scenarios, policy, host=host, port=port, latency=latency) as url:
        announce(url)
        await stopped.wait()


async def _chat(request: web.Request) -> web.StreamResponse:
    body = _read_body(await request.read())
    completion, headers = await _answer(request, body)
    if body.get("stream"):
        return await _send_stream(request, stream_events(completion, _wants_usage(body)), headers)
    return web.Response(body=dump_json(completion), content_type="application/json", headers=headers)


async def _responses(request: web.Request) -> web.StreamResponse:
    """The same over the Responses API. Nothing is kept: a request must have its whole history."""
    asked = parse_request(await request.read())
    completion, headers = await _answer(request, to_chat(asked, {}).body)
    response = to_response(with_call_ids(completion, own_id("", completion)), asked)
    if asked.get("stream"):
        return await _send_stream(request, response_events(response), headers)
    return web.Response(body=dump_json(response), content_type="application/json", headers=headers)


async def _answer(request: web.Request, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the policy says to a chat request, and the headers that go with it."""
    provider = request.app[_PROVIDER]
    messages, legacy = body["messages"], _is_legacy(body)
    tools = [{"function": function} for function in body["functions"]] if legacy else body.get("tools")
    session = request.headers.get(SESSION_HEADER)
    try:
        answer = respond(provider.policy, provider.index, messages, tools, session)
    except NoPlace as error:
        raise ApiError(400, str(error), code="no_matching_scenario", param="messages") from None
    response = _completion(body, answer, session, provider.clock())
    if legacy:
        _speak_legacy(response)
    headers = {MISTAKE_HEADER: answer.way} if answer.way else {}
    if provider.latency:
        await asyncio.sleep(provider.latency)
    return response, headers


def _read_body(raw: bytes) -> dict[str, Any]:
    """The request as an object with `messages`, a list of objects, and tools that are lists."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "the body must be an object with `messages`, a list", param="messages")
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            raise ApiError(400, f"messages[{position}] must be an object", param="messages")
    for name in ("tools", "functions"):
        if not isinstance(body.get(name), list | None):
            raise ApiError(400, f"`{name}` must be a list", param=name)
    return dict(body)


def _is_legacy(body: dict[str, Any]) -> bool:
    return bool(body.get("functions")) and not body.get("tools")


def _completion(body: dict[str, Any], answer: Answer, session: str | None, created: int) -> dict[str, Any]:
    """The whole answer; its id depends on the request and the session alone."""
    asked = json.dumps([body["messages"], body.get("tools") or body.get("functions") or []])
    model = body.get("model")
    return completion(
        id="chatcmpl-" + digest(session or "", asked)[:24],
        created=created,
        model=model if isinstance(model, str) else "",
        content=None if answer.calls else answer.text,
        calls=answer.calls,
        usage=count_tokens(body, answer),
    )


def count_tokens(body: dict[str, Any], answer: Answer) -> tuple[int, int]:
    """(input, output) tokens by a rule instead of a tokenizer: characters / 4, rounded up.

    Counted are the characters of `messages` and of the tools as JSON (default separators,
    nothing escaped that need not be); of an answer those of its text, or of the names
    and arguments of its calls.
    """
    tools = body.get("tools") or body.get("functions")
    asked = len(json.dumps(body["messages"], ensure_ascii=False))
    asked += len(json.dumps(tools, ensure_ascii=False)) if tools else 0
    said = len(answer.text) + sum(len(call.name) + len(call.arguments) for call in answer.calls)
    return -(-asked // 4), -(-said // 4)


def _speak_legacy(response: dict[str, Any]) -> None:
    """Turns calls into the older dialect of `functions`, which has one call per message."""
    choice = response["choices"][0]
    calls = choice["message"].pop("tool_calls", None)
    if calls:
        choice["message"]["function_call"] = calls[0]["function"]
        choice["finish_reason"] = "function_call"


def _wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


async def _send_stream(
    request: web.Request, events: Iterable[bytes], headers: dict[str, str]
) -> web.StreamResponse:
    stream = web.StreamResponse(
        headers={**headers, "Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    )
    await stream.prepare(request)
    for event in events:
        await stream.write(event)
    await stream.write_eof()
    return stream


async def _models(request: web.Request) -> web.Response:
    provider = request.app[_PROVIDER]
    model = {"id": f"sim:{provider.policy.spec}", "object": "model", "created": _CREATED, "owned_by": OWNER}
    return _json({"object": "list", "data": [model]})


async def _health(request: web.Request) -> web.Response:
    provider = request.app[_PROVIDER]
    return _json({"status": "ok", "policy": provider.policy.spec, "scenarios": len(provider.index.entries)})


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=dump_json(value), status=status, content_type="application/json")


@web.middleware
async def _openai_errors(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Every error in the shape that OpenAI clients read."""
    try:
        response: web.StreamResponse = await handler(request)
        return response
    except ApiError as error:
        return _json(error.body, error.status)
    except web.HTTPException as error:
        text = f"{request.method} {request.path}: {error.reason}"
        answer = _json(error_body(text, code=str(error.status)), error.status)
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
        return answer
