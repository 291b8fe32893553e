"""A Semantic Kernel agent: prompts come on standard input, one a line, and form one conversation."""

import asyncio
import contextlib
import os
import sys

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent, OpenAIResponsesAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin
from semantic_kernel.functions import kernel_function

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


class Tools:
    @kernel_function(description="Get the weather of a city.")
    def get_weather(self, city: str) -> str:
        return f"Sunny in {city}"

    @kernel_function(description="Get the local time of a city.")
    def get_time(self, city: str) -> str:
        return f"Noon in {city}"


async def answer(agent, prompt, thread):
    if not os.environ.get("STREAM"):
        response = await agent.get_response(messages=prompt, thread=thread)
        return str(response.content), response.thread
    text = ""
    async for response in agent.invoke_stream(messages=prompt, thread=thread):
        text, thread = text + str(response.content or ""), response.thread
    return text, thread


async def main():
    async with contextlib.AsyncExitStack() as stack:
        plugin = Tools()
        if os.environ.get("USE_MCP"):
            server = MCPStreamableHttpPlugin(name="Tools", url=os.environ["EVAL_MCP_URL"])
            plugin = await stack.enter_async_context(server)
        persona = {"name": "assistant", "instructions": "You are a helpful assistant.", "plugins": [plugin]}
        if os.environ.get("API") == "responses":
            agent = OpenAIResponsesAgent(ai_model_id=MODEL, client=AsyncOpenAI(), **persona)
        else:
            agent = ChatCompletionAgent(service=OpenAIChatCompletion(ai_model_id=MODEL), **persona)
        thread = None
        while line := await asyncio.to_thread(sys.stdin.readline):
            text, thread = await answer(agent, line.strip(), thread)
            print(text.replace("\n", "\\n"), flush=True)


asyncio.run(main())
