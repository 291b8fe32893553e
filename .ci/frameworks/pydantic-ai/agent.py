"""Pydantic AI; the conversation is passed on as message_history."""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

PROVIDER = "openai-chat" if os.environ.get("API") == "chat" else "openai-responses"


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is sunny in {city}."


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"It is 12:00 in {city}."


async def run(agent: Agent, prompt: str, history: list) -> tuple[str, list]:
    if os.environ.get("STREAM") != "1":
        result = await agent.run(prompt, message_history=history)
        return result.output, result.all_messages()
    async with agent.run_stream(prompt, message_history=history) as result:
        async for _ in result.stream_text():
            pass
        return await result.get_output(), result.all_messages()


async def main() -> None:
    tools = {"tools": [get_weather, get_time]}
    if os.environ.get("USE_MCP") == "1":
        tools = {"toolsets": [MCPToolset(os.environ["EVAL_MCP_URL"])]}
    agent = Agent(
        f"{PROVIDER}:{os.environ.get('MODEL', 'gpt-4o-mini')}",
        instructions="You are a helpful assistant.",
        **tools,
    )
    history = []
    async with agent:
        while prompt := await asyncio.to_thread(sys.stdin.readline):
            text, history = await run(agent, prompt.strip(), history)
            print(text.replace("\n", "\\n"), flush=True)


asyncio.run(main())
