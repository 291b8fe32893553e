"""Headers: end to end, or of one hop; and one connection for two requests."""

from __future__ import annotations

import json

from tests.conformance.bench import Bench, check, contains, same
from tests.conformance.chunks import chunk, completion, event, events, said, text_stream
from tests.conformance.http import head, values
from tests.conformance.probe import BOTH, RECORD, probe
from tests.conformance.provider import EVENTS, JSON


@probe("request-headers")
async def request_headers(bench: Bench) -> str:
    """Headers that the proxy does not know reach the provider, once.

    Source: OpenAI API reference, authentication (organization and project headers)
    """
    own = [("X-Custom", "kept: 1"), ("OpenAI-Organization", "org-1"), ("User-Agent", "conformance/1")]
    asking = await bench.ask(*own)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    contains(call.headers, own, "the request")
    return f"{len(own)} of {len(own)}"


@probe("request-hop-by-hop")
async def request_hops(bench: Bench) -> str:
    """Headers of one connection end there, and so do those that `Connection` names.

    Source: RFC 9110, section 7.6.1, http-party/node-http-proxy#1488
    """
    hops = [
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=77"),
        ("TE", "trailers"),
        ("Proxy-Authorization", "Basic aG9wOmhvcA=="),
    ]
    asking = await bench.ask(*hops, ("X-Kept", "1"))
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    contains(call.headers, [("X-Kept", "1")], "the request")
    passed = [name for name, text in hops if text in (call.header(name) or "")]
    same(passed, [], "what went to the provider")
    return f"{len(hops)} headers ended at the proxy"


@probe("answer-headers", BOTH)
async def answer_headers(bench: Bench) -> str:
    """A provider's own headers reach the agent; with a failure in a session, too.

    Source: OpenAI API reference, debugging requests (x-request-id, openai-processing-ms)
    """
    own = [("x-request-id", "req_1"), ("openai-version", "2020-10-01"), ("x-ratelimit-limit-requests", "9")]
    asking = await bench.ask()
    call = await bench.provider.call()
    status = 200 if bench.mode == "record" else 400
    await call.answer(completion({"content": "Hi."}), status, [JSON, *own])
    answer = await asking.answer()
    same(answer.status, status, "the status")
    contains(answer.headers, own, "the answer")
    return f"{len(own)} of {len(own)}"


@probe("answer-hop-by-hop")
async def answer_hops(bench: Bench) -> str:
    """Nor do headers of the provider's connection reach the agent.

    Source: RFC 9110, section 7.6.1, http-party/node-http-proxy#1488
    """
    hops = [
        ("Connection", "keep-alive, X-Back"),
        ("X-Back", "1"),
        ("Keep-Alive", "timeout=77"),
        ("Proxy-Authenticate", "Basic"),
    ]
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*text_stream("Hi."), headers=[EVENTS, *hops])
    answer = await asking.answer()
    same(said(events(answer.raw)), "Hi.", "the text")
    passed = [name for name, text in hops if any(text in it for it in values(answer.headers, name))]
    same(passed, [], "what came from the provider's connection")
    return f"{len(hops)} headers ended at the proxy"


@probe("answer-repeated-headers", RECORD)
async def repeated(bench: Bench) -> str:
    """Headers that come twice stay two.

    Source: RFC 6265, section 3 (set-cookie headers must not be folded)
    """
    cookies = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}), headers=[JSON, *cookies])
    same(values((await asking.answer()).headers, "Set-Cookie"), ["a=1", "b=2"], "Set-Cookie")
    return "2 cookies"


@probe("answer-framing")
async def framing(bench: Bench) -> str:
    """An answer has one length: a stale Content-Length beside chunks is a smuggling hole.

    Source: RFC 9112, section 6.2, lsagetlethias/fine-grained-proxy#18
    """
    for stream in (False, True):
        asking = await bench.ask(stream=stream)
        if stream and bench.mode == "session":
            # The turn's stored answer, as a stream this time.
            answer = await asking.answer()
        else:
            call = await bench.provider.call()
            if stream:
                await call.stream(*text_stream("Hi."))
            else:
                await call.answer(completion({"content": "Hi."}))
            answer = await asking.answer()
        length, coding = answer.header("Content-Length"), answer.header("Transfer-Encoding")
        check(not (length and coding), f"Content-Length {length} and Transfer-Encoding {coding}")
        check("," not in (length or ""), f"two lengths: {length}")
    return "one length each, in a stream and not"


@probe("one-connection")
async def one_connection(bench: Bench) -> str:
    """Several requests in turn on one connection are each answered, streams and errors among them.

    Source: RFC 9112, section 9.3
    """
    line = await bench.line()
    asking = await bench.ask(line=line)
    call = await bench.provider.call()
    await call.answer(completion({"content": "One."}))
    same((await asking.answer()).said, "One.", "the first text")
    asking = await bench.again().ask(line=line, stream=True)
    call = await bench.provider.call()
    await call.stream(*text_stream("Two."))
    same(said(events((await asking.answer()).raw)), "Two.", "the second text")
    asking = await bench.again().ask(line=line)
    call = await bench.provider.call()
    await call.answer(b'{"error": {"message": "no"}}', 400)
    same((await asking.answer()).status, 400, "the third status")
    asking = await bench.again().ask(line=line)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Four."}))
    same((await asking.answer()).said, "Four.", "the fourth text")
    return "4 requests on one connection"


@probe("answer-until-close")
async def until_close(bench: Bench) -> str:
    """An answer that has no length and ends with its connection is whole, as a stream too.

    Source: RFC 9112, section 6.3 (servers that speak HTTP/1.0)
    """
    for stream in (False, True):
        own = bench.again()
        asking = await own.ask(stream=stream)
        call = await own.provider.call()
        body = json.dumps(completion({"content": "Hi."})).encode()
        parts = text_stream("Hi.") if stream else [body]
        await call.write(head("HTTP/1.0 200 OK", [EVENTS if stream else JSON]) + b"".join(parts))
        call.cut()
        answer = await asking.answer()
        text = said(events(answer.raw)) if stream else answer.said
        same((answer.status, text), (200, "Hi."), "the answer")
        await own.logged(finish_state="complete")
    return "whole, in a stream and not"


@probe("answer-after-blanks")
async def after_blanks(bench: Bench) -> str:
    """Blanks before JSON, by which a provider keeps a connection alive, are no part of it.

    Source: RFC 8259, section 2
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    body = json.dumps(completion({"content": "Hi."})).encode()
    await call.stream(b"\n", b"  \n", body, headers=[JSON])
    same((await asking.answer()).said, "Hi.", "the text")
    await bench.logged(finish_state="complete")
    return "read"


@probe("side-by-side", RECORD)
async def side_by_side(bench: Bench) -> str:
    """Streams go on beside each other: one that waits holds up none.

    Source: RFC 9110, section 3.3
    """
    asked = [await bench.ask(stream=True) for _ in range(20)]
    calls = [await bench.provider.call() for _ in asked]
    for call in calls:
        await call.begin()
        await call.send(event(chunk({"content": "first "})))
    for asking in asked:
        await asking.until(b"first")
    for call in reversed(calls):
        await call.send(*text_stream("last")[1:])
        await call.end()
    for asking in asked:
        same(said(events((await asking.answer()).raw)), "first last", "the text")
    await bench.logged(20, finish_state="complete")
    return "20 streams at once"
