"""LlamaIndex's FunctionAgent, which streams by default; a Memory keeps the conversation."""

import asyncio
import os
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is sunny in {city}."


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"It is 12:00 in {city}."


async def main() -> None:
    tools = [get_weather, get_time]
    if os.environ.get("USE_MCP") == "1":
        tools = await McpToolSpec(BasicMCPClient(os.environ["EVAL_MCP_URL"])).to_tool_list_async()
    llm = OpenAIResponses if os.environ.get("API") == "responses" else OpenAI
    agent = FunctionAgent(
        tools=tools,
        llm=llm(model=os.environ.get("MODEL", "gpt-4o-mini"), api_base=os.environ["OPENAI_BASE_URL"]),
        system_prompt="You are a helpful assistant.",
        streaming=os.environ.get("STREAM") == "1",
    )
    memory = Memory.from_defaults(session_id="conversation")
    while prompt := await asyncio.to_thread(sys.stdin.readline):
        answer = await agent.run(prompt.strip(), memory=memory)
        print(str(answer).replace("\n", "\\n"), flush=True)


asyncio.run(main())
