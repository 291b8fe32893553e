"""Streams in odd bytes: cut characters, long lines, other line ends, comments, compression."""

from __future__ import annotations

import gzip
import json

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import DONE, chunk, completion, cut_up, event, events, said, text_stream
from tests.conformance.http import Headers
from tests.conformance.probe import RECORD, probe
from tests.conformance.provider import EVENTS, JSON

WORDS = "世界🎉 naïve"
GZIP = ("Content-Encoding", "gzip")


async def _text_of(bench: Bench, *parts: bytes, headers: Headers | None = None) -> bytes:
    """The bytes that an agent gets of a stream of these parts, which say WORDS."""
    return await _stream_of(bench, WORDS, *parts, headers=headers)


async def _stream_of(bench: Bench, words: str, *parts: bytes, headers: Headers | None = None) -> bytes:
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*parts, headers=headers or [EVENTS])
    answer = await asking.answer()
    same(said(events(answer.raw)), words, "the text")
    await bench.logged(finish_state="complete")
    if bench.mode == "record":
        await bench.logged_message(content=words)
    return answer.raw


@probe("utf8-cut")
async def utf8_cut(bench: Bench) -> str:
    """Characters of several bytes that are cut between two chunks stay whole.

    Source: musistudio/claude-code-router#1672, api7/aisix#111
    """
    await _text_of(bench, *cut_up(b"".join(text_stream(WORDS))))
    return f"{WORDS!r} came whole, sent byte by byte"


@probe("utf8-cut-in-json", RECORD)
async def utf8_cut_in_json(bench: Bench) -> str:
    """So they do in an answer that is no stream, byte for byte.

    Source: musistudio/claude-code-router#1672
    """
    body = json.dumps(completion({"content": WORDS}), ensure_ascii=False).encode()
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.stream(*cut_up(body), headers=[JSON])
    same((await asking.answer()).raw, body, "the body")
    await bench.logged_message(content=WORDS)
    return f"{len(body)} bytes came as sent"


@probe("long-line")
async def long_line(bench: Bench) -> str:
    """An event of 400 kB in one line passes.

    Source: NVIDIA/TensorRT-LLM#13952, open-webui/open-webui#24928, aio-libs/aiohttp#4453
    """
    words = "x" * 400_000
    await _stream_of(bench, words, *text_stream(words))
    return "400 kB in one line"


@probe("line-ends")
async def line_ends(bench: Bench) -> str:
    """Lines may end in CR LF or CR, also where the two are cut apart.

    Source: WHATWG HTML, section 9.2.6
    """
    whole = b"".join(text_stream(WORDS))
    await _text_of(bench, *cut_up(whole.replace(b"\n", b"\r\n")))
    await _text_of(bench.again(), *cut_up(whole.replace(b"\n", b"\r")))
    return "CR LF and CR are line ends"


@probe("line-separators")
async def line_separators(bench: Bench) -> str:
    """U+2028, U+2029 and U+0085, which JSON may hold as they are, end no line.

    Source: WHATWG HTML, section 9.2.6 (only CR and LF do), RFC 8259, section 7
    """
    words = "one\u2028two\u2029three\u0085four"
    await _stream_of(bench, words, *text_stream(words))
    return "they stayed inside their event"


@probe("data-in-two-lines")
async def data_in_two_lines(bench: Bench) -> str:
    """The data lines of an event are one text; `id:`, `retry:`, other events, no blank behind `data:`.

    Source: WHATWG HTML, section 9.2.6
    """
    first, second, *rest = text_stream(WORDS)
    split = first.replace(b', "object"', b',\ndata: "object"', 1)
    odd = [b"retry: 5\n", b"id: 1\n", split, b"event: ping\ndata: {}\n\n", b"data\n\n"]
    odd.append(second.replace(b"data: ", b"data:"))
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*odd, *rest)
    answer = await asking.answer()
    same(said(events(answer.raw)), WORDS, "the text")
    await bench.logged(finish_state="complete")
    return "read as one text"


@probe("comments", RECORD)
async def comments(bench: Bench) -> str:
    """Keep-alive comments arrive as they were sent, and before the first event does.

    Source: mnfst/llm-gateway#2053, theopenco/llmgateway#2334
    """
    first, second, *rest = text_stream(WORDS)
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(b": PROCESSING\n\n")
    await asking.until(b": PROCESSING\n\n")
    await call.send(first, b": ping\n", second, *rest)
    await call.end()
    answer = await asking.answer()
    same(answer.raw, b"".join([b": PROCESSING\n\n", first, b": ping\n", second, *rest]), "the stream")
    await bench.logged_message(content=WORDS)
    return "byte for byte"


@probe("comments-in-a-stream")
async def comments_in_a_stream(bench: Bench) -> str:
    """Comments are no events and no part of the text.

    Source: mnfst/llm-gateway#2053
    """
    first, *rest = text_stream(WORDS)
    raw = await _text_of(bench, b": PROCESSING\n\n", first, b": ping\n", *rest)
    check(b"data: :" not in raw, "a comment became an event")
    return "no event was made of them"


@probe("gzip-stream")
async def gzip_stream(bench: Bench) -> str:
    """A stream that the provider compresses is readable: decompressed, or said to be compressed.

    Source: open-webui/open-webui#23876, gadievron/raptor#547
    """
    packed = gzip.compress(b"".join(text_stream(WORDS)))
    await _text_of(bench, *cut_up(packed, 100), headers=[EVENTS, GZIP])
    return "the events are readable"


@probe("gzip-json")
async def gzip_json(bench: Bench) -> str:
    """So is an answer that is no stream, to its last byte.

    Source: lsagetlethias/fine-grained-proxy#18, gadievron/raptor#547
    """
    words = WORDS * 2000
    body = json.dumps(completion({"content": words})).encode()
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(gzip.compress(body), headers=[JSON, GZIP])
    answer = await asking.answer()
    same(answer.said, words, "the text")
    await bench.logged(finish_state="complete")
    return f"{len(body)} bytes are readable"


@probe("event-in-many-writes", RECORD)
async def event_in_many_writes(bench: Bench) -> str:
    """A stream arrives byte for byte, whatever is in it.

    Source: CaddyGlow/ccproxy-api#49 (forward bytes, never write them anew)
    """
    odd = b'data: {"choices" : [ {"index":0,"delta":{"content":"\\u4e16"}} ],"x":1e400, "x":2}\r\n\r\n'
    parts = [*cut_up(odd, 7), b"event: mine\nid: 7\ndata: {}\n\n", event(chunk({}, "stop")), DONE]
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*parts)
    same((await asking.answer()).raw, b"".join(parts), "the stream")
    await bench.logged_message(content="世")
    return "byte for byte"
