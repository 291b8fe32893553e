"""AutoGen's AssistantAgent, which keeps the conversation itself."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams


async def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is sunny in {city}."


async def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"It is 12:00 in {city}."


async def main() -> None:
    tools = {"tools": [get_weather, get_time]}
    client = OpenAIChatCompletionClient(model=os.environ.get("MODEL", "gpt-4o-mini"))
    async with AsyncExitStack() as stack:
        if os.environ.get("USE_MCP") == "1":
            server = StreamableHttpServerParams(url=os.environ["EVAL_MCP_URL"])
            tools = {"workbench": await stack.enter_async_context(McpWorkbench(server))}
        agent = AssistantAgent(
            "assistant",
            model_client=client,
            system_message="You are a helpful assistant.",
            model_client_stream=os.environ.get("STREAM") == "1",
            max_tool_iterations=int(os.environ.get("MAX_TOOL_ITERATIONS", "10")),
            **tools,
        )
        while prompt := await asyncio.to_thread(sys.stdin.readline):
            result = await agent.run(task=prompt.strip())
            print(result.messages[-1].to_text().replace("\n", "\\n"), flush=True)
    await client.close()


asyncio.run(main())
