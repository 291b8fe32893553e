"""Headers: end to end, or of one hop; and one connection for two requests."""

from __future__ import annotations

from tests.conformance.bench import Bench, check, contains, same
from tests.conformance.chunks import completion, events, said, text_stream
from tests.conformance.http import values
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
