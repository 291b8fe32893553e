"""A CrewAI agent: prompts come on standard input, one a line, and form one conversation.

Each prompt is a crew's task with the task before it as context; with KIND=agent the agent gets the messages
themselves.
"""

import os
import sys

from crewai import LLM, Agent, Crew, Task
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.tools import tool
from crewai_tools import MCPServerAdapter


@tool("get_weather")
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}"


@tool("get_time")
def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"Noon in {city}"


set_suppress_console_output(True)  # An agent without a crew draws its progress on standard output.
tools = [get_weather, get_time]
if os.environ.get("USE_MCP"):
    server = MCPServerAdapter({"url": os.environ["EVAL_MCP_URL"], "transport": "streamable-http"})
    tools = server.tools
agent = Agent(
    role="Assistant",
    goal="Help the user",
    backstory="You are a helpful assistant.",
    llm=LLM(
        model="openai/" + os.environ.get("MODEL", "gpt-4o-mini"),
        api="responses" if os.environ.get("API") == "responses" else "completions",
        stream=bool(os.environ.get("STREAM")),
    ),
    tools=tools,
)
messages, context = [], []
for line in sys.stdin:
    if os.environ.get("KIND") == "agent":
        messages.append({"role": "user", "content": line.strip()})
        text = agent.kickoff(messages).raw
        messages.append({"role": "assistant", "content": text})
    else:
        task = Task(description=line.strip(), expected_output="A short answer", agent=agent, context=context)
        text = Crew(agents=[agent], tasks=[task]).kickoff().raw
        context = [task]
    print(text.replace("\n", "\\n"), flush=True)
if os.environ.get("USE_MCP"):
    server.stop()
