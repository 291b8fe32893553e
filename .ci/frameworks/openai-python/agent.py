"""The plain OpenAI SDK, a hand-written tool loop. KIND=async: AsyncOpenAI; HISTORY=items: whole inputs."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import Client
from openai import AsyncOpenAI, OpenAI

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
STREAM = os.environ.get("STREAM") == "1"
ASYNC = os.environ.get("KIND") == "async"
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTIONS = {
    "get_weather": lambda city: f"It is sunny in {city}.",
    "get_time": lambda city: f"It is 12:00 in {city}.",
}

client = AsyncOpenAI() if ASYNC else OpenAI()


async def ask(resource, final, **request):
    """Sends one request, plain or streamed, by either client."""
    if not STREAM:
        return await resource.create(**request) if ASYNC else resource.create(**request)
    if ASYNC:
        async with resource.stream(**request) as stream:
            return await getattr(stream, final)()
    with resource.stream(**request) as stream:
        return getattr(stream, final)()


async def run(tools, name, arguments):
    """What a tool answers; an error text if it cannot."""
    try:
        if tools:
            result = await tools.call_tool(name, json.loads(arguments))
            return "\n".join(part.text for part in result.content)
        return FUNCTIONS[name](**json.loads(arguments))
    except (KeyError, TypeError, ValueError) as error:
        return f"error: {error!r}"


async def chat(state, specs, tools, prompt):
    messages = state.setdefault("messages", [SYSTEM])
    messages.append({"role": "user", "content": prompt})
    specs = [{"type": "function", "function": spec} for spec in specs]
    while True:
        answer = await ask(
            client.chat.completions, "get_final_completion", model=MODEL, messages=messages, tools=specs
        )
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            content = await run(tools, call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


async def responses(state, specs, tools, prompt):
    items = os.environ.get("HISTORY") == "items"
    specs = [{"type": "function", "strict": False, **spec} for spec in specs]
    sent = [*state.get("items", []), {"role": "user", "content": prompt}]
    while True:
        request = {"model": MODEL, "instructions": SYSTEM["content"], "input": sent, "tools": specs}
        if not items and "previous" in state:
            request["previous_response_id"] = state["previous"]
        answer = await ask(client.responses, "get_final_response", **request)
        state["previous"] = answer.id
        calls = [item for item in answer.output if item.type == "function_call"]
        sent = [*sent, *answer.output] if items else []
        if not calls:
            state["items"] = sent
            return answer.output_text
        for call in calls:
            output = await run(tools, call.name, call.arguments)
            sent.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


async def main():
    turn = responses if os.environ.get("API") == "responses" else chat
    specs = [{"name": name, "description": name, "parameters": CITY} for name in FUNCTIONS]
    tools, state = None, {}
    async with AsyncExitStack() as stack:
        if os.environ.get("USE_MCP") == "1":
            tools = await stack.enter_async_context(Client(os.environ["EVAL_MCP_URL"]))
            specs = [
                {"name": it.name, "description": it.description, "parameters": it.input_schema}
                for it in (await tools.list_tools()).tools
            ]
        while prompt := await asyncio.to_thread(sys.stdin.readline):
            text = await turn(state, specs, tools, prompt.strip())
            print(text.replace("\n", "\\n"), flush=True)


asyncio.run(main())
