"""An Agno agent: prompts come on standard input, one a line, and form one conversation."""

import asyncio
import contextlib
import os
import sys

from agno.agent import Agent, RunContentEvent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.tools.mcp import MCPTools


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}"


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"Noon in {city}"


async def answer(agent: Agent, prompt: str) -> str:
    if not os.environ.get("STREAM"):
        return (await agent.arun(prompt)).content
    events = agent.arun(prompt, stream=True)
    return "".join([event.content or "" async for event in events if isinstance(event, RunContentEvent)])


async def main() -> None:
    Model = OpenAIResponses if os.environ.get("API") == "responses" else OpenAIChat
    async with contextlib.AsyncExitStack() as stack:
        tools = [get_weather, get_time]
        if os.environ.get("USE_MCP"):
            server = MCPTools(transport="streamable-http", url=os.environ["EVAL_MCP_URL"])
            tools = [await stack.enter_async_context(server)]
        agent = Agent(
            model=Model(id=os.environ.get("MODEL", "gpt-4o-mini")),
            tools=tools,
            instructions="You are a helpful assistant.",
            db=InMemoryDb(),
            add_history_to_context=True,
            num_history_runs=100,
            session_id="conversation",
        )
        while line := await asyncio.to_thread(sys.stdin.readline):
            print((await answer(agent, line.strip())).replace("\n", "\\n"), flush=True)


asyncio.run(main())
