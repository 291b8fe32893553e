"""Streams: each event when it comes, what ends one, usage."""

from __future__ import annotations

from typing import Any

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import (
    DONE,
    USAGE,
    chunk,
    completion,
    event,
    events,
    said,
    text_stream,
    usage_chunk,
)
from tests.conformance.http import Headers
from tests.conformance.probe import BOTH, RECORD, probe
from tests.conformance.provider import EVENTS


@probe("stream-incremental", RECORD)
async def incremental(bench: Bench) -> str:
    """Each event of a stream reaches the agent before the provider sends the next one.

    Source: CopilotKit/aimock#125, HKUDS/nanobot#3677
    """
    return await _one_by_one(bench, [EVENTS])


@probe("stream-incremental-odd-type", RECORD)
async def incremental_odd_type(bench: Bench) -> str:
    """So it does when the provider spells the stream's Content-Type in another way.

    Source: RFC 9110, section 8.3.1 (types are case-insensitive and may have parameters)
    """
    return await _one_by_one(bench, [("Content-Type", "Text/Event-Stream;charset=UTF-8")])


@probe("stream-incremental-wrong-type", RECORD)
async def incremental_wrong_type(bench: Bench) -> str:
    """So it does when a stream that was asked for has a Content-Type that is none of a stream.

    Source: WHATWG HTML, section 9.2 (clients of chat completions do not look at the type)
    """
    return await _one_by_one(bench, [("Content-Type", "application/octet-stream")])


async def _one_by_one(bench: Bench, headers: Headers) -> str:
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin(headers=headers)
    for number in range(5):
        await call.send(event(chunk({"content": f"piece {number} "})))
        await asking.until(f"piece {number} ".encode())
    await call.send(event(chunk({}, "stop")), DONE)
    await call.end()
    answer = await asking.answer()
    same(said(events(answer.raw)), "piece 0 piece 1 piece 2 piece 3 piece 4 ", "the text")
    await bench.logged(finish_state="complete", stream=1)
    await bench.logged_message(content="piece 0 piece 1 piece 2 piece 3 piece 4 ")
    return "5 of 5 events came before the next was sent"


@probe("stream-stays-open", BOTH)
async def stays_open(bench: Bench) -> str:
    """`[DONE]` reaches the agent though the provider's connection stays open behind it.

    Source: CopilotKit/aimock CHANGELOG #288 (the terminal event decides, not the socket)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.begin()
    await call.send(*text_stream("Hi."))
    body = await asking.until(b"[DONE]")
    same(said(events(body)), "Hi.", "the text")
    await bench.logged(finish_state="complete")
    return "[DONE] came while the provider was still connected"


@probe("stream-without-done")
async def without_done(bench: Bench) -> str:
    """A stream that ends after its finish_reason without `[DONE]` is whole.

    Source: WHATWG HTML, section 9.2.6 (a stream ends where its body does)
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*text_stream("Hi.")[:-1])
    answer = await asking.answer()
    same(said(events(answer.raw)), "Hi.", "the text")
    if bench.mode == "record":
        check(b"[DONE]" not in answer.raw, "the proxy made up a [DONE]")
    await bench.logged(finish_state="complete")
    return "passed as it is and logged as complete" if bench.log else "passed as it is"


@probe("stream-without-last-blank-line")
async def without_blank_line(bench: Bench) -> str:
    """The last event of a stream counts though its blank line is missing.

    Source: WHATWG HTML, section 9.2.6 (which would drop it: several providers leave the line out)
    """
    last = event(chunk({"content": "last"}, "stop")).rstrip(b"\n")
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(event(chunk({"content": "first "})), last)
    answer = await asking.answer()
    same(said(events(answer.raw)), "first last", "the text")
    await bench.logged(finish_state="complete")
    await bench.logged_message(content="first last")
    return "the last event arrived"


@probe("usage-not-asked-for")
async def usage_not_asked(bench: Bench) -> str:
    """An agent that did not ask for usage gets no chunk with empty `choices`.

    Source: headroomlabs-ai/headroom#2026
    """
    answer = await _with_usage(bench, None)
    check(not any(it.get("choices") == [] for it in answer), "a usage chunk came that nobody asked for")
    return "no usage chunk"


@probe("usage-asked-for")
async def usage_asked(bench: Bench) -> str:
    """An agent that asked for usage gets it in a last chunk with `choices: []`.

    Source: ROCm/ATOM#1711
    """
    answer = await _with_usage(bench, {"include_usage": True})
    same(answer[-1].get("choices"), [], "the last chunk's choices")
    same(answer[-1].get("usage"), USAGE, "its usage")
    await bench.logged(input_tokens=11, output_tokens=7)
    return "the usage chunk came last"


@probe("usage-refused")
async def usage_refused(bench: Bench) -> str:
    """`include_usage: false` is not overruled.

    Source: headroomlabs-ai/headroom#2026
    """
    answer = await _with_usage(bench, {"include_usage": False})
    check(not any(it.get("choices") == [] for it in answer), "a usage chunk came that was refused")
    return "no usage chunk"


async def _with_usage(bench: Bench, options: dict[str, bool] | None) -> list[dict[str, Any]]:
    """The chunks that an agent with these `stream_options` gets."""
    fields: dict[str, Any] = {} if options is None else {"stream_options": options}
    asking = await bench.ask(stream=True, **fields)
    call = await bench.provider.call()
    sent = call.json.get("stream_options") or {}
    *most, done = text_stream("Hi.")
    usage = [event(usage_chunk())] if sent.get("include_usage") else []
    await call.stream(*most, *usage, done)
    answer = events((await asking.answer()).raw)
    same(answer.pop(), "[DONE]", "the last event")
    same(said(answer), "Hi.", "the text")
    return answer


@probe("usage-in-json")
async def usage_in_json(bench: Bench) -> str:
    """The usage of an answer that is no stream is kept.

    Source: OpenAI API reference, chat completion object
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).json.get("usage"), USAGE, "the usage")
    await bench.logged(input_tokens=11, output_tokens=7)
    return "18 tokens"


@probe("empty-choices")
async def empty_choices(bench: Bench) -> str:
    """Chunks with `choices: []`, or without any, break neither the stream nor the log.

    Source: tashfeenahmed/freellmapi#156, ROCm/ATOM#1711
    """
    filters = {**usage_chunk(), "usage": None, "prompt_filter_results": [{"prompt_index": 0}]}
    bare = {key: value for key, value in usage_chunk().items() if key != "choices"}
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    *most, done = text_stream("Hi.")
    await call.stream(event(filters), *most, event(bare), done)
    answer = events((await asking.answer()).raw)
    same(said(answer), "Hi.", "the text")
    if bench.mode == "record":
        same(answer[0].get("choices"), [], "the first chunk's choices")
        check("choices" not in answer[-2], "the usage chunk has got choices")
    await bench.logged(finish_state="complete", input_tokens=11)
    return "passed, with the text"
