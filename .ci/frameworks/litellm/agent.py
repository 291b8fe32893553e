"""A loop around LiteLLM: prompts come on standard input, one a line, and form one conversation."""

import asyncio
import contextlib
import json
import os
import sys

import litellm
from litellm.mcp_client import call_openai_tool, load_mcp_tools
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
ROUTE = "openai/responses/" if os.environ.get("API") == "responses" else "openai/"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OWN = {"get_weather": lambda city: f"Sunny in {city}", "get_time": lambda city: f"Noon in {city}"}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in OWN]


async def run(call, session):
    if session:
        result = await call_openai_tool(session, openai_tool=call)
        return "\n".join(part.text for part in result.content)
    if call.function.name not in OWN:
        return f"There is no tool {call.function.name}"
    return OWN[call.function.name](**json.loads(call.function.arguments))


async def answer(messages, tools, session):
    while True:
        request = {"model": ROUTE + MODEL, "messages": messages, "tools": tools}
        if os.environ.get("STREAM"):
            chunks = [chunk async for chunk in await litellm.acompletion(**request, stream=True)]
            response = litellm.stream_chunk_builder(chunks, messages=messages)
        else:
            response = await litellm.acompletion(**request)
        message = response.choices[0].message
        messages.append(message)
        for call in message.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": await run(call, session)})
        if not message.tool_calls:
            return message.content


async def main():
    async with contextlib.AsyncExitStack() as stack:
        session, tools = None, TOOLS
        if os.environ.get("USE_MCP"):
            streams = await stack.enter_async_context(streamable_http_client(os.environ["EVAL_MCP_URL"]))
            session = await stack.enter_async_context(ClientSession(*streams[:2]))
            await session.initialize()
            tools = await load_mcp_tools(session, format="openai")
        messages = [{"role": "system", "content": "You are a helpful assistant."}]
        while line := await asyncio.to_thread(sys.stdin.readline):
            messages.append({"role": "user", "content": line.strip()})
            print((await answer(messages, tools, session)).replace("\n", "\\n"), flush=True)


asyncio.run(main())
