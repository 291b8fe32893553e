"""A provider's errors: as it told them, or, in a session, after the proxy's own tries."""

from __future__ import annotations

import asyncio

from tests.conformance.bench import Bench, check, contains, same
from tests.conformance.chunks import DONE, chunk, event, events, said, text_stream
from tests.conformance.probe import BOTH, RECORD, probe
from tests.conformance.provider import JSON

LIMITED = (
    b'{"error": {"message": "Rate limit reached",  "type": "requests", "code": "rate_limit_exceeded"}}\n'
)
AT_ONCE = ("retry-after-ms", "1")
"""Who tries again need not wait."""


@probe("error-429", RECORD)
async def rate_limit(bench: Bench) -> str:
    """A 429 comes with its body, `Retry-After` and `x-request-id`, and is not tried again.

    Source: BerriAI/litellm#21553, api7/aisix#144
    """
    own = [("Retry-After", "17"), ("x-request-id", "req_9"), ("x-ratelimit-reset-requests", "1s")]
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(LIMITED, 429, [JSON, *own])
    answer = await asking.answer()
    same((answer.status, answer.raw), (429, LIMITED), "the answer")
    contains(answer.headers, own, "the answer")
    same(bench.provider.count, 1, "the number of requests at the provider")
    await bench.logged(finish_state="provider_error", status=429, error_type="429")
    return "429, Retry-After: 17"


@probe("error-429-stream", RECORD)
async def rate_limited_stream(bench: Bench) -> str:
    """So does a 429 when a stream was asked for: never a 200 with an error in it.

    Source: headroomlabs-ai/headroom#3083, mozilla-ai/any-llm#847
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.answer(LIMITED, 429, [JSON, ("Retry-After", "17")])
    answer = await asking.answer()
    same((answer.status, answer.raw), (429, LIMITED), "the answer")
    await bench.logged(finish_state="provider_error", status=429, stream=1)
    return "429"


@probe("error-400")
async def bad_request(bench: Bench) -> str:
    """A 400 comes as the provider wrote it, and is not tried again.

    Source: OpenAI API reference, error codes; RFC 9110, section 15.5.1
    """
    body = (
        '{"error":{"message":"too long: ü","type":"invalid_request_error","param":"messages"},"x":1}'.encode()
    )
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(body, 400, [JSON, ("x-request-id", "req_4")])
    answer = await asking.answer()
    same((answer.status, answer.raw), (400, body), "the answer")
    contains(answer.headers, [("x-request-id", "req_4")], "the answer")
    same(bench.provider.count, 1, "the number of requests at the provider")
    if bench.mode == "session":
        same(answer.header("x-should-retry"), "false", "x-should-retry")
    await bench.logged(finish_state="provider_error", status=400)
    return f"{len(body)} bytes as sent"


@probe("error-5xx")
async def server_errors(bench: Bench) -> str:
    """So do a 500, a 502 in HTML and a 503 without a body (in a session after the proxy's tries).

    Source: mozilla-ai/any-llm#847, headroomlabs-ai/headroom#3083
    """
    html = b"<html>\r\n<h1>502 Bad Gateway</h1></html>"
    for status, body, kind in ((500, b'{"error": "boom"}', JSON), (502, html, ("Content-Type", "text/html"))):
        await _server_error(bench.again(), status, body, kind)
    await _server_error(bench.again(), 503, b"", JSON)
    return "500, 502 and 503"


async def _server_error(bench: Bench, status: int, body: bytes, kind: tuple[str, str]) -> None:
    asking = await bench.ask(stream=True)
    tries = 1 if bench.mode == "record" else 4
    for _ in range(tries):
        call = await bench.provider.call()
        await call.answer(body, status, [kind, AT_ONCE])
    answer = await asking.answer()
    same((answer.status, answer.raw), (status, body), "the answer")
    same(answer.header("Content-Type"), kind[1], "the Content-Type")
    same(bench.provider.count, tries, "the number of requests at the provider")
    if bench.mode == "session":
        same(answer.header("x-should-retry"), "false", "x-should-retry")
    await bench.logged(finish_state="provider_error", status=status)


@probe("error-in-stream", RECORD)
async def in_stream(bench: Bench) -> str:
    """An error in a stream is passed on, nothing is made up behind it, and the row tells of it.

    Source: mozilla-ai/any-llm#847, dativo-io/talon#254, Oaklight/llm-rosetta#454
    """
    error = event({"error": {"message": "overloaded", "type": "server_error"}})
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(event(chunk({"content": "half"})), error)
    answer = await asking.answer()
    found = events(answer.raw)
    same(said(found), "half", "the text")
    same(found[-1], {"error": {"message": "overloaded", "type": "server_error"}}, "the last event")
    row = await bench.logged(finish_state="error_event", status=200)
    check(row is None or "overloaded" in row["error"], "the row does not say what the error was")
    return "passed, without a [DONE]"


@probe("error-event-named", RECORD)
async def named_event(bench: Bench) -> str:
    """So is one in an event called `error`, also with a `[DONE]` behind it.

    Source: WHATWG HTML, section 9.2.6, Anthropic API reference, streaming errors
    """
    error = b'event: error\ndata: {"type": "error", "message": "overloaded"}\n\n'
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(event(chunk({"content": "half"})), error, DONE)
    answer = await asking.answer()
    check(error in answer.raw, "the event is lost")
    await bench.logged(finish_state="error_event")
    return "passed"


@probe("error-headers-late")
async def late_status(bench: Bench) -> str:
    """While the provider's status is not there yet, the agent gets none.

    Source: headroomlabs-ai/headroom#3083 (never a 200 before the first byte of the provider)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    waiting = asyncio.ensure_future(asking.head())
    # A whole exchange goes by while the first one waits.
    other = await bench.request("GET", f"/models?mark={bench.marker}")
    await (await bench.provider.call(marked=False)).answer(b"{}")
    same((await other.answer()).status, 200, "the status of another request")
    early = waiting.done()
    await call.answer(LIMITED, 418, [JSON])
    status, _ = await waiting
    check(not early, f"the agent has got status {status} before there was one")
    answer = await asking.answer()
    same((answer.status, answer.raw), (418, LIMITED), "the answer")
    return "418, when it came"


@probe("error-redirect")
async def redirect(bench: Bench) -> str:
    """A redirect is passed on and not followed: it would take the key elsewhere.

    Source: RFC 9110, section 15.4, RFC 6750, section 5.3
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    location = f"http://127.0.0.1:{bench.provider.port}/elsewhere"
    await call.answer(b"moved", 307, [("Location", location), ("Content-Type", "text/plain")])
    answer = await asking.answer()
    same(bench.provider.count, 1, "the number of requests at the provider")
    if bench.mode == "record":
        same((answer.status, answer.header("Location")), (307, location), "the answer")
    else:
        check(answer.status >= 500, f"the agent gets {answer.status}")
    await bench.logged(finish_state="provider_error")
    return f"{answer.status}, and one request at the provider"


@probe("answer-odd-type", RECORD)
async def odd_type(bench: Bench) -> str:
    """JSON under another Content-Type passes under that one, and is known for what it is.

    Source: gadievron/raptor#547
    """
    body = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}}]}'
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(body, headers=[("Content-Type", "text/plain; charset=utf-8")])
    answer = await asking.answer()
    same((answer.raw, answer.header("Content-Type")), (body, "text/plain; charset=utf-8"), "the answer")
    await bench.logged(finish_state="complete")
    await bench.logged_message(content="Hi.")
    return "text/plain"


@probe("answer-odd-type-stream", BOTH)
async def odd_type_stream(bench: Bench) -> str:
    """So is a stream that was asked for, under another Content-Type or none.

    Source: WHATWG HTML, section 9.2
    """
    for headers in ([("Content-Type", "text/plain")], []):
        own = bench.again()
        asking = await own.ask(stream=True)
        call = await own.provider.call()
        await call.stream(*text_stream("Hi."), headers=headers)
        answer = await asking.answer()
        same(said(events(answer.raw)), "Hi.", "the text")
        await own.logged(finish_state="complete")
        await own.logged_message(content="Hi.")
    return "text/plain and none"
