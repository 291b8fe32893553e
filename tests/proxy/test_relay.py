"""Tool calls that go to the agent: whatever its tools say, the LLM gets the Observations."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Body, Proxy, history, playing, prompt

from proxy.settings import PlayConfig

RELAY = PlayConfig(tools="relay")
LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})
STOCK, WEIGH = ("countStock", {"thing": "lamp"}), ("weigh", {"thing": "lamp", "kilos": 1.5})
OWN_TOOLS = [scenes.tool("search", words="string")]


class Agent:
    """A plain loop around chat completions, in whose place a test says what its tools answer."""

    def __init__(self, proxy: Proxy, session: str) -> None:
        self.messages: list[Body] = []
        self._proxy = proxy
        self._path = f"/s/{session}/v1/chat/completions"

    async def say(self, text: str) -> Body:
        self.messages.append({"role": "user", "content": text})
        return await self.go_on()

    async def go_on(self, *said: Body) -> Body:
        """Sends the conversation with these messages behind it; gives the answer's message."""
        self.messages += said
        message = await self.ask(self.messages)
        self.messages.append(message)
        return message

    async def ask(self, messages: list[Body]) -> Body:
        asked = {"model": "m", "messages": messages, "tools": OWN_TOOLS}
        answer = await self._proxy.send("POST", self._path, json=asked)
        assert answer.status == 200, answer.raw
        message: Body = answer.json["choices"][0]["message"]
        return message


def result(call: Body, content: Any = "my own tool's words") -> Body:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def names(message: Body) -> list[str]:
    return [call["function"]["name"] for call in message["tool_calls"]]


def told(messages: list[Body]) -> list[Any]:
    """What the LLM was told by tools, in the order in which it was sent."""
    return [message["content"] for message in messages if message["role"] == "tool"]


async def test_the_calls_go_to_the_agent_and_the_llm_gets_the_observations(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]")
        assert names(message) == ["getPrice"]
        assert message["tool_calls"][0]["function"]["arguments"] == '{"thing": "lamp"}'
        final = await agent.go_on(result(message["tool_calls"][0], "ERROR: no such tool"))
        assert final == {"role": "assistant", "content": "A lamp costs 3."}
        assert told(provider.requests[1].body["messages"]) == ['{"price": 3, "unit": "€"}']
        [task] = proxy.rows("SELECT ending FROM tasks")
        assert task["ending"] == "closed"
        assert [it["reason"] for it in proxy.exchanges()] == [None, None]


async def test_the_calls_come_in_a_stream_too(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        client = proxy.sdk("shop")
        asked: Any = {**prompt(1), "tools": OWN_TOOLS}
        async with client.chat.completions.stream(**asked) as stream:
            message = (await stream.get_final_completion()).choices[0].message
        assert message.tool_calls is not None
        asked["messages"] += [
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "?"},
        ]
        async with client.chat.completions.stream(**asked) as stream:
            final = (await stream.get_final_completion()).choices[0].message
        assert (final.content, final.tool_calls) == ("A lamp costs 3.", None)


async def test_ids_are_our_own_and_no_two_in_a_run_are_the_same(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, calls=[(*LAMP, "call_1")]))
    async with playing(
        tmp_path, provider.url, scenes.SHOP, {**scenes.SHOP, "id": "two"}, play=RELAY
    ) as proxy:
        given = [
            (await Agent(proxy, session).say("[[next-user-turn 1]]"))["tool_calls"][0]["id"]
            for session in ("shop", "two", "shop.e2")
        ]
        assert len(set(given)) == 3
        assert all(re.fullmatch(r"call_[0-9A-Za-z]{1,35}", it) for it in given)


async def test_missing_and_doubled_ids_become_ids_of_their_own(provider: Any, tmp_path: Path) -> None:
    call = {"type": "function", "function": {"name": "getPrice", "arguments": '{"thing": "lamp"}'}}
    other = {
        "id": "x",
        "type": "function",
        "function": {"name": "getPrice", "arguments": '{"thing": "chair"}'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "x"}, other]}
    provider.json({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    provider.json(
        {
            "id": "c",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "tool_calls": [
                            {"function": {"name": "weigh", "arguments": '{"thing": "lamp", "kilos": 1.5}'}}
                        ],
                    },
                }
            ],
        }
    )
    async with playing(tmp_path, provider.url, scenes.TWINS, play=RELAY) as proxy:
        agent = Agent(proxy, "twins")
        first = await agent.say("[[next-user-turn 1]]")
        second = await agent.go_on(*map(result, first["tool_calls"]))
        ids = [it["id"] for it in (*first["tool_calls"], *second["tool_calls"])]
        assert len(set(ids)) == 3
        assert told(provider.requests[1].body["messages"]) == ['{"price": 3}', '{"price": 7}']


RESULTS: dict[str, Any] = {
    "in order": lambda a, b: [result(a), result(b)],
    "the other way round": lambda a, b: [result(b), result(a)],
    "one is missing": lambda a, b: [result(b)],
    "all are missing": lambda a, b: [],
    "one is doubled": lambda a, b: [result(a), result(a, "again"), result(b)],
    "merged into one": lambda a, b: [result(a, "price: ?, stock: ?")],
    "in parts": lambda a, b: [result(a, [{"type": "text", "text": "?"}]), result(b, [])],
    "in words of the user": lambda a, b: [{"role": "user", "content": "Observation: nothing at all"}],
    "of a tool nobody has": lambda a, b: [result(a), result(b), result({"id": "call_unknown"})],
    "content that is none": lambda a, b: [result(a, None), result(b, {"result": 1})],
}


@pytest.mark.parametrize("live", [False, True], ids=["gold", "live"])
@pytest.mark.parametrize("way", RESULTS)
async def test_whatever_comes_back_the_llm_gets_each_observation_once(
    provider: Any, tmp_path: Path, way: str, live: bool
) -> None:
    record = scenes.record("pair", ("Price of a chair, and how many lamps?", scenes.SHOP["answer_list"][1]))
    provider.reply(calls=[STOCK, CHAIR])
    provider.reply("7, and 12.")
    play = PlayConfig(tools="relay", history="live" if live else "gold")
    async with playing(tmp_path, provider.url, record, play=play) as proxy:
        agent = Agent(proxy, "pair")
        first, second = (await agent.say("[[next-user-turn 1]]"))["tool_calls"]
        final = await agent.go_on(*RESULTS[way](first, second))
        assert final["content"] == "7, and 12."
        sent = provider.requests[1].body["messages"]
        [calling] = [message for message in sent if message.get("tool_calls")]
        by_id = {it["tool_call_id"]: it["content"] for it in sent if it["role"] == "tool"}
        texts = [by_id[call["id"]] for call in calling["tool_calls"]]
        assert [_text(it) for it in texts] == ["12 lamps", '{"price": 7}']
        assert len(told(sent)) == 2
        assert proxy.rows("SELECT ending FROM tasks") == [{"ending": "closed"}]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


async def test_a_request_that_is_sent_again_gets_the_same_calls_and_plays_nothing(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        first = await agent.say("[[next-user-turn 1]]")
        assert await agent.ask(agent.messages[:-1]) == first
        assert len(provider.requests) == 1
        assert len(proxy.rows("SELECT * FROM steps")) == 1


async def test_past_results_are_replaced_in_every_later_request(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    async with playing(tmp_path, provider.url, play=PlayConfig(tools="relay", history="live")) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]")
        await agent.go_on(result(message["tool_calls"][0]))
        await agent.say("[[next-user-turn 2]]")
        sent = provider.requests[2].body["messages"]
        assert [it["content"] for it in sent if it["role"] == "user"] == scenes.SHOP["tasks"][:2]
        assert told(sent) == ['{"price": 3, "unit": "€"}']


async def test_a_wrong_step_ends_the_task_and_is_not_handed_over(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[STOCK])
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        message = await Agent(proxy, "shop").say("[[next-user-turn 1]]")
        assert message == {"role": "assistant", "content": "[task over]"}


async def test_with_continue_a_wrong_call_is_handed_over_and_gets_its_error(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[("fly", {"to": "moon"})])
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    play = PlayConfig(tools="relay", history="live", on_mismatch="continue")
    async with playing(tmp_path, provider.url, play=play) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]")
        assert names(message) == ["fly"]
        message = await agent.go_on(result(message["tool_calls"][0], "Tool fly not found"))
        assert "unknown_tool" in told(provider.requests[1].body["messages"])[0]
        final = await agent.go_on(result(message["tool_calls"][0]))
        assert final["content"] == "A lamp costs 3."
        rows = proxy.rows("SELECT name, outcome FROM tool_calls ORDER BY step")
        assert rows == [{"name": "fly", "outcome": "unknown_tool"}, {"name": "getPrice", "outcome": "served"}]


async def test_an_ask_is_a_text_and_the_reply_opens_the_next_turn(provider: Any, tmp_path: Path) -> None:
    record = scenes.record("book", ("Book one.", scenes.SHOP["answer_list"][2]))
    provider.reply("Which day?")
    provider.reply(calls=[("book", {"thing": "lamp", "day": "Monday"})])
    provider.reply("Booked.")
    async with playing(tmp_path, provider.url, record, play=RELAY) as proxy:
        agent = Agent(proxy, "book")
        assert (await agent.say("[[next-user-turn 1]]"))["content"] == "Which day?"
        message = await agent.say("[[next-user-turn 2]]")
        assert (await agent.go_on(result(message["tool_calls"][0])))["content"] == "Booked."
        assert provider.requests[1].body["messages"][-1]["content"] == "On Monday."


async def test_bare_prompts_stay_in_their_turn_until_its_text_was_given(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn]]")
        await agent.go_on(result(message["tool_calls"][0]))
        await agent.say("[[next-user-turn]]")
        assert [it["turn"] for it in proxy.exchanges()] == [1, 1, 2]


async def test_a_result_tells_which_session_an_address_without_one_means(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        asked = prompt(1, tools=OWN_TOOLS)
        asked["messages"][0]["content"] = "[[next-user-turn 1 session=shop]]"
        first = (await proxy.send("POST", "/v1/chat/completions", json=asked)).json["choices"][0]["message"]
        # The agent has lost the prompt: only the id of its call is left.
        again = {
            **asked,
            "messages": [{"role": "user", "content": "go on"}, first, result(first["tool_calls"][0])],
        }
        answer = await proxy.send("POST", "/v1/chat/completions", json=again)
        assert answer.json["choices"][0]["message"]["content"] == "A lamp costs 3."
        assert [it["correlation"] for it in proxy.exchanges()] == ["sentinel", "tool_call_id"]


async def test_an_agent_that_speaks_functions_is_handed_the_call_in_its_dialect(
    provider: Any, tmp_path: Path
) -> None:
    function = {"name": "getPrice", "arguments": '{"thing": "lamp"}'}
    message = {"role": "assistant", "content": None, "function_call": function}
    provider.json(
        {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]}
    )
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        asked = {**prompt(1), "functions": [OWN_TOOLS[0]["function"]]}
        path = "/s/shop/v1/chat/completions"
        [choice] = (await proxy.send("POST", path, json=asked)).json["choices"]
        assert (choice["message"]["function_call"], choice["finish_reason"]) == (function, "function_call")
        asked["messages"] += [choice["message"], {"role": "function", "name": "getPrice", "content": "?"}]
        [choice] = (await proxy.send("POST", path, json=asked)).json["choices"]
        assert choice["message"]["content"] == "A lamp costs 3."
        sent = history(proxy.log, proxy.exchanges("provider")[1]["tip"])
        assert sent[-1] == {"role": "function", "name": "getPrice", "content": '{"price": 3, "unit": "€"}'}


async def test_after_a_restart_the_agent_goes_on_with_its_calls(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply(calls=[CHAIR, STOCK])
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn]]")
        messages = agent.messages
    async with playing(tmp_path, provider.url, play=RELAY, runs="continue") as proxy:
        agent = Agent(proxy, "shop")
        agent.messages = messages
        assert await agent.ask(messages[:-1]) == message
        assert (await agent.go_on(result(message["tool_calls"][0])))["content"] == "A lamp costs 3."
    async with playing(tmp_path, provider.url, play=RELAY, runs="continue") as proxy:
        agent = Agent(proxy, "shop")
        agent.messages = messages
        assert names(await agent.say("[[next-user-turn]]")) == ["getPrice", "countStock"]
        assert len(proxy.rows("SELECT * FROM steps")) == 3


# Requests that come late, twice or from the side


async def test_an_earlier_request_of_the_turn_gets_the_calls_that_it_got(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[CHAIR])
    provider.reply(calls=[("getPrice", {"thing": "lamp"})])
    async with playing(tmp_path, provider.url, scenes.TWINS, play=RELAY) as proxy:
        agent = Agent(proxy, "twins")
        first = await agent.say("[[next-user-turn 1]]")
        second = await agent.go_on(result(first["tool_calls"][0]))
        assert await agent.ask(agent.messages[:1]) == first
        assert await agent.ask(agent.messages[:3]) == second
        assert len(provider.requests) == 2


@pytest.mark.parametrize("prompts", ["numbered", "bare"])
async def test_a_summary_after_the_answer_is_a_call_on_the_side(
    provider: Any, tmp_path: Path, prompts: str
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    provider.reply("They talked about lamps.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]" if prompts == "numbered" else "[[next-user-turn]]")
        await agent.go_on(result(message["tool_calls"][0]))
        asked = [*agent.messages, {"role": "user", "content": "Summarise the conversation so far."}]
        path = "/s/shop/v1/chat/completions"
        answer = await proxy.send("POST", path, json={"model": "m", "messages": asked})
        assert answer.json["choices"][0]["message"]["content"] == "They talked about lamps."
        assert proxy.exchanges()[-1]["reason"] is not None
        assert len(proxy.rows("SELECT * FROM steps")) == 2


async def test_an_agent_at_its_limit_gets_a_text_and_its_llm_no_tools(provider: Any, tmp_path: Path) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]")
        last = {"role": "user", "content": "Now give your final answer."}
        asked = [*agent.messages, result(message["tool_calls"][0]), last]
        answer = await proxy.send(
            "POST", "/s/shop/v1/chat/completions", json={"model": "m", "messages": asked}
        )
        assert answer.json["choices"][0]["message"]["content"] == "A lamp costs 3."
        assert "tools" not in provider.requests[1].body
        assert [it["reason"] for it in proxy.exchanges()] == [None, None]


async def test_killed_while_the_results_were_under_way_the_agent_is_not_given_its_calls_again(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.hang()
    provider.reply("A lamp costs 3.")
    merged = {"role": "user", "content": "Observation: nothing"}
    async with playing(tmp_path, provider.url, play=RELAY, abandon_after=0.0) as proxy:
        agent = Agent(proxy, "shop")
        await agent.say("[[next-user-turn 1]]")
        messages = [*agent.messages, merged]
        asked = {"model": "m", "messages": messages, "tools": OWN_TOOLS}
        left = asyncio.ensure_future(proxy.send("POST", "/s/shop/v1/chat/completions", json=asked))
        await provider.arrived(2)
        left.cancel()
        await asyncio.wait({left})
        await proxy.finished(2)
    async with playing(tmp_path, provider.url, play=RELAY, runs="continue") as proxy:
        assert (await Agent(proxy, "shop").ask(messages))["content"] == "A lamp costs 3."


async def test_a_provider_whose_ids_repeat_cannot_mix_up_two_sessions(provider: Any, tmp_path: Path) -> None:
    sales = scenes.tool("transfer_to_sales")
    other = {**scenes.SHOP, "id": "other"}
    provider.script(lambda request: provider.message(request, calls=[("transfer_to_sales", {}, "call_0")]))
    async with playing(tmp_path, provider.url, scenes.SHOP, other) as proxy:
        given = []
        for session in ("shop", "other"):
            body = prompt(1, tools=[sales])
            answer = await proxy.send("POST", f"/s/{session}/v1/chat/completions", json=body)
            given.append(answer.json["choices"][0]["message"])
        provider.script(lambda request: provider.message(request, "A lamp costs 3."))
        body = prompt(1, tools=[sales])
        body["messages"] = [{"role": "user", "content": "go on"}, given[1], result(given[1]["tool_calls"][0])]
        await proxy.send("POST", "/v1/chat/completions", json=body)
        sessions = proxy.rows("SELECT session_id FROM steps")
        assert [row["session_id"].rpartition("/")[2] for row in sessions] == ["other.e1"]


@pytest.mark.parametrize("history_mode", ["gold", "live"])
async def test_a_handoff_survives_a_restart(provider: Any, tmp_path: Path, history_mode: Any) -> None:
    sales = scenes.tool("transfer_to_sales")
    provider.reply(calls=[("transfer_to_sales", {}, "call_0")])
    provider.reply(calls=[(*LAMP, "call_0")])
    provider.reply("A lamp costs 3.")
    play = PlayConfig(tools="relay", history=history_mode)
    path = "/s/shop/v1/chat/completions"
    body = prompt(1, tools=[sales])
    async with playing(tmp_path, provider.url, play=play) as proxy:
        handoff = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
    body["messages"] += [handoff, result(handoff["tool_calls"][0], "You are sales now.")]
    body["messages"].insert(0, {"role": "system", "content": "You sell."})
    async with playing(tmp_path, provider.url, play=play, runs="continue") as proxy:
        calling = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
        assert names(calling) == ["getPrice"]
    body["messages"] += [calling, result(calling["tool_calls"][0])]
    async with playing(tmp_path, provider.url, play=play, runs="continue") as proxy:
        final = (await proxy.send("POST", path, json=body)).json["choices"][0]["message"]
        assert final["content"] == "A lamp costs 3."
        assert proxy.rows("SELECT ending FROM tasks") == [{"ending": "closed"}]
    sent = provider.requests[2].body["messages"]
    assert told(sent) == ["You are sales now.", '{"price": 3, "unit": "€"}']
    ids = [call["id"] for message in sent for call in message.get("tool_calls") or []]
    assert len(set(ids)) == 2


# What providers do that break the protocol


@pytest.mark.parametrize(
    "calls",
    [
        [None],
        ["getPrice"],
        [{"function": None}],
        [{"function": {"name": 3, "arguments": "{}"}}],
        [{"id": "x", "function": {"name": "getPrice", "arguments": {"thing": "sofa"}}}, 7],
        {"name": "getPrice"},
    ],
)
@pytest.mark.parametrize("tools", ["intercept", "relay"])
async def test_calls_that_break_the_protocol_are_wrong_calls_and_nothing_worse(
    provider: Any, tmp_path: Path, calls: Any, tools: Any
) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    provider.json({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    provider.reply("I do not know.")
    play = PlayConfig(tools=tools, history="live", on_mismatch="continue")
    async with playing(tmp_path, provider.url, play=play) as proxy:
        agent = Agent(proxy, "shop")
        said = await agent.say("[[next-user-turn 1]]")
        if tools == "relay":
            said = await agent.go_on(*map(result, said["tool_calls"]))
        assert said["content"] == "I do not know."
        for entry in [it for m in provider.requests[1].body["messages"] for it in m.get("tool_calls") or []]:
            assert isinstance(entry["function"]["name"], str)
            assert isinstance(entry["function"]["arguments"], str)
        assert {row["outcome"] for row in proxy.rows("SELECT outcome FROM tool_calls")} <= {
            "unknown_tool",
            "invalid_arguments",
            "no_data",
        }


# An agent that is not the same from request to request


async def test_a_router_that_asks_at_the_same_moment_does_not_take_the_conversation_over(
    provider: Any, tmp_path: Path
) -> None:
    provider.script(
        lambda request: provider.message(
            request,
            **({"text": "routed"} if "route" in str(request.body["messages"][0]) else {"calls": [LAMP]}),
        )
    )
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        path = "/s/shop/v1/chat/completions"

        def asked(system: str) -> Body:
            body = prompt(1, tools=OWN_TOOLS)
            return {**body, "messages": [{"role": "system", "content": system}, *body["messages"]]}

        own, router = await asyncio.gather(
            proxy.send("POST", path, json=asked("You help.")),
            proxy.send("POST", path, json=asked("You route.")),
        )
        assert names(own.json["choices"][0]["message"]) == ["getPrice"]
        assert router.json["choices"][0]["message"]["content"] == "routed"
        again = asked("You help.")
        again["messages"] += [own.json["choices"][0]["message"]]
        again["messages"] += map(result, again["messages"][-1]["tool_calls"])
        await proxy.send("POST", path, json=again)
        reasons = sorted((it["reason"] or "") for it in proxy.exchanges())
        assert reasons == ["", "", "another system prompt than the conversation's"]


async def test_a_system_prompt_with_a_clock_in_it_may_change_between_two_steps(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        agent.messages = [{"role": "system", "content": "It is 9:30."}]
        message = await agent.say("[[next-user-turn 1]]")
        agent.messages[0] = {"role": "system", "content": "It is 9:31."}
        assert (await agent.go_on(result(message["tool_calls"][0])))["content"] == "A lamp costs 3."


async def test_an_agent_that_sends_only_its_last_messages_stays_in_its_turn(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    provider.reply("A lamp costs 3.")
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        agent = Agent(proxy, "shop")
        message = await agent.say("[[next-user-turn 1]]")
        final = await agent.ask([message, result(message["tool_calls"][0])])
        assert final["content"] == "A lamp costs 3."
        assert provider.requests[1].body["messages"][1]["content"] == scenes.SHOP["tasks"][0]


async def test_an_agent_gets_its_calls_in_its_own_dialect_whatever_the_provider_speaks(
    provider: Any, tmp_path: Path
) -> None:
    function = {"name": "getPrice", "arguments": '{"thing": "lamp"}'}
    message = {"role": "assistant", "content": None, "function_call": function}
    provider.json(
        {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]}
    )
    provider.reply(calls=[LAMP])
    async with playing(
        tmp_path, provider.url, scenes.SHOP, {**scenes.SHOP, "id": "two"}, play=RELAY
    ) as proxy:
        modern = await Agent(proxy, "shop").say("[[next-user-turn 1]]")
        assert [call["function"] for call in modern["tool_calls"]] == [function]
        body = {**prompt(1), "functions": [OWN_TOOLS[0]["function"]]}
        answer = await proxy.send("POST", "/s/two/v1/chat/completions", json=body)
        [choice] = answer.json["choices"]
        assert (choice["message"]["function_call"], choice["finish_reason"]) == (function, "function_call")


async def test_the_calls_of_two_attempts_have_ids_of_their_own(provider: Any, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, calls=[LAMP]))
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        path = "/s/shop/v1/chat/completions"
        answers = [
            await proxy.send("POST", path, json=prompt(1, **more)) for more in ({}, {"tools": OWN_TOOLS})
        ]
        ids = [it.json["choices"][0]["message"]["tool_calls"][0]["id"] for it in answers]
        assert len(proxy.rows("SELECT * FROM sessions")) == 2
        assert len(set(ids)) == 2


async def test_a_key_beside_the_prompt_is_masked_wherever_the_words_are_kept(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply(calls=[LAMP])
    async with playing(tmp_path, provider.url, play=RELAY) as proxy:
        secret = "sk-canary-0123456789abcdef"
        body = prompt(1, tools=OWN_TOOLS)
        body["messages"][0]["content"] = f"OPENAI_API_KEY={secret} [[next-user-turn 1]]"
        headers = {"Authorization": f"Bearer {secret}"}
        await proxy.send("POST", "/s/shop/v1/chat/completions", json=body, headers=headers)
        log = proxy.log
    assert all(secret.encode() not in path.read_bytes() for path in log.parent.glob("log.db*"))
