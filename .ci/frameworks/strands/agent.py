"""A Strands agent: prompts come on standard input, one a line, and form one conversation."""

import os
import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.tools.mcp import MCPClient


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}"


@tool
def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"Noon in {city}"


Model = OpenAIResponsesModel if os.environ.get("API") == "responses" else OpenAIModel
mcp = bool(os.environ.get("USE_MCP"))
agent = Agent(
    model=Model(model_id=os.environ.get("MODEL", "gpt-4o-mini")),
    tools=[MCPClient(url=os.environ["EVAL_MCP_URL"])] if mcp else [get_weather, get_time],
    system_prompt="You are a helpful assistant.",
    callback_handler=None,
)
for line in sys.stdin:
    print(str(agent(line.strip())).strip().replace("\n", "\\n"), flush=True)
