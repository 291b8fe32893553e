"""Requests: what is in them reaches the provider, compressed or large."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.conformance.bench import Bench, same
from tests.conformance.chunks import completion, cut_up
from tests.conformance.http import chunked
from tests.conformance.probe import RECORD, probe


@probe("request-unknown-fields")
async def unknown_fields(bench: Bench) -> str:
    """Fields that the proxy does not know reach the provider.

    Source: Continuum-AI-Corp/OrcaRouter-Lite#131
    """
    fields: dict[str, Any] = {
        "x_mine": {"deep": [1, None, "ü"]},
        "reasoning_effort": "low",
        "seed": 7,
        "temperature": 0,
    }
    asking = await bench.ask(**fields, parallel_tool_calls=False)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    wanted = {**fields, "parallel_tool_calls": False}
    same({name: call.json.get(name) for name in wanted}, wanted, "what the provider got")
    return f"{len(wanted)} of {len(wanted)}"


@probe("request-bytes", RECORD)
async def request_bytes(bench: Bench) -> str:
    """A request that nothing has to be changed in arrives byte for byte.

    Source: CaddyGlow/ccproxy-api#49
    """
    odd = (
        b'{ "messages":[{"role":"user","content":"\\u00fc\\ud83c"}],\r\n'
        b'"big": 123456789012345678901234567890, "far": 1e400, "model" : "m", "user":"%b" }\n'
        % bench.marker.encode()
    )
    asking = await bench.ask(raw=odd)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    same(call.raw, odd, "the body")
    await bench.logged(finish_state="complete")
    return f"{len(odd)} bytes as sent"


@probe("request-numbers")
async def numbers(bench: Bench) -> str:
    """A big integer in a request stays one.

    Source: RFC 8259, section 6
    """
    big = 123456789012345678901234567890
    asking = await bench.ask(x_big=big)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    same(call.json.get("x_big"), big, "x_big")
    return "30 digits"


@probe("request-gzip")
async def gzip_request(bench: Bench) -> str:
    """A request that the agent compresses arrives readable.

    Source: gadievron/raptor#547 (raw with its header, or decoded without)
    """
    body = bench.body()
    asking = await bench.ask(("Content-Encoding", "gzip"), raw=gzip.compress(json.dumps(body).encode()))
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    same((call.json["model"], call.json["user"]), (body["model"], body["user"]), "what the provider got")
    await bench.logged(finish_state="complete", message_count=1)
    return "read by provider and log" if bench.log else "read by the provider"


@probe("request-3mb")
async def three_megabytes(bench: Bench) -> str:
    """A request of 3 MB passes.

    Source: liaohch3/claude-tap#2
    """
    return await _large(bench, 3_000_000)


@probe("request-60mb")
async def sixty_megabytes(bench: Bench) -> str:
    """So does one of 60 MB, as long contexts with pictures are.

    Source: PrimeIntellect-ai/verifiers#1504, PrimeIntellect-ai/verifiers#1833
    """
    return await _large(bench, 60_000_000)


async def _large(bench: Bench, size: int) -> str:
    words = "x" * size
    asking = await bench.ask(messages=[{"role": "system", "content": words}, *bench.messages()])
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    answer = await asking.answer()
    same(answer.status, 200, "the status")
    same(call.raw.count(words.encode()), 1, "how often the provider got the text")
    await bench.logged(finish_state="complete")
    return f"{len(call.raw) / 1e6:.0f} MB arrived"


@probe("request-chunked")
async def chunked_request(bench: Bench) -> str:
    """A request without a length, in chunks, arrives whole.

    Source: RFC 9112, section 7.1
    """
    body = json.dumps(bench.body()).encode()
    pieces = b"".join(chunked(piece) for piece in (*cut_up(body, 50), b""))
    line = await bench.line()
    headers = bench.headers(("Content-Type", "application/json"), ("Transfer-Encoding", "chunked"))
    asking = await line.ask("POST", f"{bench.base}/chat/completions", headers, pieces, framed=True)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).said, "Hi.", "the text")
    same(call.json["user"], bench.marker, "what the provider got")
    await bench.logged(finish_state="complete")
    return f"{len(body)} bytes in chunks"


@probe("request-expects-100")
async def expects_continue(bench: Bench) -> str:
    """`Expect: 100-continue`, as curl sends it with a long body, holds nothing up.

    Source: RFC 9110, section 10.1.1
    """
    asking = await bench.ask(("Expect", "100-continue"))
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).said, "Hi.", "the text")
    return "200"


@probe("request-long-header")
async def long_header(bench: Bench) -> str:
    """A header of 7 kB, as tokens of large organizations are, arrives.

    Source: RFC 9110, section 5.4 (8 kB are common)
    """
    token = "x" * 7000
    asking = await bench.ask(("X-Token", token))
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).status, 200, "the status")
    same(call.header("X-Token"), token, "the header")
    return "7 kB"
