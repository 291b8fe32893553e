"""A Haystack agent: prompts come on standard input, one a line, and form one conversation."""

import os
import sys
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo


@tool
def get_weather(city: Annotated[str, "the city"]) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}"


@tool
def get_time(city: Annotated[str, "the city"]) -> str:
    """Get the local time of a city."""
    return f"Noon in {city}"


Generator = OpenAIResponsesChatGenerator if os.environ.get("API") == "responses" else OpenAIChatGenerator
tools = [get_weather, get_time]
if os.environ.get("USE_MCP"):
    tools = MCPToolset(StreamableHttpServerInfo(url=os.environ["EVAL_MCP_URL"]))
agent = Agent(
    chat_generator=Generator(model=os.environ.get("MODEL", "gpt-4o-mini")),
    tools=tools,
    system_prompt="You are a helpful assistant.",
    streaming_callback=(lambda chunk: None) if os.environ.get("STREAM") else None,
)
history = []
for line in sys.stdin:
    result = agent.run(messages=[*history, ChatMessage.from_user(line.strip())])
    history = [message for message in result["messages"] if not message.is_from("system")]
    print(result["last_message"].text.replace("\n", "\\n"), flush=True)
if os.environ.get("USE_MCP"):
    tools.close()
