"""smolagents' ToolCallingAgent (KIND=code: CodeAgent); reset=False keeps the conversation."""

import os
import sys
from contextlib import ExitStack

from smolagents import CodeAgent, LogLevel, MCPClient, OpenAIModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: The name of the city.
    """
    return f"It is sunny in {city}."


@tool
def get_time(city: str) -> str:
    """Get the local time of a city.

    Args:
        city: The name of the city.
    """
    return f"It is 12:00 in {city}."


with ExitStack() as stack:
    tools = [get_weather, get_time]
    if os.environ.get("USE_MCP") == "1":
        server = {"url": os.environ["EVAL_MCP_URL"], "transport": "streamable-http"}
        tools = stack.enter_context(MCPClient(server))
    kind = CodeAgent if os.environ.get("KIND") == "code" else ToolCallingAgent
    agent = kind(
        tools=tools,
        model=OpenAIModel(model_id=os.environ.get("MODEL", "gpt-4o-mini")),
        stream_outputs=os.environ.get("STREAM") == "1",
        verbosity_level=LogLevel.ERROR,
    )
    for number, prompt in enumerate(sys.stdin):
        text = agent.run(prompt.strip(), reset=number == 0)
        print(str(text).replace("\n", "\\n"), flush=True)
