"""The OpenAI Agents SDK; a SQLiteSession keeps the conversation."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_default_openai_api
from agents.mcp import MCPServerStreamableHttp

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
if os.environ.get("API") == "chat":
    set_default_openai_api("chat_completions")


@function_tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is sunny in {city}."


@function_tool
def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"It is 12:00 in {city}."


async def run(agent: Agent, prompt: str, session: SQLiteSession, config: RunConfig) -> str:
    if os.environ.get("STREAM") != "1":
        return (await Runner.run(agent, prompt, session=session, run_config=config)).final_output
    result = Runner.run_streamed(agent, prompt, session=session, run_config=config)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def main() -> None:
    tools, session = {"tools": [get_weather, get_time]}, SQLiteSession("conversation")
    found = os.environ.get("TOOL_NOT_FOUND")
    config = RunConfig(tool_not_found_behavior=found) if found else RunConfig()
    async with AsyncExitStack() as stack:
        if os.environ.get("USE_MCP") == "1":
            server = MCPServerStreamableHttp({"url": os.environ["EVAL_MCP_URL"]})
            tools = {"mcp_servers": [await stack.enter_async_context(server)]}
        agent = Agent(name="Assistant", instructions="You are a helpful assistant.", model=MODEL, **tools)
        while prompt := await asyncio.to_thread(sys.stdin.readline):
            text = await run(agent, prompt.strip(), session, config)
            print(text.replace("\n", "\\n"), flush=True)


asyncio.run(main())
