"""Agents that leave: the provider is left too, and the row says who it was."""

from __future__ import annotations

import json
from time import monotonic
from typing import Any

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import chunk, completion, event, text_stream
from tests.conformance.probe import BOTH, RECORD, SESSION, probe
from tests.conformance.provider import JSON, Call


async def _left(bench: Bench, call: Call, **expected: Any) -> str:
    """The provider is left, soon; the row says `client_abort`."""
    began = monotonic()
    await call.gone(bench.target.leaving_limit if bench.mode == "record" else None)
    took = monotonic() - began
    row = await bench.logged(finish_state="client_abort", delivered_at=None, **expected)
    if row is not None and bench.mode == "session":
        await bench.logged(side="provider", finish_state="client_abort")
    return f"the provider was left after {took:.1f} s"


@probe("leaves-before-stream", abandon_after=0.05)
async def before_stream(bench: Bench) -> str:
    """An agent that leaves before the first byte of a stream takes the provider's request with it.

    Source: BerriAI/litellm#13774, BerriAI/litellm#37140
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    asking.leave()
    return await _left(bench, call)


@probe("leaves-before-json", abandon_after=0.05)
async def before_json(bench: Bench) -> str:
    """So does one that waited for JSON.

    Source: BerriAI/litellm#13774, BerriAI/litellm#30245, BerriAI/litellm#31499
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    asking.leave()
    return await _left(bench, call)


@probe("leaves-after-headers", RECORD)
async def after_headers(bench: Bench) -> str:
    """So does one that leaves between the headers and the first event.

    Source: BerriAI/litellm#37140
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(b": ping\n")
    await asking.until(b": ping")
    asking.leave()
    return await _left(bench, call, status=200)


@probe("leaves-in-stream", RECORD)
async def in_stream(bench: Bench) -> str:
    """So does one that leaves a stream while the provider is silent.

    Source: BerriAI/litellm#13774, BerriAI/litellm#34805
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(event(chunk({"content": "half"})))
    await asking.until(b"half")
    asking.leave()
    return await _left(bench, call, status=200)


@probe("leaves-busy-stream", RECORD)
async def busy_stream(bench: Bench) -> str:
    """So does one that leaves a stream while the provider writes on and on.

    Source: BerriAI/litellm#13774
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(event(chunk({"content": "half"})))
    await asking.until(b"half")
    asking.leave()
    for _ in range(100):
        await call.send(event(chunk({"content": "more"})))
    return await _left(bench, call, status=200)


@probe("leaves-in-json", RECORD)
async def in_json(bench: Bench) -> str:
    """So does one that leaves in the middle of a JSON answer.

    Source: BerriAI/litellm#30245
    """
    body = json.dumps(completion({"content": "Hi."})).encode()
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.begin(headers=[JSON], length=len(body))
    await call.write(body[:50])
    asking.leave()
    return await _left(bench, call)


@probe("leaves-while-waiting", SESSION, keep_alive=0.05, abandon_after=0.05)
async def while_waiting(bench: Bench) -> str:
    """An agent that leaves after signs of life takes the provider's request with it.

    Source: BerriAI/litellm#13774
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await asking.until(b":")
    asking.leave()
    return await _left(bench, call)


@probe("leaves-after-done")
async def after_done(bench: Bench) -> str:
    """An agent that hangs up on seeing `[DONE]` has got everything: the row is complete.

    Source: CopilotKit/aimock CHANGELOG #288 (SDKs close the socket at the terminal event)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*text_stream("Hi."))
    await asking.until(b"data: [DONE]\n\n")
    asking.leave()
    row = await bench.logged(finish_state="complete", error_type=None)
    check(row is None or row["output_message"], "the row has no message")
    return "complete"


@probe("comes-back", SESSION)
async def comes_back(bench: Bench) -> str:
    """An agent that left and asks again joins its request: the provider is asked once.

    Source: anthropics/anthropic-sdk-java#370, vectorize-io/hindsight#1567
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    asking.leave()
    await bench.logged(finish_state="client_abort")
    again = await bench.ask(("x-stainless-retry-count", "1"))
    await call.answer(completion({"content": "Once."}))
    same((await again.answer()).said, "Once.", "the text")
    same(bench.provider.count, 1, "the number of requests at the provider")
    await bench.logged(2, finish_state="complete")
    await bench.logged_steps("ask")
    return "one request at the provider"


@probe("asks-again", BOTH)
async def asks_again(bench: Bench) -> str:
    """The same request again is passed on again; in a session it gets the answer it missed.

    Source: anthropics/anthropic-sdk-java#370, vectorize-io/hindsight#1567
    """
    for text in ("One.", "Two."):
        asking = await bench.ask()
        if text == "One." or bench.mode == "record":
            call = await bench.provider.call()
            await call.answer(completion({"content": text}))
        wanted = text if bench.mode == "record" else "One."
        same((await asking.answer()).said, wanted, "the text")
    await bench.logged(2, finish_state="complete")
    return "asked twice" if bench.mode == "record" else "answered from the record"
