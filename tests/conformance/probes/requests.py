"""Requests: what is in them reaches the provider, compressed or large."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.conformance.bench import Bench, same
from tests.conformance.chunks import completion
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
    asking = await bench.ask(messages=bench.messages(words))
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    answer = await asking.answer()
    same(answer.status, 200, "the status")
    same(call.raw.count(words.encode()), 1, "how often the provider got the text")
    await bench.logged(finish_state="complete")
    return f"{len(call.raw) / 1e6:.0f} MB arrived"
