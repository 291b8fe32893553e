"""What clients make of a conversation in their requests, as it was seen on the wire: each is played.

The client in a test's id sends what the test sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Body, Proxy, playing, prompt

from proxy.settings import PlayConfig
from scoring.logs.reader import open_log
from scoring.verdicts.wildtoolbench import score_session

LAMP, STOCK = ("getPrice", {"thing": "lamp"}), ("countStock", {"thing": "lamp"})
CHAIR, FLY = ("getPrice", {"thing": "chair"}), ("fly_to_moon", {"day": "now"})
PRICE, OTHERS = '{"price": 3, "unit": "€"}', ['{"price": 7}', "12 lamps"]
TOOLS = [scenes.tool("search", words="string")]
PATH = "/s/shop/v1/chat/completions"
RECORD = {**scenes.SHOP, "tasks": scenes.SHOP["tasks"][:2], "answer_list": scenes.SHOP["answer_list"][:2]}
WORDS = RECORD["tasks"]
DATE = "Current Date: 2025-03-04 09:30:00 Tuesday"

KEYS = {
    "system": {"content", "name"},
    "developer": {"content", "name"},
    "user": {"content", "name"},
    "assistant": {"content", "tool_calls"},
    "tool": {"content", "tool_call_id", "name"},
}
"""What providers take in a message, beside its role."""


def accepted(messages: Sequence[Body]) -> None:
    """A provider takes these: known keys, and behind each call its result and no other."""
    due: list[str] = []
    for message in messages:
        assert set(message) - {"role"} <= KEYS[message["role"]], message
        if isinstance(message.get("content"), list):
            assert all(set(part) == {"type", "text"} for part in message["content"]), message
        if message["role"] == "tool":
            due.remove(message["tool_call_id"])
        else:
            assert due == []
        calls = message.get("tool_calls", [])
        due = due + [call["id"] for call in calls]
        assert all(set(call) == {"id", "type", "function"} for call in calls)
    assert due == []


def told(messages: Sequence[Body]) -> list[Any]:
    """What the LLM was told by tools."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def said(message: Body) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def labels(log: Path) -> list[str | None]:
    found = open_log(log)
    [trajectory] = found.trajectories(found.runs()[0].id)
    return [task.label for task in score_session(trajectory).tasks]


# 1.2 System prompt, history, tools


Form = Callable[[Body], Body]


def same(message: Body) -> Body:
    return message


def parts(message: Body) -> Body:
    if not message.get("content"):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def compact(message: Body) -> Body:
    """Arguments read and written again."""
    entries = message.get("tool_calls") or []
    calls = [
        {
            **call,
            "function": {
                **call["function"],
                "arguments": json.dumps(json.loads(call["function"]["arguments"]), separators=(",", ":")),
            },
        }
        for call in entries
    ]
    return {**message, **({"tool_calls": calls} if calls else {})}


def nested(message: Body) -> Body:
    """Every key of the message is copied into its one part."""
    if not message.get("content"):
        return message
    part = {"type": "text", "text": message["content"], "role": "assistant", "refusal": None}
    return {**message, "content": [{**part, "annotations": [], "tool_calls": None}]}


def without_text(message: Body) -> Body:
    return {**message, "content": None} if message.get("tool_calls") else message


@dataclass(frozen=True)
class Client:
    """How a client writes each kind of message; `results` puts those of one step into an order."""

    system: Any = "Be helpful."
    role: str = "system"
    system_extra: tuple[tuple[str, Any], ...] = ()
    user: Form = same
    assistant: Form = same
    tool: Form = same
    results: Callable[[list[Body]], list[Body]] = list
    keeps: bool = True


EXTRA: Body = {"refusal": None, "annotations": [], "parsed": None, "audio": None, "function_call": None}
CLIENTS = {
    "openai-agents": Client(),
    "langchain": Client(assistant=without_text),
    "pydantic-ai": Client(assistant=compact),
    "llama-index": Client(role="developer", results=lambda found: found[::-1]),
    "autogen": Client(user=lambda it: {**it, "name": "user"}),
    "litellm": Client(assistant=lambda it: {**it, "annotations": []}),
    "strands": Client(user=parts, assistant=parts),
    "agno": Client(role="developer", assistant=lambda it: {**it, "content": it["content"] or ""}),
    "semantic-kernel": Client(system_extra=(("name", "Assistant"),), assistant=without_text),
    "adk": Client(
        system='Be helpful.\n\nYou are an agent. Your internal name is "a".',
        assistant=compact,
        tool=lambda it: {**it, "content": json.dumps({"result": it["content"]})},
    ),
    "crewai": Client(
        system="You are Pat. Your goal is to help.",
        user=lambda it: {
            **it,
            "content": f"\nCurrent Task: {it['content']}\n\nThis is the expected criteria: x",
        },
        assistant=without_text,
        tool=lambda it: {**it, "name": "getPrice"},
        keeps=False,
    ),
    "crewai over litellm": Client(
        system_extra=(("cache_breakpoint", True),),
        user=lambda it: {**it, "cache_breakpoint": True},
        assistant=without_text,
        tool=lambda it: {**it, "name": "getPrice", "cache_breakpoint": True},
        keeps=False,
    ),
    "openai-js": Client(assistant=lambda it: {**it, **EXTRA}),
    "@openai_agents": Client(assistant=nested),
    "ai-sdk": Client(user=parts),
    "llama-index without memory": Client(keeps=False),
}


class Agent:
    """A loop around chat completions that writes its messages as a client does."""

    def __init__(self, proxy: Proxy, client: Client, answer: str = "ERROR") -> None:
        system = {"role": client.role, "content": client.system, **dict(client.system_extra)}
        self._proxy, self._client, self._answer = proxy, client, answer
        self._system = self.messages = [system]

    async def say(self, text: str) -> str:
        kept = self.messages if self._client.keeps else self._system
        self.messages = [*kept, self._client.user({"role": "user", "content": text})]
        for _ in range(9):
            message = await self.ask()
            self.messages.append(self._client.assistant(message))
            if not message.get("tool_calls"):
                return str(message["content"])
            self.messages += self._client.results([self._result(it) for it in message["tool_calls"]])
        raise AssertionError("nine steps and not at the end")

    def _result(self, call: Body) -> Body:
        return self._client.tool({"role": "tool", "tool_call_id": call["id"], "content": self._answer})

    async def ask(self, **fields: Any) -> Body:
        body = {"model": "m", "messages": self.messages, "tools": TOOLS, **fields}
        answer = await self._proxy.send("POST", PATH, json=body)
        assert answer.status == 200, answer.raw
        message: Body = answer.json["choices"][0]["message"]
        return message


@pytest.mark.parametrize("history", ["gold", "live"])
@pytest.mark.parametrize("tools", ["intercept", "relay"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_conversation_in_the_form_of(
    provider: Any, tmp_path: Path, client: str, tools: Any, history: Any
) -> None:
    provider.reply("Let me see.", calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    provider.reply("7, and 12.")
    form = CLIENTS[client]
    play = PlayConfig(tools=tools, history=history)
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        agent = Agent(proxy, form)
        assert await agent.say("[[next-user-turn 1]]") == "A lamp costs 3."
        assert await agent.say("[[next-user-turn 2]]") == "7, and 12."
    for request in provider.requests:
        accepted(request.body["messages"])
    last = provider.requests[-1].body["messages"]
    remembered = form.keeps or history == "gold"
    assert sorted(told(last)) == sorted([PRICE, *OTHERS] if remembered else OTHERS)
    texts = [said(it) for it in last if it["role"] == "user"]
    assert [any(words in text for text in texts) for words in WORDS] == [remembered, True]
    assert said(last[0]).startswith(str(form.system)) and said(last[0]).endswith(DATE)
    assert last[0]["role"] == form.role
    assert labels(tmp_path / "log.db") == ["correct", "correct"]


@pytest.mark.parametrize("tools", ["intercept", "relay"])
async def test_smolagents_writes_calls_and_results_into_texts(
    provider: Any, tmp_path: Path, tools: Any
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    provider.reply("7, and 12.")
    system = {"role": "system", "content": [{"type": "text", "text": "Solve it."}]}
    own = [*TOOLS, scenes.tool("final_answer", answer="string")]
    messages, task = [system], "New task:\n[[next-user-turn 1]]"
    finals = []
    async with playing(tmp_path, provider.url, RECORD, play=PlayConfig(tools=tools)) as proxy:
        agent = Agent(proxy, Client())
        observed = ""
        for turn in (1, 2):
            task = f"{observed}New task:\n[[next-user-turn {turn}]]"
            messages.append({"role": "user", "content": [{"type": "text", "text": task}]})
            while True:
                agent.messages = messages
                message = await agent.ask(tools=own, tool_choice="required", stop=["Observation:"])
                calls = message["tool_calls"]
                text = f"Calling tools:\n{[{'id': it['id'], 'function': it['function']} for it in calls]}"
                messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
                if calls[0]["function"]["name"] == "final_answer":
                    finals.append(json.loads(calls[0]["function"]["arguments"])["answer"])
                    observed = f"Observation:\n{finals[-1]}\n"
                    break
                said_by = {"type": "text", "text": "Observation:\nno such tool"}
                messages.append({"role": "user", "content": [said_by]})
    assert finals == ["A lamp costs 3.", "7, and 12."]
    assert told(provider.requests[-1].body["messages"]) == [PRICE, *OTHERS]
    for request in provider.requests:
        accepted(request.body["messages"])
        assert "stop" not in request.body
        assert request.body["tool_choice"] == "auto"
    assert labels(tmp_path / "log.db") == ["correct", "correct"]


# 1.3 A tool that the agent does not have


ERRORS = {
    "openai-agents": "Tool 'fly_to_moon' not found.",
    "langgraph": "Error: fly_to_moon is not a valid tool, try one of [get_weather, get_time].",
    "pydantic-ai": (
        "{\"error\":\"Unknown tool name: 'fly_to_moon'. Available tools: 'get_time', 'get_weather'\"}"
    ),
    "llama-index": "Tool fly_to_moon not found. Please select a tool that is available.",
    "autogen": "Error: tool 'fly_to_moon' not found in any workbench",
    "strands": "Unknown tool: fly_to_moon",
    "agno": "Error: The requested tool does not exist or is not available.",
    "haystack": "Tool 'fly_to_moon' not found. Available tools: get_weather, get_time",
    "semantic-kernel": (
        "The tool call with name `fly_to_moon` is not part of the provided tools, please try again with a "
        "supplied tool call name and make sure to validate the name."
    ),
    "adk": (
        '{"error": "Invoking `fly_to_moon()` failed as no tool with that name is available. The tools you '
        "can call are: get_weather, get_time. You could retry, but it is IMPORTANT that you only call a tool "
        'from that list."}'
    ),
    "crewai": "Tool not found",
    "ai-sdk 6": "Model tried to call unavailable tool 'fly_to_moon'. Available tools: get_weather, get_time.",
    "ai-sdk 7": '{"error":"AI_NoSuchToolError: Model tried to call unavailable tool \'fly_to_moon\'."}',
}


@pytest.mark.parametrize("history", ["gold", "live"])
@pytest.mark.parametrize("client", ERRORS)
async def test_the_llm_is_not_told_that_the_agent_lacks_a_tool_by(
    provider: Any, tmp_path: Path, client: str, history: Any
) -> None:
    """Known and unknown side by side: the one gets its Observation, the other an error of ours."""
    provider.reply(calls=[FLY, LAMP])
    provider.reply("A lamp costs 3.")
    play = PlayConfig(tools="relay", history=history, on_mismatch="continue")
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        form = CLIENTS.get(client, Client())
        agent = Agent(proxy, form, ERRORS[client].replace("fly_to_moon", "getPrice"))
        assert await agent.say("[[next-user-turn 1]]") == "A lamp costs 3."
        rows = proxy.rows("SELECT name, outcome FROM tool_calls ORDER BY position")
        assert [it["outcome"] for it in rows] == ["unknown_tool", "served"]
    last = provider.requests[-1].body["messages"]
    accepted(last)
    [flight] = [it for it in told(last) if it != PRICE]
    assert len(told(last)) == 2
    assert json.loads(flight)["error"] == {
        "type": "unknown_tool",
        "message": "there is no tool called 'fly_to_moon'",
    }


@pytest.mark.parametrize("client", ["non-stream", "stream"])
async def test_of_a_call_that_smolagents_lacks_the_message_vanishes(
    provider: Any, tmp_path: Path, client: str
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, RECORD, play=PlayConfig(tools="relay")) as proxy:
        agent = Agent(proxy, Client())
        agent.messages = [{"role": "user", "content": "New task:\n[[next-user-turn 1]]"}]
        await agent.ask()
        agent.messages += [] if client == "non-stream" else [{"role": "assistant", "content": ""}]
        error = "Error:\nUnknown tool getPrice, should be one of: search, final_answer.\nNow let's retry: .."
        agent.messages.append({"role": "user", "content": error})
        assert (await agent.ask())["content"] == "A lamp costs 3."
        assert [it["turn"] for it in proxy.exchanges()] == [1, 1]
    assert told(provider.requests[-1].body["messages"]) == [PRICE]


def arguments(text: str) -> Form:
    def rewritten(message: Body) -> Body:
        calls = message.get("tool_calls") or []
        calls = [{**it, "function": {**it["function"], "arguments": text}} for it in calls]
        return {**message, **({"tool_calls": calls} if calls else {})}

    return rewritten


BROKEN = '{"thing": '
BAD_ARGUMENTS = {
    "pydantic-ai": arguments(json.dumps({"INVALID_JSON": BROKEN})),
    "ai-sdk": arguments("{}"),
    "llama-index": same,
    "haystack": lambda it: {"role": "assistant", "content": it["content"] or ""},
}


@pytest.mark.parametrize("history", ["gold", "live"])
@pytest.mark.parametrize("client", BAD_ARGUMENTS)
async def test_arguments_that_are_no_json_count_as_the_llm_wrote_them_whatever_is_echoed_by(
    provider: Any, tmp_path: Path, client: str, history: Any
) -> None:
    provider.reply(calls=[("getPrice", BROKEN)])
    provider.reply("I do not know.")
    play = PlayConfig(tools="relay", history=history, on_mismatch="continue")
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        drops = client == "haystack"
        form = Client(assistant=BAD_ARGUMENTS[client], results=(lambda _: []) if drops else list)
        assert await Agent(proxy, form).say("[[next-user-turn 1]]") == "I do not know."
        rows = proxy.rows("SELECT arguments, outcome FROM tool_calls")
        assert rows == [{"arguments": BROKEN, "outcome": "invalid_arguments"}]
    last = provider.requests[-1].body["messages"]
    accepted(last)
    if history == "gold" or not drops:
        [content] = told(last)
        assert json.loads(content)["error"]["type"] == "invalid_arguments"
    if history == "gold":
        [call] = [it for message in last for it in message.get("tool_calls", ())]
        assert call["function"]["arguments"] == BROKEN


# 1.4 An agent at the limit of its loop


FORCED = {
    "semantic-kernel": [],
    "crewai": [
        {
            "role": "user",
            "content": "Now it's time you MUST give your absolute best final answer. You'll ignore all "
            "previous instructions, stop using any tools, and just return your absolute BEST Final answer.",
        }
    ],
}


@pytest.mark.parametrize("history", ["gold", "live"])
@pytest.mark.parametrize("client", FORCED)
async def test_the_last_call_without_tools_of(
    provider: Any, tmp_path: Path, client: str, history: Any
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    play = PlayConfig(tools="relay", history=history)
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        agent = Agent(proxy, Client())
        agent.messages.append({"role": "user", "content": "[[next-user-turn 1]]"})
        message = await agent.ask()
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "?"}
        agent.messages += [message, result, *FORCED[client]]
        assert (await agent.ask(tools=None))["content"] == "A lamp costs 3."
        assert [it["reason"] for it in proxy.exchanges()] == [None, None]
    assert not provider.requests[1].body.get("tools")
    assert told(provider.requests[1].body["messages"]) == [PRICE]
    assert labels(tmp_path / "log.db")[0] == "correct"


@pytest.mark.parametrize(
    ("client", "closing"),
    [
        ("AI SDK", []),
        ("autogen", [{"role": "assistant", "content": "no such tool"}]),
        ("semantic-kernel in a stream", []),
    ],
)
@pytest.mark.parametrize("history", ["gold", "live"])
async def test_a_task_is_left_when_the_agent_stops_behind_its_tools(
    provider: Any, tmp_path: Path, client: str, closing: list[Body], history: Any
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply(calls=[CHAIR, STOCK])
    play = PlayConfig(tools="relay", history=history)
    async with playing(tmp_path, provider.url, RECORD, play=play) as proxy:
        agent = Agent(proxy, Client())
        agent.messages.append({"role": "user", "content": "[[next-user-turn 1]]"})
        message = await agent.ask()
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "?"}
        agent.messages += [message, result, *closing, {"role": "user", "content": "[[next-user-turn 2]]"}]
        given = await agent.ask()
        endings = [it["ending"] for it in proxy.rows("SELECT ending FROM tasks ORDER BY task")]
        if history == "live":
            assert (given["content"], len(provider.requests)) == ("[session over]", 1)
            assert endings == ["agent_stopped", "not_reached"]
        else:
            assert len(given["tool_calls"]) == 2
            assert told(provider.requests[1].body["messages"]) == [PRICE]
            assert endings == ["agent_stopped"]


# 1.5 Finish reasons and empty answers of the provider


LEFT_OUT = object()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize(
    "reason", ["stop", "tool_calls", "length", "content_filter", "eval_done", "", None, LEFT_OUT, 7, {}]
)
async def test_whatever_the_provider_gives_as_its_reason_the_agent_gets_one_it_knows(
    provider: Any, tmp_path: Path, reason: Any, calls: bool, stream: bool
) -> None:
    given = {"finish_reason": reason} if reason is not LEFT_OUT else {}
    function = {"name": "getPrice", "arguments": '{"thing": "lamp"}'}
    entry = {"index": 0, "id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [entry]}
    message = message if calls else {"role": "assistant", "content": "A lamp costs 3."}
    if stream:
        provider.stream([{"choices": [{"index": 0, "delta": message, **given}]}, provider.DONE])
    else:
        provider.json({"id": "c", "choices": [{"index": 0, "message": message, **given}]})
    record = RECORD if calls else scenes.chat("shop", 1)
    async with playing(tmp_path, provider.url, record, play=PlayConfig(tools="relay")) as proxy:
        if stream:
            async with proxy.sdk("shop").chat.completions.stream(**prompt(1, tools=TOOLS)) as events:
                [choice] = (await events.get_final_completion()).choices
        else:
            answer: Any = await proxy.sdk("shop").chat.completions.create(**prompt(1, tools=TOOLS))
            [choice] = answer.choices
        assert choice.finish_reason == ("tool_calls" if calls else "stop")
        assert bool(choice.message.tool_calls) is calls
        [step] = proxy.rows("SELECT decision FROM steps")
        assert step["decision"] == ("observe" if calls else "close")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("tools", ["intercept", "relay"])
@pytest.mark.parametrize("content", [None, "", " \n", LEFT_OUT, [], [{"type": "text", "text": ""}], 5])
@pytest.mark.parametrize("on_mismatch", ["stop", "continue"])
async def test_no_agent_is_given_an_empty_text(
    provider: Any, tmp_path: Path, content: Any, tools: Any, stream: bool, on_mismatch: Any
) -> None:
    """haystack, @openai/agents, pydantic-ai, crewai, adk and smolagents ask again and again, or raise."""
    message = {"role": "assistant", **({"content": content} if content is not LEFT_OUT else {})}
    if stream:
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        provider.stream([{"choices": [{"index": 0, "delta": message}]}, last, provider.DONE])
    else:
        provider.json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    play = PlayConfig(tools=tools, on_mismatch=on_mismatch)
    async with playing(tmp_path, provider.url, scenes.chat("shop", 1), play=play) as proxy:
        text = ""
        if stream:
            async with proxy.sdk("shop").chat.completions.stream(**prompt(1)) as events:
                text = (await events.get_final_completion()).choices[0].message.content or ""
        else:
            text = (await proxy.chat("shop", 1)).text
        assert text in ("[no text]", "[task over]")


# 3.5 Fields that clients add


FIELDS: dict[str, tuple[Body, Body]] = {
    "smolagents: stop": ({"stop": ["Observation:", "Calling tools:"]}, {}),
    "smolagents: required": ({"tool_choice": "required"}, {"tool_choice": "auto"}),
    "pydantic-ai: auto": ({"tool_choice": "auto"}, {"tool_choice": "auto"}),
    "a tool that is gone": (
        {"tool_choice": {"type": "function", "function": {"name": "search"}}},
        {"tool_choice": "auto"},
    ),
    "llama-index": (
        {"temperature": 0.1, "parallel_tool_calls": True},
        {"temperature": 0.1, "parallel_tool_calls": True},
    ),
    "haystack: n": ({"n": 1}, {"n": 1}),
    "openai-agents: verbosity": (
        {"verbosity": "low", "reasoning_effort": "low"},
        {"verbosity": "low", "reasoning_effort": "low"},
    ),
    "agno: store": ({"store": True}, {"store": True}),
    "crewai: response_format": ({"response_format": {"type": "json_object"}}, {}),
    "langchain: stream": ({"stream": False}, {"stream": False}),
}
KEPT = {"model", "messages", "tools"}


@pytest.mark.parametrize("field", FIELDS)
async def test_a_field_of_the_request_is_taken_and_passed_on_if_it_does_no_harm(
    provider: Any, tmp_path: Path, field: str
) -> None:
    sent, expected = FIELDS[field]
    provider.reply("shop is told 1")
    async with playing(tmp_path, provider.url, scenes.chat("shop", 1)) as proxy:
        assert (await proxy.chat("shop", 1, tools=TOOLS, **sent)).text == "shop is told 1"
    assert {key: it for key, it in provider.requests[0].body.items() if key not in KEPT} == expected


STRICT = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "T", "additionalProperties": False}


@pytest.mark.parametrize("agent_tools", ["replace", "append"])
@pytest.mark.parametrize(
    "client", ["openai-agents: strict", "AI SDK: $schema", "semantic-kernel: Plugin-name", "agno: sorted"]
)
async def test_tools_in_the_form_of(provider: Any, tmp_path: Path, client: str, agent_tools: Any) -> None:
    function: Body = {**scenes.tool("Tools-search", words="string")["function"]}
    if "strict" in client:
        function["strict"] = True
    function["parameters"] = {**function["parameters"], **STRICT}
    own = [{"type": "function", "function": function}]
    provider.reply("shop is told 1")
    play = PlayConfig(agent_tools=agent_tools)
    async with playing(tmp_path, provider.url, scenes.chat("shop", 1), play=play) as proxy:
        assert (await proxy.chat("shop", 1, tools=own)).text == "shop is told 1"
    sent = provider.requests[0].body["tools"]
    assert [it for it in sent if it["function"]["name"] == "Tools-search"] == (
        own if agent_tools == "append" else []
    )
    assert not any("strict" in it["function"] for it in sent[-len(scenes.TOOLS) :])


# 3.5 Errors


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PATH, {"messages": []}, 400),
        ("POST", PATH, prompt(1, n=2), 400),
        ("POST", PATH, prompt(9), 400),
        ("POST", "/s/nowhere/v1/chat/completions", prompt(1), 404),
        ("POST", "/s/shop/v1/completions", {"prompt": "Hi"}, 400),
        ("POST", "/s/shop/v1/responses", {}, 400),
        ("POST", "/s/shop/v1/responses", {"input": "Hi", "previous_response_id": "resp_gone"}, 400),
        ("GET", "/s/shop/v1/responses/resp_gone", None, 404),
        ("GET", "/s/shop/v1/threads", None, 404),
        ("POST", "/s/shop/v1/audio/speech", {"input": "Hi"}, 404),
        ("PUT", "/s/shop/v1/chat/completions", {}, 404),
    ],
)
async def test_an_error_has_openais_form_and_is_not_to_be_retried(
    provider: Any, tmp_path: Path, method: str, path: str, body: Any, status: int
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.send(method, path, **({} if body is None else {"json": body}))
        assert answer.status == status
        assert answer.error["message"]
        assert answer.headers["Content-Type"].startswith("application/json")
        assert answer.headers["x-should-retry"] == "false"
        assert provider.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_failure_that_the_proxy_has_tried_again_is_not_to_be_retried(
    provider: Any, tmp_path: Path, status: int
) -> None:
    """crewai would begin its task anew, strands and smolagents wait for minutes."""
    provider.script(lambda request: provider.as_json({"error": {"message": "busy"}}, status))
    async with playing(tmp_path, provider.url, provider_retries=0) as proxy:
        answer = await proxy.chat("shop", 1)
        assert (answer.status, answer.headers["x-should-retry"]) == (status, "false")
