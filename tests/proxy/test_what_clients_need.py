"""What a client cannot do without in an answer: each row of what was seen to break one, in every mode.

The clients named in a test's id broke, or fell silent, where what the test asks for was missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Body, Proxy, playing

from proxy.settings import PlayConfig

LAMP, STOCK = ("getPrice", {"thing": "lamp"}), ("countStock", {"thing": "lamp"})
TWO = [("getPrice", {"thing": "chair"}), STOCK]
SEARCH, FINAL = scenes.tool("search", words="string"), scenes.tool("final_answer", answer="string")
HANDOFF = scenes.tool("transfer_to_sales")
TEXT = "Grüße: a lamp costs 3. " * 12
SAID = {"role": "user", "content": "[[next-user-turn 1]]"}
NEXT = {"role": "user", "content": "[[next-user-turn 2]]"}
REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call"}
EXTRAS: Body = {"refusal": None, "annotations": [], "audio": None, "function_call": None}


def needed_by(*clients: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("clients", [", ".join(clients)])


@dataclass(frozen=True)
class Way:
    """How a Session is played, and how whole the provider's answers are."""

    tools: Any
    provider: str

    def __str__(self) -> str:
        return f"{self.tools}-{self.provider}"

    @property
    def play(self) -> PlayConfig:
        return PlayConfig(tools=self.tools, agent_tools="keep" if self.tools == "mcp" else "replace")

    @property
    def own_tools(self) -> list[Body]:
        return scenes.TOOLS if self.tools == "mcp" else [SEARCH]


WAYS = [Way(tools, told) for tools in ("intercept", "relay", "mcp") for told in ("whole", "bare", "chatty")]
every_way = pytest.mark.parametrize("way", WAYS, ids=str)


# A provider that leaves out all that it can, or says more than there is to say


def queue(provider: Any, way: Way, text: str | None = None, calls: Sequence[tuple[str, Any]] = ()) -> None:
    if way.provider == "whole":
        provider.reply(text, calls=list(calls))
        return

    def reply(request: Any) -> Any:
        extra = EXTRAS if way.provider == "chatty" else {}
        functions = [{"name": name, "arguments": json.dumps(given)} for name, given in calls]
        entries = [{"function": it} for it in functions]
        message: Body = {**extra, "content": text, **({"tool_calls": entries} if entries else {})}
        more = {"finish_reason": "eval_done", "logprobs": None} if extra else {}
        if request.body.get("stream"):
            for index, entry in enumerate(message.get("tool_calls", ())):
                entry["index"] = index
            chunks: list[Any] = [
                {"choices": [{"delta": message}]},
                {"choices": [{"delta": {}, "finish_reason": "eval_done"}]},
            ]
            return provider.as_stream([*chunks, provider.DONE])
        return provider.as_json({"choices": [{"message": message, **more}]})

    provider.queued(reply)


# An agent for each API, which gives every kind of answer that there is


Ask = Callable[..., Any]


def asker(proxy: Proxy, path: str, *, stream: bool, read: Callable[[bytes], Any], **more: Any) -> Ask:
    async def ask(session: str, said: list[Body], tools: list[Body]) -> Any:
        field = "input" if path == "responses" else "messages"
        given = [{**it["function"], "type": "function"} for it in tools] if field == "input" else tools
        body = {"model": "asked-model", field: said, "tools": given, "stream": stream, **more}
        answer = await proxy.send("POST", f"/s/{session}/v1/{path}", json=body)
        assert answer.status == 200, answer.raw
        return read(answer.raw)

    return ask


RECORDS = [
    *({**scenes.SHOP, "id": name} for name in ("shop", "hand", "wrong", "two")),
    *(scenes.chat(name, 1) for name in ("final", "over", "blank")),
]


async def kinds(provider: Any, way: Way, ask: Ask, results: Callable[[Any], list[Body]]) -> dict[str, Any]:
    """Each kind of answer, under its name."""
    given: dict[str, Any] = {}
    own = way.own_tools
    queue(provider, way, calls=[LAMP])
    queue(provider, way, TEXT)
    given["a text"] = await ask("shop", [SAID], own)
    if way.tools != "intercept":
        given["a call"] = given["a text"]
        given["a text"] = await ask("shop", [SAID, *results(given["a call"])], own)
        queue(provider, way, "Both.", calls=TWO)
        two = [
            SAID,
            {"role": "assistant", "content": "3."},
            {"role": "user", "content": "[[next-user-turn 2]]"},
        ]
        given["two calls beside a text"] = await ask("shop", two, own)
    queue(provider, way, calls=[("transfer_to_sales", {})])
    given["a handoff"] = await ask("hand", [SAID], [*own, HANDOFF])
    queue(provider, way, TEXT)
    given["a final_answer"] = await ask("final", [SAID], [*own, FINAL])
    queue(provider, way, calls=[STOCK])
    given["the end of a task"] = await ask("wrong", [SAID], own)
    queue(provider, way, TEXT)
    last = [SAID, {"role": "assistant", "content": TEXT}, NEXT]
    await ask("over", [SAID], own)
    given["the end of a session"] = await ask("over", last, own)
    if results not in (chat_results, stream_results):
        # In chat completions it is passed on as it is.
        queue(provider, way, TEXT)
        aside = [{"role": "system", "content": "Write a title."}, {"role": "user", "content": "Lamps"}]
        given["a call on the side"] = await ask("shop", aside, [])
    queue(provider, way, " \n")
    given["blanks"] = await ask("blank", [SAID], own)
    return given


Played = dict[str, Any]
Play = Callable[[Any, Path, Way], Awaitable[Played]]
PLAYED: dict[tuple[str, Way], Played] = {}
"""What was given in each way, by what asked for it: every row looks at the same answers."""


def once(play: Play) -> Play:
    async def played(provider: Any, folder: Path, way: Way) -> Played:
        if (play.__name__, way) not in PLAYED:
            PLAYED[play.__name__, way] = await play(provider, folder, way)
        return PLAYED[play.__name__, way]

    return played


def chat_results(completion: Body) -> list[Body]:
    message = completion["choices"][0]["message"]
    return [
        message,
        *({"role": "tool", "tool_call_id": it["id"], "content": "?"} for it in message["tool_calls"]),
    ]


def stream_results(events: list[Any]) -> list[Body]:
    return chat_results(folded(events))


@once
async def completions(provider: Any, folder: Path, way: Way) -> Played:
    async with playing(folder, provider.url, *RECORDS, play=way.play) as proxy:
        ask = asker(proxy, "chat/completions", stream=False, read=json.loads)
        return await kinds(provider, way, ask, chat_results)


def message_of(completion: Body) -> Body:
    message: Body = completion["choices"][0]["message"]
    return message


def calls_of(completion: Body) -> list[Body]:
    calls: list[Body] = message_of(completion).get("tool_calls", [])
    return calls


# 3.1 Chat completions


@every_way
@needed_by("pydantic-ai", "AI SDK")
async def test_a_completion_has_id_object_model_and_index(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        assert isinstance(completion["id"], str), kind
        assert completion["id"], kind
        assert completion["object"] == "chat.completion", kind
        assert completion["model"] == "asked-model", kind
        assert isinstance(completion["created"], int), kind
        assert [it["index"] for it in completion["choices"]] == [0], kind


@every_way
@needed_by("smolagents")
async def test_a_completion_has_its_tokens(provider: Any, tmp_path: Path, way: Way, clients: str) -> None:
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        usage = completion["usage"]
        counts = [usage["prompt_tokens"], usage["completion_tokens"]]
        assert usage["total_tokens"] == sum(counts), kind


@every_way
@needed_by("langchain", "pydantic-ai", "llama-index", "semantic-kernel")
async def test_a_message_says_that_it_is_the_assistants(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        assert message_of(completion)["role"] == "assistant", kind


@every_way
@needed_by("openai-agents", "pydantic-ai", "AI SDK", "@openai/agents")
async def test_a_call_says_that_it_is_of_a_function(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    given = await completions(provider, tmp_path, way)
    for kind, completion in given.items():
        for call in calls_of(completion):
            assert call["type"] == "function", kind
            assert isinstance(call["function"]["name"], str), kind
            assert isinstance(call["function"]["arguments"], str), kind
    expected = {"a handoff": 1, "a final_answer": 1}
    if way.tools != "intercept":
        expected |= {"a call": 1, "two calls beside a text": 2}
    assert {kind: len(calls_of(it)) for kind, it in given.items() if calls_of(it)} == expected


@every_way
@needed_by("openai-agents", "langchain", "pydantic-ai", "haystack", "@openai/agents", "autogen", "agno")
async def test_a_call_has_an_id_of_its_own_that_no_client_rewrites(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    given = await completions(provider, tmp_path, way)
    ids = [call["id"] for completion in given.values() for call in calls_of(completion)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"call_[0-9A-Za-z]{1,35}", it) for it in ids)


@every_way
@needed_by("AI SDK", "semantic-kernel")
async def test_the_finish_reason_is_one_that_every_client_knows(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        reason = completion["choices"][0]["finish_reason"]
        assert reason in REASONS, kind
        assert reason == ("tool_calls" if calls_of(completion) else "stop"), kind


@every_way
@needed_by("haystack", "@openai/agents", "pydantic-ai", "crewai", "adk", "smolagents")
async def test_a_message_without_calls_has_a_text(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        if not calls_of(completion):
            assert message_of(completion)["content"].strip(), kind


@every_way
@needed_by("litellm", "openai-js", "@openai/agents")
async def test_a_message_has_nothing_in_it_that_says_nothing(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    """They send back all keys that they get, which other providers then refuse."""
    for kind, completion in (await completions(provider, tmp_path, way)).items():
        keys = {"role", "content", "tool_calls"} if calls_of(completion) else {"role", "content"}
        assert set(message_of(completion)) == keys, kind


# 3.2 Chat completions in a stream


def read_events(raw: bytes) -> list[Any]:
    events = [it for it in raw.decode().split("\n\n") if it and not it.startswith(":")]
    texts = [event.removeprefix("data: ") for event in events]
    return [it if it == "[DONE]" else json.loads(it) for it in texts]


def folded(events: list[Any]) -> Body:
    """What a client makes of a stream that goes by `index` alone."""
    message: Body = {"role": "assistant", "content": ""}
    calls: dict[int, Body] = {}
    for choice in choices_of(events):
        message["content"] += choice["delta"].get("content") or ""
        for part in choice["delta"].get("tool_calls", ()):
            call = calls.setdefault(part["index"], part | {"function": dict(part["function"])})
            if call["function"] != part["function"]:
                call["function"]["arguments"] += part["function"]["arguments"]
    if calls:
        message["tool_calls"] = list(calls.values())
    return {"choices": [{"message": message}]}


def choices_of(events: list[Any]) -> list[Body]:
    return [choice for event in events if event != "[DONE]" for choice in event["choices"]]


def fragments(events: list[Any]) -> Iterator[Body]:
    for choice in choices_of(events):
        yield from choice["delta"].get("tool_calls", ())


@once
async def streams(provider: Any, folder: Path, way: Way) -> Played:
    return await streamed(provider, folder, way)


async def streamed(provider: Any, folder: Path, way: Way, **more: Any) -> Played:
    async with playing(folder, provider.url, *RECORDS, play=way.play) as proxy:
        ask = asker(proxy, "chat/completions", stream=True, read=read_events, **more)
        return await kinds(provider, way, ask, stream_results)


@every_way
@needed_by("all")
async def test_a_stream_is_one_of_chunks_with_id_and_model_and_ends_with_done(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await streams(provider, tmp_path, way)).items():
        assert events[-1] == "[DONE]", kind
        assert {it["object"] for it in events[:-1]} == {"chat.completion.chunk"}, kind
        assert len({it["id"] for it in events[:-1]}) == 1, kind
        assert events[0]["id"], kind
        assert {it["model"] for it in events[:-1]} == {"asked-model"}, kind


@every_way
@needed_by("openai-python", "openai-agents", "semantic-kernel", "openai-js", "AI SDK", "@openai/agents")
async def test_every_chunk_has_the_index_of_its_choice(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await streams(provider, tmp_path, way)).items():
        assert [len(it["choices"]) for it in events[:-1]] == [1] * (len(events) - 1), kind
        assert {it["index"] for it in choices_of(events)} == {0}, kind


@every_way
@needed_by("openai-js")
async def test_the_first_chunk_has_the_role(provider: Any, tmp_path: Path, way: Way, clients: str) -> None:
    for kind, events in (await streams(provider, tmp_path, way)).items():
        first, *others = choices_of(events)
        assert first["delta"]["role"] == "assistant", kind
        assert not any("role" in it["delta"] for it in others), kind


@every_way
@needed_by("openai-python", "openai-js", "langchain", "smolagents", "haystack", "AI SDK", "@openai/agents")
async def test_every_fragment_of_a_call_has_its_index(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    given = await streams(provider, tmp_path, way)
    for kind, events in given.items():
        seen = [it["index"] for it in fragments(events)]
        assert seen == sorted(seen), kind
    if way.tools != "intercept":
        assert {it["index"] for it in fragments(given["two calls beside a text"])} == {0, 1}


@every_way
@needed_by("openai-agents", "langchain", "litellm", "@openai/agents", "strands", "openai-js")
async def test_the_first_fragment_of_a_call_and_no_other_has_id_type_and_name(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await streams(provider, tmp_path, way)).items():
        begun: set[int] = set()
        for part in fragments(events):
            named = part["function"].keys() - {"arguments"} | part.keys() - {"index", "function"}
            assert named == (set() if part["index"] in begun else {"id", "type", "name"}), kind
            begun.add(part["index"])


@every_way
@needed_by("litellm", "adk", "strands", "openai-js", "AI SDK")
async def test_the_last_chunk_has_a_finish_reason(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await streams(provider, tmp_path, way)).items():
        *others, last = choices_of(events)
        assert last["delta"] == {}, kind
        calls = any(True for _ in fragments(events))
        assert last["finish_reason"] == ("tool_calls" if calls else "stop"), kind
        assert {it["finish_reason"] for it in others} == {None}, kind


@every_way
@needed_by("smolagents", "pydantic-ai", "strands", "agno", "semantic-kernel", "adk", "crewai", "AI SDK")
async def test_the_tokens_come_behind_the_last_chunk_when_asked_for(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    given = await streamed(provider, tmp_path, way, stream_options={"include_usage": True})
    for kind, events in given.items():
        last = events[-2]
        assert last["choices"] == [], kind
        assert set(last["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}, kind
        assert not any(it.get("usage") for it in events[:-2]), kind


@every_way
@needed_by("langchain", "openai-agents", "semantic-kernel", "AI SDK")
async def test_a_stream_says_what_a_whole_answer_says(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    (tmp_path / "whole").mkdir()
    whole = await completions(provider, tmp_path / "whole", way)
    for kind, events in (await streams(provider, tmp_path, way)).items():
        came, expected = message_of(folded(events)), message_of(whole[kind])
        assert (came["content"] or None) == expected["content"], kind
        functions = [[it["function"] for it in one.get("tool_calls", ())] for one in (came, expected)]
        assert functions[0] == functions[1], kind


# 3.3 Responses


def response_results(response: Body) -> list[Body]:
    calls = [it for it in response["output"] if it["type"] == "function_call"]
    told = [{"type": "function_call_output", "call_id": it["call_id"], "output": "?"} for it in calls]
    return [*response["output"], *told]


@once
async def responses(provider: Any, folder: Path, way: Way) -> Played:
    async with playing(folder, provider.url, *RECORDS, play=way.play) as proxy:
        return await kinds(
            provider, way, asker(proxy, "responses", stream=False, read=json.loads), response_results
        )


def response_calls(response: Body) -> list[Body]:
    return [it for it in response["output"] if it["type"] == "function_call"]


@every_way
@needed_by("litellm", "AI SDK 6", "openai-js", "semantic-kernel")
async def test_a_response_has_id_time_object_and_status(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, response in (await responses(provider, tmp_path, way)).items():
        assert re.fullmatch(r"resp_\w+", response["id"]), kind
        assert isinstance(response["created_at"], int | float), kind
        assert (response["object"], response["status"]) == ("response", "completed"), kind
        assert response["model"] == "asked-model", kind


@every_way
@needed_by("AI SDK", "haystack", "agno")
async def test_every_item_of_a_response_has_an_id_in_openais_form(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    given = await responses(provider, tmp_path, way)
    prefixes = {"message": "msg_", "function_call": "fc_", "reasoning": "rs_"}
    items = [item for response in given.values() for item in response["output"]]
    assert all(item["id"].startswith(prefixes[item["type"]]) for item in items)
    assert len({item["id"] for item in items}) == len(items)


@every_way
@needed_by("all")
async def test_the_parts_of_a_response_are_whole(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, response in (await responses(provider, tmp_path, way)).items():
        for item in response["output"]:
            assert item["status"] == "completed", kind
            if item["type"] == "message":
                assert item["role"] == "assistant", kind
                parts = [(it["type"], it["annotations"]) for it in item["content"]]
                assert parts == [("output_text", [])], kind
            else:
                assert isinstance(item["name"], str), kind
                assert isinstance(item["arguments"], str), kind
                assert re.fullmatch(r"call_[0-9A-Za-z]{1,35}", item["call_id"]), kind


@every_way
@needed_by("pydantic-ai", "litellm", "crewai", "haystack", "@openai/agents")
async def test_a_response_without_calls_has_a_text(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, response in (await responses(provider, tmp_path, way)).items():
        assert response["output"], kind
        if not response_calls(response):
            assert response["output"][-1]["content"][0]["text"].strip(), kind


# 3.4 Responses in a stream


def read_named_events(raw: bytes) -> list[Body]:
    found = [it for it in raw.decode().split("\n\n") if it and not it.startswith(":")]
    return [json.loads(event.partition("data: ")[2]) for event in found]


@once
async def response_streams(provider: Any, folder: Path, way: Way) -> Played:
    async with playing(folder, provider.url, *RECORDS, play=way.play) as proxy:
        ask = asker(proxy, "responses", stream=True, read=read_named_events)
        return await kinds(provider, way, ask, lambda events: response_results(events[-1]["response"]))


def of_type(events: list[Body], kind: str) -> list[Body]:
    return [event for event in events if event["type"] == kind]


@every_way
@needed_by("openai-python", "openai-js", "AI SDK", "@openai/agents")
async def test_a_stream_of_a_response_begins_with_the_whole_response(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await response_streams(provider, tmp_path, way)).items():
        assert events[0]["type"] == "response.created", kind
        first = events[0]["response"]
        assert first["object"] == "response", kind
        for key in ("id", "created_at", "model"):
            assert first[key] == events[-1]["response"][key], kind


@every_way
@needed_by(
    "openai-python", "openai-js", "langchain", "strands", "agno", "semantic-kernel", "AI SDK", "haystack"
)
async def test_every_item_of_a_stream_is_begun_and_ended(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await response_streams(provider, tmp_path, way)).items():
        output = events[-1]["response"]["output"]
        begun = [it["item"] for it in of_type(events, "response.output_item.added")]
        ended = [it["item"] for it in of_type(events, "response.output_item.done")]
        assert [(it["id"], it["type"]) for it in begun] == [(it["id"], it["type"]) for it in output], kind
        assert ended == output, kind
        assert all(it["status"] == "completed" for it in ended), kind


@every_way
@needed_by("openai-python", "langchain", "pydantic-ai", "strands", "agno", "haystack", "AI SDK")
async def test_the_text_comes_in_parts_and_deltas(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await response_streams(provider, tmp_path, way)).items():
        output = events[-1]["response"]["output"]
        texts = [it["text"] for item in output if item["type"] == "message" for it in item["content"]]
        assert len(of_type(events, "response.content_part.added")) == len(texts), kind
        deltas = of_type(events, "response.output_text.delta")
        assert "".join(it["delta"] for it in deltas) == "".join(texts), kind
        assert {it["item_id"] for it in deltas} <= {item["id"] for item in output}, kind


@every_way
@needed_by("openai-python", "openai-agents", "@openai/agents", "AI SDK", "llama-index", "openai-js")
async def test_a_stream_ends_with_the_whole_response_again(
    provider: Any, tmp_path: Path, way: Way, clients: str
) -> None:
    for kind, events in (await response_streams(provider, tmp_path, way)).items():
        assert events[-1]["type"] == "response.completed", kind
        assert events[-1]["response"]["output"], kind
        usage = events[-1]["response"]["usage"]
        assert kind == "a call on the side" or usage["total_tokens"] >= 0, kind
