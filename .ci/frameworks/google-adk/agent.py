"""A Google ADK agent on LiteLLM: prompts come on standard input, one a line, and form one conversation."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.genai import types


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}"


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"Noon in {city}"


tools = [get_weather, get_time]
if os.environ.get("USE_MCP"):
    tools = [McpToolset(connection_params=StreamableHTTPConnectionParams(url=os.environ["EVAL_MCP_URL"]))]
agent = LlmAgent(
    name="assistant",
    model=LiteLlm(model="openai/" + os.environ.get("MODEL", "gpt-4o-mini")),
    instruction="You are a helpful assistant.",
    tools=tools,
)


async def main() -> None:
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")
    mode = StreamingMode.SSE if os.environ.get("STREAM") else StreamingMode.NONE
    while line := await asyncio.to_thread(sys.stdin.readline):
        prompt = types.Content(role="user", parts=[types.Part(text=line.strip())])
        config = RunConfig(streaming_mode=mode)
        async for event in runner.run_async(
            user_id="user", session_id=session.id, new_message=prompt, run_config=config
        ):
            if event.is_final_response():
                text = "".join(part.text or "" for part in event.content.parts)
        print(text.replace("\n", "\\n"), flush=True)
    await runner.close()


asyncio.run(main())
