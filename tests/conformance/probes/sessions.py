"""What a session adds: what was asked for is what comes, and signs of life until then."""

from __future__ import annotations

from tests.conformance.bench import CALLS_SCENARIO, Bench, check, same
from tests.conformance.chunks import completion, events, said, text_stream, tool_call
from tests.conformance.probe import SESSION, probe


@probe("stream-for-a-stream", SESSION)
async def stream_for_stream(bench: Bench) -> str:
    """An agent that asked for a stream gets one, though the provider answers plain JSON.

    Source: OpenAI API reference, the field `stream`
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.answer(completion({"content": "Hi."}))
    answer = await asking.answer()
    check((answer.header("Content-Type") or "").startswith("text/event-stream"), "the type is no stream's")
    found = events(answer.raw)
    same((said(found), found[-1]), ("Hi.", "[DONE]"), "text and last event")
    return "a stream"


@probe("json-for-json", SESSION)
async def json_for_json(bench: Bench) -> str:
    """An agent that did not ask for a stream gets JSON, though the provider streams.

    Source: OpenAI API reference, the field `stream`
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.stream(*text_stream("Hi."))
    answer = await asking.answer()
    check((answer.header("Content-Type") or "").startswith("application/json"), "the type is not JSON's")
    same(answer.said, "Hi.", "the text")
    return "JSON"


@probe("life-in-a-stream", SESSION, keep_alive=0.05)
async def life_in_stream(bench: Bench) -> str:
    """While the provider is slow, comments keep a stream alive; they dispatch no empty events.

    Source: theopenco/llmgateway#2334, openai/openai-python#2722, openai/openai-python#3833
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    early = await asking.until(b"\n")
    check(early.startswith(b":") and b"\n\n" not in early, f"the sign of life is {early!r}")
    await call.stream(*text_stream("Hi."))
    answer = await asking.answer()
    same(said(events(answer.raw)), "Hi.", "the text")
    return f"{early.decode().strip()!r} came before there was an answer"


@probe("life-in-json", SESSION, keep_alive=0.05)
async def life_in_json(bench: Bench) -> str:
    """Blanks keep a JSON answer alive: it can still be parsed.

    Source: RFC 8259, section 2 (blanks may stand before a value)
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    early = await asking.until(b" ")
    same(early.strip(), b"", "the sign of life")
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).said, "Hi.", "the text")
    return "a blank came before there was an answer"


@probe("calls-stay-inside", SESSION, scenario=CALLS_SCENARIO)
async def calls_stay_inside(bench: Bench) -> str:
    """The agent sees texts alone: neither calls that the proxy answers nor wrong ones.

    Source: docs/how-it-works.md
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    wrong = tool_call("list_entries", '{"account": "Assets:Cash", "month": "2025-03"}', "call_a")
    await call.answer(completion({"content": None, "tool_calls": [wrong]}, "tool_calls"))
    answer = await asking.answer()
    check(b"list_entries" not in answer.raw and b"tool_calls" not in answer.raw, "the agent sees the call")
    check(said(events(answer.raw)).strip(), "the agent gets no text")
    await bench.logged_steps("stop")
    return f"a wrong call is {said(events(answer.raw))!r} to the agent"


@probe("date-and-tools", SESSION, scenario=CALLS_SCENARIO)
async def date_and_tools(bench: Bench) -> str:
    """The provider gets the user's words, the scenario's date and its tools; never a placeholder.

    Source: docs/how-it-works.md
    """
    asking = await bench.ask(messages=bench.messages("Before: "))
    call = await bench.provider.call()
    *_, last = call.json["messages"]
    check(last["content"].startswith("Before: ") and "checking" in last["content"], f"it got {last}")
    check(b"next-user-turn" not in call.raw, "the placeholder went to the provider")
    check(b"Current Date: 2025-03-14" in call.raw, "the scenario's date is missing")
    names = [it["function"]["name"] for it in call.json["tools"]]
    check("get_balance" in names, f"the tools are {names}")
    await call.answer(completion({"content": "Hi."}))
    await asking.answer()
    return f"{len(names)} tools, the date, the words"
