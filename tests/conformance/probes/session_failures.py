"""Failures of the provider in a session: tried again by the proxy, then told with their status."""

from __future__ import annotations

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import chunk, completion, event, events, said, text_stream
from tests.conformance.probe import SESSION, probe
from tests.conformance.probes.errors import AT_ONCE, LIMITED
from tests.conformance.provider import EVENTS, JSON, Call


async def _again(bench: Bench) -> None:
    """The next try succeeds; each has a row."""
    call = await bench.provider.call()
    await call.stream(*text_stream("Again."))


@probe("retries-429", SESSION)
async def rate_limit(bench: Bench) -> str:
    """A 429 is tried again by the proxy, when the provider says; each try is a row.

    Source: headroomlabs-ai/headroom#1329, vectorize-io/hindsight#1567
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.answer(LIMITED, 429, [JSON, AT_ONCE])
    await _again(bench)
    same(said(events((await asking.answer()).raw)), "Again.", "the text")
    if bench.log is not None:
        rows = await bench.log.exchanges(bench.marker, 2, "provider")
        seen = [(row["finish_state"], row["status"]) for row in rows]
        same(seen, [("provider_error", 429), ("complete", 200)], "the rows")
    return "2 tries"


@probe("retries-broken", SESSION)
async def broken(bench: Bench) -> str:
    """So is an answer that breaks off, before or in its stream, and one with an error in it.

    Source: mozilla-ai/any-llm#847, dativo-io/talon#254
    """
    for state, break_off in (
        ("provider_abort", _no_answer),
        ("provider_abort", _half_a_stream),
        ("error_event", _error_event),
    ):
        own = bench.again()
        asking = await own.ask(stream=True)
        await break_off(await own.provider.call())
        await _again(own)
        same(said(events((await asking.answer()).raw)), "Again.", "the text")
        if own.log is not None:
            rows = await own.log.exchanges(own.marker, 2, "provider")
            same([row["finish_state"] for row in rows], [state, "complete"], "the rows")
        await own.logged_steps("ask")
    return "3 of 3 went unnoticed by the agent"


async def _no_answer(call: Call) -> None:
    call.cut()


async def _half_a_stream(call: Call) -> None:
    await call.begin(headers=[EVENTS, AT_ONCE])
    await call.send(event(chunk({"content": "half"})))
    call.cut()


async def _error_event(call: Call) -> None:
    error = event({"error": {"message": "overloaded"}})
    await call.stream(event(chunk({"content": "half"})), error, headers=[EVENTS, AT_ONCE])


@probe("retries-end", SESSION)
async def end(bench: Bench) -> str:
    """What fails to the end is told with the last status, headers and body; later the turn goes on.

    Source: mozilla-ai/any-llm#847, headroomlabs-ai/headroom#3083
    """
    asking = await bench.ask()
    for _ in range(4):
        call = await bench.provider.call()
        await call.answer(LIMITED, 429, [JSON, AT_ONCE, ("x-request-id", "req_9")])
    answer = await asking.answer()
    same((answer.status, answer.raw), (429, LIMITED), "the answer")
    same(answer.header("x-should-retry"), "false", "x-should-retry")
    same(answer.header("x-request-id"), "req_9", "x-request-id")
    await bench.logged(finish_state="provider_error", status=429)
    await bench.logged(4, "provider", finish_state="provider_error")
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(completion({"content": "Now."}))
    same((await asking.answer()).said, "Now.", "the text after that")
    await bench.logged_steps("ask")
    return "429 after 4 tries, then served"


@probe("fails-late", SESSION, keep_alive=0.05)
async def late(bench: Bench) -> str:
    """A failure after signs of life breaks the connection; asked again, it has its status.

    Source: mozilla-ai/any-llm#847 (never a failure that looks like success)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await asking.until(b":")
    await call.answer(LIMITED, 400, [JSON])
    check(await asking.broken(), "the agent gets a clean end")
    await bench.logged(finish_state="provider_error", status=400)
    again = await (await bench.ask(stream=True)).answer()
    same((again.status, again.raw), (400, LIMITED), "the answer to the second request")
    same(bench.provider.count, 1, "the number of requests at the provider")
    return "broken, then 400"
