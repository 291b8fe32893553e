"""What is in an answer: kept as it is, or, at the end of a turn, never empty."""

from __future__ import annotations

from typing import Any

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import DONE, MODEL, chunk, completion, deltas, event, events, said, text_stream
from tests.conformance.probe import BOTH, RECORD, SESSION, probe


@probe("answer-unknown-fields", RECORD)
async def unknown_fields(bench: Bench) -> str:
    """Fields that OpenAI does not have reach the agent: in the answer, the choice, the message.

    Source: CaddyGlow/ccproxy-api#49
    """
    body = completion({"content": "Hi.", "reasoning_content": "Hm.", "x_mine": [1]}, x_top={"deep": None})
    body["choices"][0]["x_choice"] = 1.5
    asking = await bench.ask()
    call = await bench.provider.call()
    await call.answer(body)
    answer = (await asking.answer()).json
    same(answer.get("x_top"), {"deep": None}, "x_top")
    same(answer["choices"][0].get("x_choice"), 1.5, "x_choice")
    same(answer["choices"][0]["message"], body["choices"][0]["message"], "the message")
    await bench.logged_message(reasoning_content="Hm.", x_mine=[1])
    return "4 of 4"


@probe("delta-unknown-fields", BOTH)
async def unknown_delta_fields(bench: Bench) -> str:
    """So do those of a stream's deltas, reasoning among them.

    Source: CaddyGlow/ccproxy-api#49
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    parts = [{"role": "assistant", "reasoning_content": "Hm, "}, {"reasoning_content": "yes."}]
    odd = event(chunk({"content": "Hi.", "x_mine": {"a": 1}}, "stop", x_top=3))
    await call.stream(*(event(chunk(it)) for it in parts), odd, DONE)
    answer = events((await asking.answer()).raw)
    same(said(answer), "Hi.", "the text")
    reasoned = "".join(it.get("reasoning_content") or "" for it in deltas(answer))
    same(reasoned, "Hm, yes.", "the reasoning")
    check(any(it.get("x_mine") == {"a": 1} for it in deltas(answer)), "x_mine is lost")
    check(any(it.get("x_top") == 3 for it in answer if isinstance(it, dict)), "x_top is lost")
    await bench.logged_message(reasoning_content="Hm, yes.", x_mine={"a": 1})
    return "reasoning, x_mine and x_top"


@probe("content-kept-apart", RECORD)
async def kept_apart(bench: Bench) -> str:
    """`content: null`, `""` and none at all stay apart in the messages that an agent sends.

    Source: TensorBlock/forge#24, vercel/ai#13744
    """
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    kinds: list[dict[str, Any]] = [{"content": None}, {"content": ""}, {}]
    said_before = [{"role": "assistant", **kind, "tool_calls": [call]} for kind in kinds]
    result = {"role": "tool", "tool_call_id": "call_1", "content": ""}
    messages = [*bench.messages(), *(it for said in said_before for it in (said, result))]
    asking = await bench.ask(messages=messages)
    got = await bench.provider.call()
    same(got.json["messages"], messages, "the provider's messages")
    await got.answer(completion({"content": ""}))
    same((await asking.answer()).said, "", "the answer's content")
    await bench.logged(message_count=len(messages))
    return "null, empty and absent"


@probe("model-names", model="sent-model")
async def model_names(bench: Bench) -> str:
    """The model that was asked for, the one sent and the one reported are not mixed up.

    Source: router-for-me/CLIProxyAPI#3965, zyycn/codex-proxy-rs#130, icebear0828/codex-proxy#660
    """
    asking = await bench.ask()
    call = await bench.provider.call()
    sent = call.json["model"]
    await call.answer(completion({"content": "Hi."}))
    same((await asking.answer()).json["model"], MODEL, "the model that the agent is told")
    await bench.logged(request_model="asked-model", response_model=MODEL)
    if bench.mode == "record":
        same(sent, "asked-model", "the model that the provider is asked for")
    else:
        await bench.logged(side="provider", request_model=sent, response_model=MODEL)
    return f"asked-model, {sent}, {MODEL}"


@probe("text-never-empty", SESSION)
async def never_empty(bench: Bench) -> str:
    """What ends a turn has a text, whatever the LLM said: agents loop or fail without one.

    Source: agentscope-ai/agentscope-java#2755, google/adk-python#5006
    """
    seen = []
    for content in ("", "   ", "\n\t", None):
        asking = await bench.again().ask()
        call = await bench.provider.call()
        await call.answer(completion({"content": content}))
        text = (await asking.answer()).said
        check(isinstance(text, str) and text.strip(), f"the LLM said {content!r}, the agent gets {text!r}")
        seen.append(text)
    return f"the agent gets {', '.join(map(repr, sorted(set(seen))))}"


@probe("text-never-empty-stream", SESSION)
async def never_empty_stream(bench: Bench) -> str:
    """So has it in a stream.

    Source: agentscope-ai/agentscope-java#2755, google/adk-python#5006
    """
    asking = await bench.ask(stream=True)
    call = await bench.provider.call()
    await call.stream(*text_stream("  ", " "))
    text = said(events((await asking.answer()).raw))
    check(text.strip(), f"the LLM said blanks, the agent gets {text!r}")
    return f"the agent gets {text!r}"
