"""Providers that die: what is broken must look broken, to the agent and in the log."""

from __future__ import annotations

import json

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import chunk, completion, event, events, said, text_stream
from tests.conformance.probe import BOTH, RECORD, probe
from tests.conformance.provider import JSON


@probe("dies-before-headers", RECORD)
async def before_headers(bench: Bench) -> str:
    """A provider that hangs up without an answer is a 5xx with a JSON error.

    Source: mozilla-ai/any-llm#847, headroomlabs-ai/headroom#3083
    """
    for stream in (False, True):
        own = bench.again()
        asking = await own.ask(stream=stream)
        (await own.provider.call()).cut()
        answer = await asking.answer()
        check(answer.status in (500, 502, 503, 504), f"the status is {answer.status}")
        check(isinstance(answer.json["error"]["message"], str), "the error has no message")
        await own.logged(finish_state="provider_abort")
    return f"{answer.status} with a JSON error"


@probe("dies-before-first-chunk", RECORD)
async def before_first_chunk(bench: Bench) -> str:
    """One that hangs up behind its headers leaves a broken stream, or a 5xx.

    Source: dativo-io/talon#254
    """
    return await _dies(bench)


@probe("dies-in-first-chunk", RECORD)
async def in_first_chunk(bench: Bench) -> str:
    """So does one that hangs up within its first event.

    Source: dativo-io/talon#254
    """
    return await _dies(bench, event(chunk({"content": "half"}))[:-20])


@probe("dies-after-first-chunk", RECORD)
async def after_first_chunk(bench: Bench) -> str:
    """One that hangs up behind an event leaves a broken stream; what came is in the log.

    Source: mozilla-ai/any-llm#847, dativo-io/talon#254
    """
    seen = await _dies(bench, event(chunk({"content": "half"})), wait_for=b"half")
    row = await bench.logged()
    check(row is None or row["raw"], "the row has nothing of the answer")
    return seen


@probe("dies-before-done", BOTH)
async def before_done(bench: Bench) -> str:
    """One that hangs up between finish_reason and `[DONE]` leaves a broken stream, but all was said.

    Source: Oaklight/llm-rosetta#454
    """
    parts = text_stream("Hi.")[:-1]
    if bench.mode == "record":
        return await _dies(bench, *parts, wait_for=b'"stop"')
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(*parts)
    call.cut()
    same(said(events((await asking.answer()).raw)), "Hi.", "the text")
    same(bench.provider.count, 1, "the number of requests at the provider")
    return "judged without another try"


@probe("dies-after-much", RECORD)
async def after_much(bench: Bench) -> str:
    """All that a provider said before it hung up reaches an agent that reads slowly.

    Source: RFC 9112, section 8
    """
    piece = event(chunk({"content": "x" * 10_000}))
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(*(piece for _ in range(20)))
    call.cut()
    await bench.logged(finish_state="provider_abort")
    broken = await asking.broken()
    check(broken, "the agent gets a clean end")
    same(broken and len(broken[1]), 20 * len(piece), "the number of bytes")
    return f"{20 * len(piece)} bytes, then broken"


async def _dies(bench: Bench, *parts: bytes, wait_for: bytes = b"") -> str:
    """A stream that breaks off behind these parts is seen as broken, and logged as such."""
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(*parts)
    if wait_for:
        await asking.until(wait_for)
    call.cut()
    broken = await asking.broken()
    if broken is None:
        answer = await asking.answer()
        check(answer.status >= 500, f"the agent gets a clean end and status {answer.status}")
        seen = f"status {answer.status}"
    else:
        check(b"[DONE]" not in broken[1], "the proxy made up a [DONE]")
        seen = "the agent sees a broken connection"
    await bench.logged(finish_state="provider_abort")
    return seen


@probe("dies-in-json", RECORD)
async def in_json(bench: Bench) -> str:
    """Half a JSON answer is no whole one.

    Source: lsagetlethias/fine-grained-proxy#18
    """
    body = json.dumps(completion({"content": "Hi."})).encode()
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.begin(headers=[JSON], length=len(body))
    await call.write(body[:50])
    call.cut()
    if await asking.broken() is None:
        answer = await asking.answer()
        check(answer.status >= 500, f"the agent gets a clean end and status {answer.status}")
    await bench.logged(finish_state="provider_abort")
    return "broken for the agent, too"


@probe("closes-after-done", BOTH)
async def after_done(bench: Bench) -> str:
    """One that hangs up right behind `[DONE]`, without the end of its chunks, has said all.

    Source: CopilotKit/aimock CHANGELOG #288 (the terminal event decides, not the socket)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(*text_stream("Hi."))
    call.cut()
    body = await asking.until(b"[DONE]")
    same(said(events(body + b"\n\n")), "Hi.", "the text")
    await bench.logged(finish_state="complete")
    return "the agent gets its [DONE]"


@probe("ends-early", RECORD)
async def ends_early(bench: Bench) -> str:
    """A stream that ends in good order, but before finish_reason and `[DONE]`, is not complete.

    Source: headroomlabs-ai/headroom#3083
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(event(chunk({"content": "half"})))
    broken = await asking.broken()
    body = (await asking.answer()).raw if broken is None else broken[1]
    check(b"[DONE]" not in body and b'finish_reason": "stop' not in body, "the proxy made up an end")
    await bench.logged(finish_state="provider_abort", error_type="stream_ended_early")
    return "no end was made up"


@probe("dies-and-lives-again")
async def lives_again(bench: Bench) -> str:
    """After a provider's death the next request is served as ever.

    Source: RFC 9112, section 9.3.1
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    call.cut()
    if bench.mode == "session":
        # The proxy tries again itself.
        call = await bench.provider.call()
        await call.stream(*text_stream("Again."))
        same(said(events((await asking.answer()).raw)), "Again.", "the text")
        await bench.logged(finish_state="complete")
        await bench.logged(2, "provider", finish_state="complete")
        return "tried again within the turn"
    await asking.answer()
    asking = await bench.again().ask()
    call = await bench.provider.call()
    await call.answer(completion({"content": "Again."}))
    same((await asking.answer()).said, "Again.", "the text")
    return "the next request was served"
