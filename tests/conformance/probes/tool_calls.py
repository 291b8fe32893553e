"""Tool calls in streams as providers really write them: a recorder must know them, a judge too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.conformance.bench import CALLS_SCENARIO, Bench, check, same
from tests.conformance.chunks import (
    DONE,
    chunk,
    completion,
    cut_up,
    deltas,
    event,
    events,
    fragments,
    said,
    text_stream,
    tool_call,
)
from tests.conformance.probe import BOTH, probe

Json = dict[str, Any]
NAME = "get_balance"
FIRST, SECOND = '{"account": "Assets:Checking"}', '{"account": "Liabilities:CreditCard"}'
BALANCES = ("2480.10", "-312.45")
"""What the scenario's tool answers to FIRST and SECOND."""


def _delta(index: int | None, arguments: str = "", *, id: str | None = None, name: str | None = None) -> Json:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    call: Json = {"function": function}
    if index is not None:
        call["index"] = index
    if id is not None:
        call.update(id=id, type="function")
    return {"tool_calls": [call]}


def _in_pieces(index: int | None, arguments: str, **head: Any) -> list[Json]:
    return [_delta(index, **head), _delta(index, arguments[:9]), _delta(index, arguments[9:])]


async def _stream(bench: Bench, *parts: Json | bytes, finish: str = "tool_calls") -> None:
    """A stream of these deltas, or bytes, is passed on and known, or judged, as FIRST and SECOND."""
    wire = [event(chunk(part)) if isinstance(part, dict) else part for part in parts]
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*wire, event(chunk({}, finish)), DONE)
    if bench.mode == "session":
        await _judged(bench, [FIRST, SECOND])
        same(said(events((await asking.answer()).raw)), "Done.", "the text")
        await bench.logged_steps("observe", "close")
        return
    answer = events((await asking.answer()).raw)
    same(fragments(answer), fragments(events(b"".join(wire))), "the deltas")
    await _logged_calls(bench, [FIRST, SECOND])


async def _judged(bench: Bench, arguments: Sequence[str], stream: bool = True) -> None:
    """The proxy goes on with the provider, and each call has the observation it asked for."""
    again = await bench.provider.call()
    *_, assistant, first, second = again.json["messages"]
    calls = assistant.get("tool_calls") or []
    same([it["function"]["arguments"] for it in calls], list(arguments), "the arguments sent on")
    ids = [it.get("id") for it in calls]
    check(all(ids) and len(set(ids)) == len(ids), f"the ids sent on are {ids}")
    results = {it.get("tool_call_id"): it.get("content") for it in (first, second)}
    for id, balance in zip(ids, BALANCES, strict=True):
        check(balance in str(results.get(id)), f"{id} is told {results.get(id)!r}, not {balance}")
    if stream:
        await again.stream(*text_stream("Done."))
    else:
        await again.answer(completion({"content": "Done."}))


async def _logged_calls(bench: Bench, arguments: Sequence[str]) -> None:
    if bench.log is None or (row := await bench.logged(finish_state="complete")) is None:
        return
    calls = (bench.log.message(row) or {}).get("tool_calls") or []
    told = [(it["function"]["name"], it["function"]["arguments"]) for it in calls]
    same(told, [(NAME, it) for it in arguments], "the logged calls")


@probe("calls-by-index", BOTH, scenario=CALLS_SCENARIO)
async def by_index(bench: Bench) -> str:
    """Two calls whose deltas come by turns are told apart by their index, which the agent gets.

    Source: CaddyGlow/ccproxy-api#49
    """
    one = _in_pieces(0, FIRST, id="call_a", name=NAME)
    two = _in_pieces(1, SECOND, id="call_b", name=NAME)
    await _stream(bench, *(delta for pair in zip(one, two, strict=True) for delta in pair))
    return "2 calls, by turns"


@probe("calls-of-one-index", BOTH, scenario=CALLS_SCENARIO)
async def of_one_index(bench: Bench) -> str:
    """A delta with a new id begins a new call though its index is 0 again.

    Source: BerriAI/litellm#33678, BerriAI/litellm#7621, agno-agi/agno#3826
    """
    one = _in_pieces(0, FIRST, id="call_a", name=NAME)
    two = _in_pieces(0, SECOND, id="call_b", name=NAME)
    await _stream(bench, *one, *two)
    return "2 calls, both with index 0"


@probe("calls-id-once", BOTH, scenario=CALLS_SCENARIO)
async def id_once(bench: Bench) -> str:
    """The id may come in a call's first delta alone, or in each of them.

    Source: archestra-ai/archestra#866, BerriAI/litellm#11407
    """
    one = _in_pieces(0, FIRST, id="call_a", name=NAME)
    two = [_delta(1, it, id="call_b", name=NAME) for it in ("", SECOND[:9], SECOND[9:])]
    await _stream(bench, *one, *two)
    if bench.log and bench.mode == "record" and (row := await bench.logged()):
        ids = [it.get("id") for it in bench.log.message(row)["tool_calls"]]
        same(ids, ["call_a", "call_b"], "the logged ids")
    return "2 calls; no id was joined to itself"


@probe("calls-without-id", BOTH, scenario=CALLS_SCENARIO)
async def without_id(bench: Bench) -> str:
    """Calls without an id are calls; where one is needed it is made up once.

    Source: sgl-project/sglang#7048, NousResearch/hermes-agent#115224
    """
    await _stream(bench, *_in_pieces(0, FIRST, name=NAME), *_in_pieces(1, SECOND, name=NAME))
    return "2 calls without an id"


@probe("calls-without-index", BOTH, scenario=CALLS_SCENARIO)
async def without_index(bench: Bench) -> str:
    """Whole calls that come without an index are told apart by their ids.

    Source: AstrBotDevs/AstrBot#6661, openai/openai-python#2806 (Gemini)
    """
    await _stream(
        bench, _delta(None, FIRST, id="call_a", name=NAME), _delta(None, SECOND, id="call_b", name=NAME)
    )
    return "2 calls without an index"


@probe("calls-odd-ends", BOTH, scenario=CALLS_SCENARIO)
async def odd_ends(bench: Bench) -> str:
    """Calls are calls though the finish_reason is `stop`, and though arguments begin with null.

    Source: docs/how-it-works.md; OpenAI API reference, the chat completion chunk object
    """
    parts = [*_in_pieces(0, FIRST, id="call_a", name=NAME), *_in_pieces(1, SECOND, id="call_b", name=NAME)]
    for part in (parts[0], parts[3]):
        part["tool_calls"][0]["function"]["arguments"] = None
    await _stream(bench, *parts, finish="stop")
    return "2 calls"


@probe("calls-of-one-id", BOTH, scenario=CALLS_SCENARIO)
async def of_one_id(bench: Bench) -> str:
    """Two calls with the same id are two calls, and each gets its own result.

    Source: can1357/oh-my-pi#2055, OpenRouterTeam/ai-sdk-provider#471
    """
    one = _in_pieces(0, FIRST, id="call_a", name=NAME)
    two = _in_pieces(1, SECOND, id="call_a", name=NAME)
    await _stream(bench, *one, *two)
    return "2 calls of one id"


@probe("calls-in-json", BOTH, scenario=CALLS_SCENARIO)
async def in_json(bench: Bench) -> str:
    """Calls of an answer that is no stream are passed on and known, or judged, as well.

    Source: can1357/oh-my-pi#2055
    """
    calls = [tool_call(NAME, FIRST, "call_a"), tool_call(NAME, SECOND, "call_a")]
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(completion({"content": None, "tool_calls": calls}, "tool_calls"))
    if bench.mode == "session":
        await _judged(bench, [FIRST, SECOND], stream=False)
        same((await asking.answer()).said, "Done.", "the text")
        await bench.logged_steps("observe", "close")
    else:
        message = (await asking.answer()).json["choices"][0]["message"]
        same(message.get("tool_calls"), calls, "the calls")
        await _logged_calls(bench, [FIRST, SECOND])
    return "2 calls"


@probe("calls-utf8-cut", BOTH, scenario=CALLS_SCENARIO)
async def utf8_cut(bench: Bench) -> str:
    """Arguments in other scripts and with emoji stay whole where the bytes are cut anywhere.

    Source: api7/aisix#111, musistudio/claude-code-router#1672
    """
    arguments = '{"account": "Assets:Checking", "note": "残高🎉 für Zoë"}'
    parts = [
        _delta(0, id="call_a", name=NAME),
        *(_delta(0, it) for it in arguments),
        _delta(1, SECOND, id="call_b", name=NAME),
    ]
    wire = b"".join(event(chunk(it)) for it in parts) + event(chunk({}, "tool_calls")) + DONE
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*cut_up(wire, 3))
    if bench.mode == "session":
        await _judged(bench, [arguments, SECOND])
        await asking.answer()
        if bench.log and await bench.logged():
            told = [it[1] for it in bench.log.calls(bench.marker)]
            same(told, [arguments, SECOND], "the logged arguments")
    else:
        answer = events((await asking.answer()).raw)
        same(fragments(answer), fragments(events(wire)), "the deltas")
        await _logged_calls(bench, [arguments, SECOND])
    return "not a character was lost"


@probe("calls-legacy", BOTH, scenario=CALLS_SCENARIO)
async def legacy(bench: Bench) -> str:
    """`functions` reach the provider, and `function_call` is passed on and known, or judged.

    Source: Continuum-AI-Corp/OrcaRouter-Lite#131, Nayjest/lm-proxy#41, QwenLM/qwen-code#6240
    """
    function = {"name": "mine", "description": "Mine.", "parameters": {"type": "object", "properties": {}}}
    asking = await bench.ask(stream=True, functions=[function], function_call="auto")
    call = await bench.provider.call()
    check(call.json.get("functions"), "the provider got no functions")
    same(call.json.get("function_call"), "auto", "the provider's function_call")
    head = {"function_call": {"name": NAME, "arguments": ""}}
    parts = [head, *({"function_call": {"arguments": it}} for it in (FIRST[:9], FIRST[9:]))]
    await call.stream(*(event(chunk(it)) for it in parts), event(chunk({}, "function_call")), DONE)
    if bench.mode == "session":
        again = await bench.provider.call()
        result = again.json["messages"][-1]
        same((result.get("role"), result.get("name")), ("function", NAME), "the result's role and name")
        check(BALANCES[0] in result["content"], f"the result is {result['content']!r}")
        await again.stream(*text_stream("Done."))
        await asking.answer()
    else:
        same(call.json["functions"], [function], "the provider's functions")
        found = [it["function_call"] for it in deltas(events((await asking.answer()).raw)) if it]
        same(found, [it["function_call"] for it in parts], "the deltas")
        await bench.logged_message(function_call={"name": NAME, "arguments": FIRST})
    return "functions went, function_call came"


@probe("calls-content", BOTH, scenario=CALLS_SCENARIO)
async def beside_content(bench: Bench) -> str:
    """`content: null`, `""` and none at all beside calls are calls, and pass as what they are.

    Source: TensorBlock/forge#24, lmstudio-ai/lmstudio-bug-tracker#261, vercel/ai#13744
    """
    for content in ({"content": None}, {"content": ""}, {}):
        await _beside(bench.again(), content)
    return "null, empty and absent"


async def _beside(bench: Bench, content: Json) -> None:
    calls = [tool_call(NAME, FIRST, "call_a"), tool_call(NAME, SECOND, "call_b")]
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(completion({**content, "tool_calls": calls}, "tool_calls"))
    if bench.mode == "session":
        await _judged(bench, [FIRST, SECOND], stream=False)
        same((await asking.answer()).said, "Done.", "the text")
        await bench.logged_steps("observe", "close")
        return
    message = (await asking.answer()).json["choices"][0]["message"]
    same(
        {k: v for k, v in message.items() if k == "content"}, content, f"the content ({json.dumps(content)})"
    )
    if bench.log and (row := await bench.logged()):
        logged = {k: v for k, v in bench.log.message(row).items() if k == "content"}
        same(logged, content, "the logged content")


@probe("calls-of-none", BOTH)
async def of_none(bench: Bench) -> str:
    """`tool_calls: []` or null, and `function_call: null`, beside a text are no calls.

    Source: OpenAI API reference, the chat completion object (fields may be null)
    """
    kinds: list[Json] = [{"tool_calls": []}, {"tool_calls": None, "function_call": None}]
    for none in kinds:
        own = bench.again()
        asking = await own.ask()
        call = await own.provider.call()
        await call.answer(completion({"content": "Hi.", **none}))
        same((await asking.answer()).said, "Hi.", "the text")
        await own.logged(finish_state="complete")
        if own.mode == "session":
            await own.logged_steps("ask")
    return "a text"
