"""LangChain's create_agent on LangGraph; a checkpointer keeps the conversation."""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

CONFIG = {"configurable": {"thread_id": "1"}}


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is sunny in {city}."


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"It is 12:00 in {city}."


async def run(agent, prompt: str) -> str:
    state = {"messages": [{"role": "user", "content": prompt}]}
    if os.environ.get("STREAM") != "1":
        return (await agent.ainvoke(state, CONFIG))["messages"][-1].text
    async for _ in agent.astream(state, CONFIG, stream_mode="messages"):
        pass
    return (await agent.aget_state(CONFIG)).values["messages"][-1].text


async def main() -> None:
    tools = [get_weather, get_time]
    if os.environ.get("USE_MCP") == "1":
        server = {"transport": "streamable_http", "url": os.environ["EVAL_MCP_URL"]}
        tools = await MultiServerMCPClient({"tools": server}).get_tools()
    model = ChatOpenAI(
        model=os.environ.get("MODEL", "gpt-4o-mini"),
        use_responses_api=os.environ.get("API") == "responses",
    )
    agent = create_agent(
        model, tools, system_prompt="You are a helpful assistant.", checkpointer=InMemorySaver()
    )
    while prompt := await asyncio.to_thread(sys.stdin.readline):
        print((await run(agent, prompt.strip())).replace("\n", "\\n"), flush=True)


asyncio.run(main())
